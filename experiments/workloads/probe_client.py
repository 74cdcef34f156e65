"""The probe client: one request every so often, beside whatever others send.

Its requests are those of the study's endpoints, in random order, one in flight at a time. One that
is due while the one before it is on its way waits in line, and is sent as soon as that is done,
with what is left of its deadline, which counts from the instant it was due. Where too little is
left (`Schedule.least_left_ns`) it is never sent, and is reported all the same. So a store that
stands still for three seconds shows at every instant of these, and not once (no coordinated
omission).
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from wanlat.experiments.drill.timeline import Schedule
from wanlat.experiments.request_plan import RequestPlan
from wanlat.probes.one_key import Overwrites
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import Plan, Request
from wanlat.probes.process import Closing, Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.units import Duration

OnSample = Callable[[Request, Sample | None, int], object]
"""Gets a request, what came of it (None: it was not sent), and when it was due (ns,
CLOCK_MONOTONIC)."""

_NEVER_NS = 2**63 - 1


def plan_of(requests: RequestPlan, every: Duration, lasting_ns: int) -> Plan:
    """Return a plan with as many requests as there are instants in so long a time."""
    turns = max(len(requests.turns()), 1)
    samples = lasting_ns // every.ns // turns + 2
    study = requests.study.model_copy(update={"samples": samples, "budget": None})
    return replace(requests, study=study).plan()


class ProbeClient(Closing):
    """Sends a plan's requests at their instants. A context manager."""

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
        self._oneshot = Oneshot(spawn, header)
        self._due_ns = 0
        """Of the next request."""
        self._in_flight: tuple[Request, int, int] | None = None
        """The one in flight, when it was due, and when it was handed over."""
        self._free_ns = 0
        """Since when no request is in flight, while none is."""
        self._took_ns = 0
        """How long the one before took."""

    def note(self, request: Request, sample: Sample) -> None:
        """Take in what was sent before, by others or by this client."""
        if self._overwrites is not None:
            self._overwrites.note(request, sample)

    def warm_up(self, plan: Plan, on_sample: Callable[[Request, Sample], object]) -> None:
        """Send the plan's warm-up, one request right after the other."""
        for planned in plan.warmup:
            request = self._now(planned)
            self._oneshot.send(request)
            sample = self._oneshot.receive()
            self.note(request, sample)
            on_sample(request, sample)

    def begin(self) -> None:
        """Begin a part: its first request is due now. No other one is in flight, or in line."""
        self._due_ns = self._free_ns = time.monotonic_ns()

    def run(self, until_ns: int, on_sample: OnSample, beside: int | None = None) -> None:
        """Send what is due, until an instant, or until ``beside`` has something to read."""
        while (now_ns := time.monotonic_ns()) < until_ns:
            if self._in_flight is None and now_ns >= self._due_ns:
                self._next(on_sample)
            due_ns = until_ns if self._in_flight else min(self._due_ns, until_ns)
            awaited = [fd for fd in (beside,) if fd is not None]
            awaited += [self._oneshot.fileno()] if self._in_flight else []
            left_s = max(due_ns - time.monotonic_ns(), 0) / 1e9
            # Not longer than this: a lab that has ended says nothing.
            readable, _, _ = select.select(awaited, [], [], min(left_s, 0.2))
            if self._in_flight and (self._oneshot.fileno() in readable or self._oneshot.is_lost()):
                self._take(on_sample)
            if beside in readable:
                return

    def settle(self, on_sample: OnSample) -> None:
        """End a part: send what was due until now, and wait for what is still to come."""
        until_ns = time.monotonic_ns()
        while self._in_flight is not None or self._due_ns < until_ns:
            if self._in_flight is None:
                self._next(on_sample)
            else:
                self._take(on_sample)

    def cut(self) -> None:
        """Send no more: what is in line is left out, and was due in vain."""
        behind_ns = time.monotonic_ns() - self._due_ns
        if behind_ns > 0:
            self.left_out += -(-behind_ns // self._schedule.interval_ns)
            self._due_ns = _NEVER_NS

    def finish(self, on_sample: OnSample) -> None:
        """End the last part, and the client's process."""
        self.settle(on_sample)
        self._oneshot.finish()

    def close(self) -> None:
        """End the client's process, whatever it is doing."""
        self._oneshot.close()

    def _next(self, on_sample: OnSample) -> None:
        """Send the request that is due, or leave it out."""
        planned = next(self._requests, None)
        if planned is None:
            self._due_ns = _NEVER_NS  # all that was planned has been sent
            return
        due_ns, now_ns = self._due_ns, time.monotonic_ns()
        self._due_ns += self._schedule.interval_ns
        left_ns = due_ns + self._schedule.deadline_ns - now_ns
        if left_ns < self._schedule.least_left_ns(self._took_ns):
            self.left_out += 1
            on_sample(planned, None, due_ns)
            return
        self.late += due_ns < self._free_ns
        request = replace(self._now(planned), deadline_ms=max(1, left_ns // 1_000_000))
        self._in_flight = request, due_ns, now_ns
        self._oneshot.send(request)

    def _take(self, on_sample: OnSample) -> None:
        assert self._in_flight is not None
        request, due_ns, handed_ns = self._in_flight
        sample = self._oneshot.receive()
        self._in_flight = None
        self._free_ns = time.monotonic_ns()
        self._took_ns = self._free_ns - handed_ns
        self.note(request, sample)
        on_sample(request, sample, due_ns)

    def _now(self, request: Request) -> Request:
        return request if self._overwrites is None else self._overwrites.now(request)
