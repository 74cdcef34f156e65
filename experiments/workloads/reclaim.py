"""One system's part of a study of disk space that is given back.

Write objects; wait; remove some of them; then leave the store idle and sample the space of its
directories for as long as the study says. At the end a sample of what was to stay is read, and a
sample of what was removed must be gone: a store that frees what it should have kept gets no good
marks here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from wanlat.bundle.documents import Found, Reclaim, Reclaims, Span
from wanlat.emulator.lab import Lab
from wanlat.experiments.config.load import BUCKET, PrefillSpec, ReclaimSpec, ranges
from wanlat.experiments.not_found import NotFoundTracker, is_missing
from wanlat.experiments.request_plan import RequestPlan
from wanlat.experiments.workloads.prefill import Filling, carry_out, reading
from wanlat.experiments.workloads.requests import Workload
from wanlat.probes.load import LoadJob, Progress
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Header, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed

SAMPLE = 50
"""Objects of each kind that are looked for."""
_SAMPLE_BYTES = 256 * 1024 * 1024


class ReclaimWorkload(Workload):
    """One system's part of a study of disk space that is given back."""

    def fill(self, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
        """Write the objects."""
        spec = self._spec
        self.outcome.planned -= self.subject.requests.measured()  # its endpoints are not timed
        self._said = Reclaim(
            system=self.name,
            objects=spec.objects,
            object_bytes=self.prepared.study.object_size.bytes,
            removed=spec.removed,
            which=spec.which,
            workers=spec.workers,
        )
        self.sample_space()
        began_ns = time.monotonic_ns()
        prefill = PrefillSpec(objects=spec.objects, writers=spec.workers)
        Filling(self.session, self.subject.requests, prefill, spawn, cluster).do()
        self._note("filled", filled_ns=_since(began_ns))
        self.be_idle(lab, cluster, "settling", spec.settle)
        self.sample_space()
        self._note("settled", settled_ns=time.monotonic_ns())

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:  # noqa: ARG002
        """Remove some of them, watch, and see that nothing else is gone."""
        said, requests = self._said, self.subject.requests
        header = requests.header(cluster)
        chosen = self._spec.chosen(self.prepared.seed)
        began_ns = time.monotonic_ns()
        said.refused = self._remove(spawn, header, chosen)
        self._note("removed", removed_ns=_since(began_ns))
        self.sample_space()
        began_ns = time.monotonic_ns()
        self.be_idle(lab, cluster, "watching space", self._spec.watch)
        self.sample_space()
        self._note("watched", watched_ns=_since(began_ns))
        self.tell("looking for what stays and what is gone")
        found = verify(spawn, header, requests, chosen, said.objects, said.object_bytes)
        self._note("verified", found=found)
        if found.lost:
            raise RunFailed(
                f"{self.name}: {found.lost} of {found.kept} objects that nobody removed "
                f"cannot be read any more: {found.example}. Free space is worth nothing then."
            )
        if found.still_there:
            self.session.warn(
                f"{found.still_there} of {found.removed} removed objects can still be read."
            )
        cluster.check()

    @property
    def _spec(self) -> ReclaimSpec:
        spec = self.prepared.study.reclaim
        assert spec is not None
        return spec

    def _remove(self, spawn: Spawn, header: Header, chosen: list[int]) -> int:
        """Remove objects; return how many removals the store refused."""
        spec, total = self._spec, len(chosen)

        def report(progress: Progress) -> None:
            self.tell("removing", progress.ok, total, f"{progress.per_s:,.0f} objects/s")

        self.tell("removing", 0, total)
        goes = frozenset(chosen)
        job = LoadJob(
            job="remove",
            records=self.bundle.directory.absolute() / f".reclaim-{self.name}.raw",
            buckets=[BUCKET],
            objects=spec.objects,
            object_bytes=self._said.object_bytes,
            seed=self.prepared.seed,
            workers=min(spec.workers, total),
            done=ranges(number for number in range(spec.objects) if number not in goes),
        )
        return carry_out(self.name, spawn, header, job, total, report)

    def _note(self, what: str, **changes: object) -> None:
        """Write down how far it is."""
        for name, value in changes.items():
            setattr(self._said, name, value)
        self.bundle.event("reclaim", self.name, what)
        self.bundle.write_part(Reclaims, self._said)


def _since(began_ns: int) -> Span:
    return began_ns, time.monotonic_ns()


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
    kept = drawn.sample(stays, min(most, len(stays)))
    gone = drawn.sample(list(removed), min(most, len(removed)))
    reads = [
        reading(place, requests, BUCKET, number, object_bytes)
        for place, number in enumerate([*kept, *gone])
    ]
    lost: list[str] = []
    still_there = 0

    def on_sample(request: Request, sample: Sample) -> None:
        nonlocal still_there
        if request.seq >= len(kept):
            still_there += not is_missing(sample)
        elif sample.outcome != "ok":
            lost.append(f"{request.key}: {sample.error or sample.outcome}")

    run_requests(spawn, header, reads, on_sample)
    example = lost[0] if lost else None
    return Found(
        kept=len(kept), lost=len(lost), removed=len(gone), still_there=still_there, example=example
    )
