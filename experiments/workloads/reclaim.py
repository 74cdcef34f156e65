"""One system's part of a study of disk space that is given back.

Write objects; wait; remove some of them; then ask the store for nothing and look at its directories
for as long as the study says. At the end a sample of what was to stay is read, and a sample of what
was removed must be gone: a store that frees what it should have kept gets no good marks here.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from wanlat.emulator.lab import Lab
from wanlat.experiments.config.prefill import BUCKET, PrefillSpec
from wanlat.experiments.config.reclaim import ReclaimSpec, ranges
from wanlat.experiments.not_found import NotFoundTracker, is_missing
from wanlat.experiments.request_plan import RequestPlan
from wanlat.experiments.workloads.prefill import Filling
from wanlat.experiments.workloads.requests import Workload
from wanlat.probes.load import LoadJob, Progress, body_seed_of, key_of, run_job
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed
from wanlat.topologies.units import Duration

FILE = "reclaim.json"
_LOOK_EVERY_S = 0.5

Span = tuple[int, int]
"""Begin and end on the samples' clock, ns."""


@dataclass
class Reclaimed:
    """What was done to one system: a part of ``reclaim.json``. None: it did not come so far."""

    system: str
    objects: int
    object_bytes: int
    removed: int
    which: str
    workers: int
    filled_ns: Span | None = None
    settled_ns: int | None = None
    """The instant of the last look before the removal."""
    removed_ns: Span | None = None
    watched_ns: Span | None = None
    refused: int = 0
    """Removals that were refused, and sent again."""
    found: Found | None = None


class ReclaimWorkload(Workload):
    """One system's part of a study of disk space that is given back."""

    def fill(self, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
        """Write the objects."""
        self._cluster = cluster
        self.outcome.planned -= self.subject.requests.measured()  # its endpoints are not timed
        self._said = self._start_saying()
        self.weigh()
        began_ns = time.monotonic_ns()
        spec = PrefillSpec(objects=self._spec.objects, writers=self._spec.workers)
        Filling(self, spec, spawn, cluster).do()
        self._said.filled_ns = began_ns, time.monotonic_ns()
        self._say("filled")
        self._wait(lab, "settling", self._spec.settle)
        self.weigh()
        self._said.settled_ns = time.monotonic_ns()
        self._say("settled")

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:  # noqa: ARG002
        """Remove some of them, watch, and see that nothing else is gone."""
        said, requests = self._said, self.subject.requests
        header = requests.header(cluster)
        chosen = self._spec.chosen(self.prepared.seed)
        began_ns = time.monotonic_ns()
        self._remove(spawn, header, chosen)
        said.removed_ns = began_ns, time.monotonic_ns()
        self._say("removed")
        self.weigh()
        watching_ns = time.monotonic_ns()
        self._wait(lab, "watching space", self._spec.watch)
        self.weigh()
        said.watched_ns = watching_ns, time.monotonic_ns()
        self._say("watched")
        self.tell("looking for what stays and what is gone")
        said.found = verify(spawn, header, requests, chosen, said.objects, said.object_bytes)
        self._say("verified")
        if said.found.lost:
            raise RunFailed(
                f"{self.name}: {said.found.lost} of {said.found.kept} objects that nobody removed "
                f"cannot be read any more: {said.found.example}. Free space is worth nothing then."
            )
        if said.found.still_there:
            self.session.warn(
                f"{said.found.still_there} of {said.found.removed} removed objects "
                "can still be read."
            )
        cluster.check()

    @property
    def _spec(self) -> ReclaimSpec:
        spec = self.prepared.study.reclaim
        assert spec is not None
        return spec

    def _remove(self, spawn: Spawn, header: Header, chosen: list[int]) -> None:
        spec, total = self._spec, len(chosen)
        stay = [i for i, goes in enumerate(_marks(chosen, spec.objects)) if not goes]

        def on_progress(progress: Progress) -> None:
            self.tell("removing", progress.ok, total, f"{progress.per_s:,.0f} objects/s")

        self.tell("removing", 0, total)
        with _scratch(self.bundle.directory.absolute() / f".reclaim-{self.name}.raw") as records:
            job = LoadJob(
                job="remove",
                records=records,
                buckets=[BUCKET],
                objects=spec.objects,
                object_bytes=self._said.object_bytes,
                seed=self.prepared.seed,
                workers=min(spec.workers, total),
                done=ranges(stay),
            )
            end = run_job(spawn, header, job, on_progress)
        if end.end != "complete":
            raise RunFailed(
                f"{self.name}: the removal ended at {end.ok:,} of {total:,} objects: "
                f"{end.reason or end.end}."
            )
        self._said.refused = end.failed

    def _wait(self, lab: Lab, what: str, duration: Duration) -> None:
        end_s = time.monotonic() + duration.s
        while (left_s := end_s - time.monotonic()) > 0:
            lab.check()
            self._cluster.check()
            self.tell(what, duration.s - left_s, duration.s)
            time.sleep(min(left_s, _LOOK_EVERY_S))

    def _start_saying(self) -> Reclaimed:
        spec = self._spec
        return Reclaimed(
            system=self.name,
            objects=spec.objects,
            object_bytes=self.prepared.study.object_size.bytes,
            removed=spec.removed,
            which=spec.which,
            workers=spec.workers,
        )

    def _say(self, what: str) -> None:
        self.bundle.event("reclaim", self.name, what)
        path = self.bundle.directory / FILE
        before = json.loads(path.read_text("utf-8"))["systems"] if path.exists() else []
        others = [each for each in before if each["system"] != self.name]
        self.bundle.write_json(FILE, {"systems": [*others, asdict(self._said)]})


def _marks(chosen: list[int], objects: int) -> list[bool]:
    marks = [False] * objects
    for number in chosen:
        marks[number] = True
    return marks


@contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A file that is gone afterwards."""
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


SAMPLE = 50
"""Objects of each kind that are looked for."""
_SAMPLE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Found:
    """Of ``kept`` objects that were to stay ``lost`` could not be read as they were written; of
    ``removed`` ones ``still_there`` could. ``example``: what one of the lost ones answered.
    """

    kept: int
    lost: int
    removed: int
    still_there: int
    example: str | None = None


def verify(
    spawn: Spawn,
    header: Header,
    requests: RequestPlan,
    removed: Sequence[int],
    objects: int,
    object_bytes: int,
) -> Found:
    """Read a sample of both, drawn from the seed. Raises ProbeFailed."""
    goes = frozenset(removed)
    stays = [number for number in range(objects) if number not in goes]
    most = min(SAMPLE, max(1, _SAMPLE_BYTES // max(object_bytes, 1)))
    drawn = random.Random(f"{requests.seed}/reclaim/verify")
    chosen = [
        *((number, True) for number in drawn.sample(stays, min(most, len(stays)))),
        *((number, False) for number in drawn.sample(list(removed), min(most, len(removed)))),
    ]
    reads = [
        _reading(place, requests, number, object_bytes) for place, (number, _) in enumerate(chosen)
    ]
    lost: list[str] = []
    still_there = 0

    def on_sample(request: Request, sample: Sample) -> None:
        nonlocal still_there
        if chosen[request.seq][1]:
            if sample.outcome != "ok":
                lost.append(f"{request.key}: {sample.error or sample.outcome}")
        elif not is_missing(sample):
            still_there += 1

    run_requests(spawn, header, reads, on_sample)
    kept = sum(stays for _, stays in chosen)
    return Found(kept, len(lost), len(chosen) - kept, still_there, lost[0] if lost else None)


def _reading(number: int, requests: RequestPlan, index: int, object_bytes: int) -> Request:
    s3 = requests.api == "s3"
    return Request(
        number,
        "prepare",
        "GetObject" if s3 else "Get",
        BUCKET if s3 else None,
        key_of(requests.seed, BUCKET, index, "s3" if s3 else "bob"),
        object_bytes=object_bytes,
        body_seed=body_seed_of(requests.seed, BUCKET, index),
    )
