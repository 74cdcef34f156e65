"""One system's part of a study of round trips: one cluster, whose WAN links change under it.

Everything is prepared at an RTT of 0, where it is quick. Then the visits, one after the other:
change all WAN links; let it settle, at the end of which nothing is sent but what the cluster says
of its own accord; calibrate; warm up; measure. One client process goes through all of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TypeVar

from wanlat.emulator.calibration import Tolerance, blame
from wanlat.emulator.calibration.between_sites import BetweenSites, pairs_between_sites
from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import FOR_ROUND_TRIPS
from wanlat.experiments.config.rtt_steps import IDLE, RoundTripsSpec
from wanlat.experiments.not_found import NotFoundTracker
from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.session import Recording
from wanlat.experiments.workloads.requests import STAGES, Workload
from wanlat.experiments.workloads.rtt_step_record import (
    Budget,
    RttStep,
    RttStepsRecord,
    stated_settling_s,
)
from wanlat.probes.oneshot import Oneshot, OnSample
from wanlat.probes.plan import Visit
from wanlat.probes.process import Spawn
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.units import Duration

_ORIGIN = "visit"
_LOOK_EVERY_S = 0.2
_ALLOWED_TO_FAIL = 1 / 3
_ZERO = Duration(0)


class RttStepsWorkload(Workload):
    """One system's part of a study of round trips."""

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's proof: every visit is calibrated again, by medians."""
        return FOR_ROUND_TRIPS

    def __init__(
        self,
        prepared: Prepared,
        subject: Subject,
        recording: Recording,
        spec: RoundTripsSpec,
        steps: RttStepsRecord,
    ) -> None:
        super().__init__(prepared, subject, recording)
        self._spec = spec
        self._steps = steps
        self._budget = Budget(stated_settling_s(spec))
        self._measured = 0
        self._told = (-1, "")

    def measure(self) -> None:
        """Build the lab, prove it right, start the cluster, visit every RTT."""
        began = time.monotonic()
        try:
            super().measure()
        finally:
            budget = self._budget
            budget.total_s = time.monotonic() - began
            budget.startup = self.took_s
            self._steps.note_time(self.name, budget)
            self.outcome.remarks.append(f"{self.name}: {budget.remark()}.")

    def before_start(self, lab: Lab) -> None:
        """Bring all sites together: so starting and preparing are as quick as can be."""
        _change(lab, _ZERO, _ZERO)

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Prepare everything, then go through the visits."""
        requests, prepared = self.subject.requests, self.prepared
        plan, header = requests.plan_of_visits(), requests.header(cluster)
        with self.stage("objects"):
            self.prepare(spawn, header, plan.prepare, self.stored.take)
        order = schedule(self._spec.rtts, self._spec.visits, prepared.seed)
        pairs = pairs_between_sites(prepared.plan, prepared.target, prepared.seed)
        here = prepared.plan.node(prepared.target).site
        near = frozenset(pair for pair in pairs if prepared.plan.node(pair[0]).site == here)
        with BetweenSites(lab, pairs) as between, Oneshot(spawn, header) as oneshot:
            for number, (rtt, step) in enumerate(zip(order, plan.visits, strict=True)):
                jitter = self._spec.jitter_at(rtt)
                entry = RttStep(self.name, number, rtt, jitter, near=near)
                self._settle(lab, cluster, entry, between)
                take = self.taking(cluster, not_found, {"rtt_ms": rtt.ms, "visit": number})
                self._ask(oneshot, step, entry, take)
                self._steps.add(entry)
                self._check_visits()
            oneshot.finish()
        cluster.check()

    def _settle(self, lab: Lab, cluster: Cluster, entry: RttStep, between: BetweenSites) -> None:
        """Change the links, and return when they are known to be what they are to be."""
        began = time.monotonic()
        settle_s = self._spec.settle.s
        idle_s = max(IDLE.s, settle_s / 2)
        entry.changed_ns = _change(lab, entry.rtt, entry.jitter)
        self._steps.event(entry, "change", entry.changed_ns)
        self._tell(entry)
        _rest(lab, began + settle_s - idle_s)
        idle_ns = time.monotonic_ns()
        self._steps.event(entry, "idle", idle_ns)
        self.look()
        # All of it, also where changing the links took long.
        _rest(lab, max(began + settle_s, idle_ns / 1e9 + idle_s))
        cluster.check()
        self.look()
        calibrating_ns = time.monotonic_ns()
        entry.idle_ns = (idle_ns, calibrating_ns)
        self._steps.event(entry, "calibrate", calibrating_ns)
        entry.pairs = between.measure()
        entry.calibrated_ns = (calibrating_ns, time.monotonic_ns())
        self._budget.settling_s += time.monotonic() - began

    def _ask(self, oneshot: Oneshot, requests: Visit, entry: RttStep, take: OnSample) -> None:
        entry.begun_ns = time.monotonic_ns()
        self.look()
        for phase, batch in (("warmup", requests.warmup), ("measure", requests.measure)):
            self._steps.event(entry, phase)
            for request in batch:
                oneshot.send(request)
                sample = oneshot.receive()
                take(request, sample)
                self._budget.latencies_s += sample.elapsed_ns / 1e9
                self._measured += phase == "measure"
                self._tell(entry)
        entry.ended_ns = time.monotonic_ns()
        self._steps.event(entry, "end", entry.ended_ns)
        self.look()

    def _tell(self, entry: RttStep) -> None:
        if self._told[:1] != (entry.number,):  # once a visit: in a log, each is a line
            visit = f"visit {entry.number + 1} of {self._spec.total_visits}, RTT {entry.rtt}"
            self._told = (entry.number, f"{visit}; {self._budget.progress()}")
        self.tell(
            STAGES["measure"], self._measured, self.subject.requests.measured(), self._told[1]
        )

    def _check_visits(self) -> None:
        """Give up when too many visits were to networks that nobody asked for."""
        failed = self._steps.failed(self.name)
        allowed = int(self._spec.total_visits * _ALLOWED_TO_FAIL)
        if len(failed) > allowed:
            last = next(pair for pair in failed[-1].pairs if pair["verdict"] != "pass")
            raise RunFailed(
                f"The network of {len(failed)} visits was not what was asked for, of "
                f"{self._spec.total_visits} in all: at an RTT of {failed[-1].rtt}, "
                f"{last['from']} → {last['to']}: {'; '.join(last['reasons'])}. {blame([last])}"
            )


def _change(lab: Lab, rtt: Duration, jitter: Duration) -> int:
    """Give every WAN link an RTT and a jitter; return the instant."""
    return lab.change("wan", rtt=str(rtt), jitter=str(jitter), origin=_ORIGIN)


def _rest(lab: Lab, until_s: float) -> None:
    """Wait until an instant of CLOCK_MONOTONIC, and not longer than the lab lasts."""
    while (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOOK_EVERY_S))
        lab.check()


T = TypeVar("T")


def schedule(rtts: Sequence[T], times: int, seed: int) -> tuple[T, ...]:
    """Return every RTT ``times`` times, in an order that the seed decides.

    Shuffled within each repetition of all of them (randomized blocks), so that a machine that
    slows down in the course of a run meets all RTTs alike, and a run that is cut short has visited
    each as often as the others, give or take one.
    """
    order = random.Random(f"{seed}/schedule")
    visits: list[T] = []
    for _ in range(times):
        block = list(rtts)
        order.shuffle(block)
        visits += block
    return tuple(visits)
