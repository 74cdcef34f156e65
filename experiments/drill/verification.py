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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wanlat.emulator.lab import Lab
from wanlat.experiments.drill.ledger import Ledger, Object
from wanlat.experiments.requests import Sender, Workers, api_of, is_not_found, spawn_on
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster

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

    def judge(self, sample: Sample) -> None:
        """Take in an answer."""
        self.t_ns = time.monotonic_ns()
        self.found, self.sha256, self.error = "unread", None, sample.error
        if sample.outcome == "ok":
            self.found, self.sha256 = "yes", sample.sha256
        elif sample.sha256 is not None and sample.sha256 != self.object.sha256:
            self.found, self.sha256 = "wrong", sample.sha256
        elif is_not_found(sample):
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
    objects, nodes, api = ledger.objects(), tuple(cluster.nodes), api_of(cluster.api)
    head = {"round": name, "begun_ns": begun_ns, "nodes": nodes, "keys": len(objects)}
    write(head | {"passes": passes})
    # Not in the order in which they were written, so that time running out hits no part of the
    # drill more than another; but in one order on all nodes.
    objects.sort(key=lambda each: random.Random(each.key).random())
    waiting = {
        node: deque(_Question(node, each, ledger.is_expected(each.key)) for each in objects)
        for node in nodes
    }
    asked = len(nodes) * len(objects)
    largest = max((each.object_bytes for each in objects), default=0)
    found, lock = Counter[Found](), threading.Lock()

    def settle(question: _Question) -> None:
        with lock:
            write(question.line(name))
            found[question.found] += 1
            on_progress(found.total(), asked)

    def reader(node: str, questions: deque[_Question]) -> Callable[[], None]:
        header = api.header(cluster, node, deadline_ms, largest)

        def work() -> None:
            with Sender(spawn_on(lab, node), header, stop) as sender:
                while questions and time.monotonic_ns() < until_ns:
                    try:
                        question = questions.popleft()
                    except IndexError:  # another was quicker
                        return
                    question.passes += 1
                    sample = sender.ask(api.get(question.passes, question.object))
                    if stop.is_set():
                        return  # nothing is final then
                    question.judge(sample)
                    if question.is_settled:
                        settle(question)

        return work

    out_of_time, each = False, max(1, _processes(lab, nodes) // len(nodes))
    left = [question for its in waiting.values() for question in its]
    for done in range(1, passes + 1):
        readers = {
            f"reader {number} of {node}": reader(node, its)
            for node, its in waiting.items()
            for number in range(min(each, len(its)))
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
    return Verified(asked, dict(found), out_of_time)


def _processes(lab: Lab, nodes: tuple[str, ...]) -> int:
    farthest_ms = max((lab.plan.rtt_ms(nodes[0], other) for other in nodes[1:]), default=0.0)
    return PROCESSES if farthest_ms < _FAR_RTT_MS else FAR_PROCESSES
