"""Synthetic bundles of loads: closed-loop workers on a store of known speed, in no time."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from synthetic_bundles import MINIO

ZERO_NS = 5_000_000_000
OBJECT_BYTES = 512_000
BETWEEN_S = 20e-6
"""From an answer to the next request of its worker."""
ENDPOINT_CODES = {"GetObject": 0, "PutObject": 1}
OUTCOME_CODES = {"ok": 0, "fail": 1, "unknown": 2}


def steady(_: float) -> float:
    """A store that is always as fast."""
    return 1.0


@dataclass(frozen=True)
class Store:
    """How long requests take: `mean_ms` by operation, times `slowness(seconds)`, with a tail."""

    mean_ms: Mapping[str, float] = field(
        default_factory=lambda: {"GetObject": 11.4, "PutObject": 43.1}
    )
    slowness: Callable[[float], float] = steady
    tail: float = 0.4
    fails: float = 0.0
    idle_ms: float = 4.0
    loaded_ms: float = 12.0


def rows_of(
    store: Store,
    *,
    workers: int = 16,
    duration_s: float = 120.0,
    ramp_s: float = 1.0,
    seed: int = 1,
) -> pd.DataFrame:
    """Requests of closed-loop workers, half reads, half writes, in the order of their begin."""
    rng = np.random.default_rng(seed)
    names = np.array(list(store.mean_ms))
    means = np.array(list(store.mean_ms.values()))
    room = int(2 * (duration_s + ramp_s) / (means.mean() / 1e3)) + 100
    parts = []
    for worker in range(workers):
        kinds = rng.integers(names.size, size=room)
        ms = means[kinds] * rng.lognormal(-(store.tail**2) / 2, store.tail, room)
        begin = -ramp_s + ramp_s * worker / workers
        if store.slowness is not steady:
            at = begin
            for n in range(room):
                ms[n] *= store.slowness(max(at, 0.0))
                at += ms[n] / 1e3 + BETWEEN_S
        starts = begin + np.concatenate(([0.0], np.cumsum(ms / 1e3 + BETWEEN_S)[:-1]))
        kept = starts < duration_s
        assert not kept.all()
        parts.append((starts[kept], ms[kept], np.full(kept.sum(), worker), kinds[kept]))
    start, elapsed, worker_of, kind = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(start)
    start, elapsed, worker_of, kind = (a[order] for a in (start, elapsed, worker_of, kind))
    failed = rng.random(start.size) < store.fails
    elapsed_ns = np.round(elapsed * 1e6).astype(np.int64)
    return pd.DataFrame(
        {
            "start_ns": ZERO_NS + np.round(start * 1e9).astype(np.int64),
            "due_ns": pd.array([None] * start.size, dtype="Int64"),
            "total_ns": pd.array(elapsed_ns, dtype="Int64").copy(),
            "elapsed_ns": elapsed_ns,
            "worker": worker_of,
            "endpoint": names[kind],
            "object_bytes": np.where(failed, 0, OBJECT_BYTES),
            "outcome": np.where(failed, "fail", "ok"),
            "status": np.where(failed, 503, 200),
            "error": np.where(failed, "http 503 SlowDown", None),
            "phase": np.where(start < 0, "ramp", "load"),
        }
    )


def write_load(
    directory: Path,
    *,
    store: Store | None = None,
    rows: pd.DataFrame | None = None,
    series: tuple[str, str] = MINIO,
    workers: int = 16,
    duration_s: float = 120.0,
    load: Mapping[str, Any] | None = None,
    manifest: Mapping[str, Any] | None = None,
    study: Mapping[str, Any] | None = None,
    raw: bool = False,
    seed: int = 1,
    quiet: Sequence[str] = ("GetObject", "PutObject"),
) -> pd.DataFrame:
    """Write a bundle of one system under load; returns the requests."""
    store = store or Store()
    directory.mkdir(parents=True, exist_ok=True)
    if rows is None:
        rows = rows_of(store, workers=workers, duration_s=duration_s, seed=seed)
    if raw:
        (directory / "load.raw").write_bytes(raw_of(rows))
    else:
        whole = rows.assign(system=series[0], version=series[1])
        whole.to_parquet(directory / "load.parquet")
    _samples(store, series, duration_s, seed, quiet).to_parquet(directory / "samples.parquet")
    recorded = {
        "workers": workers,
        "mix": {"GetObject": 0.5, "PutObject": 0.5},
        "offered": {"workers": workers, "rate": None},
        "achieved_per_s": round(len(rows) / duration_s, 3),
        "began_ns": ZERO_NS - 1_000_000_000,
        "ramp_ms": 1000,
        "ended_ns": ZERO_NS + round(duration_s * 1e9),
        "client": {
            "cpu_share": 0.21,
            "threads": workers,
            "busiest_thread_share": 0.06,
            "verify_share": 0.01,
        },
        "bottleneck": None,
        **(load or {}),
    }
    document = {
        "schema_version": 2,
        "kind": "study",
        "wanlat": "0.1.0",
        "status": "complete",
        "reason": None,
        "seed": 7,
        "study": {
            "name": "mixed-load",
            "load": {"workers": workers, "duration": f"{duration_s}s"},
            **(study or {}),
        },
        "topology": {"name": "lan", "sites": [{"name": "dc1", "nodes": ["n1"]}]},
        "systems": [{"name": series[0], "version": series[1], "options": {}}],
        "load": {series[0]: recorded},
        **(manifest or {}),
    }
    (directory / "manifest.json").write_text(json.dumps(document))
    return rows


def raw_of(rows: pd.DataFrame) -> bytes:
    """`rows` as the generator writes them (probes/oneshot/src/load/record.rs)."""
    parts = [(b"wanlat load 1\n\0\0" + struct.pack("<I", 72)).ljust(72, b"\0")]
    numbers: dict[str, int] = {}
    for number, row in enumerate(rows.itertuples(index=False)):
        error = 0
        if row.error is not None and row.error == row.error:
            if row.error not in numbers:
                numbers[row.error] = len(numbers) + 1
                name = row.error.encode()
                head = struct.pack("<BBHHH", 255, len(name), 0, numbers[row.error], 0)
                parts.append((head + name).ljust(72, b"\0"))
            error = numbers[row.error]
        parts.append(
            struct.pack(
                "<BBBBHHqqqqqqIIHHhH",
                ENDPOINT_CODES[row.endpoint],
                OUTCOME_CODES[row.outcome],
                1 if row.phase == "ramp" else 0,
                *(0, error, row.worker, row.start_ns),
                *(-1, row.elapsed_ns // 2, row.elapsed_ns, row.elapsed_ns),
                *(row.object_bytes, number, 0, 0, row.status, -1, 0),
            )
        )
    return b"".join(parts)


def _samples(
    store: Store, series: tuple[str, str], duration_s: float, seed: int, quiet: Sequence[str]
) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 2])
    rows = []
    for at in np.arange(-30.0, duration_s, 0.1):
        phase = "idle" if at < 0 else "loaded"
        mean = store.idle_ms if phase == "idle" else store.loaded_ms * store.slowness(at)
        endpoint = quiet[int(rng.integers(len(quiet)))]
        mean *= 2.0 if endpoint.startswith("Put") else 1.0
        rows.append(
            {
                "system": series[0],
                "version": series[1],
                "topology": "lan",
                "client": "n1",
                "endpoint": endpoint,
                "seq": len(rows),
                "start_ns": ZERO_NS + round(at * 1e9) - (2_000_000_000 if at < 0 else 0),
                "total_ns": round(mean * rng.lognormal(-0.045, 0.3) * 1e6),
                "outcome": "ok",
                "error": None,
                "object_bytes": OBJECT_BYTES,
                "phase": phase,
            }
        )
    return pd.DataFrame(rows)
