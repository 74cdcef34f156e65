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
from wanlat.experiments.drill.clients import Workers
from wanlat.experiments.drill.ledger import Ledger, Object
from wanlat.experiments.drill.requests import Sender, StoreApi, api_of
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

    asked: int
    """How many there should be."""
    found: Mapping[Found, int]
    out_of_time: bool
    """Something was not asked, or not asked again, for want of time."""


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
        self.t_ns = time.monotonic_ns()
        self.found, self.sha256, self.error = "unread", None, sample.error
        if sample.outcome == "ok":
            self.found, self.sha256 = "yes", sample.sha256
        elif sample.sha256 is not None and sample.sha256 != self.object.sha256:
            self.found, self.sha256 = "wrong", sample.sha256
        elif api.is_not_found(sample):
            self.found, self.was_missed = "no", True

    @property
    def is_settled(self) -> bool:
        """No other answer is to be expected."""
        return self.found in ("yes", "wrong") or (self.found == "no" and not self.is_expected)

    def line(self, name: Round) -> dict[str, Any]:
        """Return the answer as the bundle has it."""
        is_late = self.found == "yes" and self.was_missed
        return {
            "round": name,
            "node": self.node,
            "key": self.object.key,
            "found": self.found,
            "sha256": self.sha256,
            "error": self.error,
            "t_ns": self.t_ns or time.monotonic_ns(),
            "passes": self.passes,
            **({"late": True} if is_late else {}),
        }


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
    objects, nodes = ledger.objects(), tuple(cluster.nodes)
    api = api_of(cluster.api)
    largest = max((each.object_bytes for each in objects), default=0)
    headers = {node: api.header(cluster, node, deadline_ms, largest) for node in nodes}
    head = {"round": name, "begun_ns": begun_ns, "nodes": nodes, "keys": len(objects)}
    write(head | {"passes": passes})
    # Not in the order in which they were written, so that time running out hits no part of the
    # drill more than another; but in one order on all nodes.
    objects.sort(key=lambda each: random.Random(each.key).random())
    questions = [
        _Question(node, each, ledger.is_expected(each.key)) for node in nodes for each in objects
    ]
    found, lock, asked = Counter[Found](), threading.Lock(), len(questions)

    def settle(question: _Question) -> None:
        with lock:
            write(question.line(name))
            found[question.found] += 1
            on_progress(found.total(), asked)

    done, out_of_time = 0, False
    while questions and done < passes and not (stop.is_set() or out_of_time):
        done += 1
        reading = _Pass(lab, api, headers, questions, until_ns, stop, settle)
        reading.run(processes or _processes(lab, nodes))
        questions = [each for each in questions if not each.is_settled]
        pause_s = min(_PAUSE_S * done, budget_s / 10)
        out_of_time = bool(questions) and time.monotonic_ns() + pause_s * 1e9 > until_ns
        if questions and not (done == passes or out_of_time):
            stop.wait(pause_s)
    if not stop.is_set():
        for question in questions:
            settle(question)
    return Verified(asked, dict(found), out_of_time)


def _processes(lab: Lab, nodes: Sequence[str]) -> int:
    farthest_ms = max((lab.plan.rtt_ms(nodes[0], other) for other in nodes[1:]), default=0.0)
    return PROCESSES if farthest_ms < _FAR_RTT_MS else FAR_PROCESSES


class _Pass:
    """Asks questions once, each from the node that it is asked of, as far as there is time."""

    def __init__(
        self,
        lab: Lab,
        api: StoreApi,
        headers: Mapping[str, Header],
        questions: Sequence[_Question],
        until_ns: int,
        stop: threading.Event,
        settle: Callable[[_Question], object],
    ) -> None:
        self._lab = lab
        self._api = api
        self._headers = headers
        self._until_ns = until_ns
        self._stop = stop
        self._settle = settle
        self._lock = threading.Lock()
        self._workers = Counter[str]()
        self._waiting: dict[str, deque[_Question]] = {node: deque() for node in headers}
        for question in questions:
            self._waiting[question.node].append(question)

    def run(self, processes: int) -> None:
        """Ask them all."""
        count = min(processes, sum(map(len, self._waiting.values())))
        Workers({f"reader {number}": self._work for number in range(count)}, self._stop).run()

    def _work(self) -> None:
        """Ask one node after another, wherever the fewest others are at it."""
        while (node := self._join()) is not None:
            with Sender(self._lab, node, self._headers[node], self._stop) as sender:
                while (question := self._take(node)) is not None:
                    question.passes += 1
                    request = self._api.get(question.passes, question.object)
                    sample = sender.ask(request)
                    if self._stop.is_set():
                        return  # nothing is final then
                    question.judge(self._api, sample)
                    if question.is_settled:
                        self._settle(question)

    def _join(self) -> str | None:
        with self._lock:
            left = [node for node, waiting in self._waiting.items() if waiting]
            if not left or time.monotonic_ns() > self._until_ns:
                return None
            node = min(left, key=lambda name: self._workers[name])
            self._workers[node] += 1
            return node

    def _take(self, node: str) -> _Question | None:
        with self._lock:
            waiting = self._waiting[node]
            if waiting and not self._stop.is_set() and time.monotonic_ns() < self._until_ns:
                return waiting.popleft()
            self._workers[node] -= 1
            return None
