"""Synthetic bundles: what a run leaves, made up from a seed in no time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

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

# Plausible round trips of 100 ms and the store's own time, an endpoint of a system.
_ROUND_TRIPS = {
    "garage": {"ListBuckets": 0, "ListObjects": 2, "GetObject": 1, "PutObject": 1},
    "minio": {"ListBuckets": 1, "ListObjects": 2, "GetObject": 5, "PutObject": 11},
    "bob": {"Put": 1, "Delete": 1, "Get": 0, "Exist": 0, "Ping": 0},
    "quorum": {"Put": 1, "Delete": 1, "Get": 0, "Exist": 0, "Ping": 0},
}


class MakeBundle(Protocol):
    """The signature of the `make_bundle` fixture."""

    def __call__(
        self,
        *,
        systems: Sequence[tuple[str, str]] = ...,
        endpoints: Sequence[str] | Mapping[str, Sequence[str]] = ...,
        placed: Mapping[str, Sequence[str]] | None = ...,
        n: int = ...,
        topology: str = ...,
        sites: int = ...,
        nodes_a_site: int = ...,
        failures: Mapping[tuple[str, str], tuple[int, int]] | None = ...,
        values_ms: Mapping[Any, Sequence[float]] | None = ...,
        as_lines: bool = ...,
        rtt_ms: float | None = ...,
        jitter_ms: float = ...,
        manifest: Mapping[str, Any] | None = ...,
        name: str = ...,
    ) -> Path: ...


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
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Write a bundle of `n` measured samples an endpoint of each system into `directory`.

    `failures` gives (fail, unknown) for (system, endpoint); `values_ms` latencies to use instead
    of made-up ones, of (system, endpoint, placement) where there is one; `rtt_ms` None leaves
    calibration out; `manifest` overrides its keys.

    `endpoints` may differ by system. `placed` gives the placements of the keys of a system;
    without it there is no such column, as in bundles from before it was recorded.
    """
    rng = np.random.default_rng(20260101)
    of_system = {
        system: tuple(endpoints[system] if isinstance(endpoints, Mapping) else endpoints)
        for system, _ in systems
    }
    rows: list[dict[str, Any]] = []
    for system, version in systems:
        made = []
        for endpoint, placement in _measured(of_system[system], system, placed):
            known = () if placement in (None, "unknown") else (placement,)
            latencies = (values_ms or {}).get((system, endpoint, *known))
            if latencies is None:
                network_ms = (rtt_ms or 0.0, jitter_ms if rtt_ms else 0)
                latencies = _latencies(rng, system, endpoint, placement, n, *network_ms)
            rows_of_one = _rows(system, version, topology, endpoint, latencies, rtt_ms)
            rows_of_one += _warm_up(system, version, topology, endpoint)
            column = {} if placement is None else {"placement": placement}
            made += [row | column for row in rows_of_one]
        for endpoint in of_system[system]:
            fail, unknown = (failures or {}).get((system, endpoint), (0, 0))
            _spoil(made, endpoint, fail, unknown)
        order = rng.permutation(len(made))
        rows += [{**made[i], "seq": seq} for seq, i in enumerate(order)]
    studied = list(dict.fromkeys(name for names in of_system.values() for name in names))
    (directory / "manifest.json").write_text(
        json.dumps(
            {**_manifest(systems, studied, topology, sites, nodes_a_site), **(manifest or {})}
        )
    )
    if rtt_ms is not None:
        (directory / "calibration.json").write_text(
            json.dumps(
                _calibration(rng, systems, topology, _sites(sites, nodes_a_site), rtt_ms, jitter_ms)
            )
        )
    if as_lines:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / "samples.jsonl").write_text(lines)
    else:
        pd.DataFrame.from_records(rows).to_parquet(directory / "samples.parquet")


def _measured(
    endpoints: Sequence[str], system: str, placed: Mapping[str, Sequence[str]] | None
) -> list[tuple[str, str | None]]:
    """Each of `endpoints` with each placement of its keys: Ping has none, nor what is no column."""
    if placed is None:
        return [(endpoint, None) for endpoint in endpoints]
    return [
        (endpoint, placement)
        for endpoint in endpoints
        for placement in (("unknown",) if endpoint == "Ping" else placed.get(system, ("unknown",)))
    ]


def _latencies(
    rng: np.random.Generator,
    system: str,
    endpoint: str,
    placement: str | None,
    n: int,
    rtt_ms: float,
    jitter_ms: float,
) -> list[float]:
    trips = _ROUND_TRIPS.get(system, {}).get(endpoint, 12 if system == "minio" else 2)
    trips = max(trips, 1) if placement == "remote" else trips
    network = rng.uniform(rtt_ms - jitter_ms, rtt_ms + jitter_ms, (n, trips)).sum(axis=1)
    own = 1.0 + rng.lognormal(0.5, 0.6, n) + 60 * (rng.random(n) < 0.03)
    return [float(v) for v in network + own]


def _rows(
    system: str,
    version: str,
    topology: str,
    endpoint: str,
    latencies_ms: Sequence[float],
    rtt_ms: float | None,
) -> list[dict[str, Any]]:
    return [
        {
            "system": system,
            "version": version,
            "topology": topology,
            "client": "n1",
            "endpoint": endpoint,
            "seq": 0,
            "start_ns": 1_000_000_000 + number * 2_000_000_000,
            "connect_ns": 0,
            "first_byte_ns": round(latency_ms * 0.99e6),
            "total_ns": round(latency_ms * 1e6),
            "outcome": "ok",
            "error": None,
            "object_bytes": 1024,
            "rtt_ms": rtt_ms,
            "phase": "measure",
            "retransmits": 0,
            "status": 200,
            "new_connection": False,
        }
        for number, latency_ms in enumerate(latencies_ms)
    ]


def _warm_up(system: str, version: str, topology: str, endpoint: str) -> list[dict[str, Any]]:
    """Slow first requests, which must show up in no figure."""
    rows = _rows(system, version, topology, endpoint, [99_999.0, 88_888.0], 100.0)
    return [{**row, "phase": phase} for row, phase in zip(rows, ("prepare", "warmup"), strict=True)]


def _spoil(rows: list[dict[str, Any]], endpoint: str, fail: int, unknown: int) -> None:
    """Turn the first measured rows of `endpoint` into failures, with absurd durations."""
    measured = [r for r in rows if r["phase"] == "measure" and r["endpoint"] == endpoint]
    for row in measured[:fail]:
        row |= {"outcome": "fail", "error": "http 503 SlowDown", "status": 503, "total_ns": 1}
    for row in measured[fail : fail + unknown]:
        row |= {"outcome": "unknown", "error": "timeout", "status": None, "total_ns": None}


def _sites(sites: int, nodes: int) -> dict[str, list[str]]:
    """Nodes of each site: n1, n2, … through all sites."""
    return {
        f"dc{s + 1}": [f"n{s * nodes + number + 1}" for number in range(nodes)]
        for s in range(sites)
    }


def _manifest(
    systems: Sequence[tuple[str, str]],
    endpoints: Sequence[str],
    topology: str,
    sites: int,
    nodes: int,
) -> dict[str, Any]:
    return {
        "schema_version": 2,
        "wanlat": "0.1.0",
        "kind": "study",
        "status": "complete",
        "reason": None,
        "study": {"name": "endpoint-latency", "endpoints": list(endpoints)},
        "topology": {
            "name": topology,
            "description": "made up for a test",
            "sites": [{"name": s, "nodes": list(n)} for s, n in _sites(sites, nodes).items()],
        },
        "seed": 7,
        "backend": "wire",
        "storage": "memory",
        "client": {"node": "n1", "site": "dc1"},
        "target": {"node": "n1", "site": "dc1"},
        "systems": [
            {"name": name, "version": version, "sha256": "0" * 64, "options": {}}
            for name, version in systems
        ],
    }


def _calibration(
    rng: np.random.Generator,
    systems: Sequence[tuple[str, str]],
    topology: str,
    sites: Mapping[str, Sequence[str]],
    rtt_ms: float,
    jitter_ms: float,
) -> dict[str, Any]:
    site_of = {node: site for site, nodes in sites.items() for node in nodes}
    pairs = []
    for system, _ in systems:
        for a, b in permutations(site_of, 2):
            inside = site_of[a] == site_of[b]
            requested, jitter = (0.5, 0.0) if inside else (rtt_ms, jitter_ms)
            middle = requested + 0.05 + rng.uniform(0, 0.05 if inside else 0.2)
            pairs.append(
                {
                    "from": a,
                    "to": b,
                    "system": system,
                    "requested_rtt_ms": requested,
                    "requested_jitter_ms": jitter,
                    "rtt_ms": {
                        "n": 100,
                        "mean": middle,
                        "stdev": jitter / 2.4,
                        "min": middle - jitter * 0.97,
                        "p50": middle,
                        "p99": middle + jitter * 0.95,
                        "max": middle + jitter * 0.98,
                    },
                    "error_ms": {
                        "p50": middle - requested,
                        "p99": middle - requested + rng.uniform(0.1, 0.9),
                    },
                    "lost": 0,
                    "sent": 200,
                    "reordered": 0,
                    "verdict": "pass",
                    "reasons": [],
                    "rounds": 1,
                }
            )
    return {
        "topology": topology,
        "backend": "wire",
        "tolerance": {
            "median_ms": 0.5,
            "near_median_ms": 0.15,
            "near_ms": 2.0,
            "p99_ms": 2.0,
            "edge_ms": 2.0,
        },
        "pairs": pairs,
        "overflows": 0,
        "verdict": "pass",
    }
