"""Bundles of an advice: clusters whose limit and price depend on a timeout, without clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envelope_bundles import STUDY, write_envelope
from sweep_bundles import write_sweep
from synthetic_bundles import MINIO

ELECTION, HEARTBEAT = "options.minio.election", "options.minio.heartbeat"


def timeouts(election_ms: float) -> list[dict[str, Any]]:
    """As a manifest has them: an election of 1 s, ten round trips, and what follows it."""
    election = {"name": "election", "role": "election", "option": "election", "ms": election_ms}
    beat = {"name": "heartbeat", "role": "heartbeat", "option": "heartbeat", "ms": election_ms / 10}
    return [
        election | {"default_ms": 1000.0, "rtts": 10.0},
        beat | {"default_ms": 100.0, "follows": "election"},
    ]


def price(answered_s: Sequence[float | None], lost: int = 0) -> dict[str, Any]:
    """Of kills after which it took so long to a write, and a bit less to a leader."""
    kills = [
        {
            "killed": "n1",
            "killed_ns": 1,
            "waited_s": 15.0,
            "led": s and "n2",
            "led_s": s and s - 0.1,
            "answered_s": s,
        }
        for s in answered_s
    ]
    return {"kills": kills, "idle_s": 2.0, "idle_bytes": 40_000, "idle_packets": 400, "lost": lost}


def write_advice(
    directory: Path,
    elections_ms: Sequence[float] = (500.0, 1000.0, 5000.0),
    *,
    limits_ms: Mapping[float, float] = {500.0: 30.0, 1000.0: 300.0, 5000.0: 1900.0},
    replicates: int = 1,
    of_point: Mapping[float, Mapping[str, Any]] = {},
) -> None:
    """Write a matrix over an election timeout; ``of_point``: settings of `write_envelope`.

    After a kill it takes 1.2 times the timeout, and replicate n holds n - 1 percent more.
    """

    def point(path: Path, _series: tuple[str, str], at: Mapping[str, Any]) -> None:
        ms = float(at[ELECTION].removesuffix("ms"))
        took_s = 1.2 * ms / 1000
        settings: dict[str, Any] = {
            "limit_ms": limits_ms[ms] * (1 + (at.get("replicate", 1) - 1) / 100),
            "price": price([took_s * (0.8 + 0.08 * n) for n in range(6)]),
            "timeouts": timeouts(ms),
            **of_point.get(ms, {}),
        }
        write_envelope(path, **settings)

    parameters: dict[str, list[Any]] = {ELECTION: [f"{ms:g}ms" for ms in elections_ms]}
    if replicates > 1:
        parameters["replicate"] = [*range(1, replicates + 1)]
    study = {**STUDY, "replicates": replicates}
    write_sweep(directory, parameters, systems=(MINIO,), study=study, write_point=point)
