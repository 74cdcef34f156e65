"""The published mixed load on MinIO, beside ours: as ratios, for it was another machine.

Half reads, half writes, 512 kB objects, two buckets of 10,000 objects, 16 workers, ten minutes
(Carey; analysis/published/README.md). Each deployment is compared with one node of one drive of the
same source, so that the machine cancels out, as far as it does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "published" / "minio-mixed-load.csv"
BASE = "one-node-one-drive"
OBJECT_BYTES = 512_000
WORKERS = 16
DEPLOYMENTS: Mapping[str, tuple[str, int, int]] = {
    BASE: ("minio", 1, 1),
    "one-node-four-drives": ("minio", 1, 4),
    "four-nodes-four-drives-behind-nginx": ("minio-nginx", 4, 4),
}
"""System, nodes and drives of a node of each deployment, in the words of this project."""
READ, WRITE = "read", "write"
OPERATIONS: Mapping[str, str] = {"GetObject": READ, "PutObject": WRITE}


@dataclass(frozen=True)
class PublishedLoad:
    """One line of the table. `digits` are mean, rate and throughput as they are printed."""

    deployment: str
    operation: str
    operations: int
    gigabytes: float
    mean_ms: float
    per_s: float
    mb_per_s: float
    digits: tuple[str, str, str]

    @property
    def in_flight(self) -> float:
        """How many were in flight on average (Little)."""
        return self.per_s * self.mean_ms / 1e3


@cache
def published_loads() -> tuple[PublishedLoad, ...]:
    """Every line, in order."""
    with FIGURES.open(encoding="utf-8", newline="") as opened:
        return tuple(
            PublishedLoad(
                deployment=row["deployment"],
                operation=row["operation"],
                operations=int(row["operations"]),
                gigabytes=float(row["bytes_written_or_read_gb"]),
                mean_ms=float(row["mean_ms"]),
                per_s=float(row["operations_per_second"]),
                mb_per_s=float(row["mb_per_second"]),
                digits=(row["mean_ms"], row["operations_per_second"], row["mb_per_second"]),
            )
            for row in csv.DictReader(opened)
        )


def published_of(deployment: str, operation: str) -> PublishedLoad | None:
    """The line of one operation of one deployment."""
    return next(
        (
            each
            for each in published_loads()
            if (each.deployment, each.operation) == (deployment, operation)
        ),
        None,
    )


def deployment_named(system: str, nodes: int | None, drives: int | None) -> str | None:
    """What the published table calls this deployment; None where it has none like it."""
    asked = (system, nodes, drives)
    return next((name for name, known in DEPLOYMENTS.items() if known == asked), None)
