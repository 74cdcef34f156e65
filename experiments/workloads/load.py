"""One system's part of a study of mixed load.

Prepare and warm up; the quiet user alone; then the load, and the quiet user beside it. Both stand
on the client's node and ask the same node.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.experiments.config.load import Api, LoadSpec
from wanlat.experiments.config.prefill import BUCKET
from wanlat.experiments.drill.client import NOT_SENT
from wanlat.experiments.drill.rows import never_sent
from wanlat.experiments.not_found import NotFoundTracker
from wanlat.experiments.session import requested_rtt_ms
from wanlat.experiments.workloads.load_result import account_of, add_rows, raw_path
from wanlat.experiments.workloads.probe_client import OnSample, ProbeClient, plan_of
from wanlat.experiments.workloads.requests import STAGES, Workload
from wanlat.probes.load import End, Generator, LoadJob, Progress
from wanlat.probes.plan import Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import DiskFull, RunFailed, WanlatError

IDLE, LOADED = "idle", "loaded"
"""Phases of the quiet user's samples."""

_LAST_WORDS_S = 4.0
"""For the generator, when it is told to stop."""
_LOOK_EVERY_S = 0.05
_AFTER_NS = 10**10
"""On top of the load's duration, for answers that are awaited."""


class LoadWorkload(Workload):
    """One system's part of a study of mixed load."""

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Ask alone, then beside the load; and put down what came of both."""
        spec = self._spec
        lasting_ns = spec.idle.ns + spec.duration.ns + _AFTER_NS
        plan = plan_of(self.subject.requests, spec.probe_interval, lasting_ns)
        instants = (spec.idle.ns + spec.duration.ns) // spec.probe_interval.ns
        self.outcome.planned += instants - self.subject.requests.measured()
        with ProbeClient(spawn, self.subject.requests, cluster, plan, spec.probe_interval) as quiet:
            rtt_ms = requested_rtt_ms(self.prepared.plan, self.prepared.target)
            before = self.taking(cluster, not_found, {"rtt_ms": rtt_ms})

            def prepared(request: Request, sample: Sample) -> None:
                quiet.note(request, sample)
                before(request, sample)

            header = self.subject.requests.header(cluster)
            self.prepare(spawn, header, plan.prepare, prepared)
            self.tell(STAGES["warmup"])
            quiet.warm_up(plan, before)

            def take(phase: str) -> OnSample:
                def on_sample(request: Request, sample: Sample | None, due_ns: int) -> None:
                    constant = {"rtt_ms": rtt_ms, "phase": phase, "due_ns": due_ns}
                    if sample is None:
                        self._note_unsent(request, constant)
                    else:
                        self.taking(cluster, not_found, constant)(request, sample)

                return on_sample

            self._note_load(_of_quiet(quiet, spec))  # so that a run that is killed says so too
            self._be_alone(lab, quiet, take(IDLE))
            self._be_beside(spawn, cluster, quiet, take(LOADED))
        cluster.check()

    @property
    def _spec(self) -> LoadSpec:
        spec = self.prepared.study.load
        assert spec is not None
        return spec

    def _note_unsent(self, request: Request, constant: dict[str, Any]) -> None:
        self.bundle.sample(
            {
                **never_sent(request.seq, request.endpoint, NOT_SENT),
                **self.subject.of_samples,
                "client": self.prepared.client,
                "placement": request.placement,
                **constant,
            }
        )

    def _be_alone(self, lab: Lab, quiet: ProbeClient, take: OnSample) -> None:
        self._event("idle begins")
        quiet.begin()
        began_ns = time.monotonic_ns()
        until_ns = began_ns + self._spec.idle.ns
        while (now_ns := time.monotonic_ns()) < until_ns:
            self.tell("the quiet user alone", (now_ns - began_ns) // 10**9, self._spec.idle.s)
            quiet.go_on(min(now_ns + 10**9, until_ns), take)
            lab.check()
        quiet.settle(take)
        self._event("idle ends")

    def _be_beside(
        self, spawn: Spawn, cluster: Cluster, quiet: ProbeClient, take: OnSample
    ) -> None:
        job, watch = self._job(), Watch(self, self._spec, cluster)
        header = self.subject.requests.header(cluster)
        self._event("begins", workers=job.workers)
        try:
            with Generator(spawn, header, job) as generator:
                try:
                    quiet.begin()
                    while watch.end is None:
                        quiet.go_on(time.monotonic_ns() + 10**9, take, generator.fileno())
                        watch.listen(generator)
                    quiet.finish(take)
                except BaseException:
                    quiet.cut()
                    watch.hear_last_words(generator)
                    raise
        finally:
            self._put_down(job, watch, quiet)
        self._check_end(watch.end, cluster)

    def _check_end(self, end: End, cluster: Cluster) -> None:
        if end.end == "complete":
            return
        cluster.check()
        why = end.reason or "its generator was stopped, and not by this run"
        lasted_s = (end.ended_ns - end.began_ns) / 1e9
        raise RunFailed(f"{self.name}: the load ended after {lasted_s:.0f} s: {why}.")

    def _job(self) -> LoadJob:
        spec, study = self._spec, self.prepared.study
        prefill, requests = study.prefill, self.subject.requests
        api: Api = "s3" if requests.api == "s3" else "bob"
        return LoadJob(
            job="mix",
            records=raw_path(self.bundle.directory, self.name).absolute(),
            buckets=prefill.bucket_names if prefill else [BUCKET],
            objects=prefill.objects if prefill else 0,
            object_bytes=study.object_size.bytes,
            seed=self.prepared.seed,
            workers=spec.workers,
            duration_ms=max(spec.duration.ns // 10**6, 1),
            ramp_ms=spec.ramp.ns // 10**6,
            rate=spec.rate,
            mix=spec.mix_of(api),
        )

    def _put_down(self, job: LoadJob, watch: Watch, quiet: ProbeClient) -> None:
        """Write what is known of the load, however it ended."""
        end = watch.end
        self._event("ends", end=end.end if end else "lost")
        account, warnings = account_of(job, end)
        for text in warnings:
            self.session.warn(text)
        with suppress(DiskFull):  # then it is written when the run has made room
            self._note_load({**account, **_of_quiet(quiet, self._spec)})
        if job.records.exists():
            self.tell("making the table of requests")
            add_rows(self.bundle.directory, self.name, self.subject.binary.version)

    def _note_load(self, mine: dict[str, Any]) -> None:
        of_all = self.bundle.manifest.get("load", {})
        self.bundle.write_manifest(load={**of_all, self.name: mine})

    def _event(self, what: str, **details: object) -> None:
        self.bundle.event("load", self.name, json.dumps({"what": what, **details}))


def _of_quiet(quiet: ProbeClient, spec: LoadSpec) -> dict[str, Any]:
    """Return what a manifest says of the quiet user, and from when his latencies count."""
    return {
        "quiet_from": "due",
        "quiet_every_ms": spec.probe_interval.ns / 1e6,
        "quiet_late": quiet.late,
        "quiet_left_out": quiet.left_out,
    }


class Watch:
    """Hears what the generator says, and passes on how far it is."""

    def __init__(self, run: LoadWorkload, spec: LoadSpec, cluster: Cluster) -> None:
        self.end: End | None = None
        """Its last words."""
        self._run = run
        self._spec = spec
        self._cluster = cluster
        self._failed = 0
        self._began_ns = time.monotonic_ns()

    def listen(self, generator: Generator) -> None:
        """Take in what it has said since. Raises ProbeFailed when it is lost, SystemFailed when
        requests fail because a node has ended, or has no room left.
        """
        for said in generator.news():
            if isinstance(said, End):
                self.end = said
            else:
                self._tell(said)
                self._look_after(said)

    def hear_last_words(self, generator: Generator) -> None:
        """Tell it to stop, and wait a moment for what it says of the load until now."""
        until_s = time.monotonic() + _LAST_WORDS_S
        with suppress(WanlatError, OSError):
            generator.stop()
            while self.end is None and time.monotonic() < until_s:
                ends = (said for said in generator.news() if isinstance(said, End))
                self.end = next(ends, None)
                time.sleep(_LOOK_EVERY_S)

    def _look_after(self, progress: Progress) -> None:
        if progress.failed > self._failed:
            self._cluster.check()
            self._cluster.check_space()
        self._failed = progress.failed

    def _tell(self, progress: Progress) -> None:
        elapsed_s = (progress.t_ns - self._began_ns) / 1e9
        detail = f"{progress.per_s:,.0f} requests/s"
        if progress.failed:
            detail += f", {progress.failed:,} of {progress.done:,} not ok"
        total_s = self._spec.duration.ns / 1e9
        self._run.tell("under load", min(elapsed_s, total_s), total_s, detail)
