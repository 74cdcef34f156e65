"""Synthetic bundles of a study of round trips: what it leaves, made up from a seed in no time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from synthetic_bundles import QUORUM

from wanlat.bundle.documents import RttStep, RttStepPair, RttSteps

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


def bent(rtt_ms: float, does: Does, rng: np.random.Generator) -> float:
    """No line: it grows faster than the distance."""
    return straight(rtt_ms, does, rng) + rtt_ms**2 / 150


def write_round_trips_bundle(
    directory: Path,
    *,
    does: Mapping[Key, Sequence[Does]] = PLAIN,
    versions: Mapping[str, str] | None = None,
    rtts_ms: Sequence[float] = RTTS_MS,
    repeats: int = 3,
    samples: int = 15,
    jitter_ms: float = 0.0,
    latency: Latency = straight,
    sites: Mapping[str, Sequence[str]] = SITES,
    far_ms: Mapping[str, float] | None = None,
    failed_steps: Sequence[int] = (),
    forgotten_steps: Sequence[int] = (),
    failures: Mapping[Key, int] | None = None,
    least: Mapping[Key, tuple[float | None, str]] | None = None,
    links: Mapping[str, Any] | None = None,
    manifest: Mapping[str, Any] | None = None,
    topology: str = "five-sites",
    seed: int = 20260202,
) -> Path:
    """Write a bundle into `directory` and return it: each RTT is taken `repeats` times.

    `far_ms` adds to the RTT of every pair with that site; `failed_steps` fail their calibration
    and `forgotten_steps` are not in rtt_steps.json, as of a run that was killed in one.
    """
    rng = np.random.default_rng(seed)
    versions = {"quorum": QUORUM[1], **(versions or {})}
    rows: list[dict[str, Any]] = []
    steps: list[RttStep] = []
    for system in dict.fromkeys(system for system, _, _ in does):
        order_ms = rng.permutation(np.repeat(np.array(rtts_ms), repeats)).tolist()
        for number, requested_ms in enumerate(order_ms):
            measured_ms = requested_ms + 0.08 + rng.uniform(0, 0.04)
            begun_ns = (1 + number) * 1_000_000_000_000
            made = list(
                _samples(rng, does, system, versions[system], measured_ms, samples, latency)
            )
            for turn, place in enumerate(rng.permutation(len(made))):
                rows.append(
                    made[place]
                    | {
                        "rtt_step": number,
                        "rtt_ms": requested_ms,
                        "seq": turn,
                        "topology": topology,
                    }
                    | {"start_ns": begun_ns + 1_000_000_000 * turn}
                )
            step = RttStep(
                system=system,
                rtt_step=number,
                requested_rtt_ms=requested_ms,
                requested_jitter_ms=jitter_ms,
                idle_ns=(begun_ns - 3_000_000_000, begun_ns - 2_000_000_000),
                begun_ns=begun_ns,
                ended_ns=begun_ns + 900_000_000_000,
                pairs=_pairs(sites, measured_ms, far_ms or {}, failed=number in failed_steps),
                measured_rtt_ms=measured_ms,
                verdict="fail" if number in failed_steps else "pass",
            )
            steps += [] if number in forgotten_steps else [step]
    for key, n in (failures or {}).items():
        mine = [r for r in rows if (r["system"], r["endpoint"], r["placement"]) == key]
        for row in [row for row in mine if row["phase"] == "measure"][:n]:
            row |= {"outcome": "fail", "error": "http 503 SlowDown", "status": 503, "total_ns": 1}
    pd.DataFrame.from_records(rows).to_parquet(directory / "samples.parquet")
    (directory / RttSteps.FILE).write_text(RttSteps(rtt_steps=steps).model_dump_json())
    document = {
        "schema_version": 2,
        "wanlat": "0.1.0",
        "kind": "study",
        "status": "complete",
        "study": {
            "name": "round-trips",
            "endpoints": list(dict.fromkeys(endpoint for _, endpoint, _ in does)),
            "samples": samples,
            "round_trips": {"rtts": [f"{ms:g}ms" for ms in rtts_ms], "repeats": repeats},
        },
        "topology": {
            "name": topology,
            "description": "made up for a test",
            "sites": [{"name": site, "nodes": list(nodes)} for site, nodes in sites.items()],
            "links": {"default": {"rtt": "100ms", **(links or {})}, "pairs": []},
        },
        "seed": 7,
        "backend": "wire",
        "storage": "memory",
        "client": {"node": "n1", "site": "dc1"},
        "target": {"node": "n1", "site": "dc1"},
        "systems": [
            {
                "name": name,
                "version": versions[name],
                "least_round_trips": [
                    {"endpoint": endpoint, "placement": placement, "round_trips": trips, "why": why}
                    for (of, endpoint, placement), (trips, why) in (least or {}).items()
                    if of == name
                ],
            }
            for name in dict.fromkeys(system for system, _, _ in does)
        ],
        **(manifest or {}),
    }
    (directory / "manifest.json").write_text(json.dumps(document))
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
) -> Iterator[dict[str, Any]]:
    for (name, endpoint, placement), parts in does.items():
        if name != system:
            continue
        shares = np.array([part.share for part in parts])
        for turn in range(-2, samples):
            part = parts[int(rng.choice(len(parts), p=shares / shares.sum()))]
            # Warm-up is slow and must show up in no figure.
            taken_ms = 9_999.0 if turn < 0 else latency(measured_ms, part, rng)
            yield {
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


def _pairs(
    sites: Mapping[str, Sequence[str]],
    measured_ms: float,
    far_ms: Mapping[str, float],
    *,
    failed: bool,
) -> list[RttStepPair]:
    site_of = {node: site for site, nodes in sites.items() for node in nodes}
    pairs = []
    for one, other in permutations(site_of, 2):
        farther_ms = sum(far_ms.get(site_of[node], 0.0) for node in (one, other))
        rtt_ms = 0.55 if site_of[one] == site_of[other] else measured_ms + farther_ms
        bad: dict[str, Any] = {"verdict": "fail", "reasons": ["median 0.9 ms off, 0.5 are allowed"]}
        pairs.append(
            RttStepPair(
                source=one,
                destination=other,
                requested_rtt_ms=rtt_ms,
                measured_rtt_ms=rtt_ms,
                **(bad if failed and not pairs else {}),
            )
        )
    return pairs
