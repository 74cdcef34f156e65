"""Objects that are written before anything is measured, and whether they are there afterwards.

A sample of them is read back, and listings are counted. Then it is waited until the nodes are
idle: a store acknowledges first and tidies up later (it compacts, synchronises tables, deletes what
has been superseded), the longer the more was written, so that a measurement that began at once
would take it for what a large bucket costs.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape

from wanlat.bundle.documents import Prefill, Prefills, Settled
from wanlat.emulator.lab import Lab
from wanlat.experiments.config.workloads import PrefillSpec
from wanlat.experiments.prepare import RequestPlan
from wanlat.experiments.resources import ClusterProcesses
from wanlat.experiments.session import Session
from wanlat.probes.errors import ProbeFailed
from wanlat.probes.header import Header
from wanlat.probes.load import LoadJob, Progress, run_job
from wanlat.probes.objects import ObjectApi
from wanlat.probes.oneshot import prepare
from wanlat.probes.plan import Request
from wanlat.probes.prefilled import body_seed_of, key_of
from wanlat.probes.process import Spawn
from wanlat.systems.base import Cluster
from wanlat.systems.engine.progress import elapsed
from wanlat.systems.engine.request import NoAnswer
from wanlat.topologies.errors import RunFailed

READ_BACK = 100
"""Objects. Where one in a hundred were missing, the sample would show it in 63 of 100 prefills;
where one in twenty were, in 99."""
READ_BACK_BYTES = 256 * 1024 * 1024
"""Fewer are read where they are large."""

_STAGE = "prefilling"
_KEYS = re.compile(rb"<Key>fill-[0-9]+<")
_NEXT = re.compile(rb"<NextContinuationToken>([^<]*)</NextContinuationToken>")
_PAGE_S = 60.0

_SAMPLE_EVERY_S = 1.0
_WINDOW = 2
"""A figure is over so many samples."""
_IDLE_CORES = 0.1
"""All nodes together: what is less disturbs nothing."""
_AS_BEFORE = 1.5
"""Or so many times what they used before the prefill: a large cluster is never idle."""


class Filling:
    """One system's prefill."""

    def __init__(
        self,
        session: Session,
        requests: RequestPlan,
        spec: PrefillSpec,
        spawn: Spawn,
        cluster: Cluster,
    ) -> None:
        """``requests``: those of the study; its objects have the same bytes for the same seed."""
        self._session = session
        self._name = session.setup.name
        self._spec = spec
        self._spawn = spawn
        self._cluster = cluster
        self._requests = requests
        assert requests.objects is not None
        self._api = requests.objects
        self._header: Header = replace(requests.header(cluster), connection="keep-alive")
        self._object_bytes = spec.object_bytes(requests.study.object_size)
        self._writers = min(spec.writers, max(spec.total, 1))

    def do(self, watch: IdleWatch | None = None) -> None:
        """Make the buckets, write the objects, see that they are there; wait for idle nodes.

        Raises RunFailed when the store does not take the objects, or has not got them afterwards.
        """
        session, spec = self._session, self._spec
        self._event("begins", objects=spec.total)
        self._make_buckets()
        began = time.monotonic()
        refused = self._write() if spec.total else 0
        seconds = time.monotonic() - began
        session.progress("reading a sample of the prefill back")
        filled = Prefill(
            system=self._name,
            buckets=spec.bucket_names if self._api.in_buckets else [],
            objects=spec.objects,
            object_bytes=self._object_bytes,
            writers=self._writers,
            written=spec.total,
            seconds=round(seconds, 3),
            per_s=round(spec.total / seconds, 1) if spec.total else None,
            refused=refused,
            read_back=self._read_back(),
            counted=sum(map(self._count, spec.bucket_names)) if self._api.in_buckets else None,
        )
        session.bundle.write_part(Prefills, filled)
        self._event("ends", written=spec.total, seconds=filled.seconds)
        if watch is not None:
            filled = filled.model_copy(update={"settled": self._settle(watch)})
            session.bundle.write_part(Prefills, filled)

    def _make_buckets(self) -> None:
        names = self._spec.bucket_names
        for name in names[1:]:  # the first is the run's own
            self._cluster.create_bucket(name)
        prepare(self._spawn, self._header, self._api.buckets(names), lambda *_: None)

    def _write(self) -> int:
        """Write all objects; return how many writes the store refused."""
        session, spec, began_s = self._session, self._spec, time.monotonic()

        def report(progress: Progress) -> None:
            detail = f"{progress.per_s:,.0f} objects/s"
            if progress.ok:
                left_s = (spec.total / progress.ok - 1) * (time.monotonic() - began_s)
                detail += f", {elapsed(left_s)} left"
            if progress.failed:
                detail += f", {progress.failed:,} refused and sent again"
            session.progress(_STAGE, progress.ok, spec.total, detail)

        job = LoadJob(
            job="fill",
            records=session.bundle.records.absolute() / f"prefill-{self._name}.raw",
            api=self._api,
            buckets=spec.bucket_names,
            objects=spec.objects,
            object_bytes=self._object_bytes,
            seed=self._requests.seed,
            workers=self._writers,
        )
        return run_load_job(
            self._name, self._spawn, self._header, job, spec.total, report, self._cluster.full
        )

    def _read_back(self) -> int:
        """Return how many objects were read back. Raises RunFailed where one is not right."""
        requests = self._requests
        chosen = sampled(self._spec, self._object_bytes, requests.seed)
        reads = [
            reading(number, self._api, requests.seed, bucket, index, self._object_bytes)
            for number, (bucket, index) in enumerate(chosen)
        ]
        try:
            prepare(self._spawn, self._header, reads, lambda *_: None)
        except ProbeFailed as error:
            raise RunFailed(
                f"{self._name}: what was prefilled and acknowledged could not be read back: {error}"
            ) from error
        return len(reads)

    def _count(self, bucket: str) -> int:
        """Return how many objects a bucket's listing has, counted page by page.

        Raises RunFailed where that is another number than were written.
        """
        query, count, node = {"list-type": "2", "prefix": "fill-"}, 0, self._requests.target
        while True:
            try:
                answer = self._cluster.send_s3(node, f"/{bucket}", _PAGE_S, query=query)
            except NoAnswer as silence:
                raise RunFailed(f"{self._name}: ListObjects of {bucket}: {silence}") from silence
            if not answer.ok:
                raise RunFailed(f"{self._name}: ListObjects of {bucket}: {answer.brief()}")
            count += len(_KEYS.findall(answer.body))
            self._session.progress(f"counting the prefill of {bucket}", count, self._spec.objects)
            following = _NEXT.search(answer.body)
            if following is None:
                break
            query["continuation-token"] = unescape(following[1].decode())
        if count != self._spec.objects:
            raise RunFailed(
                f"{self._name}: bucket {bucket} was filled with {self._spec.objects:,} "
                f"objects, all acknowledged, and its listing has {count:,}."
            )
        return count

    def _settle(self, watch: IdleWatch) -> Settled:
        """Wait until the cluster has done what the objects left it to do."""
        session, limit_s = self._session, self._spec.settle.s
        stage = "waiting until the nodes are idle"
        settled = watch.wait(
            limit_s, lambda done_s, how: session.progress(stage, done_s, limit_s, how)
        )
        if not settled.is_idle:
            text = (
                f"{settled.seconds:.0f} s after the prefill its nodes still used "
                f"{settled.cores:.2f} cores, and had used {settled.cores_before:.2f} before: what "
                "is measured has that beside it. `prefill: {settle: …}` waits longer"
            )
            session.outcome.remarks.append(f"{self._name}: {text}.")
            self._event("remark", text=text)
        return settled

    def _event(self, what: str, **details: object) -> None:
        self._session.bundle.event("prefill", self._name, json.dumps({"what": what, **details}))


class IdleWatch:
    """Watches the CPU time of a cluster's nodes."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        """Take what the nodes use now, in a second, for what they use with nothing to do."""
        self._lab = lab
        self._processes = ClusterProcesses(lab, cluster)
        self._samples = [self._sample()]
        self._before = self._cores()

    def wait(self, limit_s: float, on_progress: Callable[[float, str], object]) -> Settled:
        """Wait until the nodes use hardly any cores, or as few as before; ``limit_s`` at most.

        ``on_progress`` gets how long it has been, and how busy they are.
        """
        allowed = max(_IDLE_CORES, _AS_BEFORE * self._before)
        self._samples = [self._sample()]
        while True:
            cores = self._cores()
            waited_s = self._samples[-1][1] - self._samples[0][1]
            is_idle = cores <= allowed and len(self._samples) > _WINDOW
            if is_idle or waited_s >= limit_s:
                return Settled(
                    seconds=round(waited_s, 1),
                    cores_before=round(self._before, 3),
                    cores=round(cores, 3),
                    is_idle=is_idle,
                )
            on_progress(waited_s, f"its nodes use {cores:.2f} cores")

    def _cores(self) -> float:
        """Sample once more, a second later; return what was used over the window."""
        self._lab.check()
        time.sleep(_SAMPLE_EVERY_S)
        self._samples.append(self._sample())
        (used_s, now_s), (at_first_s, began_s) = self._samples[-1], self._samples[-_WINDOW - 1 :][0]
        return (used_s - at_first_s) / max(now_s - began_s, 1e-9)

    def _sample(self) -> tuple[float, float]:
        """The CPU time that the nodes have used, and when that was."""
        used_ns = sum(usage.cpu_ns for usage in self._processes.usage().values())
        return used_ns / 1e9, time.monotonic()


def sampled(spec: PrefillSpec, object_bytes: int, seed: int) -> Sequence[tuple[str, int]]:
    """Return the objects to read back: the first, the last, and between them evenly at random."""
    total = spec.total
    wanted = min(total, READ_BACK, max(2, READ_BACK_BYTES // max(object_bytes, 1)))
    turns = list(dict.fromkeys([0, total - 1]))[:wanted]
    if wanted > len(turns):
        drawn = random.Random(f"{seed}/read back").sample(range(1, total - 1), wanted - 2)
        turns = sorted([*turns, *drawn])
    names = spec.bucket_names
    return [(names[turn % len(names)], turn // len(names)) for turn in turns]


def reading(
    number: int, api: ObjectApi, seed: int, bucket: str, index: int, object_bytes: int
) -> Request:
    """Return the request that reads an object that a job of the load generator wrote."""
    return api.request(
        "read",
        number,
        key_of(seed, bucket, index, is_text=api.text_keys),
        bucket=bucket,
        object_bytes=object_bytes,
        body_seed=body_seed_of(seed, bucket, index),
        phase="prepare",
    )


def run_load_job(
    system: str,
    spawn: Spawn,
    header: Header,
    job: LoadJob,
    total: int,
    report: Callable[[Progress], object],
    why: Callable[[], str | None] = lambda: None,
) -> int:
    """Do a job of the load generator to its end, and keep no records; return what was refused.

    Raises RunFailed where it did not come to its end; ``why`` may know more of that.
    """
    try:
        end = run_job(spawn, header, job, report)
    finally:
        job.records.unlink(missing_ok=True)
    if end.end != "complete":
        more = f" {known}." if (known := why()) else ""
        what = "prefill" if job.job == "fill" else "removal"
        raise RunFailed(
            f"{system}: the {what} ended at {end.ok:,} of {total:,} objects: "
            f"{end.reason or end.end}.{more}"
        )
    return end.failed
