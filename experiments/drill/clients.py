"""A drill's clients: open-loop readers, writers and listers; those who write the first objects and,
after the heal, read every key of the ledger from every node.

Keys that were removed are read too, and those of which it is unknown whether they were put. An
answer that may still change, that an object which must be there is not, or none at all, is
requested again: in all up to three passes, some time apart, within the time there is. What has
given no answer then is ``unread``, which is neither a loss nor its absence.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from wanlat.bundle.documents import MISSED
from wanlat.emulator.lab import Lab
from wanlat.emulator.syscalls import wait_readable
from wanlat.experiments.config.workloads import BUCKET
from wanlat.experiments.drill.ledger import Ledger, Object
from wanlat.experiments.drill.model import Way
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.drill.timeline import Span
from wanlat.experiments.requests import (
    POLL_MS,
    Row,
    Schedule,
    Sender,
    Workers,
    expired,
    is_not_found,
    on_object,
    row_of,
    spawn_on,
)
from wanlat.probes.objects import ObjectApi
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import Request
from wanlat.probes.protocols import header_to
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.systems.engine.protocols import Operation

FILL_OWNER = "filled"
LISTED = 100
"""The keys of a listing, where so many were written at first: none of them is removed."""


@dataclass(frozen=True)
class Turn:
    """One request, before anything is known of it."""

    seq: int
    phase: str
    due_ns: int
    removes: bool


@dataclass(frozen=True)
class Load:
    """What the clients of a drill have in common."""

    lab: Lab
    cluster: Cluster
    api: ObjectApi
    """How objects are requested."""
    ledger: Ledger
    seed: int
    object_bytes: int
    constant: Mapping[str, Any]
    """Columns that are the same in every row: ``system``, ``version``, ``topology``, ``rtt_ms``."""
    on_row: Callable[[Row], object]
    """Called from the clients' threads."""
    on_sent: Callable[[str, int], object] = lambda *_: None
    """Called so too: a request of a phase is handed over so long after it was due, ns."""
    delete_ratio: float = 0.0
    """The share of a writer's requests that delete an object of its own."""
    filled: int = 0
    """How many objects were written at first."""

    def name(self, does: Operation) -> str:
        """Return what samples call an operation."""
        return str(self.api.lists) if does == "list" else self.api.name(does)

    def note(
        self, place: Place, way: Way, phase: str, due_ns: int | None, key: str | None, came: Row
    ) -> None:
        """Write down what came of a request."""
        self.on_row(
            {
                **came,
                **self.constant,
                "phase": phase,
                "client": place.node,
                "drill_client": place.name,
                "target": place.target,
                "operation": way,
                "key": key,
                "placement": self.api.placement(self.cluster.replicas, place.target, key),
                "due_ns": due_ns,
            }
        )


class PlacedSender(Sender):
    """Sends requests from a client's place, writes on the ledger, and a row for each."""

    def __init__(
        self, load: Load, place: Place, way: Way, deadline_ms: int, stop: threading.Event
    ) -> None:
        """Start its process."""
        self._way = way
        self.is_of(load, place)
        self._then: Callable[[Sample], object]
        header = header_to(load.cluster.target(place.target), deadline_ms=deadline_ms)
        super().__init__(spawn_on(load.lab, place.node), header, stop)

    def is_of(self, load: Load, place: Place) -> None:
        """Send from now on for another client on the same node, to the same one."""
        self._load, self._place = load, place
        self._who = {"client": place.name, "target": place.target}

    def put(self, turn: Turn, what: Object, owner: str, left_ms: int) -> None:
        """Put an object, which ``owner`` may remove later."""
        ledger = self._load.ledger
        number = ledger.put(what, **self._who, owner=owner)

        def then(sample: Sample) -> None:
            ledger.complete(number, sample.outcome, sample.error)

        self._send(turn, self._on(turn, "write", what, left_ms), then)

    def remove(self, turn: Turn, owner: str, chance: random.Random, left_ms: int) -> bool:
        """Remove an object of the owner's; return whether there was any."""
        ledger = self._load.ledger
        chosen = ledger.remove_one(owner, chance, **self._who)
        if chosen is None:
            return False
        number, what = chosen

        def then(sample: Sample) -> None:
            if is_not_found(sample):  # what it has acknowledged, of which it may remove a part
                ledger.complete(number, "unknown", f"{MISSED}: {sample.error}")
            else:
                ledger.complete(number, sample.outcome, sample.error)

        self._send(turn, self._on(turn, "delete", what, left_ms), then)
        return True

    def get(self, turn: Turn, chance: random.Random, left_ms: int) -> bool:
        """Get any object with an acknowledged put; return whether there is one."""
        ledger = self._load.ledger
        what = ledger.take_to_read(chance)
        if what is None:
            return False

        def then(_: Sample) -> None:
            ledger.done_reading(what.key)

        self._send(turn, self._on(turn, "read", what, left_ms), then)
        return True

    def list(self, turn: Turn, left_ms: int) -> None:
        """List the first of the keys that were written at first, all of which must be there."""
        load = self._load
        request = Request(
            *(turn.seq, "measure", load.name("list"), BUCKET),
            prefix=load.api.key(load.seed, FILL_OWNER, 0)[: -len(str(LISTED - 1))],
            listed=min(load.filled, LISTED),
            deadline_ms=left_ms,
        )
        self._send(turn, request, lambda _: None)

    def take(self) -> Sample:
        """Take the sample of what was sent, and write down what came of it; raises as above."""
        return self._noted(super().take())

    def give_up(self) -> Sample:
        """Wait for no answer, and write that down."""
        return self._noted(super().give_up())

    def _noted(self, sample: Sample) -> Sample:
        turn, request = self._sent
        row = row_of(sample, request)
        self._load.note(self._place, self._way, turn.phase, turn.due_ns, request.key, row)
        self._then(sample)
        return sample

    def _on(self, turn: Turn, does: Operation, what: Object, left_ms: int) -> Request:
        return on_object(self._load.api, does, turn.seq, what, left_ms)

    def _send(self, turn: Turn, request: Request, then: Callable[[Sample], object]) -> None:
        self._sent, self._then = (turn, request), then
        self._load.on_sent(turn.phase, time.monotonic_ns() - turn.due_ns)
        self.hand_over(request)


class Client:
    """The reader, the writer or the lister of one client of the drill.

    It has so many requests in flight at most, each with a sender of its own. One that is due while
    as many are on their way waits in line, and is sent as soon as one of them is done, with what is
    left of its deadline, which counts from the instant it was due. Where too little is left it has
    expired: it is never sent, and has a row all the same. So a store that stands still for three
    seconds spoils every request that was due in these, and not one (no coordinated omission).
    """

    def __init__(
        self, load: Load, place: Place, way: Way, schedule: Schedule, in_flight: int = 1
    ) -> None:
        self.name = f"{place.name} {way}"
        self._load, self._place, self._way, self._schedule = load, place, way, schedule
        self._in_flight = in_flight
        self._chance = random.Random(f"{load.seed}/{self.name}")
        self._next: Object | None = None
        self._described = 0
        self._first: PlacedSender | None = None
        self._idle: list[PlacedSender] = []
        self._busy: dict[int, tuple[PlacedSender, int]] = {}
        """By descriptor, and since when."""
        self._took_ns = 0
        """The last request."""

    def start(self, stop: threading.Event) -> None:
        """Start the process of its first request, however long that takes; ``run`` ends it."""
        self._first = self._sender(stop)

    def run(
        self,
        origin_ns: int,
        spans: Sequence[Span],
        stop: threading.Event,
        by: PlacedSender | None = None,
    ) -> None:
        """Send every request that is due in these phases, and return when the last is done, or
        soon after ``stop`` is set.

        ``origin_ns`` (CLOCK_MONOTONIC) is the instant 0 of ``spans``. ``by``: who sends and is
        there already, and stays; when it has to stop, what is on its way is awaited. Raises
        ProbeFailed when oneshot cannot be kept alive, MachineError when the lab or the disk fails.
        """
        schedule = self._schedule
        ratio = self._load.delete_ratio if self._way == "write" else 0.0
        instants = [
            (origin_ns + due_ns, span.name)
            for span in spans
            for due_ns in schedule.instants(span.begin_ns, span.until_ns)
        ]
        turns = [
            Turn(seq, phase, due_ns, self._chance.random() < ratio)
            for seq, (due_ns, phase) in enumerate(instants)
        ]
        with ExitStack() as stack:

            def more() -> PlacedSender:
                if by is not None:
                    return by
                own, self._first = self._first or self._sender(stop), None
                return stack.enter_context(own)

            self._follow(deque(turns), more, stop)

    def _follow(
        self, ahead: deque[Turn], more: Callable[[], PlacedSender], stop: threading.Event
    ) -> None:
        """Send what is due, until all is answered; nothing more once ``stop`` is set.

        What takes time is done before a request is due. ``more`` makes a further sender.
        """
        waiting = deque[Turn]()
        while ahead or waiting or self._busy:
            if ahead and (free := self._free(more)) is not None:
                self._get_ready()
                free.make_ready()
                self._idle.append(free)
            self._await(ahead[0].due_ns if ahead else None, stop)
            if stop.is_set():
                ahead.clear()
                waiting.clear()
            now_ns = time.monotonic_ns()
            while ahead and ahead[0].due_ns <= now_ns:
                waiting.append(ahead.popleft())
            while waiting and (free := self._free(more)) is not None:
                self._send_or_expire(free, waiting.popleft())

    def _free(self, more: Callable[[], PlacedSender]) -> PlacedSender | None:
        """Return who can send now, the one that did last; None: as many as may be do."""
        if self._idle:
            return self._idle.pop()
        return more() if len(self._busy) < self._in_flight else None

    def _await(self, next_ns: int | None, stop: threading.Event) -> None:
        """Wait until the next is due, a sender is done, or a moment has passed."""
        left_ns = POLL_MS * 1_000_000
        if next_ns is not None:
            left_ns = min(left_ns, max(0, next_ns - time.monotonic_ns()))
        if not self._busy or left_ns < 1_000_000:  # poll() counts whole milliseconds
            # The kernel wakes it some 0.1 ms late on an idle machine, so nothing here spins.
            stop.wait(left_ns / 1e9)
            left_ns = 0
        readable = wait_readable(self._busy, left_ns // 1_000_000 / 1000)
        for descriptor, (sender, since_ns) in list(self._busy.items()):
            is_over = descriptor in readable or sender.is_lost()
            if not is_over and not sender.is_stopped():
                continue
            del self._busy[descriptor]
            self._took_ns = time.monotonic_ns() - since_ns
            sender.take() if is_over else sender.give_up()
            self._idle.append(sender)

    def _sender(self, stop: threading.Event) -> PlacedSender:
        deadline_ms = max(1, self._schedule.deadline_ns // 1_000_000)
        return PlacedSender(self._load, self._place, self._way, deadline_ms, stop)

    def _get_ready(self) -> None:
        # The hash of a large object takes time, so the next is described beforehand.
        if self._way == "write" and self._next is None:
            key = self._load.api.key(self._load.seed, self.name, self._described)
            self._next = self._load.ledger.describe(key, self._load.object_bytes)
            self._described += 1

    def _send_or_expire(self, sender: PlacedSender, turn: Turn) -> None:
        """Have a request sent, or note that it was due and has expired."""
        now_ns = time.monotonic_ns()
        left_ms = self._schedule.left_ms(turn.due_ns, now_ns, self._took_ns)
        if left_ms is None:
            row = expired(turn.seq, self._load.name("delete" if turn.removes else self._way))
            self._load.note(self._place, self._way, turn.phase, turn.due_ns, None, row)
        elif self._send(sender, turn, left_ms):
            self._busy[sender.fileno()] = sender, now_ns
            return
        self._idle.append(sender)

    def _send(self, sender: PlacedSender, turn: Turn, left_ms: int) -> bool:
        """Have a request sent, where there is something to send."""
        if self._way == "read":
            return sender.get(turn, self._chance, left_ms)
        if self._way == "list":
            sender.list(turn, left_ms)
        elif not (turn.removes and sender.remove(turn, self.name, self._chance, left_ms)):
            self._get_ready()
            what, self._next = self._next, None
            assert what is not None
            sender.put(turn, what, self.name, left_ms)
        return True


def fill(
    load: Load,
    place: Place,
    count: int,
    deadline_ms: int,
    on_progress: Callable[[int, int], object],
) -> None:
    """Put ``count`` objects through one client, several at a time, all of them on the ledger.

    What is not acknowledged is put again, the same object at the same key. ``on_progress`` gets how
    many are there, of how many. Rows have phase ``prepare`` and no due time. Raises ProbeFailed
    when an object is not acknowledged in a few attempts.
    """
    api, ledger = load.api, load.ledger
    spawn = spawn_on(load.lab, place.node)
    header = header_to(load.cluster.target(place.target), deadline_ms=deadline_ms)
    load.cluster.create_bucket(BUCKET)
    prepare(spawn, header, api.buckets([BUCKET]), lambda *_: None)
    keys = (api.key(load.seed, FILL_OWNER, number) for number in range(count))
    objects = [ledger.describe(key, load.object_bytes) for key in keys]
    numbers = [ledger.put(written, client=place.name, target=place.target) for written in objects]

    def take(request: Request, sample: Sample) -> None:
        ledger.complete(numbers[request.seq], sample.outcome, sample.error)
        row = row_of(sample, request)
        load.note(place, "write", "prepare", None, request.key, row)
        on_progress(ledger.acknowledged, count)

    puts = [on_object(api, "write", seq, written) for seq, written in enumerate(objects)]
    prepare(spawn, header, puts, take)


Round = Literal["healed", "restarted"]
Found = Literal["yes", "no", "wrong", "unread"]

PASSES = 3
PROCESSES = 12
"""Of all nodes together."""
FAR_PROCESSES = 32
"""Where answers take long because the network does: then more can wait beside each other."""
_FAR_RTT_MS = 20.0
DEADLINE_MS = 5_000
_PAUSE_S = 2.0


@dataclass(frozen=True)
class Verified:
    """What a round of verification came to, counted in answers: one a key and node."""

    expected: int
    """How many there should be."""
    counts: Mapping[Found, int]
    out_of_time: bool
    """Something was not read, or not again, for want of time."""


@dataclass(slots=True)
class _Question:
    """One key, to be read from one node."""

    node: str
    object: Object
    is_expected: bool
    is_removed: bool
    passes: int = 0
    answer: Found = "unread"
    sha256: str | None = None
    error: str | None = "not asked: the time for the verification was over"
    t_ns: int | None = None
    changed: bool = False
    """It had answered something else before."""

    def judge(self, sample: Sample) -> None:
        """Take in an answer; where there is none, the one before stands."""
        answer: Found = "unread"
        if sample.outcome == "ok":
            answer = "yes"
        elif sample.sha256 is not None and sample.sha256 != self.object.sha256:
            answer = "wrong"
        elif is_not_found(sample):
            answer = "no"
        if answer == "unread" != self.answer:
            return
        self.changed = self.changed or self.answer not in ("unread", answer)
        self.t_ns, self.answer, self.error = time.monotonic_ns(), answer, sample.error
        self.sha256 = sample.sha256 if answer in ("yes", "wrong") else None

    @property
    def is_settled(self) -> bool:
        """No other answer is to be expected."""
        is_amiss = self.is_removed if self.answer == "yes" else self.is_expected
        return self.answer == "wrong" or (self.answer != "unread" and not is_amiss)

    def line(self, name: str) -> dict[str, Any]:
        """Return the answer as the bundle has it."""
        is_late = self.changed and self.answer in ("yes", "no")
        return {
            "round": name,
            "node": self.node,
            "key": self.object.key,
            "found": self.answer,
            "sha256": self.sha256,
            "error": self.error,
            "t_ns": self.t_ns or time.monotonic_ns(),
            "passes": self.passes,
            **({"late": True} if is_late else {}),
        }


def verify(
    lab: Lab,
    cluster: Cluster,
    api: ObjectApi,
    ledger: Ledger,
    name: str,
    budget_s: float,
    *,
    since: int = 0,
    on_progress: Callable[[int, int], object],
    write: Callable[[dict[str, Any]], object],
    stop: threading.Event | None = None,
    deadline_ms: int = DEADLINE_MS,
    passes: int = PASSES,
) -> Verified:
    """Read every key of the ledger from every node, and ``write`` a line for each.

    Without its first ``since`` objects. A line that describes the round comes first. ``yes`` and
    ``wrong`` are written as they come, ``no`` and ``unread`` when they are final. ``on_progress``
    gets how many answers are final, of how many. Both are called one at a time, from other threads
    too. A read has ``deadline_ms``; the whole takes at most ``budget_s`` and one read more. Returns
    early, with lines missing, when ``stop`` is set. Raises ProbeFailed when oneshot cannot be kept
    alive.
    """
    started_ns = time.monotonic_ns()
    until_ns = started_ns + int(budget_s * 1e9)
    stop = stop or threading.Event()
    objects, nodes = ledger.objects(since), tuple(cluster.nodes)
    head = {"round": name, "begun_ns": started_ns, "nodes": nodes, "keys": len(objects)}
    write(head | {"passes": passes})
    # Not in the order in which they were written, so that time running out hits no part of the
    # drill more than another; but in one order on all nodes.
    objects.sort(key=lambda written: random.Random(written.key).random())
    waiting = {
        node: deque(
            _Question(
                node, written, ledger.is_expected(written.key), ledger.is_removed(written.key)
            )
            for written in objects
        )
        for node in nodes
    }
    expected = len(nodes) * len(objects)
    counts, lock = Counter[Found](), threading.Lock()

    def settle(question: _Question) -> None:
        with lock:
            write(question.line(name))
            counts[question.answer] += 1
            on_progress(counts.total(), expected)

    def reader(node: str, questions: deque[_Question]) -> Callable[[], None]:
        header = header_to(cluster.own_target(node), deadline_ms=deadline_ms)

        def work() -> None:
            with Sender(spawn_on(lab, node), header, stop) as sender:
                while questions and time.monotonic_ns() < until_ns:
                    try:
                        question = questions.popleft()
                    except IndexError:  # another was quicker
                        return
                    question.passes += 1
                    request = on_object(api, "read", question.passes, question.object)
                    sample = sender.exchange(request)
                    if stop.is_set():
                        return  # nothing is final then
                    question.judge(sample)
                    if question.is_settled:
                        settle(question)

        return work

    out_of_time, readers_per_node = False, max(1, _processes(lab, nodes) // len(nodes))
    left = [question for its in waiting.values() for question in its]
    for done in range(1, passes + 1):
        readers = {
            f"reader {number} of {node}": reader(node, its)
            for node, its in waiting.items()
            for number in range(min(readers_per_node, len(its)))
        }
        Workers(readers, stop).run()
        left = [question for question in left if not question.is_settled]
        waiting = {node: deque(q for q in left if q.node == node) for node in nodes}
        pause_s = min(_PAUSE_S * done, budget_s / 10)
        out_of_time = bool(left) and time.monotonic_ns() + pause_s * 1e9 > until_ns
        if not left or out_of_time or done == passes or stop.wait(pause_s):
            break
    if not stop.is_set():
        for question in left:
            settle(question)
    return Verified(expected, dict(counts), out_of_time)


def _processes(lab: Lab, nodes: tuple[str, ...]) -> int:
    farthest_ms = max((lab.plan.rtt_ms(nodes[0], other) for other in nodes[1:]), default=0.0)
    return PROCESSES if farthest_ms < _FAR_RTT_MS else FAR_PROCESSES
