"""Synthetic bundles of a study of round trips: what it leaves, made up from a seed in no time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from synthetic_bundles import QUORUM

RTTS_MS = (0.0, 25.0, 50.0, 100.0, 200.0)
SITES = {f"dc{number}": [f"n{number}"] for number in range(1, 6)}

Key = tuple[str, str, str]
"""System, endpoint, placement."""


@dataclass(frozen=True)
class Does:
    """What a share of the requests does: so many round trips, and `own_ms` besides."""

    share: float
    round_trips: float
    own_ms: float = 3.0


TWO_LINES = (Does(0.7, 3), Does(0.3, 1))
PLAIN: Mapping[Key, Sequence[Does]] = {
    ("quorum", "PutObject", "unknown"): [Does(1, 2)],
    ("quorum", "GetObject", "local"): [Does(1, 0)],
    ("quorum", "GetObject", "remote"): TWO_LINES,
}

Latency = Callable[[float, Does, np.random.Generator], float]


def straight(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
    """A line, a little noise that only ever adds, and a stall now and then."""
    stall_ms = 40.0 if rng.random() < 0.01 else 0.0
    return does.own_ms + does.round_trips * rtt_ms + rng.exponential(0.4) + stall_ms


def write_round_trips_bundle(
    directory: Path,
    *,
    does: Mapping[Key, Sequence[Does]] = PLAIN,
    versions: Mapping[str, str] | None = None,
    rtts_ms: Sequence[float] = RTTS_MS,
    visits: int = 3,
    samples: int = 15,
    jitter_ms: float = 0.0,
    latency: Latency = straight,
    sites: Mapping[str, Sequence[str]] = SITES,
    far_ms: Mapping[str, float] | None = None,
    failed_visits: Sequence[int] = (),
    forgotten_visits: Sequence[int] = (),
    failures: Mapping[Key, int] | None = None,
    least: Mapping[Key, tuple[float | None, str]] | None = None,
    links: Mapping[str, Any] | None = None,
    manifest: Mapping[str, Any] | None = None,
    topology: str = "five-sites",
    seed: int = 20260202,
) -> Path:
    """Write a bundle into `directory` and return it.

    `far_ms` adds to the RTT of every pair with that site; `failed_visits` fail their calibration
    and `forgotten_visits` are not in rtt_steps.json, as of a run that was killed in one.
    """
    rng = np.random.default_rng(seed)
    versions = {"quorum": QUORUM[1], **(versions or {})}
    systems = list(dict.fromkeys(system for system, _, _ in does))
    rows: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    for system in systems:
        asked = rng.permutation(np.repeat(np.array(rtts_ms), visits))
        for number, requested_ms in enumerate(float(rtt_ms) for rtt_ms in asked):
            measured_ms = requested_ms + 0.08 + rng.uniform(0, 0.04)
            begun_ns = (1 + number) * 1_000_000_000_000
            made = _samples(rng, does, system, versions[system], measured_ms, samples, latency)
            order = rng.permutation(len(made))
            rows += [
                made[place]
                | {
                    "rtt_step": number,
                    "rtt_ms": requested_ms,
                    "start_ns": begun_ns + 1_000_000_000 * turn,
                    "seq": turn,
                    "topology": topology,
                }
                for turn, place in enumerate(order)
            ]
            if number not in forgotten_visits:
                entries.append(
                    _visit(
                        system,
                        number,
                        (requested_ms, jitter_ms, measured_ms),
                        begun_ns,
                        _pairs(sites, measured_ms, far_ms or {}),
                        passed=number not in failed_visits,
                    )
                )
    for key, n in (failures or {}).items():
        spoilt = [row for row in rows if _key(row) == key and row["phase"] == "measure"][:n]
        for row in spoilt:
            row |= {"outcome": "fail", "error": "http 503 SlowDown", "status": 503, "total_ns": 1}
    pd.DataFrame.from_records(rows).to_parquet(directory / "samples.parquet")
    (directory / "rtt_steps.json").write_text(json.dumps({"rtt_steps": entries}))
    document = _manifest(does, versions, rtts_ms, visits, samples, jitter_ms, sites, topology)
    for system in document["systems"]:
        system["least_round_trips"] = [
            {"endpoint": endpoint, "placement": placement, "round_trips": trips, "why": why}
            for (name, endpoint, placement), (trips, why) in (least or {}).items()
            if name == system["name"]
        ]
    if links:
        document["topology"]["links"]["default"] |= links
    (directory / "manifest.json").write_text(json.dumps(document | dict(manifest or {})))
    (directory / "calibration.json").write_text(
        json.dumps({"topology": topology, "backend": "wire", "pairs": [], "verdict": "pass"})
    )
    return directory


def _samples(
    rng: np.random.Generator,
    does: Mapping[Key, Sequence[Does]],
    system: str,
    version: str,
    measured_ms: float,
    samples: int,
    latency: Latency,
) -> list[dict[str, Any]]:
    rows = []
    for (name, endpoint, placement), parts in does.items():
        if name != system:
            continue
        shares = np.array([part.share for part in parts])
        for turn in range(-2, samples):
            part = parts[int(rng.choice(len(parts), p=shares / shares.sum()))]
            # Warm-up is slow and must show up in no figure.
            taken_ms = 9_999.0 if turn < 0 else latency(measured_ms, part, rng)
            rows.append(
                {
                    "system": system,
                    "version": version,
                    "client": "n1",
                    "endpoint": endpoint,
                    "placement": placement,
                    "connect_ns": 0,
                    "first_byte_ns": round(taken_ms * 0.99e6),
                    "total_ns": round(taken_ms * 1e6),
                    "outcome": "ok",
                    "error": None,
                    "object_bytes": 1024,
                    "phase": "warmup" if turn < 0 else "measure",
                    "retransmits": 0,
                    "status": 200,
                    "new_connection": False,
                    "target": "n1",
                }
            )
    return rows


def _key(row: Mapping[str, Any]) -> Key:
    return row["system"], row["endpoint"], row["placement"]


def _pairs(
    sites: Mapping[str, Sequence[str]], measured_ms: float, far_ms: Mapping[str, float]
) -> list[dict[str, Any]]:
    site_of = {node: site for site, nodes in sites.items() for node in nodes}
    pairs = []
    for one, other in permutations(site_of, 2):
        inside = site_of[one] == site_of[other]
        farther_ms = sum(far_ms.get(site_of[node], 0.0) for node in (one, other))
        rtt_ms = 0.55 if inside else measured_ms + farther_ms
        pairs.append(
            {
                "from": one,
                "to": other,
                "requested_rtt_ms": rtt_ms,
                "measured_rtt_ms": rtt_ms,
                "p99_ms": rtt_ms + 0.2,
                "min_ms": rtt_ms - 0.02,
                "max_ms": rtt_ms + 0.3,
                "sent": 20,
                "lost": 0,
                "verdict": "pass",
                "reasons": [],
            }
        )
    return pairs


def _visit(
    system: str,
    number: int,
    rtts_ms: tuple[float, float, float],
    begun_ns: int,
    pairs: list[dict[str, Any]],
    *,
    passed: bool,
) -> dict[str, Any]:
    requested_ms, jitter_ms, measured_ms = rtts_ms
    if not passed:
        pairs[0] |= {"verdict": "fail", "reasons": ["median 0.9 ms off, 0.5 ms are allowed"]}
    return {
        "system": system,
        "rtt_step": number,
        "requested_rtt_ms": requested_ms,
        "requested_jitter_ms": jitter_ms,
        "changed_ns": begun_ns - 4_000_000_000,
        "idle_ns": [begun_ns - 3_000_000_000, begun_ns - 2_000_000_000],
        "calibrated_ns": [begun_ns - 2_000_000_000, begun_ns - 1_000_000_000],
        "begun_ns": begun_ns,
        "ended_ns": begun_ns + 900_000_000_000,
        "pairs": pairs,
        "measured_rtt_ms": measured_ms,
        "verdict": "pass" if passed else "fail",
    }


def _manifest(
    does: Mapping[Key, Sequence[Does]],
    versions: Mapping[str, str],
    rtts_ms: Sequence[float],
    visits: int,
    samples: int,
    jitter_ms: float,
    sites: Mapping[str, Sequence[str]],
    topology: str,
) -> dict[str, Any]:
    systems = dict.fromkeys(system for system, _, _ in does)
    return {
        "schema_version": 2,
        "wanlat": "0.1.0",
        "kind": "study",
        "status": "complete",
        "reason": None,
        "study": {
            "name": "round-trips",
            "endpoints": list(dict.fromkeys(endpoint for _, endpoint, _ in does)),
            "samples": samples,
            "round_trips": {
                "rtts": [f"{rtt_ms:g}ms" for rtt_ms in rtts_ms],
                "visits": visits,
                "settle": "2s",
                "jitter": f"{jitter_ms:g}ms",
            },
        },
        "topology": {
            "name": topology,
            "description": "made up for a test",
            "sites": [{"name": site, "nodes": list(nodes)} for site, nodes in sites.items()],
            "links": {"default": {"rtt": "100ms", "jitter": "20ms"}, "pairs": []},
        },
        "seed": 7,
        "backend": "wire",
        "storage": "memory",
        "client": {"node": "n1", "site": "dc1"},
        "target": {"node": "n1", "site": "dc1"},
        "systems": [
            {"name": name, "version": versions[name], "sha256": "0" * 64, "options": {}}
            for name in systems
        ],
    }
