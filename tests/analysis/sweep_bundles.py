"""Synthetic bundles of sweeps: what a sweep leaves, made up from a seed in no time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from synthetic_bundles import BOB, MINIO, write_bundle

from wanlat.analysis.sweep import bytes_of

MINIO_NGINX = ("minio-nginx", "v0.0.0-20260212201848-7aac2a2c5b7c")
SIZES = ("1KiB", "50KiB", "1MiB", "4095KiB", "4MiB", "4097KiB", "100MiB")
OPERATIONS = {"bob": ("Get", "Put")}
S3 = ("GetObject", "PutObject")

WritePoint = Callable[[Path, tuple[str, str], Mapping[str, Any]], None]
"""(directory, system and version, values of the point): writes its bundle."""
Values = Callable[[str, Mapping[str, Any], str, int], np.ndarray]
"""(system, values of the point, endpoint, bytes) -> latencies in ms of its requests."""


def plausible(n: int = 40) -> Values:
    """Latencies as of the documents: a time of its own, a rate, and for MinIO a tail."""

    def values(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
        key = f"{system}{sorted(at.items())}{endpoint}".encode()
        rng = np.random.default_rng(zlib.crc32(key))
        writes = endpoint.startswith("Put")
        own_ms = {"bob": 0.4, "quorum": 0.3}.get(system, 2.0) * (1.5 if writes else 1.0)
        mib_s = {"bob": 100.0}.get(system, 60.0 if writes else 220.0)
        body_ms = size / 2**20 / mib_s * 1e3
        if system == "bob" and size > 4 * 2**20:
            body_ms *= 1.4
        tail = 0.6 if system.startswith("minio") else 0.08
        return (own_ms + body_ms) * rng.lognormal(0, tail if writes else 0.05, n)

    return values


def write_sweep(
    directory: Path,
    parameters: Mapping[str, Sequence[Any]],
    *,
    systems: Sequence[tuple[str, str]] = (BOB, MINIO),
    values: Values | None = None,
    statuses: Mapping[str, str] | None = None,
    manifest: Mapping[str, Any] | None = None,
    study: Mapping[str, Any] | None = None,
    endpoints: Mapping[str, Sequence[str]] | None = None,
    placed: Mapping[str, Sequence[str]] | None = None,
    point_manifest: Mapping[str, Any] | None = None,
    write_point: WritePoint | None = None,
) -> None:
    """Write the bundle of a sweep over the grid of `parameters` on each of `systems`.

    `statuses` gives those of points, by name, that are not complete; such a point has no bundle.
    `manifest` overrides keys of the sweep's, `point_manifest` of each point's. `write_point` writes
    a point's bundle in place of the one of single requests.
    """
    values = values or plausible()
    whole = {"name": "object-sizes", "systems": [name for name, _ in systems], "key_mode": "fresh"}
    whole |= {"samples": 100, "warmup": 5, "object_size": "1KiB", "nodes": 1, **(study or {})}
    points = []
    for combination in product(*parameters.values()):
        at = dict(zip(parameters, combination, strict=True))
        for system, version in systems:
            name = "-".join([system, *(f"{k}-{v}" for k, v in at.items())])
            status = (statuses or {}).get(name, "complete")
            points.append(_entry(name, system, at, status))
            if status == "complete" and write_point is not None:
                write_point(directory / "points" / name, (system, version), at)
            elif status == "complete":
                its = (endpoints or OPERATIONS).get(system, S3)
                settings: dict[str, Any] = {"values": values, "endpoints": its, "placed": placed}
                settings |= {"study": whole, "manifest": point_manifest or {}}
                _write_point(directory / "points" / name, (system, version), at, **settings)
    order = np.random.default_rng(1).permutation(len(points))
    points = [{**points[i], "point": place} for place, i in enumerate(order)]
    document = {
        "parameters": [{"name": n, "values": list(v)} for n, v in parameters.items()],
        "points": points,
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "points.json").write_text(json.dumps(document))
    (directory / "manifest.json").write_text(
        json.dumps(
            {
                "schema_version": 2,
                "kind": "matrix",
                "wanlat": "0.1.0",
                "status": "complete",
                "reason": None,
                "seed": 7,
                "study": whole,
                "topologies": {"lan": {"name": "lan"}},
                "systems": [{"name": n, "version": v} for n, v in systems],
                **(manifest or {}),
            }
        )
    )


def _entry(name: str, system: str, at: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {
        "name": name,
        "system": system,
        "values": dict(at),
        "directory": f"points/{name}",
        "status": status,
        "reason": "the store died" if status == "failed" else None,
        "began": None,
        "ended": None,
        "attempts": 0 if status == "planned" else 1,
    }


def _write_point(
    directory: Path,
    series: tuple[str, str],
    at: Mapping[str, Any],
    *,
    values: Values,
    endpoints: Sequence[str],
    placed: Mapping[str, Sequence[str]] | None,
    study: Mapping[str, Any],
    manifest: Mapping[str, Any],
) -> None:
    directory.mkdir(parents=True)
    mine = {**study, **{k: v for k, v in at.items() if "." not in k}, "systems": [series[0]]}
    size = bytes_of(mine["object_size"]) or 0
    nodes = int(mine["nodes"] or 1)
    measured: dict[Any, Any] = {}
    for endpoint in endpoints:
        for placement in (placed or {}).get(series[0], ("",)):
            key = (series[0], endpoint, *([placement] if placement else []))
            measured[key] = [float(v) for v in values(series[0], at, endpoint, size)]
    write_bundle(
        directory,
        systems=[series],
        endpoints=list(endpoints),
        placed=placed,
        values_ms=measured,
        topology="lan",
        sites=1,
        nodes_a_site=nodes,
        rtt_ms=None,
        manifest={"study": mine, **manifest},
    )
    samples = pd.read_parquet(directory / "samples.parquet")
    samples["object_bytes"] = size
    samples.to_parquet(directory / "samples.parquet")
