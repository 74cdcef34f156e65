"""One system's part of a study: its session, and single requests, one after another.

What other studies do on the cluster are subclasses: RTT steps, load, reclaim, a trace.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Generic, TypeVar, cast

from wanlat.bundle.documents import NOT_SENT
from wanlat.bundle.outcomes import are_too_many, why_too_many
from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import tolerating
from wanlat.experiments.config.workloads import BUCKET, Stopwatch, budget_remark
from wanlat.experiments.kinds.base import StudyKind
from wanlat.experiments.network_error import NetworkErrors
from wanlat.experiments.prepare import Prepared, RequestPlan, Subject
from wanlat.experiments.program_overhead import note_overhead
from wanlat.experiments.requests import NotFoundTracker, Row, row_of, spawn_on
from wanlat.experiments.resources import Sampler, StoredBytes
from wanlat.experiments.session import Recording, Session, requested_rtt_ms
from wanlat.experiments.workloads.pace import NONE, Pace, Seconds, counted
from wanlat.experiments.workloads.prefill import Filling, IdleWatch
from wanlat.experiments.workloads.resampling import Resampling
from wanlat.probes.fewer import fewer_measured
from wanlat.probes.header import Header
from wanlat.probes.one_key import Overwrites
from wanlat.probes.oneshot import OnSample, prepare, run_requests
from wanlat.probes.plan import Plan, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.systems.engine.wait import ready_timeout_s
from wanlat.topologies.errors import DiskFull, MachineError, RunFailed, WanlatError
from wanlat.topologies.units import Duration

K = TypeVar("K", bound=StudyKind)
STAGES = {"prepare": "preparing objects", "warmup": "warming up", "measure": "measuring"}
_REPORT_INTERVAL_S = 0.5
_CHECK_EVERY_S = 0.2


def wait_until(lab: Lab, until_s: float) -> None:
    """Wait until an instant of CLOCK_MONOTONIC, and not longer than the lab lasts."""
    while (left_s := until_s - time.monotonic()) > 0:
        time.sleep(min(left_s, _CHECK_EVERY_S))
        lab.check()


class Workload(Generic[K]):
    """One system's part of a study of single requests on one network."""

    def __init__(self, prepared: Prepared, subject: Subject, recording: Recording) -> None:
        self.prepared = prepared
        self.subject = subject
        self.session = Session(recording, subject)
        self.bundle = recording.bundle
        self.outcome = recording.outcome
        self.name = subject.name
        """The system's."""
        self.spec = cast(K, prepared.study.kind)
        """What makes the study one of its kind."""
        self.progress = self.session.progress
        """Report progress."""
        self.stored = StoredBytes()
        self.errors: NetworkErrors | None = None
        """How late the network was, of the lab that is up."""
        self.resampling: Resampling | None = None
        """What sends requests again, while any are sent."""
        self.late = 0
        """How many measured samples do not count, because the network was late."""
        self._outcomes = Counter[str]()
        """Of requests that were sent, or due, after everything was prepared."""
        self._not_sent_error: str | None = None
        self.sampler: Sampler | None = None
        """What samples resources, while it does."""

    @classmethod
    def of_study(cls, prepared: Prepared, recording: Recording) -> Sequence[Workload[Any]]:
        """Return the part of the run of each system, in their order."""
        return [cls(prepared, subject, recording) for subject in prepared.subjects]

    @classmethod
    def takes(cls, spec: K, requests: RequestPlan, pace: Pace) -> tuple[Seconds, Seconds]:  # noqa: ARG003
        """Return how long it takes by what a study states, and how long its requests take."""
        plan, budget = requests.plan(), requests.study.budget
        longest_s = budget.time.s if budget and budget.time else float("inf")
        sent = pace.preparing(plan.prepare).plus(pace.all(plan.warmup))
        for (endpoint, _), count in counted(plan.measure).items():
            every = pace.one(endpoint).times(count)
            sent = sent.plus(Seconds(*(min(seconds, longest_s) for seconds in every)))
        return NONE, sent

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's calibration."""
        return tolerating(self.prepared.study.max_network_error.ms)

    def measure(self) -> None:
        """Build the lab, calibrate it, start the cluster, take the samples."""
        session, study = self.session, self.prepared.study
        with session.lab() as lab:
            self.errors = session.network_errors(lab, study.max_network_error.ms)
            session.calibrate(lab, self.tolerance, may_tolerate=True)
            self.before_start(lab)
            place = self.subject.requests.place
            ready_s = ready_timeout_s(lab.plan, study.ready_timeout)
            cluster = session.start(lab, self.subject, ready_s, place)
            # A study measures whole clusters: with a node gone there is nothing left to measure.
            cluster.on_exit(lab.abort)
            with self._sampling(lab, cluster):
                if study.resources:
                    self.be_idle(lab, cluster, "idle", study.resources.idle)
                    self.sample_resources()
                self._send_all(lab, cluster)
            session.note_overflows(lab)

    def before_start(self, lab: Lab) -> None:
        """Do what is to be done between the calibration and the cluster: here, nothing."""

    def _sampling(self, lab: Lab, cluster: Cluster) -> AbstractContextManager[object]:
        """Return what samples the resources of nodes while it is open."""
        wanted = self.prepared.study.resources
        if wanted is False:
            return nullcontext()
        every_s, facts = wanted.interval.s, self.stored.facts
        self.sampler = Sampler(lab, cluster, self.bundle, self.name, every_s, facts)
        return self.sampler

    def sample_resources(self) -> None:
        """Sample the nodes' resources now, while no request is in flight."""
        if self.sampler is not None:
            self.sampler.sample()

    def sample_space(self) -> None:
        """Sample the nodes' disk space now, between two stages: it may take seconds."""
        if self.sampler is not None:
            self.sampler.sample_space()

    def be_idle(
        self,
        lab: Lab,
        cluster: Cluster,
        what: str,
        duration: Duration,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        """Leave the cluster alone for so long, and report that; ``check`` is called now and then.

        Raises what ends the run early.
        """
        end_s = time.monotonic() + duration.s
        while (left_s := end_s - time.monotonic()) > 0:
            cluster.check()
            check()
            self.progress(what, duration.s - left_s, duration.s)
            wait_until(lab, time.monotonic() + min(left_s, _REPORT_INTERVAL_S))

    def _send_all(self, lab: Lab, cluster: Cluster) -> None:
        self.bundle.event("loaded", self.name)  # until here it was idle
        cluster.create_bucket(BUCKET)
        spawn = spawn_on(lab, self.prepared.client)
        with blaming_full_disks(cluster):
            self.fill(lab, spawn, cluster)
        not_found = NotFoundTracker()
        try:
            with blaming_full_disks(cluster):
                self.send(lab, spawn, cluster, not_found)
            self._check_sent()
        finally:
            for remark in not_found.remarks():
                self.session.warn(remark)
            self.session.note_state(cluster)

    def _check_sent(self) -> None:
        """Raise MachineError where this machine could not send too many of the requests."""
        not_sent, due = self._outcomes[NOT_SENT], self._outcomes.total()
        if are_too_many(not_sent, due):
            raise MachineError(f"{self.name}: {why_too_many(not_sent, due, self._not_sent_error)}")

    def fill(self, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
        """Write what is to be there before anything is measured: the study's `prefill`.

        Raises RunFailed when the store does not take the objects, or has not got them afterwards.
        """
        spec = self.prepared.study.prefill
        if spec is not None:
            watch = IdleWatch(lab, cluster) if spec.settles else None
            Filling(self.session, self.subject.requests, spec, spawn, cluster).do(watch)
            self.sample_space()

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
            take(request, sample)
            done[sample.phase] += 1
            if sample.phase in totals:
                late = self.late if sample.phase == "measure" else 0
                self.progress(STAGES[sample.phase], done[sample.phase] - late, totals[sample.phase])

        def following() -> Iterator[Request]:
            watch = Stopwatch()
            yield from watch.timing(plan.warmup)
            measure = self._within_budget(plan, watch)
            totals["measure"] = len(measure)
            yield from self.resampled(requests, plan.prepare, rtt_ms).following(measure)

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
        note_overhead(spawn, header, self.bundle, self.name)
        done = 0

        def on_sample(request: Request, sample: Sample) -> None:
            nonlocal done
            done += 1
            take(request, sample)
            self.progress(STAGES["prepare"], done, len(requests))

        self.progress(STAGES["prepare"], 0, len(requests))
        prepare(spawn, header, requests, on_sample)

    def _within_budget(self, plan: Plan, watch: Stopwatch) -> Sequence[Request]:
        """Return what of a plan the study's budget lets be measured, and write that down.

        ``watch``: how long its warm-up took.
        """
        requests, study = self.subject.requests, self.prepared.study
        if study.budget is None:
            return plan.measure
        size = study.object_size.bytes
        planned = study.budget.planned(
            self.name, requests.turns(), study.samples, size, watch.took_s
        )
        before = self.bundle.manifest.get("budget", [])
        self.bundle.write_manifest(
            budget=[*before, *(budgeted.model_dump() for budgeted in planned)]
        )
        self.outcome.planned += sum(budgeted.samples for budgeted in planned) - requests.measured()
        if remark := budget_remark(planned):
            self.outcome.remarks.append(f"{self.name}: {remark}")
        by_turn = dict(
            zip(requests.turns(), (budgeted.samples for budgeted in planned), strict=True)
        )
        return fewer_measured(plan.measure, by_turn, plan.seed)

    def resampled(
        self, requests: RequestPlan, prepare: Sequence[Request], rtt_ms: float
    ) -> Resampling:
        """Return what sends requests again, from now on; arguments as of `Resampling`."""
        assert self.errors is not None
        self.resampling = Resampling(self.errors, requests, prepare, rtt_ms, self._note_late)
        return self.resampling

    def _note_late(self) -> None:
        self.late += 1
        self.outcome.measured -= 1

    def row(self, request: Request, came: Row, of_network: Mapping[str, Any]) -> Row:
        """Return the row of a request: what came of it, and what the network was then."""
        constant = {**self.subject.of_samples, "client": self.prepared.client, **of_network}
        return {**came, **constant, "placement": request.placement}

    def taking(
        self, cluster: Cluster, not_found: NotFoundTracker, of_network: Mapping[str, Any]
    ) -> OnSample:
        """Return what writes a sample down, with what the network was when it was taken."""

        def take(request: Request, sample: Sample) -> None:
            self.stored.take(request, sample)
            if sample.phase != "prepare":
                self._outcomes[sample.outcome] += 1
                if sample.outcome == NOT_SENT:
                    self._not_sent_error = sample.error
                self.bundle.sample(self.row(request, row_of(sample, request), of_network))
                if not_found.take(request, sample):
                    self.bundle.event("not found", self.name, str(request.key))
            if sample.phase == "measure":
                self.outcome.measured += 1
                if self.resampling is not None:
                    self.resampling.take(request, sample)
            if sample.outcome != "ok":
                cluster.check()
                cluster.check_space()

        return take


@contextmanager
def blaming_full_disks(cluster: Cluster) -> Iterator[None]:
    """Name the full disk of a node in what fails on its cluster."""
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
