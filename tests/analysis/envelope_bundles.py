"""Bundles of studies of the operating envelope, without clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synthetic_bundles import MINIO, write_bundle

NEAR = {"rtt_ms": 5.0, "jitter_ms": 0.0, "loss": 0.0}
PROMISE = {"deadline": "1s", "rate": 20.0, "share": "99%", "cut": "1s", "recovery": "3s"}
STUDY: dict[str, Any] = {"name": "envelope", "envelope": {"promise": PROMISE}}
REGIONS = {("london", "new-york"): 75.0, ("frankfurt", "sydney"): 290.0, ("here", "there"): 302.0}


def write_envelope(
    directory: Path,
    *,
    limit_ms: float = 300.0,
    limit: Mapping[str, Any] | None = None,
    test: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    price: Mapping[str, Any] | None = None,
    timeouts: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the bundle of one cluster that holds up to 2 % more and less than ``limit_ms``.

    Up to half of it where 1 % is lost. ``limit`` and ``test`` override keys of the first of each.
    ``price`` is that of its ``timeouts``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    study = {**STUDY, "options": options or {}}
    its = dict(zip(("name", "version"), MINIO, strict=True)) | {"timeouts": list(timeouts)}
    write_bundle(directory, systems=(MINIO,), n=1, manifest={"study": study, "systems": [its]})
    lossy = {**NEAR, "loss": 0.01}
    (directory / "envelope.json").write_text(
        json.dumps(
            {
                "systems": [
                    {
                        "system": "minio",
                        "tests": [
                            _test(0, limit_ms, "holds") | dict(test or {}),
                            _test(1, 1.02 * limit_ms, "fails"),
                            _test(2, limit_ms / 2, "holds", lossy),
                        ],
                        "limits": [
                            _limit("rtt", NEAR, limit_ms) | dict(limit or {}),
                            _limit("loss", NEAR, 0.1),
                            _limit("rtt", lossy, limit_ms / 2),
                        ],
                        "price": price,
                        "regions": [
                            {"sites": sites, "rtt_ms": ms} for sites, ms in REGIONS.items()
                        ],
                    }
                ]
            }
        )
    )


def _test(
    number: int, rtt_ms: float, verdict: str, network: Mapping[str, Any] = NEAR
) -> dict[str, Any]:
    broken = None if verdict == "holds" else "n1 led, then n2"
    trial = {"span_ns": [1, 2], "held": verdict == "holds", "broken": broken}
    told = {"number": number, "network": {**network, "rtt_ms": rtt_ms}, "trials": [trial] * 4}
    return {**told, "verdict": verdict, "written": 40}


def _limit(axis: str, network: Mapping[str, Any], middle: float) -> dict[str, Any]:
    ends = {"inside": middle / 1.02, "outside": middle * 1.02}
    return {"axis": axis, "at": network, **ends, "back": ends["inside"], "is_approached": True}
