"""What did others publish of the same endpoints, or of the same object sizes?

Theirs are data (analysis/published/): tables, and for latencies a file that says who published
them. They stand beside ours and enter none of our figures.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.analysis.figures.latency import latency
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.notes import is_trusted

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle

DIRECTORY = Path(__file__).parents[1] / "published"
_LATENCIES = "*-endpoint-latency.json"


@dataclass(frozen=True)
class Publication:
    """Who published latencies: `n` requests an endpoint, read off a chart to `read_off_ms`."""

    by: str
    year: int
    n: int
    read_off_ms: float
    note: str


def published(bundle: Bundle) -> Figures | None:
    """Every endpoint that was measured here and published, on a topology of the same name.

    A row has our mean, least and greatest, ms, and theirs (None where one could not be read off).
    Arrays: the publication. None of a network that was not as asked for, or without a counterpart.
    """
    if bundle.is_drill or bundle.is_load or not is_trusted(bundle):
        return None
    return figures_of(_rows(bundle))


def _rows(bundle: Bundle) -> Iterator[tuple[Row, Publication]]:
    ours = latency(bundle)
    for publication, theirs in _publications():
        for row in ours.rows if ours is not None else ():
            found = theirs.get((bundle.topology, row["system"], row["endpoint"]))
            if found is not None:
                yield _beside(row, found, publication), publication


def _beside(row: Row, theirs: Mapping[str, str], publication: Publication) -> Row:
    means = row["mean_ms"], float(theirs["mean_ms"])
    kept = ("system", "version", "endpoint", "placement", "ok")
    return {
        **{name: row[name] for name in (*kept, "mean_ms", "mean_ci95_ms", "min_ms", "max_ms")},
        "published_by": publication.by,
        "published_year": publication.year,
        "published_version": theirs["version"],
        "published_mean_ms": means[1],
        **{
            f"published_{name}": float(theirs[name]) if theirs[name] else None
            for name in ("min_ms", "max_ms")
        },
        "mean_over_published": None if means[0] is None else round(means[0] / means[1], 6),
    }


@cache
def _publications() -> tuple[
    tuple[Publication, Mapping[tuple[str, str, str], Mapping[str, str]]], ...
]:
    """Each with its latencies by topology, system and endpoint."""
    found = []
    for path in sorted(DIRECTORY.glob(_LATENCIES)):
        publication = Publication(**json.loads(path.read_text(encoding="utf-8")))
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        keyed = {(line["topology"], line["system"], line["endpoint"]): line for line in lines}
        found.append((publication, keyed))
    return tuple(found)


@dataclass(frozen=True)
class StoredEstimate:
    """Time of one read or write by object size, ms, with 95 % intervals; of 100 samples each.

    The estimates that Criterion stored: a sample of its is the mean of many requests, the fewer the
    longer they take.
    """

    system: str
    nodes: int
    operation: str
    object_bytes: int
    mean_ms: float
    mean_ci95_ms: tuple[float, float]
    median_ms: float
    median_ci95_ms: tuple[float, float]


@cache
def stored_estimates() -> tuple[StoredEstimate, ...]:
    """Every stored estimate of the published comparisons of object sizes."""
    return tuple(
        StoredEstimate(
            system=line["system"],
            nodes=int(line["nodes"]),
            operation=line["operation"],
            object_bytes=int(line["object_bytes"]),
            mean_ms=_ms(line["mean_us"]),
            mean_ci95_ms=(_ms(line["mean_ci95_low_us"]), _ms(line["mean_ci95_high_us"])),
            median_ms=_ms(line["median_us"]),
            median_ci95_ms=(_ms(line["median_ci95_low_us"]), _ms(line["median_ci95_high_us"])),
        )
        for path in sorted(DIRECTORY.glob("*-criterion.csv"))
        for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    )


def _ms(microseconds: str) -> float:
    return float(microseconds) / 1e3
