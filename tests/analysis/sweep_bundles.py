"""Synthetic bundles of matrices: what a matrix leaves, made up from a seed in no time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from synthetic_bundles import BOB, MINIO, write_bundle

from wanlat.bundle.units import bytes_of

MINIO_NGINX = ("minio-nginx", "v0.0.0-20260212201848-7aac2a2c5b7c")
OPERATIONS = {"bob": ("Get", "Put")}
S3 = ("GetObject", "PutObject")

WritePoint = Callable[[Path, tuple[str, str], Mapping[str, Any]], None]
"""(directory, system and version, values of the point): writes its bundle."""
Values = Callable[[str, Mapping[str, Any], str, int], np.ndarray]
"""(system, values of the point, endpoint, bytes) -> latencies in ms of its requests."""


def plausible(n: int = 40) -> Values:
    """Latencies as of the documents: a time of its own, a rate, and for MinIO a tail."""

    def values(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
        rng = np.random.default_rng(zlib.crc32(f"{system}{sorted(at.items())}{endpoint}".encode()))
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
    """Write the bundle of a matrix over the grid of `parameters` on each of `systems`.

    `statuses` gives those of points, by name, that are not complete; such a point has no bundle.
    `manifest` overrides keys of the matrix', `point_manifest` of each point's. `write_point` writes
    a point's bundle in place of the one of single requests.
    """
    draw, points = values or plausible(), []
    whole = {"name": "object-sizes", "systems": [name for name, _ in systems], "key_mode": "fresh"}
    whole |= {"samples": 100, "warmup": 5, "object_size": "1KiB", "nodes": 1, **(study or {})}

    def write_latencies(path: Path, series: tuple[str, str], at: Mapping[str, Any]) -> None:
        system = series[0]
        mine = {**whole, **{k: v for k, v in at.items() if "." not in k}, "systems": [system]}
        size = bytes_of(mine["object_size"]) or 0
        its = (endpoints or OPERATIONS).get(system, S3)
        where = (placed or {}).get(system, ("",))
        measured = {
            (system, endpoint, *filter(None, [placement])): draw(
                system, at, endpoint, size
            ).tolist()
            for endpoint, placement in product(its, where)
        }
        settings: dict[str, Any] = {"endpoints": its, "placed": placed, "values_ms": measured}
        settings |= {"topology": "lan", "sites": 1, "nodes_a_site": int(mine["nodes"] or 1)}
        path.mkdir(parents=True)
        own = {"study": mine, **(point_manifest or {})}
        write_bundle(path, systems=[series], rtt_ms=None, bytes_each=size, manifest=own, **settings)

    for combination in product(*parameters.values()):
        at = dict(zip(parameters, combination, strict=True))
        for series in systems:
            name = "-".join([series[0], *(f"{key}-{value}" for key, value in at.items())])
            status = (statuses or {}).get(name, "complete")
            reason = "the store died" if status == "failed" else None
            of = {"name": name, "system": series[0], "values": at, "directory": f"points/{name}"}
            points.append(of | {"status": status, "reason": reason, "attempts": 1})
            if status == "complete":
                (write_point or write_latencies)(directory / "points" / name, series, at)
    order = np.random.default_rng(1).permutation(len(points))
    varied = [{"name": name, "values": list(each)} for name, each in parameters.items()]
    shuffled = [{**points[i], "point": place} for place, i in enumerate(order)]
    directory.mkdir(parents=True, exist_ok=True)
    document = {"parameters": varied, "points": shuffled}
    (directory / "points.json").write_text(json.dumps(document))
    about: dict[str, Any] = {"schema_version": 2, "kind": "matrix", "seed": 7, "study": whole}
    about |= {"systems": [{"name": name, "version": version} for name, version in systems]}
    about |= {"topologies": {"lan": {"name": "lan"}}, **(manifest or {})}
    (directory / "manifest.json").write_text(json.dumps(about))
