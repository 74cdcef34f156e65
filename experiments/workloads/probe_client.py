"""The probe client: one request every so often, beside whatever others send.

Its requests are those of the study's endpoints, in random order, at instants of their own
(`wanlat.experiments.open_loop`), sent by a thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from wanlat.experiments.drill.requests import Sender
from wanlat.experiments.open_loop import Schedule, Workers
from wanlat.experiments.request_plan import RequestPlan
from wanlat.probes.one_key import Overwrites
from wanlat.probes.plan import Plan, Request
from wanlat.probes.process import Closing, Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.units import Duration

OnSample = Callable[[Request, Sample | None, int], object]
"""Gets a request, what came of it (None: it was not sent), and when it was due (ns,
CLOCK_MONOTONIC). Called from the client's thread."""


def plan_of(requests: RequestPlan, every: Duration, lasting_ns: int) -> Plan:
    """Return a plan with as many requests as there are instants in so long a time."""
    turns = max(len(requests.turns()), 1)
    samples = lasting_ns // every.ns // turns + 2
    study = requests.study.model_copy(update={"samples": samples, "budget": None})
    return replace(requests, study=study).plan()


class ProbeClient(Closing):
    """Sends a plan's requests at their instants, in parts. A context manager."""

    def __init__(
        self, spawn: Spawn, requests: RequestPlan, cluster: Cluster, plan: Plan, every: Duration
    ) -> None:
        self.late = 0
        """Requests that were sent, and were due while an earlier answer was still awaited."""
        self.left_out = 0
        """Instants at which a request was due that was never sent."""
        header = requests.header(cluster)
        self._schedule = Schedule(every.ns, 0, header.deadline_ms * 1_000_000)
        self._overwrites = Overwrites() if requests.study.key_mode == "same" else None
        self._requests: Iterator[Request] = iter(plan.measure)
        self._stop = threading.Event()
        self._sender = Sender(spawn, header, self._stop)
        self._part = Workers({}, self._stop)
        self._over = threading.Event()
        self._until_ns = 0

    def note(self, request: Request, sample: Sample) -> None:
        """Take in what was sent before, by others or by this client."""
        if self._overwrites is not None:
            self._overwrites.note(request, sample)

    def warm_up(self, plan: Plan, on_sample: Callable[[Request, Sample], object]) -> None:
        """Send the plan's warm-up, one request right after the other."""
        for planned in plan.warmup:
            on_sample(*self._ask(planned))

    def begin(self, on_sample: OnSample) -> None:
        """Begin a part: its first request is due now."""
        self._over.clear()
        began_ns = time.monotonic_ns()
        self._part = Workers({"probe client": lambda: self._send(began_ns, on_sample)}, self._stop)
        self._part.start()

    def check(self) -> None:
        """Raise what a part failed with."""
        self._part.check()

    def end(self) -> None:
        """End a part: what was due until now is sent, and its answers are awaited."""
        self._until_ns = time.monotonic_ns()
        self._over.set()
        self._part.join()
        self._part.check()

    def close(self) -> None:
        """End the client, whatever it is doing; what is in line is left out."""
        self._until_ns = time.monotonic_ns()
        self._stop.set()
        self._over.set()
        self._part.join()
        self._sender.close()

    def _send(self, began_ns: int, on_sample: OnSample) -> None:
        answered_ns = began_ns

        def due() -> Iterator[tuple[int, tuple[Request, int]]]:
            """Yield what is due, when it is; what is left of a part that is cut is counted."""
            for due_ns in range(began_ns, 2**63, self._schedule.interval_ns):
                self._over.wait(max(0, due_ns - time.monotonic_ns()) / 1e9)
                ends = self._over.is_set() or self._stop.is_set()
                if ends and due_ns >= self._until_ns:
                    return
                if self._stop.is_set():
                    self.left_out += 1
                elif (planned := next(self._requests, None)) is None:
                    return  # all that was planned has been sent
                else:
                    yield due_ns, (planned, due_ns)

        def send(what: tuple[Request, int], left_ms: int) -> None:
            nonlocal answered_ns
            planned, due_ns = what
            self.late += due_ns < answered_ns
            request, sample = self._ask(replace(planned, deadline_ms=left_ms))
            answered_ns = time.monotonic_ns()
            on_sample(request, sample, due_ns)

        def leave_out(what: tuple[Request, int]) -> None:
            self.left_out += 1
            on_sample(what[0], None, what[1])

        never = threading.Event()  # what is due says when it ends
        self._schedule.follow(due(), send, leave_out, never)

    def _ask(self, planned: Request) -> tuple[Request, Sample]:
        request = planned if self._overwrites is None else self._overwrites.now(planned)
        sample = self._sender.ask(request)
        self.note(request, sample)
        return request, sample
