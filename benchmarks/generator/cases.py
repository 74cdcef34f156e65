"""What is measured: a mix of requests, by so many workers, on a server that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.null_server import NullServer
from wanlat.probes.load import LoadJob, body_seed_of, read_records, run_job
from wanlat.probes.plan import GrpcHeader, Header, PlanHeader
from wanlat.probes.process import spawn_here
from wanlat.topologies.errors import RunFailed

_SEED, _BUCKET = 1, "b0"
_S3 = {"GetObject": 0.5, "PutObject": 0.5}
_BOB = {"Get": 0.5, "Put": 0.5}


@dataclass(frozen=True)
class Case:
    """A mix of requests."""

    name: str
    mix: Mapping[str, float]
    workers: int = 16
    object_bytes: int = 1024
    at_least_per_s: float | None = None
    """What is promised."""

    @property
    def is_s3(self) -> bool:
        """Or Bob's."""
        return "Get" not in self.mix


CASES = (
    Case("S3, half reads", _S3, at_least_per_s=20_000),
    Case("S3, reads", {"GetObject": 1.0}, at_least_per_s=20_000),
    Case("S3, writes", {"PutObject": 1.0}, at_least_per_s=20_000),
    Case("S3, half reads, 1 worker", _S3, workers=1),
    Case("S3, half reads, 4 workers", _S3, workers=4),
    Case("S3, half reads, 64 workers", _S3, workers=64),
    Case("S3, half reads, 256 workers", _S3, workers=256),
    Case("S3, half reads of 512 kB", _S3, object_bytes=512_000),
    Case("Bob, half reads", _BOB),
)


@dataclass(frozen=True)
class Round:
    """What one round came to."""

    per_s: float
    client_us: float
    """CPU time of the generator for a request."""
    client_cores: float
    server_us: float | None
    """Of the server; None where it does not tell."""
    p50_us: float
    p99_us: float


def measure(case: Case, seconds: float, directory: Path) -> Round:
    """Run a case once. Raises RunFailed when a request failed, or when what the generator wrote
    down is not what the server counted.
    """
    job = LoadJob(
        job="mix",
        records=directory / "records.raw",
        buckets=[_BUCKET],
        objects=1,
        object_bytes=case.object_bytes,
        seed=_SEED,
        workers=case.workers,
        duration_ms=int(seconds * 1000),
        mix=case.mix,
    )
    program: Literal["null-server", "null-grpc"] = "null-server" if case.is_s3 else "null-grpc"
    with NullServer(program, case.object_bytes, body_seed_of(_SEED, _BUCKET, 0)) as server:
        header: Header = GrpcHeader(server.host, server.port)
        if case.is_s3:
            header = PlanHeader(server.host, server.port, "garage", "ACCESS", "SECRET")
        end = run_job(spawn_here, header, job)
        said = server.stop()
    rows = read_records(job.records).rows
    if end.failed or len(rows) != end.done or said.get("requests", end.done) != end.done:
        raise RunFailed(
            f"{case.name}: {end.done} requests, {end.failed} of them failed {dict(end.errors)}; "
            f"{len(rows)} records; the server counted {said.get('requests')}."
        )
    lasted_ns = end.ended_ns - end.began_ns
    p50_ns, p99_ns = np.percentile(rows["total_ns"], [50, 99])
    return Round(
        per_s=end.ok / lasted_ns * 1e9,
        client_us=end.cpu_ns / end.done / 1e3,
        client_cores=end.cpu_ns / lasted_ns,
        server_us=said["cpu_ns"] / end.done / 1e3 if "cpu_ns" in said else None,
        p50_us=float(p50_ns) / 1e3,
        p99_us=float(p99_ns) / 1e3,
    )
