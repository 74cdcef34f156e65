"""One system's part of a study of mixed load.

Prepare and warm up; the probe client alone; then the load, and the probe client beside it. Both
run on the client's node and have the same target node.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.emulator.syscalls import wait_readable
from wanlat.experiments.config.load import BUCKET, Api, LoadSpec
from wanlat.experiments.not_found import NotFoundTracker
from wanlat.experiments.open_loop import never_sent
from wanlat.experiments.session import requested_rtt_ms
from wanlat.experiments.workloads.load_result import add_rows, load_result, raw_path
from wanlat.experiments.workloads.probe_client import OnSample, ProbeClient, plan_of
from wanlat.experiments.workloads.requests import STAGES, Workload
from wanlat.probes.load import End, Generator, LoadJob, Progress
from wanlat.probes.plan import Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import DiskFull, RunFailed, WanlatError

IDLE, LOADED = "idle", "loaded"
"""Phases of the probe client's samples."""

_LAST_WORDS_S = 4.0
"""For the generator, when it is stopped."""
_POLL_S = 0.2
_AFTER_NS = 10**10
"""On top of the load's duration, for answers that are awaited."""


class LoadWorkload(Workload):
    """One system's part of a study of mixed load."""

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Probe alone, then beside the load; and write down what came of both."""
        spec, requests = self._spec, self.subject.requests
        self._end: End | None = None
        self._failed = 0
        lasting_ns = spec.idle.ns + spec.duration.ns
        plan = plan_of(requests, spec.probe_interval, lasting_ns + _AFTER_NS)
        self.outcome.planned += lasting_ns // spec.probe_interval.ns - requests.measured()
        rtt_ms = requested_rtt_ms(self.prepared.plan, self.prepared.target)
        before = self.taking(cluster, not_found, {"rtt_ms": rtt_ms})

        def take(phase: str) -> OnSample:
            def on_sample(request: Request, sample: Sample | None, due_ns: int) -> None:
                constant = {"rtt_ms": rtt_ms, "phase": phase, "due_ns": due_ns}
                if sample is None:
                    came = never_sent(request.seq, request.endpoint)
                    self.bundle.sample(self.row(request, came, constant))
                else:
                    self.taking(cluster, not_found, constant)(request, sample)

            return on_sample

        with ProbeClient(spawn, requests, cluster, plan, spec.probe_interval) as probe:

            def prepared(request: Request, sample: Sample) -> None:
                probe.note(request, sample)
                before(request, sample)

            self.prepare(spawn, requests.header(cluster), plan.prepare, prepared)
            self.tell(STAGES["warmup"])
            probe.warm_up(plan, before)
            self._write_load(probe)  # so that a run that is killed says so too
            self._event("idle begins")
            probe.begin(take(IDLE))
            self.be_idle(lab, cluster, "the probe client alone", spec.idle, probe.check)
            probe.end()
            self._event("idle ends")
            self._load(spawn, cluster, probe, take(LOADED))
        cluster.check()

    @property
    def _spec(self) -> LoadSpec:
        spec = self.prepared.study.load
        assert spec is not None
        return spec

    def _load(self, spawn: Spawn, cluster: Cluster, probe: ProbeClient, take: OnSample) -> None:
        job, began_ns = self._job(), time.monotonic_ns()
        self._event("begins", workers=job.workers)
        try:
            with Generator(spawn, self.subject.requests.header(cluster), job) as generator:
                try:
                    probe.begin(take)
                    while self._end is None:
                        probe.check()
                        wait_readable([generator.fileno()], _POLL_S)
                        self._listen(generator, cluster, began_ns)
                    probe.end()
                except BaseException:
                    probe.close()
                    self._stop(generator)
                    raise
        finally:
            self._write_result(job, probe)
        if self._end.end != "complete":
            cluster.check()
            why = self._end.reason or "its generator was stopped, and not by this run"
            lasted_s = (self._end.ended_ns - self._end.began_ns) / 1e9
            raise RunFailed(f"{self.name}: the load ended after {lasted_s:.0f} s: {why}.")

    def _listen(self, generator: Generator, cluster: Cluster, began_ns: int) -> None:
        """Take in what the generator has said since, and report how far it is.

        Raises ProbeFailed when it is lost, SystemFailed when requests fail because a node has
        ended, or has no room left.
        """
        for said in generator.news():
            if isinstance(said, End):
                self._end = said
                continue
            self._report(said, (said.t_ns - began_ns) / 1e9)
            if said.failed > self._failed:
                cluster.check()
                cluster.check_space()
            self._failed = said.failed

    def _report(self, progress: Progress, elapsed_s: float) -> None:
        detail = f"{progress.per_s:,.0f} requests/s"
        if progress.failed:
            detail += f", {progress.failed:,} of {progress.done:,} not ok"
        total_s = self._spec.duration.s
        self.tell("under load", min(elapsed_s, total_s), total_s, detail)

    def _stop(self, generator: Generator) -> None:
        """Stop the generator, and wait a moment for what it says of the load until now."""
        until_s = time.monotonic() + _LAST_WORDS_S
        with suppress(WanlatError, OSError):
            generator.stop()
            while self._end is None and time.monotonic() < until_s:
                wait_readable([generator.fileno()], _POLL_S)
                ends = (said for said in generator.news() if isinstance(said, End))
                self._end = next(ends, None)

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

    def _write_result(self, job: LoadJob, probe: ProbeClient) -> None:
        """Write what is known of the load, however it ended."""
        self._event("ends", end=self._end.end if self._end else "lost")
        result, warnings = load_result(job, self._end)
        for text in warnings:
            self.session.warn(text)
        with suppress(DiskFull):  # then it is written when the run has made room
            self._write_load(probe, result)
        if job.records.exists():
            self.tell("making the table of requests")
            add_rows(self.bundle, self.name, self.subject.binary.version)

    def _write_load(self, probe: ProbeClient, result: dict[str, Any] | None = None) -> None:
        """Write into the manifest what is known of the load, and of the probe client."""
        mine = {
            **(result or {}),
            "probe_from": "due",
            "probe_interval_ms": self._spec.probe_interval.ms,
            "probe_late": probe.late,
            "probe_left_out": probe.left_out,
        }
        of_all = self.bundle.manifest.get("load", {})
        self.bundle.write_manifest(load={**of_all, self.name: mine})

    def _event(self, what: str, **details: object) -> None:
        self.bundle.event("load", self.name, json.dumps({"what": what, **details}))
