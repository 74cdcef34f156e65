"""Synthetic bundles: what a run leaves, made up from a seed in no time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

GARAGE = ("garage", "2.5.0")
MINIO = ("minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
MINIO_RELEASE = ("minio", "RELEASE.2026-02-12T20-18-48Z")
QUORUM = ("quorum", "0.1.0")
BOB = ("bob", "2.1.0-alpha.12")
ENDPOINTS = ("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject")
BOB_ENDPOINTS = ("Put", "Get", "Exist", "Delete", "Ping")
BOTH = ("local", "remote")
FOUR_SYSTEMS: dict[str, Any] = {
    "systems": [GARAGE, MINIO, BOB, QUORUM],
    "endpoints": {
        **dict.fromkeys(("garage", "minio"), ENDPOINTS),
        **dict.fromkeys(("bob", "quorum"), BOB_ENDPOINTS),
    },
    "placed": {"bob": BOTH, "quorum": BOTH},
}
"""Two stores that speak S3, and two that speak Bob's interface and tell where a key lies."""

# Plausible round trips, an endpoint of a system.
_ROUND_TRIPS = {
    "garage": {"ListBuckets": 0, "ListObjects": 2, "GetObject": 1, "PutObject": 1},
    "minio": {"ListBuckets": 1, "ListObjects": 2, "GetObject": 5, "PutObject": 11},
    "bob": {"Put": 1, "Delete": 1, "Get": 0, "Exist": 0, "Ping": 0},
    "quorum": {"Put": 1, "Delete": 1, "Get": 0, "Exist": 0, "Ping": 0},
}

MakeBundle = Callable[..., Path]
"""The fixture `make_bundle`: the settings of `write_bundle`, and a `name`."""


def write_bundle(
    directory: Path,
    *,
    systems: Sequence[tuple[str, str]] = (GARAGE, MINIO),
    endpoints: Sequence[str] | Mapping[str, Sequence[str]] = ENDPOINTS,
    placed: Mapping[str, Sequence[str]] | None = None,
    n: int = 100,
    topology: str = "five-sites",
    sites: int = 5,
    nodes_a_site: int = 1,
    failures: Mapping[tuple[str, str], tuple[int, int]] | None = None,
    values_ms: Mapping[Any, Sequence[float]] | None = None,
    as_lines: bool = False,
    rtt_ms: float | None = 100.0,
    jitter_ms: float = 20.0,
    bytes_each: int = 1024,
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Write a bundle of `n` measured samples an endpoint of each system into `directory`.

    `failures` gives (fail, unknown) for (system, endpoint); `values_ms` latencies to use instead
    of made-up ones, of (system, endpoint, placement) where there is one; `rtt_ms` None leaves
    calibration out; `manifest` overrides its keys. `endpoints` may differ by system. `placed` gives
    the placements of the keys of a system; without it there is no such column, as in bundles from
    before it was recorded.
    """
    rng = np.random.default_rng(20260101)
    names = {
        name: endpoints[name] if isinstance(endpoints, Mapping) else endpoints
        for name, _ in systems
    }
    rows: list[dict[str, Any]] = []
    for system, version in systems:
        made: list[dict[str, Any]] = []
        for endpoint, placement in _measured(names[system], system, placed):
            of: dict[str, Any] = {
                "system": system,
                "version": version,
                "topology": topology,
                "endpoint": endpoint,
            }
            of |= {"rtt_ms": rtt_ms, "object_bytes": bytes_each} | (
                {} if placed is None else {"placement": placement}
            )
            key = (system, endpoint, *([placement] if placement != "unknown" else []))
            latencies = (values_ms or {}).get(key)
            if latencies is None:
                latencies = _latencies(rng, key, n, rtt_ms or 0.0, jitter_ms if rtt_ms else 0.0)
            measured = [_row(of, number, ms) for number, ms in enumerate(latencies)]
            # Slow first requests, which must show up in no figure.
            made += [*measured, _row(of, 0, 99_999.0, "prepare"), _row(of, 1, 88_888.0, "warmup")]
        for endpoint in names[system]:
            _spoil(made, endpoint, *(failures or {}).get((system, endpoint), (0, 0)))
        order = rng.permutation(len(made))
        rows += [{**made[i], "seq": seq} for seq, i in enumerate(order)]
    nodes = {
        f"n{number + 1}": f"dc{number // nodes_a_site + 1}"
        for number in range(sites * nodes_a_site)
    }
    studied = list(dict.fromkeys(name for each in names.values() for name in each))
    document = _manifest(systems, studied, topology, nodes) | dict(manifest or {})
    (directory / "manifest.json").write_text(json.dumps(document))
    if rtt_ms is not None:
        pairs = _pairs(rng, [name for name, _ in systems], nodes, rtt_ms, jitter_ms)
        calibration = {"topology": topology, "backend": "wire", "pairs": list(pairs)}
        calibration |= {"tolerance": {"median_ms": 0.5, "p99_ms": 2.0}, "verdict": "pass"}
        (directory / "calibration.json").write_text(json.dumps(calibration))
    if as_lines:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / "samples.jsonl").write_text(lines)
    else:
        import pandas as pd

        pd.DataFrame.from_records(rows).to_parquet(directory / "samples.parquet")


def _measured(
    endpoints: Sequence[str], system: str, placed: Mapping[str, Sequence[str]] | None
) -> Iterator[tuple[str, str]]:
    """Each of `endpoints` with each placement of its keys, of which Ping has none."""
    for endpoint in endpoints:
        known = () if endpoint == "Ping" else (placed or {}).get(system, ())
        yield from ((endpoint, placement) for placement in known or ("unknown",))


def _latencies(
    rng: np.random.Generator, key: Sequence[str], n: int, rtt_ms: float, jitter_ms: float
) -> list[float]:
    system, endpoint, *placement = key
    trips = _ROUND_TRIPS.get(system, {}).get(endpoint, 12 if system == "minio" else 2)
    trips = max(trips, 1) if placement == ["remote"] else trips
    network = rng.uniform(rtt_ms - jitter_ms, rtt_ms + jitter_ms, (n, trips)).sum(axis=1)
    own = 1.0 + rng.lognormal(0.5, 0.6, n) + 60 * (rng.random(n) < 0.03)
    return [float(v) for v in network + own]


def _row(of: Mapping[str, Any], number: int, ms: float, phase: str = "measure") -> dict[str, Any]:
    return {
        **of,
        "client": "n1",
        "seq": 0,
        "start_ns": 1_000_000_000 + number * 2_000_000_000,
        "connect_ns": 0,
        "first_byte_ns": round(ms * 0.99e6),
        "total_ns": round(ms * 1e6),
        "outcome": "ok",
        "error": None,
        "phase": phase,
        "retransmits": 0,
        "status": 200,
        "new_connection": False,
    }


def _spoil(rows: list[dict[str, Any]], endpoint: str, fail: int, unknown: int) -> None:
    """Turn the first measured rows of `endpoint` into failures, with absurd durations."""
    measured = [r for r in rows if r["phase"] == "measure" and r["endpoint"] == endpoint]
    for row in measured[:fail]:
        row |= {"outcome": "fail", "error": "http 503 SlowDown", "status": 503, "total_ns": 1}
    for row in measured[fail : fail + unknown]:
        row |= {"outcome": "unknown", "error": "timeout", "status": None, "total_ns": None}


def _manifest(
    systems: Sequence[tuple[str, str]],
    endpoints: Sequence[str],
    topology: str,
    nodes: Mapping[str, str],
) -> dict[str, Any]:
    sites: dict[str, list[str]] = {}
    for node, site in nodes.items():
        sites.setdefault(site, []).append(node)
    return {
        "schema_version": 2,
        "wanlat": "0.1.0",
        "kind": "study",
        "study": {"name": "endpoint-latency", "endpoints": list(endpoints)},
        "topology": {
            "name": topology,
            "sites": [{"name": site, "nodes": mine} for site, mine in sites.items()],
        },
        "seed": 7,
        "backend": "wire",
        "storage": "memory",
        "client": {"node": "n1", "site": "dc1"},
        "target": {"node": "n1", "site": "dc1"},
        "systems": [{"name": name, "version": version} for name, version in systems],
    }


def _pairs(
    rng: np.random.Generator,
    systems: Sequence[str],
    nodes: Mapping[str, str],
    rtt_ms: float,
    jitter_ms: float,
) -> Iterator[dict[str, Any]]:
    for system in systems:
        for a, b in permutations(nodes, 2):
            inside = nodes[a] == nodes[b]
            requested, jitter = (0.5, 0.0) if inside else (rtt_ms, jitter_ms)
            middle = requested + 0.05 + rng.uniform(0, 0.05 if inside else 0.2)
            rtt = {"n": 100, "mean": middle, "stdev": jitter / 2.4, "p50": middle}
            rtt |= {"min": middle - jitter * 0.97, "p99": middle + jitter * 0.95}
            off = middle - requested
            yield {
                "from": a,
                "to": b,
                "system": system,
                "requested_rtt_ms": requested,
                "requested_jitter_ms": jitter,
                "rtt_ms": {**rtt, "max": middle + jitter * 0.98},
                "error_ms": {"p50": off, "p99": off + rng.uniform(0.1, 0.9)},
                "sent": 200,
                "lost": 0,
                "reordered": 0,
                "verdict": "pass",
            }
