"""After the heal: every key of the ledger, read from every node, by that node's own client.

Keys that were removed are read too, and those of which nobody knows whether they were put. An
answer that may still change, that an object which must be there is not, or none at all, is asked
for again: in all up to three passes, some time apart, within the time there is. What has given no
answer then is ``unread``, which is neither a loss nor its absence.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.api import StoreApi, api_of
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.objects import Object
from wanlat.experiments.drill.parallel import run_all
from wanlat.experiments.drill.prober import Prober, Unanswered
from wanlat.probes.plan import Header
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster

Round = Literal["healed", "restarted"]
Found = Literal["yes", "no", "wrong", "unread"]

PASSES = 3
PROCESSES = 12
FAR_PROCESSES = 32
"""Where answers take long because the network does: then more can wait beside each other."""
_FAR_RTT_MS = 20.0
DEADLINE_MS = 5_000
_PAUSE_S = 2.0


@dataclass(frozen=True)
class Verified:
    """What a round of verification came to, counted in answers: one a key and node."""

    round: Round
    keys: int
    nodes: tuple[str, ...]
    found: Mapping[Found, int]
    late: int
    """How often a node did not find an object in one pass and found it in a later one."""
    passes: int
    """How many there were."""
    out_of_time: bool
    """Something was not asked, or not asked again, for want of time."""


def verify(
    lab: Lab,
    cluster: Cluster,
    ledger: Ledger,
    name: Round,
    budget_s: float,
    *,
    on_progress: Callable[[int, int], object],
    write: Callable[[dict[str, Any]], object],
    stop: threading.Event | None = None,
    deadline_ms: int = DEADLINE_MS,
    processes: int | None = None,
    passes: int = PASSES,
) -> Verified:
    """Read every key of the ledger from every node, and ``write`` a line for each.

    A line that says what the round is comes first. ``yes`` and ``wrong`` are written as they
    come, ``no`` and ``unread`` when they are final. ``on_progress`` gets how many answers are
    final, of how many. Both are called one at a time, from other threads too. A read has
    ``deadline_ms``; the whole takes at most ``budget_s`` and one read more. Returns early, with
    lines missing, when ``stop`` is set. Raises ProbeFailed when oneshot cannot be kept alive.
    """
    begun_ns = time.monotonic_ns()
    until_ns = begun_ns + int(budget_s * 1e9)
    stop = stop or threading.Event()
    objects = ledger.objects()
    nodes = tuple(cluster.nodes)
    api = api_of(cluster.api)
    largest = max((each.object_bytes for each in objects), default=0)
    headers = {node: api.header(cluster, node, deadline_ms, largest) for node in nodes}
    write(
        {
            "round": name,
            "begun_ns": begun_ns,
            "nodes": nodes,
            "keys": len(objects),
            "passes": passes,
        }
    )
    tally = _Tally(name, write, on_progress, len(objects) * len(nodes))
    questions = [
        _Question(node, each, ledger.is_expected(each.key)) for node in nodes for each in objects
    ]
    done = 0
    out_of_time = False
    while questions and done < passes and not (stop.is_set() or out_of_time):
        done += 1
        is_last = done == passes
        reading = _Pass(lab, api, headers, questions, tally, until_ns, is_last)
        reading.run(processes or _processes(lab, nodes), stop)
        questions = reading.open()
        pause_s = min(_PAUSE_S * done, budget_s / 10)
        out_of_time = bool(questions) and time.monotonic_ns() + pause_s * 1e9 > until_ns
        if questions and not (is_last or out_of_time):
            stop.wait(pause_s)
    if not stop.is_set():
        for question in questions:
            tally.settle(question)
    return Verified(name, len(objects), nodes, dict(tally.found), tally.late, done, out_of_time)


def _processes(lab: Lab, nodes: Sequence[str]) -> int:
    farthest_ms = max((lab.plan.rtt_ms(nodes[0], other) for other in nodes[1:]), default=0.0)
    return PROCESSES if farthest_ms < _FAR_RTT_MS else FAR_PROCESSES


@dataclass(slots=True)
class _Question:
    """One key, asked of one node."""

    node: str
    object: Object
    is_expected: bool
    passes: int = 0
    found: Found = "unread"
    sha256: str | None = None
    error: str | None = "not asked: the time for the verification was over"
    t_ns: int | None = None
    was_missed: bool = False

    def judge(self, api: StoreApi, sample: Sample) -> None:
        """Take in an answer."""
        self.sha256, self.error = None, sample.error
        if sample.outcome == "ok":
            self.found, self.sha256 = "yes", sample.sha256
        elif sample.sha256 is not None and sample.sha256 != self.object.sha256:
            self.found, self.sha256 = "wrong", sample.sha256
        elif api.is_not_found(sample):
            self.found, self.was_missed = "no", True
        else:
            self.found = "unread"

    @property
    def is_settled(self) -> bool:
        """No other answer is to be expected."""
        return self.found in ("yes", "wrong") or (self.found == "no" and not self.is_expected)


class _Tally:
    """Writes the answers that are final, and counts them."""

    def __init__(
        self,
        name: Round,
        write: Callable[[dict[str, Any]], object],
        on_progress: Callable[[int, int], object],
        total: int,
    ) -> None:
        self.found = Counter[Found]()
        self.late = 0
        self._round = name
        self._write = write
        self._on_progress = on_progress
        self._total = total
        self._lock = threading.Lock()

    def settle(self, question: _Question) -> None:
        line: dict[str, Any] = {
            "round": self._round,
            "node": question.node,
            "key": question.object.key,
            "found": question.found,
            "sha256": question.sha256,
            "error": question.error,
            "t_ns": question.t_ns or time.monotonic_ns(),
            "passes": question.passes,
        }
        is_late = question.found == "yes" and question.was_missed
        if is_late:
            line["late"] = True
        with self._lock:
            self._write(line)
            self.late += is_late
            self.found[question.found] += 1
            self._on_progress(self.found.total(), self._total)


class _Pass:
    """Asks questions once, each from the node that it is asked of."""

    def __init__(
        self,
        lab: Lab,
        api: StoreApi,
        headers: Mapping[str, Header],
        questions: Sequence[_Question],
        tally: _Tally,
        until_ns: int,
        is_last: bool,
    ) -> None:
        self._lab = lab
        self._api = api
        self._headers = headers
        self._tally = tally
        self._until_ns = until_ns
        self._is_last = is_last
        self._lock = threading.Lock()
        self._open: list[_Question] = []
        self._waiting: dict[str, deque[_Question]] = {node: deque() for node in headers}
        self._workers = Counter[str]()
        # Not in the order in which they were written, so that time running out hits no part of
        # the drill more than another; but in one order on all nodes.
        order = sorted(questions, key=lambda each: random.Random(each.object.key).random())
        for question in order:
            self._waiting[question.node].append(question)

    def run(self, processes: int, stop: threading.Event) -> None:
        """Ask them all, as far as there is time."""
        total = sum(map(len, self._waiting.values()))
        run_all([self._work] * min(processes, total), stop)

    def open(self) -> list[_Question]:
        """Return the questions that may get another answer."""
        return [*self._open, *(each for waiting in self._waiting.values() for each in waiting)]

    def _work(self, ended: threading.Event) -> None:
        """Ask one node after another, wherever the fewest others are at it."""
        while (node := self._join()) is not None:
            with Prober(self._lab, node, self._headers[node], ended) as prober:
                while (question := self._take(node, ended)) is not None:
                    self._ask(prober, question, ended)

    def _join(self) -> str | None:
        with self._lock:
            left = [node for node, waiting in self._waiting.items() if waiting]
            if not left or time.monotonic_ns() > self._until_ns:
                return None
            node = min(left, key=lambda name: self._workers[name])
            self._workers[node] += 1
            return node

    def _take(self, node: str, ended: threading.Event) -> _Question | None:
        with self._lock:
            waiting = self._waiting[node]
            if waiting and not ended.is_set() and time.monotonic_ns() < self._until_ns:
                return waiting.popleft()
            self._workers[node] -= 1
            return None

    def _ask(self, prober: Prober, question: _Question, ended: threading.Event) -> None:
        question.passes += 1
        request = self._api.get(question.passes, question.object, "measure")
        try:
            question.judge(self._api, prober.ask(request))
        except Unanswered as gone:
            if ended.is_set():
                return  # nothing is final then
            question.found, question.error = "unread", str(gone)
        question.t_ns = time.monotonic_ns()
        if question.is_settled or self._is_last:
            self._tally.settle(question)
        else:
            with self._lock:
                self._open.append(question)
