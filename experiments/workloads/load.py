"""One system's part of a study of mixed load.

Prepare and warm up; the probe client alone; then the load, and the probe client beside it. Both
run on the client's node and have the same target node. The manifest has of the load what was
offered, what was achieved, and what the client took.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wanlat.bundle import tables
from wanlat.bundle.beneath import RECORDS
from wanlat.bundle.documents import LoadClient
from wanlat.bundle.load_records import read_records, records_table
from wanlat.bundle.outcomes import are_too_many, why_too_many
from wanlat.bundle.write import BundleWriter, write_table
from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.emulator.syscalls import wait_readable
from wanlat.experiments.config.workloads import BUCKET
from wanlat.experiments.kinds.load import LoadSpec
from wanlat.experiments.prepare import RequestPlan
from wanlat.experiments.requests import NotFoundTracker, Schedule, Sender, Workers, expired
from wanlat.experiments.session import requested_rtt_ms
from wanlat.experiments.workloads.pace import NONE, Pace, Seconds, stated
from wanlat.experiments.workloads.requests import STAGES, Workload
from wanlat.probes.load import End, Generator, LoadJob
from wanlat.probes.one_key import Overwrites
from wanlat.probes.plan import Plan, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import DiskFull, MachineError, RunFailed, WanlatError
from wanlat.topologies.units import Duration

OnSample = Callable[[Request, Sample | None, int], object]
"""Gets a request, what came of it (None: it was not sent), and when it was due (ns,
CLOCK_MONOTONIC). Called from the client's thread."""


def plan_of(requests: RequestPlan, every: Duration, lasting_ns: int) -> Plan:
    """Return a plan with as many requests as there are instants in so long a time."""
    turns = max(len(requests.turns()), 1)
    samples = lasting_ns // every.ns // turns + 2
    study = requests.study.model_copy(update={"samples": samples, "budget": None})
    return replace(requests, study=study).plan()


class ProbeClient(Closing):
    """Sends a plan's requests at their instants, in parts. A context manager."""

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
        self._stop = threading.Event()
        self._sender = Sender(spawn, header, self._stop)
        self._part = Workers({}, self._stop)
        self._over = threading.Event()
        self._until_ns = 0

    def note(self, request: Request, sample: Sample) -> None:
        """Take in what was sent before, by others or by this client."""
        if self._overwrites is not None:
            self._overwrites.note(request, sample)

    def warm_up(self, plan: Plan, on_sample: Callable[[Request, Sample], object]) -> None:
        """Send the plan's warm-up, one request right after the other."""
        for planned in plan.warmup:
            on_sample(*self._exchange(planned))

    def begin(self, on_sample: OnSample) -> None:
        """Begin a part: its first request is due now."""
        self._over.clear()
        began_ns = time.monotonic_ns()
        self._part = Workers({"probe client": lambda: self._send(began_ns, on_sample)}, self._stop)
        self._part.start()

    def check(self) -> None:
        """Raise what a part failed with."""
        self._part.check()

    def end(self) -> None:
        """End a part: what was due until now is sent, and its answers are awaited."""
        self._until_ns = time.monotonic_ns()
        self._over.set()
        self._part.join()
        self._part.check()

    def close(self) -> None:
        """End the client, whatever it is doing; what is in line is left out."""
        self._until_ns = time.monotonic_ns()
        self._stop.set()
        self._over.set()
        self._part.join()
        self._sender.close()

    def _send(self, began_ns: int, on_sample: OnSample) -> None:
        """Send what is due, when it is; what is left of a part that is cut is counted."""
        answered_ns, took_ns = began_ns, 0
        for due_ns in range(began_ns, 2**63, self._schedule.interval_ns):
            # The kernel wakes it some 0.1 ms late on an idle machine, so nothing here spins.
            self._over.wait(max(0, due_ns - time.monotonic_ns()) / 1e9)
            ends = self._over.is_set() or self._stop.is_set()
            if ends and due_ns >= self._until_ns:
                return
            if self._stop.is_set():
                self.left_out += 1
                continue
            if (planned := next(self._requests, None)) is None:
                return  # all that was planned has been sent
            now_ns = time.monotonic_ns()
            left_ms = self._schedule.left_ms(due_ns, now_ns, took_ns)
            if left_ms is None:
                self.left_out += 1
                on_sample(planned, None, due_ns)
                continue
            self.late += due_ns < answered_ns
            request, sample = self._exchange(replace(planned, deadline_ms=left_ms))
            answered_ns = time.monotonic_ns()
            on_sample(request, sample, due_ns)
            took_ns = time.monotonic_ns() - now_ns

    def _exchange(self, planned: Request) -> tuple[Request, Sample]:
        request = planned if self._overwrites is None else self._overwrites.now(planned)
        sample = self._sender.exchange(request)
        self.note(request, sample)
        return request, sample


_OF_END = (
    *("end", "reason", "began_ns", "done", "ok", "failed", "not_sent", "left_out", "unanswered"),
    *("bytes_read", "bytes_written"),
)
"""What of the generator's last words is written down as it is."""
_MOST_WAITED = 0.2
"""Of the workers' time in which they waited for a core."""
_MOST_MISSED = 0.02
"""Of the requests that were due at a rate, and were not sent."""


def load_result(job: LoadJob, end: End | None) -> tuple[dict[str, Any], list[str]]:
    """Return what is written down of a load, and what a reader must be warned of.

    ``end`` is the generator's last words; None where it had none, being killed: its records have
    what it did all the same.
    """
    result: dict[str, Any] = {
        "workers": job.workers,
        "mix": {job.api.name(does): share for does, share in (job.mix or {}).items()},
        "offered": {"workers": job.workers, "rate": job.rate},
        "ramp_ms": job.ramp_ms,
        "duration_ms": job.duration_ms,
        **dict.fromkeys(("achieved_per_s", "client", "bottleneck")),
    }
    if end is None:
        return result, []
    client = _client(end, job)
    result |= {
        "achieved_per_s": round(end.ok / max(end.ended_ns - end.began_ns, 1) * 1e9, 3),
        **{name: getattr(end, name) for name in _OF_END},
        # What was answered after the duration was begun within it.
        "ended_ns": min(end.ended_ns, end.began_ns + (job.duration_ms or 0) * 10**6),
        "errors": dict(end.errors),
        "examples": dict(end.examples),
        "client": client.model_dump(),
        "bottleneck": _bottleneck(client, is_on_purpose=job.rate is not None or end.failed > 0),
    }
    return result, [*_warnings(client, end, job.rate, result["bottleneck"])]


def _client(end: End, job: LoadJob) -> LoadClient:
    """The generator's own time, of a job's last words."""
    elapsed_ns = max(end.ended_ns - end.began_ns, 1)
    # Worker k of n begins k / n of the ramp after the first.
    late_ns = job.ramp_ms * 1e6 * (job.workers - 1) / job.workers / 2
    working_ns = max(elapsed_ns - late_ns, 1) * job.workers

    def share(of_ns: float) -> float:
        return round(of_ns / elapsed_ns, 4)

    return LoadClient(
        cores=end.cores,
        cpu_s=round(end.cpu_ns / 1e9, 4),
        cpu_share=share(end.cpu_ns / end.cores),
        threads=end.threads,
        busiest_thread_share=share(max(end.thread_cpu_ns, default=0)),
        verify_share=share(end.verify_ns),
        waited_share=share(fmean(end.thread_waited_ns)) if end.thread_waited_ns else None,
        computed_share=share(fmean(end.thread_cpu_ns or [0])),
        between_share=round(max(0.0, 1 - end.in_flight_ns / working_ns), 4),
    )


def _bottleneck(client: LoadClient, *, is_on_purpose: bool) -> str | None:
    """Return why the generator could not have sent more; None when the store was the limit.

    Workers that have a rate, or failures, may be idle on purpose. One that computes all along does
    not wait for the store.
    """
    cores = f"{client.cores} {'core' if client.cores == 1 else 'cores'}"
    runnable = client.computed_share + (client.waited_share or 0)
    between = 0.0 if is_on_purpose else client.between_share
    waits = "were computing, or waiting for a core, {} of the time, and not for the store"
    shares = (
        (client.cpu_share, 0.8, f"the generator used {{}} of its {cores}"),
        (client.busiest_thread_share, 0.8, "a worker of the generator computed {} of the time"),
        (runnable, 0.5, f"the generator's workers {waits}"),
        (between, 0.2, "the generator's workers had no request in flight in {} of the time"),
    )
    reasons = (text.format(f"{100 * share:.0f} %") for share, most, text in shares if share > most)
    return next(reasons, None)


def _warnings(client: LoadClient, end: End, rate: float | None, why: str | None) -> Iterator[str]:
    """Yield what a reader of the figures must know of the client."""
    if why is not None:
        yield (
            f"the client was the bottleneck: {why}. The store could have done more than it "
            "did: use more cores, or read the rate as a lower bound."
        )
    elif client.waited_share is not None and client.waited_share > _MOST_WAITED:
        yield (
            "the generator's workers waited for a core "
            f"{100 * client.waited_share:.0f} % of the time: store and client share this machine's "
            "cores, and latencies under load have that in them."
        )
    if end.not_sent:
        yield (
            f"{end.not_sent:,} of {end.done:,} requests could not be sent by this machine "
            f"({end.not_sent_error}); they are in no rate, no latency and no share of failures."
        )
    due = end.done + end.left_out
    if rate is not None and due and end.left_out / due > _MOST_MISSED:
        yield (
            f"{end.left_out:,} of {due:,} requests that were due at {rate:g} a second were not "
            "sent before the end: no worker was free. Lower `rate`, or raise `workers`."
        )


def raw_path(bundle: Path, system: str) -> Path:
    """Return where the generator of a system's load writes its records."""
    return bundle / RECORDS / f"load-{system}.raw"


def add_rows(writer: BundleWriter, system: str, version: str) -> None:
    """Put a system's records into the table, in one step; then their own file is gone.

    On a full disk all stays as it is.
    """
    bundle = writer.directory
    raw, table = raw_path(bundle, system), bundle / "load.parquet"

    def parts() -> Iterator[pa.Table]:
        if table.exists():  # of the systems before
            with pq.ParquetFile(table) as before:
                for batch in before.iter_batches():
                    yield pa.Table.from_batches([batch])
        rows = records_table(read_records(raw), {"system": system, "version": version})
        yield writer.with_network_error(rows)

    if write_table(bundle, "load", tables.LOAD, parts()):
        raw.unlink()


IDLE, LOADED = "idle", "loaded"
"""Phases of the probe client's samples."""

_LAST_WORDS_S = 4.0
"""For the generator, when it is stopped."""
_POLL_S = 0.2
_AFTER_NS = 10**10
"""On top of the load's duration, for answers that are awaited."""


class LoadWorkload(Workload[LoadSpec]):
    """One system's part of a study of mixed load."""

    @classmethod
    def takes(cls, spec: LoadSpec, requests: RequestPlan, pace: Pace) -> tuple[Seconds, Seconds]:  # noqa: ARG003
        """Return how long it is idle and loaded."""
        return stated(spec.idle.s + spec.duration.s, late_s=2 * _AFTER_NS / 1e9), NONE

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:
        """Probe alone, then beside the load; and write down what came of both."""
        spec, requests = self.spec, self.subject.requests
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
                    came = expired(request.seq, request.called)
                    self.bundle.sample(self.row(request, came, constant))
                else:
                    self.taking(cluster, not_found, constant)(request, sample)

            return on_sample

        with ProbeClient(spawn, requests, cluster, plan, spec.probe_interval) as probe:

            def prepared(request: Request, sample: Sample) -> None:
                probe.note(request, sample)
                before(request, sample)

            self.prepare(spawn, requests.header(cluster), plan.prepare, prepared)
            self.progress(STAGES["warmup"])
            probe.warm_up(plan, before)
            self._write_load(probe)  # so that a run that is killed says so too
            self._event("idle begins")
            probe.begin(take(IDLE))
            self.be_idle(lab, cluster, "the probe client alone", spec.idle, probe.check)
            probe.end()
            self._event("idle ends")
            self._load(spawn, cluster, probe, take(LOADED))
        cluster.check()

    def _load(self, spawn: Spawn, cluster: Cluster, probe: ProbeClient, take: OnSample) -> None:
        job, began_ns = self._job(), time.monotonic_ns()
        self._event("begins", workers=job.workers)
        try:
            with Generator(spawn, self.subject.requests.header(cluster), job) as generator:
                try:
                    probe.begin(take)
                    while self._end is None:
                        probe.check()
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
        if are_too_many(self._end.not_sent, self._end.done):
            why = why_too_many(self._end.not_sent, self._end.done, self._end.not_sent_error)
            raise MachineError(f"{self.name}: {why}")

    def _listen(self, generator: Generator, cluster: Cluster, began_ns: int) -> None:
        """Wait a moment for what the generator reports, take it in, and report how far it is.

        Raises ProbeFailed when it is lost, SystemFailed when requests fail because a node has
        ended, or has no room left.
        """
        wait_readable([generator.fileno()], _POLL_S)
        for message in generator.news():
            if isinstance(message, End):
                self._end = message
                continue
            failed = f", {message.failed:,} of {message.done:,} not ok" if message.failed else ""
            total_s = self.spec.duration.s
            elapsed_s = min((message.t_ns - began_ns) / 1e9, total_s)
            self.progress(
                "under load", elapsed_s, total_s, f"{message.per_s:,.0f} requests/s{failed}"
            )
            if message.failed > self._failed:
                cluster.check()
                cluster.check_space()
            self._failed = message.failed

    def _stop(self, generator: Generator) -> None:
        """Stop the generator, and wait a moment for what it reports of the load until now."""
        until_s = time.monotonic() + _LAST_WORDS_S
        with suppress(WanlatError, OSError):
            generator.stop()
            while self._end is None and time.monotonic() < until_s:
                wait_readable([generator.fileno()], _POLL_S)
                ends = (message for message in generator.news() if isinstance(message, End))
                self._end = next(ends, None)

    def _job(self) -> LoadJob:
        spec, study = self.spec, self.prepared.study
        prefill, requests = study.prefill, self.subject.requests
        assert requests.objects is not None
        return LoadJob(
            job="mix",
            records=raw_path(self.bundle.directory, self.name).absolute(),
            api=requests.objects,
            buckets=prefill.bucket_names if prefill else [BUCKET],
            objects=prefill.objects if prefill else 0,
            object_bytes=study.object_size.bytes,
            seed=self.prepared.seed,
            workers=spec.workers,
            duration_ms=max(spec.duration.ns // 10**6, 1),
            ramp_ms=spec.ramp.ns // 10**6,
            rate=spec.rate,
            mix=spec.operations,
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
            self.progress("making the table of requests")
            add_rows(self.bundle, self.name, self.subject.binary.version)

    def _write_load(self, probe: ProbeClient, result: dict[str, Any] | None = None) -> None:
        """Write into the manifest what is known of the load, and of the probe client."""
        mine = {
            **(result or {}),
            "probe_interval_ms": self.spec.probe_interval.ms,
            "probe_late": probe.late,
            "probe_left_out": probe.left_out,
        }
        of_all = self.bundle.manifest.get("load", {})
        self.bundle.write_manifest(load={**of_all, self.name: mine})

    def _event(self, what: str, **details: object) -> None:
        self.bundle.event("load", self.name, json.dumps({"what": what, **details}))
