"""``python -m benchmarks.generator``: what the generator of load reaches when the store is nothing.

Server and generator share the machine's cores, or two of them. Ends with 1 when it is less than is
promised.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.comparison import Claim, finish, in_rounds, parser, run, spread, table
from benchmarks.loopback import NullServer
from wanlat.bundle.load_records import read_records
from wanlat.probes.load import LoadJob, run_job
from wanlat.probes.objects import ObjectApi
from wanlat.probes.prefilled import body_seed_of
from wanlat.probes.process import spawn_here
from wanlat.systems.engine.protocols import Operation
from wanlat.topologies.errors import RunFailed

_CORES = 2
_SEED, _BUCKET = 1, "b0"
_HALF: Mapping[Operation, float] = {"read": 0.5, "write": 0.5}
_COLUMNS = {
    "case": "{case}",
    "workers": "{workers}",
    "requests/s": "{per_s[median]:,.0f}",
    "by round": "{per_s[min]:,.0f}–{per_s[max]:,.0f}",
    "client": "{client_us[median]:.1f} µs",
    "server": "{server_us[median]:.1f} µs",
    "median": "{p50_us[median]:,.0f} µs",
    "p99": "{p99_us[median]:,.0f} µs",
}


@dataclass(frozen=True)
class Case:
    """A mix of requests, and what is promised of it."""

    name: str
    mix: Mapping[Operation, float]
    workers: int = 16
    api: Literal["s3", "bob"] = "s3"
    object_bytes: int = 1024
    at_least_per_s: float | None = None


CASES = (
    Case("S3, half reads", _HALF, at_least_per_s=20_000),
    Case("S3, reads", {"read": 1.0}, at_least_per_s=20_000),
    Case("S3, writes", {"write": 1.0}, at_least_per_s=20_000),
    *(Case(f"S3, half reads, {n} worker{'s' * (n > 1)}", _HALF, n) for n in (1, 4, 64, 256)),
    Case("S3, half reads of 512 kB", _HALF, object_bytes=512_000),
    Case("Bob, half reads", _HALF, api="bob"),
)


def _compare(options: argparse.Namespace) -> int:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    with tempfile.TemporaryDirectory() as directory:
        records = Path(directory, "records.raw")
        turns = {case.name: partial(measure, case, options.seconds, records) for case in CASES}
        results = in_rounds(options, turns)
    rows: list[dict[str, Any]] = []
    for case in CASES:
        rounds = results[case.name]
        figures = {
            key: spread([round_figures[key] for round_figures in rounds], 1) for key in rounds[0]
        }
        known: dict[str, Any] = {"server_us": None, **figures}
        rows.append({"case": case.name, "workers": case.workers, **known})
    claims = [
        Claim(f"{case.name}: at least {least:,.0f} a second", f"{per_s:,.0f}", per_s >= least)
        for case, row in zip(CASES, rows, strict=True)
        if (least := case.at_least_per_s) is not None and (per_s := row["per_s"]["median"])
    ]
    more = {"rows": rows, "seconds": options.seconds}
    tables = table(rows, _COLUMNS)
    return finish(options, Path(__file__).parent, tables=tables, claims=claims, **more)


def measure(case: Case, seconds: float, records: Path) -> dict[str, float]:
    """Run a case once. Raises RunFailed when a request failed, or when what the generator wrote
    down is not what the server counted.
    """
    api = ObjectApi.over(case.api)
    assert api is not None
    job = LoadJob(
        job="mix",
        records=records,
        api=api,
        buckets=[_BUCKET],
        objects=1,
        object_bytes=case.object_bytes,
        seed=_SEED,
        workers=case.workers,
        duration_ms=int(seconds * 1000),
        mix=case.mix,
    )
    seed = body_seed_of(_SEED, _BUCKET, 0)
    with NullServer(case.api, case.object_bytes, seed) as server:
        end = run_job(spawn_here, server.header, job)
        counted = server.stop()
    rows = read_records(job.records).rows
    if end.failed or len(rows) != end.done or counted.get("requests", end.done) != end.done:
        raise RunFailed(
            f"{case.name}: {end.done} requests, {end.failed} of them failed {dict(end.errors)}; "
            f"{len(rows)} records; the server counted {counted.get('requests')}."
        )
    lasted_ns = end.ended_ns - end.began_ns
    p50_ns, p99_ns = np.percentile(rows["total_ns"], [50, 99])
    figures = {
        "per_s": end.ok / lasted_ns * 1e9,
        "client_us": end.cpu_ns / end.done / 1e3,
        "p50_us": float(p50_ns) / 1e3,
        "p99_us": float(p99_ns) / 1e3,
    }
    own = {"server_us": counted["cpu_ns"] / end.done / 1e3} if "cpu_ns" in counted else {}
    return {**figures, **own}


if __name__ == "__main__":
    made = parser("generator", __doc__, rounds=5)
    made.add_argument("--seconds", type=float, default=2.0, help="of a case and round")
    run(_compare, made.parse_args())
