"""One system's part of a study of disk space that is given back.

Write objects; wait; remove some of them; then leave the store idle and sample the space of its
directories for as long as the study has it. At the end a sample of what was to stay is read, and a
sample of what was removed must be gone: a store that frees what it should have kept gets no good
marks here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from wanlat.bundle.documents import Found, Reclaim, Reclaims
from wanlat.emulator.lab import Lab
from wanlat.experiments.config.workloads import BUCKET, PrefillSpec
from wanlat.experiments.kinds.reclaim import ReclaimSpec, ranges
from wanlat.experiments.prepare import RequestPlan
from wanlat.experiments.requests import NotFoundTracker, is_not_found
from wanlat.experiments.workloads.pace import Pace, Seconds, stated
from wanlat.experiments.workloads.prefill import READ_BACK_BYTES, Filling, reading, run_load_job
from wanlat.experiments.workloads.requests import Workload
from wanlat.probes.header import Header
from wanlat.probes.load import LoadJob, Progress
from wanlat.probes.objects import ObjectApi
from wanlat.probes.oneshot import run_requests
from wanlat.probes.plan import Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import RunFailed

_SAMPLE = 50
"""Objects of each kind that are looked for; fewer where they are large."""
_ATTEMPTS = 3
"""At most, for an object of which no answer shows whether it is there."""
_PAUSE_S = 1.0


class ReclaimWorkload(Workload[ReclaimSpec]):
    """One system's part of a study of disk space that is given back."""

    @classmethod
    def takes(cls, spec: ReclaimSpec, requests: RequestPlan, pace: Pace) -> tuple[Seconds, Seconds]:
        """Return how long it waits and watches, and the time to write and remove objects."""
        count = (spec.objects + spec.removed) / spec.workers
        return stated(spec.settle.s + spec.watch.s), pace.writing(requests).times(count)

    def fill(self, lab: Lab, spawn: Spawn, cluster: Cluster) -> None:
        """Write the objects."""
        spec = self.spec
        self.outcome.planned -= self.subject.requests.measured()  # its endpoints are not timed
        self._result = Reclaim(
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
        self._note("filled", filled_ns=(began_ns, time.monotonic_ns()))
        self.be_idle(lab, cluster, "settling", spec.settle)
        self.sample_space()
        self._note("settled", settled_ns=time.monotonic_ns())

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:  # noqa: ARG002
        """Remove some of them, watch, and see that nothing else is gone."""
        header = self.subject.requests.header(cluster)
        removed = self.spec.chosen(self.prepared.seed)
        kept = sorted(set(range(self.spec.objects)) - set(removed))
        began_ns = time.monotonic_ns()
        self._result.refused = self._remove(spawn, header, removed, kept)
        self._note("removed", removed_ns=(began_ns, time.monotonic_ns()))
        self.sample_space()
        began_ns = time.monotonic_ns()
        self.be_idle(lab, cluster, "watching space", self.spec.watch)
        self.sample_space()
        self._note("watched", watched_ns=(began_ns, time.monotonic_ns()))
        self.progress("looking for what stays and what is gone")
        state = self._read_samples(spawn, header, removed, kept)
        self._note("verified", found=state)
        if state.lost:
            raise RunFailed(
                f"{self.name}: {state.lost} of {state.kept} objects that nobody removed "
                f"cannot be read any more: {state.example}. Free space is worth nothing then."
            )
        if state.still_there:
            self.session.warn(
                f"{state.still_there} of {state.removed} removed objects can still be read."
            )
        cluster.check()

    @property
    def _api(self) -> ObjectApi:
        api = self.subject.requests.objects
        assert api is not None
        return api

    def _remove(
        self, spawn: Spawn, header: Header, removed: Sequence[int], kept: Sequence[int]
    ) -> int:
        """Remove objects; return how many removals the store refused."""
        spec, total = self.spec, len(removed)

        def report(progress: Progress) -> None:
            self.progress("removing", progress.ok, total, f"{progress.per_s:,.0f} objects/s")

        self.progress("removing", 0, total)
        job = LoadJob(
            job="remove",
            records=self.bundle.records.absolute() / f"reclaim-{self.name}.raw",
            api=self._api,
            buckets=[BUCKET],
            objects=spec.objects,
            object_bytes=self._result.object_bytes,
            seed=self.prepared.seed,
            workers=min(spec.workers, total),
            done=ranges(kept),
        )
        return run_load_job(self.name, spawn, header, job, total, report)

    def _read_samples(
        self, spawn: Spawn, header: Header, removed: Sequence[int], kept: Sequence[int]
    ) -> Found:
        """Read a sample of both, drawn from the seed. Raises ProbeFailed."""
        size, seed = self._result.object_bytes, self.prepared.seed
        most = min(_SAMPLE, max(1, READ_BACK_BYTES // max(size, 1)))
        drawn = random.Random(f"{seed}/reclaim/verify")
        stays, gone = (drawn.sample(keys, min(most, len(keys))) for keys in (kept, removed))
        lost: list[str] = []
        unread: dict[int, str] = {}
        still_there = 0

        def on_sample(request: Request, sample: Sample) -> None:
            nonlocal still_there
            unread.pop(request.seq, None)
            reason = f"{request.key}: {sample.error or sample.outcome}"
            is_there = sample.outcome == "ok" or sample.sha256 is not None
            if not is_there and not is_not_found(sample):
                unread[request.seq] = reason
            elif request.seq >= len(stays):
                still_there += is_there
            elif sample.outcome != "ok":
                lost.append(reason)

        reads = [
            reading(place, self._api, seed, BUCKET, number, size)
            for place, number in enumerate([*stays, *gone])
        ]
        for attempt in range(_ATTEMPTS):
            time.sleep(attempt * _PAUSE_S)
            run_requests(spawn, header, reads, on_sample)
            if not (reads := [read for read in reads if read.seq in unread]):
                break
        lost += [reason for place, reason in unread.items() if place < len(stays)]
        return Found(
            kept=len(stays),
            lost=len(lost),
            removed=len(gone),
            still_there=still_there,
            example=lost[0] if lost else None,
        )

    def _note(self, what: str, **changes: object) -> None:
        """Write down how far it is."""
        for name, value in changes.items():
            setattr(self._result, name, value)
        self.bundle.event("reclaim", self.name, what)
        self.bundle.write_part(Reclaims, self._result)
