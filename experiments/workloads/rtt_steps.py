"""One system's part of a study of round trips: one cluster, whose WAN links change under it.

Everything is prepared at an RTT of 0, where it is quick. Then the RTT steps, one after the other:
change all WAN links; let it settle, at the end of which nothing is sent but what the cluster says
of its own accord; calibrate; warm up; measure. One client process goes through all of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TypeVar

from wanlat.bundle.documents import RttStep
from wanlat.emulator.calibration import Tolerance, blame
from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import FOR_ROUND_TRIPS
from wanlat.experiments.config.rtt_steps import IDLE, RoundTripsSpec
from wanlat.experiments.not_found import NotFoundTracker
from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.session import Recording
from wanlat.experiments.workloads.requests import STAGES, Workload, wait_until
from wanlat.experiments.workloads.rtt_step_record import (
    RttStepsRecord,
    StepCalibration,
    TimeBudget,
    worst_of,
)
from wanlat.probes.oneshot import Oneshot, OnSample
from wanlat.probes.plan import Step
from wanlat.probes.process import Spawn
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.units import Duration

_ORIGIN = "rtt step"
_ALLOWED_TO_FAIL = 1 / 3
_ZERO = Duration(0)


class RttStepsWorkload(Workload):
    """One system's part of a study of round trips."""

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's proof: every RTT step is calibrated again, by medians."""
        return FOR_ROUND_TRIPS

    def __init__(
        self,
        prepared: Prepared,
        subject: Subject,
        recording: Recording,
        spec: RoundTripsSpec,
        record: RttStepsRecord,
    ) -> None:
        super().__init__(prepared, subject, recording)
        self._spec = spec
        self._record = record
        self._budget = TimeBudget.of(spec)
        self._measured = 0
        self._detail = ""

    def measure(self) -> None:
        """Build the lab, prove it right, start the cluster, go through every RTT."""
        began = time.monotonic()
        try:
            super().measure()
        finally:
            budget = self._budget
            budget.total_s = time.monotonic() - began
            budget.startup = self.took_s
            self._record.note_time(self.name, budget)
            self.outcome.remarks.append(f"{self.name}: {budget.remark()}.")

    def before_start(self, lab: Lab) -> None:
        """Bring all sites together: so starting and preparing are as quick as can be."""
        _change(lab, _ZERO, _ZERO)

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Prepare everything, then go through the RTT steps."""
        requests, prepared = self.subject.requests, self.prepared
        plan, header = requests.plan_of_steps(), requests.header(cluster)
        with self.stage("objects"):
            self.prepare(spawn, header, plan.prepare, self.stored.take)
        order = schedule(self._spec.rtts, self._spec.repeats, prepared.seed)
        with (
            StepCalibration(lab, prepared.plan, prepared.target, prepared.seed) as calibration,
            Oneshot(spawn, header) as oneshot,
        ):
            for number, (rtt, batches) in enumerate(zip(order, plan.steps, strict=True)):
                step = RttStep(system=self.name, rtt_step=number, requested_rtt_ms=rtt.ms)
                self._detail = (
                    f"RTT step {number + 1} of {len(order)}, RTT {rtt}; {self._budget.progress()}"
                )
                self._settle(lab, cluster, step, rtt, calibration)
                take = self.taking(cluster, not_found, {"rtt_ms": rtt.ms, "rtt_step": number})
                self._request(oneshot, batches, step, take)
                self._record.add(step)
                self._check_steps()
            oneshot.finish()
        cluster.check()

    def _settle(
        self, lab: Lab, cluster: Cluster, step: RttStep, rtt: Duration, calibration: StepCalibration
    ) -> None:
        """Change the links, and return when they are known to be what they are to be."""
        began = time.monotonic()
        settle_s = self._spec.settle.s
        idle_s = max(IDLE.s, settle_s / 2)
        jitter = self._spec.jitter_at(rtt)
        step.requested_jitter_ms = jitter.ms
        step.changed_ns = _change(lab, rtt, jitter)
        self._record.event(step, "change", step.changed_ns)
        self._tell()
        wait_until(lab, began + settle_s - idle_s)
        idle_ns = time.monotonic_ns()
        self._record.event(step, "idle", idle_ns)
        self.sample_resources()
        # All of it, also where changing the links took long.
        wait_until(lab, max(began + settle_s, idle_ns / 1e9 + idle_s))
        cluster.check()
        self.sample_resources()
        step.idle_ns = (idle_ns, time.monotonic_ns())
        self._record.event(step, "calibrate", step.idle_ns[1])
        calibration.into(step)
        self._budget.settling_s += time.monotonic() - began

    def _request(self, oneshot: Oneshot, batches: Step, step: RttStep, take: OnSample) -> None:
        step.begun_ns = time.monotonic_ns()
        self.sample_resources()
        for phase, batch in (("warmup", batches.warmup), ("measure", batches.measure)):
            self._record.event(step, phase)
            for request in batch:
                oneshot.send(request)
                sample = oneshot.receive()
                take(request, sample)
                self._budget.latencies_s += sample.elapsed_ns / 1e9
                self._measured += phase == "measure"
                self._tell()
        step.ended_ns = time.monotonic_ns()
        self._record.event(step, "end", step.ended_ns)
        self.sample_resources()

    def _tell(self) -> None:
        """Report progress: the detail is one a step, because in a log each is a line."""
        total = self.subject.requests.measured()
        self.tell(STAGES["measure"], self._measured, total, self._detail)

    def _check_steps(self) -> None:
        """Give up when too many steps were on networks that nobody requested."""
        failed, total = self._record.failed(self.name), self._spec.total_steps
        if len(failed) > int(total * _ALLOWED_TO_FAIL):
            last, pair = failed[-1], worst_of(failed[-1])
            raise RunFailed(
                f"The network of {len(failed)} RTT steps was not what was requested, of {total} in "
                f"all: at an RTT of {last.requested_rtt_ms:g} ms, {pair.source} → "
                f"{pair.destination}: {'; '.join(pair.reasons)}. {blame([pair.model_dump()])}"
            )


def _change(lab: Lab, rtt: Duration, jitter: Duration) -> int:
    """Give every WAN link an RTT and a jitter; return the instant."""
    return lab.change("wan", rtt=str(rtt), jitter=str(jitter), origin=_ORIGIN)


T = TypeVar("T")


def schedule(rtts: Sequence[T], times: int, seed: int) -> tuple[T, ...]:
    """Return every RTT ``times`` times, in an order that the seed decides.

    Shuffled within each repetition of all of them (randomized blocks), so that a machine that
    slows down in the course of a run meets all RTTs alike, and a run that is cut short has been at
    each as often as the others, give or take one.
    """
    order = random.Random(f"{seed}/schedule")
    steps: list[T] = []
    for _ in range(times):
        block = list(rtts)
        order.shuffle(block)
        steps += block
    return tuple(steps)
