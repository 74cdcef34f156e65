"""Objects that are written before anything is measured, and a look whether they are there.

A sample of them is read back, and listings are counted.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wanlat.experiments.config.prefill import PrefillSpec
from wanlat.experiments.request_plan import RequestPlan
from wanlat.experiments.workloads.settle import Rest, Settled
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.load import LoadJob, Progress, body_seed_of, key_of, run_job
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Spawn
from wanlat.systems.ask import NoAnswer
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.experiments.workloads.requests import Workload

STAGE = "prefilling"
FILE = "prefill.json"


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
    seconds: float
    """That it took to write them."""
    per_s: float | None
    """Of these; None where none was written."""
    refused: int
    """Writes that the store refused, and that were sent again."""
    read_back: int
    """Objects that were read afterwards and were right: a sample, evenly over all."""
    counted: int | None
    """Objects in the listings of all buckets; None where there is no listing (Bob)."""
    settled: Settled | None = None
    """How the cluster became idle afterwards; None where that was not waited for."""


def fill(run: Workload, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
    """Write the study's `prefill`, if it has one.

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

    def __init__(self, run: Workload, spec: PrefillSpec, spawn: Spawn, cluster: Cluster) -> None:
        self._run = run
        self._spec = spec
        self._spawn = spawn
        self._cluster = cluster
        self._requests = run.subject.requests
        self._header: Header = replace(self._requests.header(cluster), connection="keep-alive")
        self._object_bytes = spec.object_bytes(run.prepared.study.object_size)

    def do(self, rest: Rest | None = None) -> None:
        """Make the buckets, write the objects, look whether they are there; wait for ``rest``."""
        run, spec = self._run, self._spec
        self._event("begins", objects=spec.total)
        run.tell(STAGE, 0, spec.total)
        self._make_buckets()
        began = time.monotonic()
        refused = self._write() if spec.total else 0
        seconds = time.monotonic() - began
        run.tell("reading a sample of the prefill back")
        read_back, counted = verify(
            self._requests,
            spec,
            self._object_bytes,
            self._spawn,
            self._header,
            self._cluster,
            run.tell,
        )
        filled = Prefilled(
            system=run.name,
            buckets=spec.bucket_names if self._requests.api == "s3" else [],
            objects=spec.objects,
            object_bytes=self._object_bytes,
            writers=self._writers,
            written=spec.total,
            seconds=round(seconds, 3),
            per_s=round(spec.total / seconds, 1) if spec.total else None,
            refused=refused,
            read_back=read_back,
            counted=counted,
        )
        self._write_down(filled)
        self._event("ends", written=spec.total, seconds=filled.seconds)
        if rest is not None:
            self._write_down(replace(filled, settled=self._settle(rest)))

    @property
    def _writers(self) -> int:
        return min(self._spec.writers, max(self._spec.total, 1))

    def _write(self) -> int:
        """Write all objects; return how many writes the store refused."""
        run, spec = self._run, self._spec
        with _scratch(run.bundle.directory.absolute() / f".prefill-{run.name}.raw") as records:
            job = LoadJob(
                job="fill",
                records=records,
                buckets=spec.bucket_names,
                objects=spec.objects,
                object_bytes=self._object_bytes,
                seed=run.prepared.seed,
                workers=self._writers,
            )
            end = run_job(self._spawn, self._header, job, Telling(run, spec.total))
        if end.end != "complete":
            full = self._cluster.full()
            raise RunFailed(
                f"{run.name}: the prefill ended at {end.ok:,} of {spec.total:,} objects: "
                f"{end.reason or end.end}.{f' {full}.' if full else ''}"
            )
        return end.failed

    def _settle(self, rest: Rest) -> Settled:
        """Wait until the cluster has done what the objects left it to do."""
        limit_s, stage = self._spec.settle.s, "waiting until the nodes are idle"
        settled = rest.wait(
            limit_s, lambda done_s, how: self._run.tell(stage, done_s, limit_s, how)
        )
        if not settled.is_quiet:
            text = (
                f"{settled.seconds:.0f} s after the prefill its nodes still used "
                f"{settled.cores:.2f} cores, and had used {settled.cores_before:.2f} before: what "
                "is measured has that beside it. `prefill: {settle: …}` waits longer"
            )
            self._run.outcome.remarks.append(f"{self._run.name}: {text}.")
            self._event("remark", text=text)
        return settled

    def _make_buckets(self) -> None:
        if self._requests.api != "s3":
            return
        names = self._spec.bucket_names
        for name in names[1:]:  # the first is the run's own
            self._cluster.create_bucket(name)
        requests = [
            Request(number, "prepare", "CreateBucket", name) for number, name in enumerate(names)
        ]
        prepare(self._spawn, self._header, requests, lambda *_: None)

    def _event(self, what: str, **details: object) -> None:
        self._run.bundle.event("prefill", self._run.name, json.dumps({"what": what, **details}))

    def _write_down(self, filled: Prefilled) -> None:
        bundle = self._run.bundle
        path = bundle.directory / FILE
        systems = json.loads(path.read_text("utf-8"))["systems"] if path.exists() else []
        others = [each for each in systems if each["system"] != filled.system]
        bundle.write_json(FILE, {"systems": [*others, asdict(filled)]})


class Telling:
    """Reports how far the prefill is, how fast it goes, and how long it will take."""

    def __init__(self, run: Workload, total: int) -> None:
        self._run = run
        self._total = total
        self._began_s = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take one line of the writers'."""
        elapsed_s = max(time.monotonic() - self._began_s, 1e-3)
        detail = f"{progress.per_s:,.0f} objects/s"
        if progress.ok:
            left_s = (self._total - progress.ok) * elapsed_s / progress.ok
            detail += f", {_duration(left_s)} left"
        if progress.failed:
            detail += f", {progress.failed:,} refused and sent again"
        self._run.tell(STAGE, progress.ok, self._total, detail)


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A file that is gone afterwards."""
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


READ_BACK = 100
"""Objects. Where one in a hundred were missing, the sample would show it in 63 of 100 prefills;
where one in twenty were, in 99."""
READ_BACK_BYTES = 256 * 1024 * 1024
"""Fewer are read where they are large."""

_KEYS = re.compile(rb"<Key>fill-[0-9]+<")
_NEXT = re.compile(rb"<NextContinuationToken>([^<]*)</NextContinuationToken>")
_PAGE_S = 60.0


class Tell(Protocol):
    """Gets what is being done, and how much of it is."""

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, detail: str = "", /
    ) -> None:
        """Tell it."""


def sampled(spec: PrefillSpec, object_bytes: int, seed: int) -> list[tuple[str, int]]:
    """Return the objects to read back: the first, the last, and between them evenly at random."""
    total = spec.total
    wanted = min(total, READ_BACK, max(2, READ_BACK_BYTES // max(object_bytes, 1)))
    if wanted < 3:
        turns = [0, total - 1][:wanted]
    else:
        drawn = random.Random(f"{seed}/read back").sample(range(1, total - 1), wanted - 2)
        turns = sorted([0, *drawn, total - 1])
    names = spec.bucket_names
    return [(names[turn % len(names)], turn // len(names)) for turn in turns]


def verify(
    requests: RequestPlan,
    spec: PrefillSpec,
    object_bytes: int,
    spawn: Spawn,
    header: Header,
    cluster: Cluster,
    tell: Tell,
) -> tuple[int, int | None]:
    """Return how many objects were read back, and how many the listings have (None: no listing).

    Raises RunFailed when one is not there or not what was written, or the listings have another
    number of objects than were written.
    """
    reads = [
        _reading(number, requests, bucket, index, object_bytes)
        for number, (bucket, index) in enumerate(sampled(spec, object_bytes, requests.seed))
    ]
    try:
        prepare(spawn, header, reads, lambda *_: None)
    except ProbeFailed as error:
        raise RunFailed(
            f"{cluster.system}: what was prefilled and acknowledged could not be read back: {error}"
        ) from error
    if requests.api != "s3":
        return len(reads), None
    counted = 0
    for bucket in spec.bucket_names:
        found = _count(cluster, requests.target, bucket, counted, spec.total, tell)
        if found != spec.objects:
            raise RunFailed(
                f"{cluster.system}: bucket {bucket} was filled with {spec.objects:,} objects, all "
                f"acknowledged, and its listing has {found:,}."
            )
        counted += found
    return len(reads), counted


def _reading(
    number: int, requests: RequestPlan, bucket: str, index: int, object_bytes: int
) -> Request:
    s3 = requests.api == "s3"
    return Request(
        number,
        "prepare",
        "GetObject" if s3 else "Get",
        bucket if s3 else None,
        key_of(requests.seed, bucket, index, "s3" if s3 else "bob"),
        object_bytes=object_bytes,
        body_seed=body_seed_of(requests.seed, bucket, index),
    )


def _count(cluster: Cluster, node: str, bucket: str, before: int, total: int, tell: Tell) -> int:
    """Return how many prefilled objects a bucket's listing has, page by page."""
    found = 0
    query = {"list-type": "2", "prefix": "fill-"}
    while True:
        try:
            answer = cluster.ask_s3(node, f"/{bucket}", _PAGE_S, query=query)
        except NoAnswer as silence:
            raise RunFailed(f"{cluster.system}: ListObjects of {bucket}: {silence}") from silence
        if not answer.ok:
            raise RunFailed(f"{cluster.system}: ListObjects of {bucket}: {answer.brief()}")
        found += len(_KEYS.findall(answer.body))
        tell("counting the prefill", before + found, total)
        following = _NEXT.search(answer.body)
        if following is None:
            return found
        query["continuation-token"] = unescape(following[1].decode())
