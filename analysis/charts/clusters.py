"""The chart of replicates: the median of every cluster, and what they say together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.facets import Dot, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.charts.sweep import MEDIAN, Quantity
from wanlat.analysis.endpoints import row_names, with_placement
from wanlat.analysis.figures.result import Figures, Row, series_of
from wanlat.analysis.names import digits, row_labels
from wanlat.analysis.report.section import Answer, written
from wanlat.analysis.sweep import REPLICATE

Pairs = Sequence[tuple[Row, Sequence[Row]]]
"""Rows over clusters, each with those of its clusters."""

_PER_REQUEST = Quantity("per_request", "round trips a request", "round trips")


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The chart of medians, one of each combination of what else is varied."""
    return _charts(answer, "clusters", MEDIAN)


def round_trips_of(answer: Answer) -> Mapping[str, Figure]:
    """The same of round trips."""
    return _charts(answer, "clusters-round-trips", _PER_REQUEST)


def _charts(answer: Answer, stem: str, quantity: Quantity) -> Mapping[str, Figure]:
    figures, charts = answer.figures, {}
    said = [
        ", ".join(f"{name} {written(row[name])}" for name in figures.parameters)
        for row in figures.rows
    ]
    for others in dict.fromkeys(said):
        mine = [pair for pair, its in zip(_pairs(figures), said, strict=True) if its == others]
        if any(row["clusters"] > 1 for row, _ in mine):
            behind = re.sub(r"[^\w.]+", "-", f"-{others}" if others else "")
            charts[stem + behind] = _draw(answer, mine, others, quantity)
    return charts


def _pairs(figures: Figures) -> Pairs:
    return list(zip(figures.rows, figures.arrays, strict=True))


def _draw(answer: Answer, pairs: Pairs, others: str, quantity: Quantity) -> Figure:
    series = list(dict.fromkeys(series_of(row) for row, _ in pairs))
    looks, labels = styles(series), row_labels(series)
    called = row_names(row["endpoint"] for row, _ in pairs)
    panels = {row["endpoint"]: called[row["endpoint"]].replace("\n", " ") for row, _ in pairs}
    known = [row for row, _ in pairs if row["spread"] is not None]
    most = max(known, key=lambda row: row["spread"])
    name = with_placement(f"{labels[series_of(most)]} {most['endpoint']}", most["placement"])
    words = Words(
        f"{name} takes {digits(most['least'], 3)} to {digits(most['most'], 3)} {quantity.unit}, "
        "by cluster",
        f"{quantity.what.capitalize()} · {', '.join(filter(None, (answer.of, others)))}: "
        "a mark a cluster",
        "cluster",
        (
            "Bars: 95 % intervals of one cluster each." if quantity is MEDIAN else "",
            "Band and line: mean over clusters with its 95 % interval (Student's).",
        ),
    )

    def beneath(axes: Axes, panel: str) -> None:
        for row, _ in pairs:
            interval = row[f"{quantity.key}_ci95"]
            if panels[row["endpoint"]] == panel and interval:
                colour = looks[series_of(row)].at(row["placement"]).dark
                axes.axhspan(*interval, color=colour, alpha=0.13, linewidth=0)
                axes.axhline(row[quantity.key], color=colour, linewidth=0.9, alpha=0.8)

    numbers = sorted({int(one[REPLICATE]) for _, rows in pairs for one in rows})
    scale = Scale({n - 1.0: str(n) for n in numbers}, _label(quantity), alike=False)
    return draw_facets(words, list(_dots(pairs, panels, quantity)), scale, beneath=beneath)


def _dots(pairs: Pairs, panels: Mapping[str, str], quantity: Quantity) -> Iterator[Dot]:
    for row, clusters in pairs:
        for one in clusters:
            if one[quantity.key] is not None:
                yield Dot(
                    panel=(panels[row["endpoint"]], ""),
                    series=series_of(row),
                    placement=row["placement"],
                    x=one[REPLICATE] - 1.0,  # from 0 on: no axis of names is logarithmic
                    y=one[quantity.key],
                    ci95=one.get(quantity.ci95),
                    joined=False,
                )


def _label(quantity: Quantity) -> str:
    return quantity.what if quantity.unit in quantity.what else f"{quantity.what}, {quantity.unit}"
