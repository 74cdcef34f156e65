"""What did others publish of the same endpoints, or of the same object sizes?

Theirs are data (analysis/published/): tables, and for latencies a file that says who published
them. They stand beside ours and enter none of our figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from wanlat.analysis.figures.latency import latency
from wanlat.analysis.names import EN_DASH, format_ms, short_version
from wanlat.analysis.section import ENDPOINT, Column, Figures, Note, Row, Section, figures_of
from wanlat.bundle.run import Run

DIRECTORY = Path(__file__).parents[1] / "published"
_OURS = (
    *("system", "version", "endpoint", "placement", "ok"),
    *("mean_ms", "mean_ci95_ms", "min_ms", "max_ms"),
)


class Publication(NamedTuple):
    """Who published latencies: `n` requests an endpoint, read off a chart to `read_off_ms`."""

    by: str
    year: int
    n: int
    read_off_ms: float
    note: str


class StoredEstimate(NamedTuple):
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


def published(bundle: Run) -> Figures | None:
    """Every endpoint that was measured here and published, on a topology of the same name.

    A row has our mean, least and greatest, ms, and theirs (None where one could not be read off).
    Arrays: the publication. None of a network that was not as asked for, or without a counterpart.
    """
    if bundle.is_drill or bundle.is_load or not bundle.is_trusted:
        return None
    return figures_of(_rows(bundle))


def _rows(bundle: Run) -> Iterator[tuple[Row, Publication]]:
    ours = latency(bundle)
    for path in sorted(DIRECTORY.glob("*-endpoint-latency.json")):
        publication = Publication(**json.loads(path.read_text(encoding="utf-8")))
        table = pd.read_csv(path.with_suffix(".csv"), dtype={"version": str})
        lines = table[table["topology"] == bundle.topology].to_dict("records")
        theirs = {(line["system"], line["endpoint"]): line for line in lines}
        for row in ours.rows if ours is not None else ():
            if (line := theirs.get((row["system"], row["endpoint"]))) is None:
                continue
            mean_ms, *ends = (float(line[name]) for name in ("mean_ms", "min_ms", "max_ms"))
            low, high = (None if isnan(end) else end for end in ends)
            beside = {
                "published_by": publication.by,
                "published_year": publication.year,
                "published_version": line["version"],
                **{"published_mean_ms": mean_ms, "published_min_ms": low, "published_max_ms": high},
                "mean_over_published": row["mean_ms"] and round(row["mean_ms"] / mean_ms, 6),
            }
            yield {name: row[name] for name in _OURS} | beside, publication


@cache
def stored_estimates() -> tuple[StoredEstimate, ...]:
    """Every stored estimate of the published comparisons of object sizes."""
    found = []
    for path in sorted(DIRECTORY.glob("*-criterion.csv")):
        lines: Any = pd.read_csv(path).itertuples(index=False)
        for line in lines:
            mean, low, high, median, median_low, median_high = (us / 1e3 for us in line[4:10])
            estimate = StoredEstimate(
                *(line.system, line.nodes, line.operation, line.object_bytes),
                *(mean, (low, high), median, (median_low, median_high)),
            )
            found.append(estimate)
    return tuple(found)


def _extremes(before: str) -> Callable[[Row], str]:
    return lambda row: f" {EN_DASH} ".join(
        "?" if (ms := row[f"{before}{end}_ms"]) is None else format_ms(ms) for end in ("min", "max")
    )


PUBLISHED = Section(
    key="published",
    of_matrices=False,
    title="Beside what was published",
    figures=published,
    columns=(
        ENDPOINT,
        Column("mean ms", lambda row: format_ms(row["mean_ms"])),
        Column(f"min {EN_DASH} max ms", _extremes("")),
        Column("theirs: version", lambda row: short_version(row["published_version"]), words=True),
        Column("mean of theirs, ms", "{published_mean_ms:.0f}"),
        Column(f"min {EN_DASH} max of theirs, ms", _extremes("published_")),
        Column("ours / theirs", "{mean_over_published:.3g}"),
    ),
    definitions={
        "published_mean_ms": "read off a published chart; of other versions on another machine",
        "mean_over_published": "mean_ms / published_mean_ms; no interval: theirs has none",
    },
    notes=(
        Note(
            lambda rows: (
                f"Theirs: {rows[0]['published_by']}, {rows[0]['published_year']}. Other versions, "
                "another machine and another emulator: they enter no figure of ours."
            )
        ),
    ),
    charts={"published": "wanlat.analysis.charts.endpoint_latency:draw_published"},
    rows="endpoints",
)
