"""One system's part of a study of round trips: one cluster, whose WAN links change under it.

Everything is prepared at an RTT of 0, where it is quick. Then the visits, one after the other:
change all WAN links; let it settle, at the end of which nothing is sent but what the cluster says
of its own accord; calibrate; warm up; measure. One client process goes through all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from wanlat.emulator.calibration import Tolerance, blame
from wanlat.emulator.calibration.between_sites import BetweenSites, pairs_between_sites
from wanlat.emulator.lab import Lab
from wanlat.experiments.missing import Missing
from wanlat.experiments.prepared import Prepared, Subject
from wanlat.experiments.proof import FOR_ROUND_TRIPS
from wanlat.experiments.system_run import STAGES, Record, Report, SystemRun
from wanlat.experiments.visits.budget import Budget, stated_settling_s
from wanlat.experiments.visits.model import IDLE, RoundTripsSpec
from wanlat.experiments.visits.record import VisitEntry, VisitsRecord
from wanlat.experiments.visits.schedule import schedule
from wanlat.probes.oneshot import Oneshot, OnSample
from wanlat.probes.oneshot import prepare as prepare_objects
from wanlat.probes.plan import Header, Request, Visit
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.units import Duration

_ORIGIN = "visit"
_LOOK_EVERY_S = 0.2
_ALLOWED_TO_FAIL = 1 / 3
_ZERO = Duration(0)


class VisitsRun(SystemRun):
    """One system's part of a study of round trips."""

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's proof: every visit is calibrated again, by medians."""
        return FOR_ROUND_TRIPS

    def __init__(
        self,
        prepared: Prepared,
        subject: Subject,
        record: Record,
        report: Report,
        spec: RoundTripsSpec,
        visits: VisitsRecord,
    ) -> None:
        super().__init__(prepared, subject, record, report)
        self._spec = spec
        self._visits = visits
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
            self._visits.note_time(self.name, budget)
            self.outcome.remarks.append(f"{self.name}: {budget.remark()}.")

    def before_start(self, lab: Lab) -> None:
        """Bring all sites together: so starting and preparing are as quick as can be."""
        _change(lab, _ZERO, _ZERO)

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, missing: Missing) -> None:
        """Prepare everything, then go through the visits."""
        asked, prepared = self.subject.asked, self.prepared
        plan, header = asked.plan_of_visits(), asked.header(cluster)
        with self.stage("objects"):
            self._prepare(spawn, header, plan.prepare)
        order = schedule(self._spec.rtts, self._spec.visits, prepared.seed)
        pairs = pairs_between_sites(prepared.plan, prepared.target, prepared.seed)
        here = prepared.plan.node(prepared.target).site
        near = frozenset(pair for pair in pairs if prepared.plan.node(pair[0]).site == here)
        with BetweenSites(lab, pairs) as between, Oneshot(spawn, header) as oneshot:
            for number, (rtt, requests) in enumerate(zip(order, plan.visits, strict=True)):
                jitter = self._spec.jitter_at(rtt)
                entry = VisitEntry(self.name, number, rtt, jitter, near=near)
                self._settle(lab, cluster, entry, between)
                take = self.taking(cluster, missing, {"rtt_ms": rtt.ms, "visit": number})
                self._ask(oneshot, requests, entry, take)
                self._visits.add(entry)
                self._check_visits()
            oneshot.finish()
        cluster.check()

    def _prepare(self, spawn: Spawn, header: Header, requests: Sequence[Request]) -> None:
        done = 0

        def on_sample(request: Request, sample: Sample) -> None:
            nonlocal done
            self.stored.take(request, sample)
            done += 1
            self.tell(STAGES["prepare"], done, len(requests))

        self.tell(STAGES["prepare"], 0, len(requests))
        prepare_objects(spawn, header, requests, on_sample)

    def _settle(self, lab: Lab, cluster: Cluster, entry: VisitEntry, between: BetweenSites) -> None:
        """Change the links, and return when they are known to be what they are to be."""
        began = time.monotonic()
        settle_s = self._spec.settle.s
        idle_s = max(IDLE.s, settle_s / 2)
        entry.changed_ns = _change(lab, entry.rtt, entry.jitter)
        self._visits.event(entry, "change", entry.changed_ns)
        self._tell(entry)
        _rest(lab, began + settle_s - idle_s)
        idle_ns = time.monotonic_ns()
        self._visits.event(entry, "idle", idle_ns)
        self.look()
        # All of it, also where changing the links took long.
        _rest(lab, max(began + settle_s, idle_ns / 1e9 + idle_s))
        cluster.check()
        self.look()
        calibrating_ns = time.monotonic_ns()
        entry.idle_ns = (idle_ns, calibrating_ns)
        self._visits.event(entry, "calibrate", calibrating_ns)
        entry.pairs = between.measure()
        entry.calibrated_ns = (calibrating_ns, time.monotonic_ns())
        self._budget.settling_s += time.monotonic() - began

    def _ask(self, oneshot: Oneshot, requests: Visit, entry: VisitEntry, take: OnSample) -> None:
        entry.begun_ns = time.monotonic_ns()
        self.look()
        for phase, batch in (("warmup", requests.warmup), ("measure", requests.measure)):
            self._visits.event(entry, phase)
            for request in batch:
                oneshot.send(request)
                sample = oneshot.receive()
                take(request, sample)
                self._budget.latencies_s += sample.elapsed_ns / 1e9
                self._measured += phase == "measure"
                self._tell(entry)
        entry.ended_ns = time.monotonic_ns()
        self._visits.event(entry, "end", entry.ended_ns)
        self.look()

    def _tell(self, entry: VisitEntry) -> None:
        if self._told[:1] != (entry.number,):  # once a visit: in a log, each is a line
            visit = f"visit {entry.number + 1} of {self._spec.total_visits}, RTT {entry.rtt}"
            self._told = (entry.number, f"{visit}; {self._budget.progress()}")
        self.tell(STAGES["measure"], self._measured, self.subject.asked.measured(), self._told[1])

    def _check_visits(self) -> None:
        """Give up when too many visits were to networks that nobody asked for."""
        failed = self._visits.failed(self.name)
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
