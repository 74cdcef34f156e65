"""Bundles of placements that were confirmed, without clusters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sweep_bundles import write_sweep

QUORUM = ("quorum", "0.1.0")
PREDICTED_MS = {"eu": 40.0, "us": 80.0}
"""Of a Put with that target; a Get is answered at once in the one, and 40 ms away."""


def write_placements(
    directory: Path,
    added_ms: Mapping[tuple[int, str, str], float] = {},
    *,
    replicates: int = 5,
    source: str = "promised",
) -> None:
    """Write two placements, of which the second takes twice as long.

    Every request takes 1 ms more than predicted, and what ``added_ms`` adds to those of a rank, a
    target node and an endpoint; clusters differ by up to 0.1 ms.
    """

    def values(_system: str, at: Mapping[str, Any], endpoint: str, _size: int) -> np.ndarray:
        rank = int(at["topology"][-1])
        more = added_ms.get((rank, at["client"], endpoint), 0.0)
        ms = predicted_ms(rank, at["client"], endpoint) + 1 + 0.05 * (at["replicate"] - 3) + more
        return np.array([*[ms] * 9, ms + 50])  # a mean is off by 5 ms

    axes = {
        "topology": ["placement-1", "placement-2"],
        "client": ["eu", "us"],
        "replicate": list(range(1, replicates + 1)),
    }
    write_sweep(directory, axes, systems=(QUORUM,), values=values, study={"name": "placement"})
    document = {
        "system": "quorum",
        "matrix": "three",
        "compared": 7,
        "rank_by": "mean",
        "mix": {"GetObject": 0.75, "PutObject": 0.25},
        "sources": {"GetObject": source, "PutObject": source},
        "placements": [_placement(rank) for rank in (1, 2)],
    }
    (directory / "placements.json").write_text(json.dumps(document))


def predicted_ms(rank: int, target: str, endpoint: str) -> float:
    return rank * (PREDICTED_MS[target] - (40.0 if endpoint == "GetObject" else 0.0))


def _placement(rank: int) -> dict[str, Any]:
    mix = {"GetObject": 0.75, "PutObject": 0.25}
    own = {
        each: sum(s * predicted_ms(rank, each, e) for e, s in mix.items()) for each in ("eu", "us")
    }
    return {
        "rank": rank,
        "name": f"placement-{rank}",
        "regions": ["eu", "us", f"ap-{rank}"],
        "leader": "eu",
        "mean_ms": 0.5 * own["eu"] + 0.5 * own["us"] + 0.25 * 60,
        "endpoints": {},
        "worst_client": "us",
        "worst_client_ms": own["us"],
        "lost": {"region": "eu", "leader": "us", "mean_ms": 200.0},
        "clients": [
            {"region": "eu", "share": 0.5, "target": "eu", "way_ms": 0.0},
            {"region": "us", "share": 0.25, "target": "us", "way_ms": 0.0},
            {"region": "br", "share": 0.25, "target": "us", "way_ms": 60.0},
        ],
        "requests": [
            {"target": target, "endpoint": endpoint, "ms": predicted_ms(rank, target, endpoint)}
            for target in ("eu", "us")
            for endpoint in mix
        ],
    }
