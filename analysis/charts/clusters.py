"""The chart of replicates: the median of every cluster, and what they say together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.facets import Dot, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.endpoints import row_names
from wanlat.analysis.figures.result import Figures, Row, series_of
from wanlat.analysis.names import row_labels
from wanlat.analysis.placement import with_placement
from wanlat.analysis.report.formats import digits
from wanlat.analysis.report.section import Answer, written
from wanlat.analysis.sweep import REPLICATE


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """A chart of each combination of what else is varied."""
    figures, charts = answer.figures, {}
    said = [
        ", ".join(f"{name} {written(row[name])}" for name in figures.parameters)
        for row in figures.rows
    ]
    for others in dict.fromkeys(said):
        mine = [pair for pair, its in zip(_pairs(figures), said, strict=True) if its == others]
        if any(row["clusters"] > 1 for row, _ in mine):
            stem = "clusters" + re.sub(r"[^\w.]+", "-", f"-{others}" if others else "")
            charts[stem] = _draw(answer, mine, others)
    return charts


def _pairs(figures: Figures) -> Sequence[tuple[Row, Sequence[Row]]]:
    return list(zip(figures.rows, figures.arrays, strict=True))


def _draw(answer: Answer, pairs: Sequence[tuple[Row, Sequence[Row]]], others: str) -> Figure:
    series = list(dict.fromkeys(series_of(row) for row, _ in pairs))
    looks, labels = styles(series), row_labels(series)
    called = row_names(row["endpoint"] for row, _ in pairs)
    panels = {row["endpoint"]: called[row["endpoint"]].replace("\n", " ") for row, _ in pairs}
    known = [row for row, _ in pairs if row["spread"] is not None]
    most = max(known, key=lambda row: row["spread"])
    name = with_placement(f"{labels[series_of(most)]} {most['endpoint']}", most["placement"])
    words = Words(
        f"{name} takes {digits(most['least'], 3)} to {digits(most['most'], 3)} ms, by cluster",
        f"Median latency · {answer.of}{f', {others}' if others else ''}: a mark a cluster",
        "cluster",
        (
            "Bars: 95 % intervals of one cluster each. Band and line: mean over clusters with its "
            "95 % interval (Student's).",
        ),
    )

    def beneath(axes: Axes, panel: str) -> None:
        for row, _ in pairs:
            if panels[row["endpoint"]] == panel and row["median_ms_ci95"]:
                colour = looks[series_of(row)].at(row["placement"]).dark
                axes.axhspan(*row["median_ms_ci95"], color=colour, alpha=0.13, linewidth=0)
                axes.axhline(row["median_ms"], color=colour, linewidth=0.9, alpha=0.8)

    numbers = sorted({int(one[REPLICATE]) for _, rows in pairs for one in rows})
    scale = Scale({float(n): str(n) for n in numbers}, "median, ms", alike=False)
    return draw_facets(words, list(_dots(pairs, panels)), scale, beneath=beneath)


def _dots(pairs: Sequence[tuple[Row, Sequence[Row]]], panels: Mapping[str, str]) -> Iterator[Dot]:
    for row, clusters in pairs:
        for one in clusters:
            if one["median_ms"] is not None:
                yield Dot(
                    panel=(panels[row["endpoint"]], ""),
                    series=series_of(row),
                    placement=row["placement"],
                    x=float(one[REPLICATE]),
                    y=one["median_ms"],
                    ci95=one["median_ci95_ms"],
                    joined=False,
                )
