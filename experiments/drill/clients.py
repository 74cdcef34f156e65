"""A drill's clients: open-loop readers and writers, and those who write the first objects.

A client has one request in flight. One that is due while the one before it is on its way waits in
line, and is sent as soon as that is done, with what is left of its deadline, which counts from the
instant it was due. Where too little is left (`Schedule.least_left_ns`) it is never sent, and has a
row all the same. So a store that stands still for three seconds spoils every request that was due
in these, and not one.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.ledger import Ledger, Object
from wanlat.experiments.drill.requests import Sender, StoreApi, api_of, spawn_on, unanswered
from wanlat.experiments.drill.roles import Place
from wanlat.experiments.drill.timeline import Schedule, Span
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster

Way = Literal["read", "write"]
Row = dict[str, Any]
"""As the bundle's samples have it (docs/bundle.md)."""

NOT_SENT = "not sent: an earlier request was still waiting"
FILL_PROCESSES = 8
FILL_ATTEMPTS = 5
_FILL_PAUSE_S = 0.5
FILL_OWNER = "filled"

_COLUMNS = tuple(field.name for field in fields(Sample))


@dataclass(frozen=True)
class Load:
    """What the clients of a drill have in common."""

    lab: Lab
    cluster: Cluster
    ledger: Ledger
    seed: int
    object_bytes: int
    constant: Mapping[str, Any]
    """Columns that are the same in every row: ``system``, ``version``, ``topology``, ``rtt_ms``."""
    on_row: Callable[[Row], object]
    """Called from the clients' threads."""
    delete_ratio: float = 0.0
    """The share of a writer's requests that delete an object of its own."""

    @property
    def api(self) -> StoreApi:
        """What the cluster speaks. Raises UserError."""
        return api_of(self.cluster.api)


@dataclass(frozen=True)
class Turn:
    """One request, before anything is known of it."""

    seq: int
    phase: str
    due_ns: int | None = None
    removes: bool = False


class PlacedSender(Sender):
    """Sends requests from a client's place, writes on the ledger, and a row for each."""

    def __init__(
        self, load: Load, place: Place, way: Way, deadline_ms: int, stop: threading.Event
    ) -> None:
        """Start its process."""
        self.api = load.api
        self._load, self._place, self._way = load, place, way
        header = self.api.header(load.cluster, place.target, deadline_ms, load.object_bytes)
        super().__init__(load.lab, place.node, header, stop)

    def put(
        self, turn: Turn, what: Object, *, owner: str | None = None, left_ms: int | None = None
    ) -> Sample:
        """Put an object, which ``owner`` may remove later."""
        ledger, place = self._load.ledger, self._place
        number = ledger.put(what, client=place.name, target=place.target, owner=owner)
        sample = self._send(turn, self.api.put(turn.seq, what, left_ms))
        ledger.complete(number, sample.outcome, sample.error)
        return sample

    def remove(self, turn: Turn, owner: str, chance: random.Random, left_ms: int) -> bool:
        """Remove an object of the owner's; return whether there was any."""
        ledger, place = self._load.ledger, self._place
        chosen = ledger.remove_one(owner, chance, client=place.name, target=place.target)
        if chosen is None:
            return False
        number, what = chosen
        sample = self._send(turn, self.api.remove(turn.seq, what, left_ms))
        # A store that does not find what it has acknowledged may have removed a part of it.
        outcome = "unknown" if self.api.is_not_found(sample) else sample.outcome
        ledger.complete(number, outcome, sample.error)
        return True

    def get(self, turn: Turn, what: Object, left_ms: int) -> Sample:
        """Get an object."""
        return self._send(turn, self.api.get(turn.seq, what, left_ms))

    def leave_out(self, turn: Turn, endpoint: str) -> None:
        """Note that a request was due and is not sent."""
        self._note(turn, None, never_sent(turn.seq, endpoint))

    def _send(self, turn: Turn, request: Request) -> Sample:
        sample = self.ask(request)
        self._note(turn, request.key, row_of(sample))
        return sample

    def _note(self, turn: Turn, key: str | None, came: Row) -> None:
        load, place = self._load, self._place
        target = place.target
        load.on_row(
            {
                **came,
                **load.constant,
                "phase": turn.phase,
                "client": place.node,
                "drill_client": place.name,
                "target": target,
                "operation": self._way,
                "key": key,
                "placement": self.api.placement(load.cluster, target, key) if key else "unknown",
                "due_ns": turn.due_ns,
            }
        )


def row_of(sample: Sample) -> Row:
    """Return what came of a request as columns."""
    return {name: getattr(sample, name) for name in _COLUMNS}  # `asdict` takes ten times as long


def never_sent(seq: int, endpoint: str) -> Row:
    """Return what came of a request that was due and not sent."""
    unknown = row_of(unanswered(seq, endpoint, 0, NOT_SENT))
    return unknown | {"outcome": "fail", "start_ns": None, "elapsed_ns": None}


class Client:
    """The reader, or the writer, of one client of the drill."""

    def __init__(self, load: Load, place: Place, way: Way, schedule: Schedule) -> None:
        self.name = f"{place.name} {way}"
        self._place = place
        self._way = way
        self._load = load
        self._schedule = schedule
        self._chance = random.Random(f"{load.seed}/{self.name}")
        self._next: Object | None = None
        self._described = 0

    def run(self, origin_ns: int, spans: Sequence[Span], stop: threading.Event) -> None:
        """Send every request that is due in these phases, and return when the last is done, or
        soon after ``stop`` is set.

        ``origin_ns`` (CLOCK_MONOTONIC) is the instant 0 of ``spans``. Raises ProbeFailed when
        oneshot cannot be kept alive, MachineError when the lab or the disk fails.
        """
        ratio = self._load.delete_ratio if self._way == "write" else 0.0
        turns = [
            Turn(seq, phase, origin_ns + offset_ns, self._chance.random() < ratio)
            for seq, (offset_ns, phase) in enumerate(self._schedule.due(spans))
        ]
        deadline_ns, took_ns = self._schedule.deadline_ns, 0
        with PlacedSender(self._load, self._place, self._way, _ms(deadline_ns), stop) as sender:
            for turn in turns:
                assert turn.due_ns is not None
                # What takes time is done before it is due: a process, the hash of a large object.
                sender.make_ready()
                self._describe_next(sender.api)
                # The kernel wakes it some 0.1 ms late on an idle machine, so nothing here spins.
                if stop.wait(max(0, turn.due_ns - time.monotonic_ns()) / 1e9):
                    return
                now_ns = time.monotonic_ns()
                left_ns = turn.due_ns + deadline_ns - now_ns
                if left_ns < self._schedule.least_left_ns(took_ns):
                    sender.leave_out(turn, self._endpoint(turn, sender.api))
                else:
                    self._send(turn, sender, _ms(left_ns))
                    took_ns = time.monotonic_ns() - now_ns

    def _endpoint(self, turn: Turn, api: StoreApi) -> str:
        if self._way == "read":
            return api.gets
        return api.removes if turn.removes else api.puts

    def _describe_next(self, api: StoreApi) -> None:
        """Have the next object to put, the same until it is put."""
        if self._way == "write" and self._next is None:
            key = api.key(self._load.seed, self.name, self._described)
            self._next = self._load.ledger.describe(key, self._load.object_bytes)
            self._described += 1

    def _send(self, turn: Turn, sender: PlacedSender, left_ms: int) -> None:
        if self._way == "read":
            what = self._load.ledger.take_to_read(self._chance)
            if what is None:
                return  # no put was ever acknowledged, so there is nothing to ask for
            try:
                sender.get(turn, what, left_ms)
            finally:
                self._load.ledger.done_reading(what.key)
        elif not (turn.removes and sender.remove(turn, self.name, self._chance, left_ms)):
            assert self._next is not None
            what, self._next = self._next, None
            sender.put(turn, what, owner=self.name, left_ms=left_ms)


def _ms(ns: int) -> int:
    return max(1, ns // 1_000_000)


class Workers:
    """Threads that work beside each other. One that fails stops them all."""

    def __init__(self, work: Mapping[str, Callable[[], object]], stop: threading.Event) -> None:
        """``work``: what each does, by its name. It ends soon after ``stop`` is set, which is done
        when one fails.
        """
        self._stop = stop
        self._errors: list[BaseException] = []
        self._threads = [
            # An interpreter that ends does not wait for it.
            threading.Thread(target=self._run, args=(what,), name=name, daemon=True)
            for name, what in work.items()
        ]

    def start(self) -> None:
        """Start them all."""
        for thread in self._threads:
            thread.start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for them to be done; return whether they are."""
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            if thread.ident is not None:  # of one that was never started there is no end
                thread.join(None if until_s is None else max(0.0, until_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def check(self) -> None:
        """Raise what the first of them failed with, if one did."""
        if self._errors:
            raise self._errors[0]

    def run(self) -> None:
        """Start them, wait until all have ended, and raise what one failed with.

        They are stopped when the caller is interrupted, so that none outlives the call.
        """
        try:
            self.start()
            self.join()
        except BaseException:
            self._stop.set()
            self.join()
            raise
        self.check()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)
            self._stop.set()


def fill(
    load: Load,
    place: Place,
    count: int,
    deadline_ms: int,
    *,
    stop: threading.Event,
    on_progress: Callable[[int, int], object],
    processes: int = FILL_PROCESSES,
) -> None:
    """Put ``count`` objects through one client, several at a time, all of them on the ledger.

    What is not acknowledged is put again, the same object at the same key, which is another write
    on the ledger. ``on_progress`` gets how many are there, of how many, one at a time. Rows have
    phase ``prepare`` and no due time. Returns early when ``stop`` is set. Raises ProbeFailed when
    an object is not acknowledged in five attempts.
    """
    api, ledger = load.api, load.ledger
    header = api.header(load.cluster, place.target, deadline_ms, load.object_bytes)
    api.make_ready(load.cluster, spawn_on(load.lab, place.node), header)
    keys = (api.key(load.seed, FILL_OWNER, number) for number in range(count))
    waiting = deque(enumerate(ledger.describe(key, load.object_bytes) for key in keys))
    telling = threading.Lock()

    def work() -> None:
        with PlacedSender(load, place, "write", deadline_ms, stop) as sender:
            while not stop.is_set():
                try:
                    seq, what = waiting.popleft()
                except IndexError:
                    return
                _put_surely(sender, Turn(seq, "prepare"), what, place, stop)
                with telling:
                    on_progress(ledger.acknowledged, count)

    Workers({f"writer {n}": work for n in range(min(processes, count))}, stop).run()


def _put_surely(
    sender: PlacedSender, turn: Turn, what: Object, place: Place, stop: threading.Event
) -> None:
    """Put one object, in as many attempts as it takes."""
    for attempt in range(1, FILL_ATTEMPTS + 1):
        sample = sender.put(turn, what)
        if sample.outcome == "ok" or stop.wait(_FILL_PAUSE_S * attempt):
            return
    raise ProbeFailed(
        f"The store could not be filled: {sample.endpoint} of {what.key} through {place.target} "
        f"failed {FILL_ATTEMPTS} times, at last with {sample.error} ({sample.outcome}). "
        "Its log may say why."
    )
