"""The sections of what was measured on several clusters: what holds of a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wanlat.analysis.endpoints import row_of
from wanlat.analysis.figures.clusters import over_clusters, per_request
from wanlat.analysis.figures.latency import latency
from wanlat.analysis.figures.result import Row
from wanlat.analysis.names import EN_DASH
from wanlat.analysis.placement import with_placement
from wanlat.analysis.report.formats import digits, estimate, share
from wanlat.analysis.report.section import Column, Note, Section

ENOUGH = 5
"""Student's interval of three clusters is twice as wide as that of five that differ as much."""


def _range(figures: int) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return f"{digits(row['least'], figures)} {EN_DASH} {digits(row['most'], figures)}"

    return cell


_WHOSE = (
    Column("endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True),
    Column("clusters", "{clusters}"),
    Column("n", "{n}"),
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
        *_WHOSE,
        Column("median ms [95 %]", estimate("median_ms", 4)),
        Column("of one cluster", _range(4)),
        Column("mean ms [95 %]", estimate("mean_ms", 4)),
        Column("SD of clusters", lambda row: share(row["spread"])),
    ),
    definitions=_DEFINITIONS,
    notes=_NOTES,
    charts="wanlat.analysis.charts.sweep:clusters_of",
    is_trouble=lambda row: row["without"] > 0,
    group=lambda row: row_of(row["endpoint"]),
)


CLUSTERS_ROUND_TRIPS = replace(
    CLUSTERS,
    key="clusters_round_trips",
    title="Round trips over clusters",
    figures=per_request,
    across=partial(over_clusters, names=("per_request", "round_trips")),
    columns=(
        *_WHOSE,
        Column("round trips a request [95 %]", estimate("per_request")),
        Column("of one cluster", _range(3)),
        Column("main mode [95 %]", estimate("round_trips")),
    ),
    definitions={
        **_DEFINITIONS,
        "per_request": "mean over the requests that lie on a line, of the slopes of their modes",
    },
    charts="wanlat.analysis.charts.sweep:round_trips_of_clusters",
)
