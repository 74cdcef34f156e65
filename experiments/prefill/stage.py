"""Fills a cluster with objects before anything is measured, and sees that they are there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.experiments.prefill.kept import Kept, kept_bytes
from wanlat.experiments.prefill.model import PrefillSpec
from wanlat.experiments.prefill.settle import Rest, Settled
from wanlat.experiments.prefill.verify import verify
from wanlat.probes.load import LoadJob, Progress, done_turns, read_records, run_job, union
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Spawn
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.units import Size

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.experiments.system_run import SystemRun

STAGE = "prefilling"
FILE = "prefill.json"
MIB = 2**20


@dataclass(frozen=True)
class Prefilled:
    """What was written: a line of ``prefill.json``."""

    system: str
    buckets: list[str]
    objects: int
    """In each bucket."""
    object_bytes: int
    writers: int
    written: int
    """By this attempt."""
    seconds: float
    """That it took to write them."""
    per_s: float | None
    """Of these; None where none was written."""
    resumed: int
    """Objects that earlier attempts had written, as they were acknowledged."""
    refused: int
    """Writes that the store refused, and that were sent again."""
    read_back: int
    """Objects that were read afterwards and were right: a sample, evenly over all."""
    counted: int | None
    """Objects in the listings of all buckets; None where there is no listing (Bob)."""
    anew: str | None
    """Why what an earlier attempt had written was of no use; None where there was none."""
    settled: Settled | None = None
    """How the cluster came to rest afterwards; None where that was not waited for."""


def fill(run: SystemRun, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
    """Write the study's `prefill`, if it has one, and what an earlier attempt has not written yet.

    Raises RunFailed when the store does not take the objects, or has not got them afterwards.
    """
    spec = run.prepared.study.prefill
    if spec is None:
        return
    with Rest(lab, cluster) as rest:
        if spec.settles:
            rest.note_before()
        Filling(run, spec, spawn, cluster).do(rest if spec.settles else None)


class Filling:
    """One system's prefill."""

    def __init__(self, run: SystemRun, spec: PrefillSpec, spawn: Spawn, cluster: Cluster) -> None:
        self._run = run
        self._spec = spec
        self._spawn = spawn
        self._cluster = cluster
        self._kept = run.kept
        self._header: Header = replace(run.subject.asked.header(cluster), connection="keep-alive")
        self._object_bytes = spec.object_bytes(run.prepared.study.object_size)
        self._anew: str | None = None

    def do(self, rest: Rest | None = None) -> None:
        """Make the buckets, write the objects, look whether they are there; wait for ``rest``."""
        run, spec = self._run, self._spec
        done = self._done_before()
        resumed = sum(to - begin for begin, to in done)
        self._event("begins", objects=spec.total, resumed=resumed)
        run.tell(STAGE, resumed, spec.total)
        self._make_buckets()
        began = time.monotonic()
        refused = 0
        with self._records() as records:
            job = LoadJob(
                job="fill",
                records=records,
                buckets=spec.bucket_names,
                objects=spec.objects,
                object_bytes=self._object_bytes,
                seed=run.prepared.seed,
                workers=min(spec.writers, max(spec.total, 1)),
                done=done,
            )
            if resumed < spec.total:
                end = run_job(self._spawn, self._header, job, self._telling(resumed))
                if end.end != "complete":
                    raise self._gave_up(end.reason or end.end, resumed + end.ok)
                refused = end.failed
        seconds = time.monotonic() - began
        if self._kept is not None and self._kept.state == "filling":
            self._kept.note("filled")
        read_back, counted = self._verify(resumed)
        written = spec.total - resumed
        filled = Prefilled(
            system=run.name,
            buckets=spec.bucket_names if run.subject.asked.api == "s3" else [],
            objects=spec.objects,
            object_bytes=self._object_bytes,
            writers=job.workers,
            written=written,
            seconds=round(seconds, 3),
            per_s=round(written / seconds, 1) if written else None,
            resumed=resumed,
            refused=refused,
            read_back=read_back,
            counted=counted,
            anew=self._anew,
        )
        self._write_down(filled)
        self._event("ends", written=written, seconds=filled.seconds, resumed=resumed)
        if rest is not None:
            self._write_down(replace(filled, settled=self._settle(rest)))

    def _verify(self, resumed: int) -> tuple[int, int | None]:
        run = self._run
        run.tell("reading a sample of the prefill back")
        try:
            return verify(
                run.subject.asked,
                self._spec,
                self._object_bytes,
                self._spawn,
                self._header,
                self._cluster,
                run.tell,
            )
        except RunFailed as error:
            if not resumed or self._kept is None:
                raise
            raise RunFailed(
                f"{error} Of the objects, {resumed:,} were written by attempts that were "
                "interrupted: a store that does not wait for its disk may lose such when the "
                f"machine goes down. To fill it anew: rm -r {self._kept.directory}, then --resume."
            ) from error

    def _settle(self, rest: Rest) -> Settled:
        """Wait until the cluster has done what the objects left it to do."""
        limit_s, stage = self._spec.settle.s, "waiting until the nodes are at rest"
        settled = rest.wait(
            limit_s, lambda done_s, how: self._run.tell(stage, done_s, limit_s, how)
        )
        if not settled.is_quiet:
            self._remark(
                f"{settled.seconds:.0f} s after the prefill its nodes still used "
                f"{settled.cores:.2f} cores, and had used {settled.cores_before:.2f} before: what "
                "is measured has that beside it. `prefill: {settle: …}` waits longer"
            )
        return settled

    def _done_before(self) -> list[tuple[int, int]]:
        """Return the turns that earlier attempts have the store's word for, as half-open ranges."""
        kept = self._kept
        if kept is None:
            return []
        self._anew = kept.why_anew
        files = kept.records
        if files and not self._cluster.goes_on:
            # The cluster found nothing to go on with, so neither is there anything filled.
            for path in files:
                path.unlink()
            self._anew, files = "its cluster had not been ready yet", []
        if self._anew is not None:
            self._remark(f"the prefill begins anew: {self._anew}")
        if kept.state == "filled" or kept.state == "measuring":
            return [(0, self._spec.total)]
        kept.note("filling")
        parts = [done_turns(read_records(path), self._spec.bucket_names) for path in files]
        return union(*parts)

    def _make_buckets(self) -> None:
        if self._run.subject.asked.api != "s3":
            return
        names = self._spec.bucket_names
        for name in names[1:]:  # the first is the run's own
            self._cluster.create_bucket(name)
        requests = [
            Request(number, "prepare", "CreateBucket", name) for number, name in enumerate(names)
        ]
        prepare(self._spawn, self._header, requests, lambda *_: None)

    @contextmanager
    def _records(self) -> Iterator[Path]:
        if self._kept is not None:
            yield self._kept.next_records().absolute()
            return
        path = self._run.bundle.directory.absolute() / f".prefill-{self._run.name}.raw"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _telling(self, resumed: int) -> Telling:
        return Telling(self._run, self._spec.total, resumed)

    def _gave_up(self, reason: str, there: int) -> RunFailed:
        full = self._cluster.full()
        return RunFailed(
            f"{self._run.name}: the prefill ended at {there:,} of {self._spec.total:,} objects: "
            f"{reason}.{f' {full}.' if full else ''}"
        )

    def _remark(self, text: str) -> None:
        self._run.outcome.remarks.append(f"{self._run.name}: {text}.")
        self._event("remark", text=text)

    def _event(self, what: str, **details: object) -> None:
        self._run.bundle.event("prefill", self._run.name, json.dumps({"what": what, **details}))

    def _write_down(self, filled: Prefilled) -> None:
        bundle = self._run.bundle
        path = bundle.directory / FILE
        systems = json.loads(path.read_text("utf-8"))["systems"] if path.exists() else []
        others = [each for each in systems if each["system"] != filled.system]
        bundle.write_json(FILE, {"systems": [*others, asdict(filled)]})


class Telling:
    """Tells how far the prefill is, how fast it goes, and how long it will take."""

    def __init__(self, run: SystemRun, total: int, resumed: int) -> None:
        self._run = run
        self._total = total
        self._resumed = resumed
        self._began_s = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take one line of the writers'."""
        left = self._total - self._resumed - progress.ok
        elapsed_s = max(time.monotonic() - self._began_s, 1e-3)
        detail = f"{progress.per_s:,.0f} objects/s"
        if progress.ok:
            detail += f", {_duration(left * elapsed_s / progress.ok)} left"
        if progress.failed:
            detail += f", {progress.failed:,} refused and sent again"
        self._run.tell(STAGE, self._resumed + progress.ok, self._total, detail)


@contextmanager
def keeping(kept: Kept | None, run: SystemRun) -> Iterator[None]:
    """Throw away what is kept once the system is complete; else say where it is, and for what."""
    try:
        yield
    except BaseException:
        if kept is not None and not kept.is_of_use:
            kept.remove()
        elif kept is not None:
            mib = -(-kept_bytes(run.bundle.directory) // MIB)  # rounded up
            run.outcome.warnings.append(
                f"{run.name}: its data stay, for --resume to go on with: "
                f"{Size(mib * MIB)} in {kept.directory}. If you do not want that any "
                f"more: rm -r {kept.directory}"
            )
        raise
    if kept is not None:
        kept.remove()


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
