"""One system's part of a study of round trips: one cluster, with WAN links that change under it.

Everything is prepared at an RTT of 0, where it is quick. Then the RTT steps, one after the other:
change all WAN links; let it settle, at the end of which nothing is sent but what the cluster sends
of its own accord; calibrate; warm up; measure. One client process goes through all of them.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wanlat.bundle.documents import RttStep, RttStepPair, RttSteps
from wanlat.bundle.write import BundleWriter
from wanlat.emulator.calibration import Tolerance, blame
from wanlat.emulator.calibration.live import BetweenSites, pairs_between_sites
from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import FOR_ROUND_TRIPS
from wanlat.experiments.kinds.round_trips import IDLE, RoundTripsSpec
from wanlat.experiments.prepare import Prepared, RequestPlan, Subject
from wanlat.experiments.requests import NotFoundTracker
from wanlat.experiments.session import Recording
from wanlat.experiments.workloads.pace import Pace, Seconds, stated
from wanlat.experiments.workloads.requests import STAGES, Workload, wait_until
from wanlat.experiments.workloads.resampling import Resampling
from wanlat.probes.oneshot import Oneshot, OnSample
from wanlat.probes.plan import Step
from wanlat.probes.process import Spawn
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import MachineLate, RunFailed
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration

_ORIGIN = "rtt step"
_STEP = Seconds(0.4, 3.0)  # to calibrate an RTT step
_ALLOWED_TO_FAIL = 1 / 3

T = TypeVar("T")


class StepCalibration(BetweenSites):
    """Measures the RTT between sites at each RTT step. A context manager."""

    def __init__(self, lab: Lab, plan: Plan, target: str, seed: int) -> None:
        pairs = pairs_between_sites(plan, target, seed)
        here = plan.node(target).site
        self._near = {pair for pair in pairs if plan.node(pair[0]).site == here}
        super().__init__(lab, pairs)

    def into(self, step: RttStep) -> None:
        """Measure every pair as the lab is now, and put what was found into the step.

        Its RTT is the median over the pairs that lead from the target node's site.
        """
        began_ns = time.monotonic_ns()
        step.pairs = [RttStepPair.model_validate(pair) for pair in self.measure()]
        near = (p.measured_rtt_ms for p in step.pairs if (p.source, p.destination) in self._near)
        known = [rtt_ms for rtt_ms in near if rtt_ms is not None]
        step.measured_rtt_ms = statistics.median(known) if known else None
        passed = all(pair.verdict == "pass" for pair in step.pairs)
        step.verdict = "pass" if passed else "fail"
        step.calibrated_ns = (began_ns, time.monotonic_ns())


def what_is_off(step: RttStep) -> str:
    """Return how the network of a step that failed differed from what was requested."""
    pair = next(pair for pair in step.pairs if pair.verdict != "pass")
    reasons = "; ".join(pair.reasons)
    if pair.only_late:  # the reason and the blame are the same
        reasons = "too few probes are left to judge by"
    return f"{pair.source} → {pair.destination}: {reasons}. {blame([pair.model_dump()])}"


@dataclass
class RttStepsRecord:
    """The RTT steps of all systems of a run, written after each, so that a run that is killed
    keeps the whole ones.
    """

    bundle: BundleWriter
    steps: list[RttStep] = field(default_factory=list)

    def add(self, step: RttStep) -> None:
        """Take in a step that has ended."""
        self.steps.append(step)
        self.bundle.write(RttSteps(rtt_steps=self.steps))

    def event(self, step: RttStep, what: str, t_ns: int | None = None) -> None:
        """Note what begins in a step: change, idle, calibrate, warmup, measure; or its end."""
        known = step.model_dump(include={"rtt_step", "requested_rtt_ms"})
        self.bundle.event("rtt step", step.system, json.dumps(known | {"what": what}), t_ns)


class RttStepsWorkload(Workload[RoundTripsSpec]):
    """One system's part of a study of round trips."""

    def __init__(
        self, prepared: Prepared, subject: Subject, recording: Recording, record: RttStepsRecord
    ) -> None:
        super().__init__(prepared, subject, recording)
        self.record = record
        self._measured, self._detail = 0, ""

    @classmethod
    def of_study(cls, prepared: Prepared, recording: Recording) -> Sequence[Workload[Any]]:
        """Return the part of the run of each system; their RTT steps are in one record."""
        record = RttStepsRecord(recording.bundle)
        return [
            RttStepsWorkload(prepared, subject, recording, record) for subject in prepared.subjects
        ]

    @classmethod
    def takes(
        cls, spec: RoundTripsSpec, requests: RequestPlan, pace: Pace
    ) -> tuple[Seconds, Seconds]:
        """Return how long the steps settle and are calibrated, and the time of their requests."""
        stepped = requests.plan_of_steps()
        first = (*stepped.steps[0].warmup, *stepped.steps[0].measure)
        sent = pace.preparing(stepped.prepare, 0.0)  # all sites are together then
        for rtt in spec.rtts:
            sent = sent.plus(pace.all(first, rtt.s).times(spec.repeats))
        step = stated(spec.settle.s).plus(_STEP)
        return step.times(spec.total_steps), sent

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's proof: every RTT step is calibrated again, by medians."""
        return FOR_ROUND_TRIPS

    def before_start(self, lab: Lab) -> None:
        """Bring all sites together: so starting and preparing are as quick as can be."""
        self.change(lab, Duration(0), Duration(0))

    def change(self, lab: Lab, rtt: Duration, jitter: Duration) -> int:
        """Give every WAN link an RTT and a jitter; return the instant."""
        return lab.change("wan", rtt=str(rtt), jitter=str(jitter), origin=_ORIGIN)

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Prepare everything, then go through the RTT steps."""
        requests, prepared = self.subject.requests, self.prepared
        plan, header = requests.plan_of_steps(), requests.header(cluster)
        self.prepare(spawn, header, plan.prepare, self.stored.take)
        order = schedule(self.spec.rtts, self.spec.repeats, prepared.seed)
        with (
            StepCalibration(lab, prepared.plan, prepared.target, prepared.seed) as calibration,
            Oneshot(spawn, header) as oneshot,
        ):
            for number, (rtt, batches) in enumerate(zip(order, plan.steps, strict=True)):
                step = RttStep(system=self.name, rtt_step=number, requested_rtt_ms=rtt.ms)
                self._detail = f"RTT step {number + 1} of {len(order)}, RTT {rtt}"
                self._settle(lab, cluster, step, rtt, calibration)
                take = self.taking(cluster, not_found, {"rtt_ms": rtt.ms, "rtt_step": number})
                resampling = self.resampled(requests, plan.prepare, rtt.ms)
                self._request(oneshot, batches, step, take, resampling)
                self.record.add(step)
                self._check_steps()
            oneshot.finish()
        cluster.check()

    def _settle(
        self, lab: Lab, cluster: Cluster, step: RttStep, rtt: Duration, calibration: StepCalibration
    ) -> None:
        """Change the links, and return when they are known to be what they are to be."""
        began, settle_s, jitter = time.monotonic(), self.spec.settle.s, self.spec.jitter_at(rtt)
        idle_s = max(IDLE.s, settle_s / 2)
        step.requested_jitter_ms = jitter.ms
        step.changed_ns = self.change(lab, rtt, jitter)
        self.record.event(step, "change", step.changed_ns)
        self._report_progress()
        wait_until(lab, began + settle_s - idle_s)
        idle_ns = time.monotonic_ns()
        self.record.event(step, "idle", idle_ns)
        self.sample_resources()
        # All of it, also where changing the links took long.
        wait_until(lab, max(began + settle_s, idle_ns / 1e9 + idle_s))
        cluster.check()
        self.sample_resources()
        step.idle_ns = (idle_ns, time.monotonic_ns())
        self.record.event(step, "calibrate", step.idle_ns[1])
        calibration.into(step)

    def _request(
        self, oneshot: Oneshot, batches: Step, step: RttStep, take: OnSample, resampling: Resampling
    ) -> None:
        step.begun_ns = time.monotonic_ns()
        self.sample_resources()
        for phase, batch in (("warmup", batches.warmup), ("measure", batches.measure)):
            self.record.event(step, phase)
            for request in resampling.following(batch):
                oneshot.send(request)
                take(request, oneshot.receive())
                self._measured += request.phase == "measure"
                self._report_progress()
        step.ended_ns = time.monotonic_ns()
        self.record.event(step, "end", step.ended_ns)
        self.sample_resources()

    def _report_progress(self) -> None:
        """Report progress: the detail is one a step, because in a log each is a line."""
        total = self.subject.requests.measured()
        self.progress(STAGES["measure"], self._measured - self.late, total, self._detail)

    def _check_steps(self) -> None:
        """Give up when too many steps were on networks other than requested."""
        mine = [step for step in self.record.steps if step.system == self.name]
        failed, total = [s for s in mine if s.verdict != "pass"], self.spec.total_steps
        if len(failed) > int(total * _ALLOWED_TO_FAIL):
            pairs = [pair for step in failed for pair in step.pairs if pair.verdict != "pass"]
            error = MachineLate if all(pair.only_late for pair in pairs) else RunFailed
            raise error(
                f"The network of {len(failed)} RTT steps was not what was requested, of {total} in "
                f"all: at an RTT of {failed[-1].requested_rtt_ms:g} ms, {what_is_off(failed[-1])}"
            )


def schedule(rtts: Sequence[T], times: int, seed: int) -> tuple[T, ...]:
    """Return every RTT ``times`` times, in an order that the seed decides.

    Shuffled within each repetition of all of them (randomized blocks), so that a machine that
    slows down in the course of a run meets all RTTs alike, and a run that is cut short has been at
    each as often as the others, give or take one.
    """
    order = random.Random(f"{seed}/schedule")
    return tuple(rtt for _ in range(times) for rtt in order.sample(rtts, len(rtts)))
