"""Synthetic bundles of loads: closed-loop workers on a store of known speed, in no time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from synthetic_bundles import MINIO

from wanlat.bundle.load_records import MAGIC, OUTCOMES, RAMP, RECORD

ZERO_NS = 5_000_000_000
OBJECT_BYTES = 512_000
WORKERS = 16
CLIENT = {"cores": 2, "cpu_s": 1.0, "cpu_share": 0.21, "threads": WORKERS, "waited_share": 0.0} | {
    f"{name}_share": 0.01 for name in ("busiest_thread", "verify", "computed", "between")
}
BETWEEN_S = 20e-6
"""From an answer to the next request of its worker."""
KIND = "http 503 SlowDown"


@dataclass(frozen=True)
class Store:
    """How long requests take: `mean_ms` by operation, times `slowness(seconds)`, with a tail."""

    mean_ms: Mapping[str, float] = field(
        default_factory=lambda: {"GetObject": 11.4, "PutObject": 43.1}
    )
    slowness: Callable[[float], float] = lambda _at: 1.0
    tail: float = 0.4
    fails: float = 0.0
    idle_ms: float = 4.0
    loaded_ms: float = 12.0


def rows_of(store: Store, *, duration_s: float, seed: int = 1) -> pd.DataFrame:
    """Requests of closed-loop workers, half reads, half writes, in the order of their begin.

    The first second is the ramp.
    """
    rng = np.random.default_rng(seed)
    names, means = np.array(list(store.mean_ms)), np.array(list(store.mean_ms.values()))
    parts = []
    for worker in range(WORKERS):
        at = worker / WORKERS - 1.0
        while at < duration_s:
            kind = rng.integers(names.size)
            ms = means[kind] * rng.lognormal(-(store.tail**2) / 2, store.tail)
            ms *= store.slowness(max(at, 0.0))
            parts.append((at, ms, worker, names[kind], rng.random() < store.fails))
            at += ms / 1e3 + BETWEEN_S
    start, ms, worker_of, endpoint, failed = map(np.array, zip(*sorted(parts), strict=True))
    elapsed_ns = np.round(ms * 1e6).astype(np.int64)
    return pd.DataFrame(
        {
            "start_ns": ZERO_NS + np.round(start * 1e9).astype(np.int64),
            "due_ns": pd.array([None] * start.size, dtype="Int64"),
            "total_ns": pd.array(elapsed_ns, dtype="Int64"),
            "elapsed_ns": elapsed_ns,
            "worker": worker_of,
            "endpoint": endpoint,
            "object_bytes": np.where(failed, 0, OBJECT_BYTES),
            "outcome": np.where(failed, "fail", "ok"),
            "error": np.where(failed, KIND, None),
            "phase": np.where(start < 0, "ramp", "load"),
        }
    )


def write_load(
    directory: Path,
    *,
    store: Store | None = None,
    rows: pd.DataFrame | None = None,
    series: tuple[str, str] = MINIO,
    duration_s: float = 120.0,
    load: Mapping[str, Any] | None = None,
    study: Mapping[str, Any] | None = None,
    raw: bool = False,
    seed: int = 1,
) -> pd.DataFrame:
    """Write a bundle of one system under load; returns the requests.

    `raw`: as a run leaves it that was killed.
    """
    store = store or Store()
    directory.mkdir(parents=True, exist_ok=True)
    if rows is None:
        rows = rows_of(store, duration_s=duration_s, seed=seed)
    if raw:
        (directory / "records").mkdir()
        (directory / "records" / f"load-{series[0]}.raw").write_bytes(raw_of(rows))
    else:
        whole = rows.assign(system=series[0], version=series[1])
        whole.to_parquet(directory / "load.parquet")
    _samples(store, series, duration_s, seed).to_parquet(directory / "samples.parquet")
    recorded = {
        "offered": {"workers": WORKERS, "rate": None},
        "achieved_per_s": round(len(rows) / duration_s, 3),
        "began_ns": ZERO_NS - 1_000_000_000,
        "ramp_ms": 1000,
        "ended_ns": ZERO_NS + round(duration_s * 1e9),
        "client": CLIENT,
        "bottleneck": None,
        **(load or {}),
    }
    name = {"name": "mixed-load", "load": {"workers": WORKERS, "duration": f"{duration_s}s"}}
    document = {
        "schema_version": 2,
        "kind": "study",
        "wanlat": "0.1.0",
        "status": "complete",
        "seed": 7,
        "study": {**name, **(study or {})},
        "topology": {"name": "lan", "sites": [{"name": "dc1", "nodes": ["n1"]}]},
        "systems": [{"name": series[0], "version": series[1], "options": {}}],
        "load": {} if raw else {series[0]: recorded},
    }
    (directory / "manifest.json").write_text(json.dumps(document))
    return rows


def raw_of(rows: pd.DataFrame) -> bytes:
    """`rows` as the generator writes them (probes/oneshot/src/load/record.rs)."""
    records = np.zeros(len(rows), dtype=RECORD)
    for name in ("start_ns", "total_ns", "elapsed_ns", "object_bytes", "worker"):
        records[name] = rows[name]
    endpoints = ("GetObject", "PutObject")
    records["endpoint"] = [endpoints.index(name) for name in rows["endpoint"]]
    records["outcome"] = [OUTCOMES.index(name) for name in rows["outcome"]]
    records["error"] = rows["error"].notna()
    records["flags"] = np.where(rows["phase"] == "ramp", RAMP, 0)
    for name in ("due_ns", "first_byte_ns", "grpc_status"):
        records[name] = -1
    size = RECORD.itemsize
    header = (MAGIC + size.to_bytes(4, "little")).ljust(size, b"\0")
    kind = bytes((255, len(KIND), 0, 0, 1, 0, 0, 0)) + KIND.encode()
    names = [
        (bytes((254, len(name), 0, 0, number, 0, 0, 0)) + name.encode()).ljust(size, b"\0")
        for number, name in enumerate(endpoints)
    ]
    return header + b"".join(names) + kind.ljust(size, b"\0") + records.tobytes()


def _samples(store: Store, series: tuple[str, str], duration_s: float, seed: int) -> pd.DataFrame:
    """The probe client's, every 100 ms, 30 s before the ramp and beside the load."""
    rng = np.random.default_rng([seed, 2])
    at_s = np.arange(-30.0, duration_s, 0.1)
    is_idle, is_put = at_s < 0, rng.random(at_s.size) < 0.5
    mean_ms = np.where(is_idle, store.idle_ms, store.loaded_ms) * np.where(is_put, 2.0, 1.0)
    mean_ms = mean_ms * [store.slowness(max(at, 0.0)) for at in at_s]
    total_ms = mean_ms * rng.lognormal(-0.045, 0.3, at_s.size)
    return pd.DataFrame(
        {
            "system": series[0],
            "version": series[1],
            "topology": "lan",
            "client": "n1",
            "endpoint": np.where(is_put, "PutObject", "GetObject"),
            "seq": np.arange(at_s.size),
            "start_ns": ZERO_NS + np.round(1e9 * (at_s - 2 * is_idle)).astype(np.int64),
            "total_ns": np.round(1e6 * total_ms).astype(np.int64),
            "outcome": "ok",
            "error": None,
            "object_bytes": OBJECT_BYTES,
            "phase": np.where(is_idle, "idle", "loaded"),
        }
    )
