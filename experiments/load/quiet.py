"""The quiet user: one request now and then, beside whatever others ask for.

His requests are those of the study's endpoints, in random order, one every so often. When an answer
takes longer than that, the instants that pass meanwhile are left out, and counted: he waits for
his answer as anyone would, and does not make up for it afterwards. Each sample has the instant at
which its request was due.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from wanlat.experiments.asked import Asked
from wanlat.probes.one_key import Overwrites
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.plan import Plan, Request
from wanlat.probes.process import Closing, Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.units import Duration

OnSample = Callable[[Request, Sample, int], object]
"""Gets a request, what came of it, and when it was due (ns, CLOCK_MONOTONIC)."""


def plan_of(asked: Asked, every: Duration, lasting_ns: int) -> Plan:
    """Return a plan with as many requests as there are instants in so long a time."""
    turns = max(len(asked.turns()), 1)
    samples = lasting_ns // every.ns // turns + 2
    study = asked.study.model_copy(update={"samples": samples, "budget": None})
    return replace(asked, study=study).plan()


class QuietUser(Closing):
    """Sends a plan's requests at their instants. A context manager."""

    def __init__(
        self, spawn: Spawn, asked: Asked, cluster: Cluster, plan: Plan, every: Duration
    ) -> None:
        self.missed = 0
        """Instants that passed while an answer was still awaited."""
        self._every_ns = every.ns
        self._overwrites = Overwrites() if asked.study.keys == "one" else None
        self._requests: Iterator[Request] = iter(plan.measure)
        self._oneshot = Oneshot(spawn, asked.header(cluster))
        self._due_ns = 0
        self._asked: Request | None = None

    def note(self, request: Request, sample: Sample) -> None:
        """Take in what was sent before, by others or by him."""
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
        """The first request is due now."""
        self._due_ns = time.monotonic_ns()

    def go_on(self, until_ns: int, on_sample: OnSample, beside: int | None = None) -> None:
        """Ask when it is time to, until an instant, or until ``beside`` has something to read."""
        while (now_ns := time.monotonic_ns()) < until_ns:
            if self._asked is None and now_ns >= self._due_ns:
                self._ask()
            due_ns = until_ns if self._asked else min(self._due_ns, until_ns)
            awaited = [fd for fd in (beside,) if fd is not None]
            awaited += [self._oneshot.fileno()] if self._asked else []
            left_s = max(due_ns - time.monotonic_ns(), 0) / 1e9
            # Not longer than this: a lab that has ended says nothing.
            readable, _, _ = select.select(awaited, [], [], min(left_s, 0.2))
            if self._asked and (self._oneshot.fileno() in readable or self._oneshot.is_lost()):
                self._take(on_sample)
            if beside in readable:
                return

    def settle(self, on_sample: OnSample) -> None:
        """Wait for the answer that is still to come."""
        if self._asked is not None:
            self._take(on_sample)

    def finish(self, on_sample: OnSample) -> None:
        """Wait for the answer that is still to come, and end."""
        self.settle(on_sample)
        self._oneshot.finish()

    def close(self) -> None:
        """End his process, whatever it is doing."""
        self._oneshot.close()

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._due_ns = 2**63 - 1  # all that was planned has been asked
            return
        self._asked = self._now(request)
        self._oneshot.send(self._asked)

    def _take(self, on_sample: OnSample) -> None:
        request, due_ns = self._asked, self._due_ns
        assert request is not None
        sample = self._oneshot.receive()
        self._asked = None
        passed = max((time.monotonic_ns() - due_ns) // self._every_ns, 0)
        self.missed += passed
        self._due_ns = due_ns + (passed + 1) * self._every_ns
        self.note(request, sample)
        on_sample(request, sample, due_ns)

    def _now(self, request: Request) -> Request:
        return request if self._overwrites is None else self._overwrites.now(request)
