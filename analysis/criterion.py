"""The estimates that Criterion stored for the published "Bob vs MinIO" comparison, as data.

They are of another machine and of versions of years ago: nothing here is compared with a time of
ours, only ratios with ratios (`wanlat.analysis.conclusions`).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PUBLISHED = Path(__file__).parent / "published"
ESTIMATES = PUBLISHED / "bob-minio-criterion.csv"
TABLES = {
    "README": PUBLISHED / "bob-minio-readme.csv",
    "slides": PUBLISHED / "bob-minio-slides.csv",
}
"""What the two documents print, by document."""

_US_PER_MS = 1e3


@dataclass(frozen=True)
class StoredEstimate:
    """Of 100 samples each, milliseconds; intervals are Criterion's, 95 %, bootstrap.

    A sample of Criterion's is the mean of many requests, the fewer the longer they take.
    """

    system: str
    nodes: int
    operation: str
    object_bytes: int
    mean_ms: float
    mean_ci95_ms: tuple[float, float]
    median_ms: float
    median_ci95_ms: tuple[float, float]


@dataclass(frozen=True)
class PrintedRow:
    """One line of a document's table; `statistic` is what its heading says it is of.

    `time_us` is in the unit that it must be in: the documents head the column "ns".
    """

    document: str
    system: str
    nodes: int
    operation: str
    object_bytes: int
    statistic: str
    time_us: float
    requests_per_s: float
    mib_per_s: float
    digits: tuple[str, str, str]
    """The three figures as they are printed."""


@cache
def stored_estimates() -> tuple[StoredEstimate, ...]:
    """Every stored estimate."""
    return tuple(
        StoredEstimate(
            system=row["system"],
            nodes=int(row["nodes"]),
            operation=row["operation"],
            object_bytes=int(row["object_bytes"]),
            mean_ms=float(row["mean_us"]) / _US_PER_MS,
            mean_ci95_ms=_interval(row, "mean"),
            median_ms=float(row["median_us"]) / _US_PER_MS,
            median_ci95_ms=_interval(row, "median"),
        )
        for row in _rows(ESTIMATES)
    )


@cache
def printed_rows() -> tuple[PrintedRow, ...]:
    """Every line of both documents' tables."""
    return tuple(
        PrintedRow(
            document=document,
            system=row["system"],
            nodes=int(row["nodes"]),
            operation=row["operation"],
            object_bytes=int(row["object_bytes"]),
            statistic=row["statistic"],
            time_us=float(row["time_us"]),
            requests_per_s=float(row["requests_per_second"]),
            mib_per_s=float(row["throughput_mib_s"]),
            digits=(row["time_us"], row["requests_per_second"], row["throughput_mib_s"]),
        )
        for document, path in TABLES.items()
        for row in _rows(path)
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def _interval(row: dict[str, str], of: str) -> tuple[float, float]:
    return (
        float(row[f"{of}_ci95_low_us"]) / _US_PER_MS,
        float(row[f"{of}_ci95_high_us"]) / _US_PER_MS,
    )
