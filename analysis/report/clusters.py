"""The sections of what was measured on several clusters: what holds of a store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wanlat.analysis.endpoints import row_of
from wanlat.analysis.figures.clusters import over_clusters
from wanlat.analysis.figures.latency import latency
from wanlat.analysis.figures.result import Figures, Row
from wanlat.analysis.figures.round_trips import round_trips
from wanlat.analysis.names import EN_DASH
from wanlat.analysis.placement import with_placement
from wanlat.analysis.report.formats import digits, estimate, share
from wanlat.analysis.report.section import Column, Note, Section
from wanlat.analysis.sweep import Sweep

ENOUGH = 5
"""Student's interval of three clusters is twice as wide as that of five that differ as much."""

Across = Callable[[Sweep, Figures], Figures | None]


def _range(figures: int) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return f"{digits(row['least'], figures)} {EN_DASH} {digits(row['most'], figures)}"

    return cell


_ENDPOINT = Column(
    "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
)
_NOTES = (
    Note(
        "Intervals are over clusters (Student's): what another start of the store would do is in "
        "them. Of how requests of one cluster differ, see its own row below."
    ),
    Note(
        f"Fewer than {ENOUGH} clusters, so that intervals are wide: {{rows}}.",
        lambda row: 1 < row["clusters"] < ENOUGH,
    ),
    Note("One cluster, so no interval: {rows}.", lambda row: row["clusters"] == 1),
    Note(
        "Clusters without a figure are in no estimate: {rows}.",
        lambda row: row["without"] > 0,
        each=" ({without})",
    ),
)
_DEFINITIONS = {
    "clusters": "fresh clusters that have the figure; each is one value",
    "ci95": "Student's interval of the mean over clusters",
    "spread": "standard deviation between clusters, a share of the mean",
}

CLUSTERS = Section(
    key="clusters",
    title="Latency over clusters",
    figures=latency,
    across=partial(over_clusters, names=("median_ms", "mean_ms")),
    rows="entries",
    columns=(
        _ENDPOINT,
        Column("clusters", "{clusters}"),
        Column("n", "{n}"),
        Column("median ms [95 %]", estimate("median_ms", 4)),
        Column("of one cluster", _range(4)),
        Column("mean ms [95 %]", estimate("mean_ms", 4)),
        Column("SD of clusters", lambda row: share(row["spread"])),
    ),
    definitions=_DEFINITIONS,
    notes=_NOTES,
    charts="wanlat.analysis.charts.clusters:charts_of",
    is_trouble=lambda row: row["without"] > 0,
    group=lambda row: row_of(row["endpoint"]),
)

CLUSTERS_ROUND_TRIPS = Section(
    key="clusters_round_trips",
    title="Round trips over clusters",
    figures=round_trips,
    across=partial(over_clusters, names=("round_trips", "intercept_ms")),
    rows="entries",
    columns=(
        _ENDPOINT,
        Column("clusters", "{clusters}"),
        Column("n", "{n}"),
        Column("slope [95 %]", estimate("round_trips")),
        Column("of one cluster", _range(3)),
        Column("intercept ms [95 %]", estimate("intercept_ms")),
    ),
    definitions=_DEFINITIONS,
    notes=_NOTES,
    is_trouble=lambda row: row["without"] > 0,
    group=lambda row: row_of(row["endpoint"]),
)
