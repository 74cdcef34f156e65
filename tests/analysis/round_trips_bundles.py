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

from wanlat.bundle.documents import RttStep, RttStepPair, RttSteps

RTTS_MS = (0.0, 25.0, 50.0, 100.0, 200.0)
SITES = {f"dc{number}": [f"n{number}"] for number in range(1, 6)}
_STEP_NS, _SECOND_NS = 1_000_000_000_000, 1_000_000_000

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
    systems = list(dict.fromkeys(system for system, _, _ in does))
    rows: list[dict[str, Any]] = []
    steps: list[RttStep] = []
    for system in systems:
        order_ms = rng.permutation(np.repeat(np.array(rtts_ms), repeats)).tolist()
        for number, requested_ms in enumerate(order_ms):
            measured_ms = requested_ms + 0.08 + rng.uniform(0, 0.04)
            begun_ns, failed = (1 + number) * _STEP_NS, number in failed_steps
            mine = {key: parts for key, parts in does.items() if key[0] == system}
            made = _samples(rng, mine, measured_ms, samples, latency)
            of = {"rtt_step": number, "rtt_ms": requested_ms, "version": versions[system]}
            for turn, place in enumerate(rng.permutation(len(made))):
                rows.append(made[place] | of | {"seq": turn, "topology": topology})
                rows[-1]["start_ns"] = begun_ns + _SECOND_NS * turn
            step = RttStep(
                system=system,
                rtt_step=number,
                requested_rtt_ms=requested_ms,
                requested_jitter_ms=jitter_ms,
                idle_ns=(begun_ns - 3 * _SECOND_NS, begun_ns - 2 * _SECOND_NS),
                begun_ns=begun_ns,
                ended_ns=begun_ns + 900 * _SECOND_NS,
                pairs=_pairs(sites, measured_ms, far_ms or {}, failed=failed),
                measured_rtt_ms=measured_ms,
                verdict="fail" if failed else "pass",
            )
            steps += [] if number in forgotten_steps else [step]
    frame = pd.DataFrame.from_records(rows)
    for key, n in (failures or {}).items():
        of_key = (frame[["system", "endpoint", "placement"]] == list(key)).all(axis=1)
        lost = frame.index[of_key & (frame["phase"] == "measure")][:n]
        frame.loc[lost, ["outcome", "error", "status", "total_ns"]] = ["fail", "http 503", 503, 1]
    frame.to_parquet(directory / "samples.parquet")
    (directory / RttSteps.FILE).write_text(RttSteps(rtt_steps=steps).model_dump_json())
    known: dict[str, list[dict[str, Any]]] = {system: [] for system in systems}
    for (system, endpoint, placement), (trips, why) in (least or {}).items():
        entry = {"endpoint": endpoint, "placement": placement, "round_trips": trips, "why": why}
        known[system].append(entry)
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
            {"name": name, "version": versions[name], "least_round_trips": known[name]}
            for name in systems
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
    measured_ms: float,
    samples: int,
    latency: Latency,
) -> list[dict[str, Any]]:
    made = []
    for (system, endpoint, placement), parts in does.items():
        shares = np.array([part.share for part in parts])
        for turn in range(-2, samples):
            part = parts[int(rng.choice(len(parts), p=shares / shares.sum()))]
            # Warm-up is slow and must show up in no figure.
            taken_ms = 9_999.0 if turn < 0 else latency(measured_ms, part, rng)
            whose = {"system": system, "client": "n1", "target": "n1"}
            times = {"connect_ns": 0, "first_byte_ns": round(taken_ms * 0.99e6)}
            times["total_ns"] = round(taken_ms * 1e6)
            came = {"outcome": "ok", "error": None, "status": 200, "retransmits": 0}
            asked = {"endpoint": endpoint, "placement": placement, "object_bytes": 1024}
            phase = {"phase": "warmup" if turn < 0 else "measure", "new_connection": False}
            made.append(whose | asked | times | came | phase)
    return made


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
        bad = bad if failed and not pairs else {}
        of = {"source": one, "destination": other, "requested_rtt_ms": rtt_ms}
        pairs.append(RttStepPair(**of, measured_rtt_ms=rtt_ms, **bad))
    return pairs
