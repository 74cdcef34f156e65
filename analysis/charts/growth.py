"""The charts of growth: medians against objects or nodes.

A panel is an endpoint; in it, a system has a colour.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from wanlat.analysis.charts.facets import Dot, Scale, by_label, draw_facets, panel_names
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.growth import AXES, Axis, change_of
from wanlat.analysis.names import row_labels
from wanlat.analysis.section import Answer, Row, series_of
from wanlat.bundle.documents import Titles


def charts_of(answer: Answer) -> dict[str, Figure]:
    """The charts by the stems of their files; of each combination of further parameters its own."""
    charts: dict[str, Figure] = {}
    for axis in AXES:
        along = [row for row in answer.figures.rows if row["parameter"] == axis.parameter]
        labels = [
            "".join(f", {name} {value}" for name, value in row.get("others", {}).items())
            for row in along
        ]
        for stem, label, rows in by_label(f"growth-{axis.noun}", along, labels):
            charts[stem] = _draw(answer.subject + label, rows, axis, answer.figures.titles)
    return charts


def _draw(subject: str, rows: Sequence[Row], axis: Axis, titles: Titles) -> Figure:
    series = row_labels(list(dict.fromkeys(series_of(row) for row in rows)), titles)
    changes: dict[str, list[str]] = {}
    names = panel_names(rows)
    for row, name in zip(rows, names, strict=True):
        label = with_placement(series[series_of(row)], row["placement"])
        changes.setdefault(name, []).append(f"{label}: {change_of(row)}")
    dots = [
        Dot(
            (name, "\n".join(changes[name])),
            *(series_of(row), row["placement"], level["x"], level["median_ms"], level["ci95_ms"]),
            joined=not level["two_modes"],
        )
        for row, name in sorted(
            zip(rows, names, strict=True), key=lambda pair: list(changes).index(pair[1])
        )
        for level in row["levels"]
    ]
    sizes = sorted({dot.x for dot in dots})
    words = Words(
        _title(rows, axis, sizes, titles),
        f"The cost of {axis.noun} · {subject} · medians of single requests, bars: 95 % of the run",
        "objects in the bucket" if axis.noun == "objects" else "nodes of the cluster",
        ("No line joins medians of requests that take one of two times.",),
    )
    scale = Scale({x: f"{x:,g}" for x in sizes}, "median, ms", alike=False)
    return draw_facets(words, dots, scale, titles)


def _title(rows: Sequence[Row], axis: Axis, sizes: Sequence[float], titles: Titles) -> str:
    """The finding: what grows most."""
    range_ = f"From {sizes[0]:,.0f} to {sizes[-1]:,.0f} {axis.noun}"
    grown = [row for row in rows if row["change"] is not None]
    if not grown:
        return f"{range_}: no change is known"
    most = max(grown, key=lambda row: float(row["change"]))
    name = with_placement(most["endpoint"], most["placement"])
    return f"{range_}: {titles[most['system']]}'s {name} changes most, by {change_of(most)}"
