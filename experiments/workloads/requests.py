"""One system's part of a study: its session, and single requests, one after another.

What other studies do on the cluster are subclasses: RTT steps, load, reclaim, a trace.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import tolerating
from wanlat.experiments.config.budget import (
    Stopwatch,
    budget_remark,
    plan_samples,
    to_manifest,
)
from wanlat.experiments.config.load import BUCKET
from wanlat.experiments.not_found import NotFoundTracker
from wanlat.experiments.prepare import Prepared, Subject
from wanlat.experiments.resources.sampler import Sampler
from wanlat.experiments.resources.space import StoredBytes
from wanlat.experiments.session import Recording, Session, requested_rtt_ms
from wanlat.experiments.workloads.prefill import Filling
from wanlat.experiments.workloads.settle import IdleWatch
from wanlat.probes.fewer import fewer_measured
from wanlat.probes.one_key import Overwrites
from wanlat.probes.oneshot import OnSample, prepare, run_requests
from wanlat.probes.plan import Header, Plan, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import DiskFull, RunFailed, WanlatError
from wanlat.topologies.units import Duration

STAGES = {"prepare": "preparing objects", "warmup": "warming up", "measure": "measuring"}
_TELL_EVERY_S = 0.5
_CHECK_EVERY_S = 0.2


def wait_until(lab: Lab, until_s: float) -> None:
    """Wait until an instant of CLOCK_MONOTONIC, and not longer than the lab lasts."""
    while (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(left_s, _CHECK_EVERY_S))
        lab.check()


class Workload:
    """One system's part of a study of single requests on one network."""

    def __init__(self, prepared: Prepared, subject: Subject, recording: Recording) -> None:
        self.prepared = prepared
        self.subject = subject
        self.session = Session(recording, subject)
        self.bundle = recording.bundle
        self.outcome = recording.outcome
        self.took_s: dict[str, float] = {}
        """Seconds of each stage until requests can be sent."""
        self.stored = StoredBytes()
        self.sampler: Sampler | None = None
        """What samples resources, while it does."""

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's calibration."""
        return tolerating(self.prepared.study.max_p99_error.ms)

    @property
    def name(self) -> str:
        """The system's."""
        return self.subject.name

    def tell(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = ""
    ) -> None:
        """Report progress."""
        self.session.tell(stage, done, total, detail)

    def measure(self) -> None:
        """Build the lab, calibrate it, start the cluster, take the samples."""
        session = self.session
        with ExitStack() as opened:
            with self.stage("lab"):
                lab = opened.enter_context(session.lab())
            with self.stage("proof"):
                session.calibrate(lab, self.tolerance, may_tolerate=True)
            self.before_start(lab)
            with self.stage("cluster"):
                cluster = session.start(lab, self.subject, self.prepared.study.ready_timeout.s)
            # A study measures whole clusters: with a node gone there is nothing left to measure.
            cluster.when_one_died(lab.abort)
            with self._sampling(lab, cluster):
                if self.sampler is not None and self.prepared.study.resources:
                    self.be_idle(lab, cluster, "idle", self.prepared.study.resources.idle)
                    self.sample_resources()
                self._send_all(lab, cluster)
            session.note_overflows(lab)

    def before_start(self, lab: Lab) -> None:
        """Do what is to be done between the calibration and the cluster: here, nothing."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note how long a stage takes, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.took_s[name] = time.monotonic() - began

    def _sampling(self, lab: Lab, cluster: Cluster) -> AbstractContextManager[object]:
        """Return what samples the resources of nodes while it is open."""
        wanted = self.prepared.study.resources
        if wanted is False:
            return nullcontext()
        self.sampler = Sampler(
            lab, cluster, self.bundle, self.name, wanted.interval.s, self.stored.facts
        )
        return self.sampler

    def sample_resources(self) -> None:
        """Sample the nodes' resources now, while no request is in flight."""
        if self.sampler is not None:
            self.sampler.sample()

    def sample_space(self) -> None:
        """Sample the nodes' disk space now, between two stages: it may take seconds."""
        if self.sampler is not None:
            self.sampler.sample_space()

    def be_idle(self, lab: Lab, cluster: Cluster, what: str, duration: Duration) -> None:
        """Leave the cluster alone for so long, and report that."""
        end_s = time.monotonic() + duration.s
        while (left_s := end_s - time.monotonic()) > 0:
            cluster.check()
            self.tell(what, duration.s - left_s, duration.s)
            wait_until(lab, time.monotonic() + min(left_s, _TELL_EVERY_S))

    def _send_all(self, lab: Lab, cluster: Cluster) -> None:
        self.bundle.event("loaded", self.name)  # until here it was idle
        if self.subject.requests.api == "s3":
            cluster.create_bucket(BUCKET)

        def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Any:
            return lab.spawn(self.prepared.client, argv, stdin=stdin, stdout=stdout, stderr=stderr)

        wants = self.prepared.study.prefill is not None
        with self.stage("prefill") if wants else nullcontext(), blaming_full_disks(cluster):
            self.fill(lab, spawn, cluster)
        if wants:
            self.sample_space()
        not_found = NotFoundTracker()
        try:
            with blaming_full_disks(cluster):
                self.send(lab, spawn, cluster, not_found)
        finally:
            for remark in not_found.remarks():
                self.session.warn(remark)
            self.session.note_state(cluster)

    def fill(self, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
        """Write what is to be there before anything is measured: the study's `prefill`.

        Raises RunFailed when the store does not take the objects, or has not got them afterwards.
        """
        spec = self.prepared.study.prefill
        if spec is not None:
            watch = IdleWatch(lab, cluster) if spec.settles else None
            Filling(self.session, self.subject.requests, spec, spawn, cluster).do(watch)

    def send(
        self,
        lab: Lab,  # noqa: ARG002 - for subclasses
        spawn: Spawn,
        cluster: Cluster,
        not_found: NotFoundTracker,
    ) -> None:
        """Send all requests, and take in their samples.

        What is sent is decided as it goes: with a budget, how many samples are taken is known when
        the warm-up is over; with one key that is overwritten, which bytes a read must bring is
        known when the write before it is.
        """
        requests = self.subject.requests
        plan, header = requests.plan(), requests.header(cluster)
        totals = {"warmup": len(plan.warmup), "measure": len(plan.measure)}
        overwrites = Overwrites() if requests.study.key_mode == "same" else None
        rtt_ms = requested_rtt_ms(self.prepared.plan, self.prepared.target)
        take = self.taking(cluster, not_found, {"rtt_ms": rtt_ms})
        done: Counter[str] = Counter()

        def take_in(request: Request, sample: Sample) -> None:
            if overwrites is not None:
                overwrites.note(request, sample)
            if not done[sample.phase]:
                self.sample_resources()
            done[sample.phase] += 1
            if sample.phase in totals:
                self.tell(STAGES[sample.phase], done[sample.phase], totals[sample.phase])
            take(request, sample)

        def following() -> Iterator[Request]:
            watch = Stopwatch()
            yield from watch.timing(plan.warmup)
            measure = self._within_budget(plan, watch)
            totals["measure"] = len(measure)
            yield from measure

        self.prepare(spawn, header, plan.prepare, take_in)
        to_send = following() if overwrites is None else overwrites.following(following())
        run_requests(spawn, header, to_send, take_in)
        self.sample_resources()
        cluster.check()

    def prepare(
        self,
        spawn: Spawn,
        header: Header,
        requests: Sequence[Request],
        take: OnSample = lambda *_: None,
    ) -> None:
        """Write what requests need that are measured later, and report how far it is."""
        done = 0

        def on_sample(request: Request, sample: Sample) -> None:
            nonlocal done
            done += 1
            take(request, sample)
            self.tell(STAGES["prepare"], done, len(requests))

        self.tell(STAGES["prepare"], 0, len(requests))
        prepare(spawn, header, requests, on_sample)

    def _within_budget(self, plan: Plan, watch: Stopwatch) -> Sequence[Request]:
        """Return what of a plan the study's budget lets be measured, and write that down.

        ``watch``: how long its warm-up took.
        """
        requests = self.subject.requests
        study = requests.study
        if study.budget is None:
            return plan.measure
        planned = plan_samples(
            study.budget, requests.turns(), study.samples, study.object_size.bytes, watch.took_s
        )
        before = self.bundle.manifest.get("budget", [])
        self.bundle.write_manifest(budget=[*before, *to_manifest(self.name, planned)])
        self.outcome.planned += sum(each.samples for each in planned) - requests.measured()
        if cut := [each for each in planned if each.samples < each.wanted]:
            self.outcome.remarks.append(f"{self.name}: {budget_remark(cut)}")
        samples = {(each.endpoint, each.placement): each.samples for each in planned}
        return fewer_measured(plan.measure, samples, plan.seed)

    def taking(
        self, cluster: Cluster, not_found: NotFoundTracker, of_network: Mapping[str, Any]
    ) -> OnSample:
        """Return what writes a sample down, with what the network was when it was taken."""
        constant = {**self.subject.of_samples, "client": self.prepared.client, **of_network}

        def take(request: Request, sample: Sample) -> None:
            self.stored.take(request, sample)
            if sample.phase != "prepare":
                self.bundle.sample({**asdict(sample), **constant, "placement": request.placement})
                if not_found.take(request, sample):
                    self.bundle.event("not found", self.name, str(request.key))
            if sample.phase == "measure":
                self.outcome.measured += 1
            if sample.outcome != "ok":
                cluster.check()
                cluster.check_space()

        return take


@contextmanager
def blaming_full_disks(cluster: Cluster) -> Iterator[None]:
    """Say of what fails on a cluster of which a node's disk is full that it is."""
    try:
        yield
    except DiskFull:
        raise
    except WanlatError as error:
        try:
            cluster.check_space()
        except WanlatError as full:
            if str(full) != str(error):
                raise RunFailed(f"{error} {full}") from error
        raise
