"""The charts of any matrix: figures against what was varied, and every cluster of replicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts import endpoint_latency
from wanlat.analysis.charts.facets import (
    Dot,
    Scale,
    by_label,
    draw_facets,
    is_line,
    panel_names,
)
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.endpoints import endpoint_order, row_of, with_placement
from wanlat.analysis.figures.latency import EndpointSummary
from wanlat.analysis.names import below, count, digits, row_labels
from wanlat.analysis.section import Answer, Row, series_of, written
from wanlat.bundle import REPLICATE
from wanlat.bundle.documents import UNKNOWN, Titles
from wanlat.bundle.matrix import REPEATED, Matrix, Parameter
from wanlat.bundle.units import number_of

Pairs = Sequence[tuple[Row, Any]]
"""Rows, each with its array: a run's, or the rows of the clusters that it is over."""


class Quantity(NamedTuple):
    """What is drawn of a row: the key of a figure (with dots: nested), its name and its unit."""

    key: str
    what: str
    unit: str
    scale: float = 1.0
    ci95: str = "no interval"

    @property
    def label(self) -> str:
        """What an axis of it is called."""
        return self.what if self.unit in self.what else f"{self.what}, {self.unit}"

    @property
    def title(self) -> str:
        """Its name at the beginning of a sentence."""
        return self.what[0].upper() + self.what[1:]


MEDIAN = Quantity("median_ms", "median", "ms", ci95="median_ci95_ms")
ROUND_TRIPS = Quantity("round_trips", "slope", "round trips", ci95="ci95")
_BARS = "Bars: 95 % intervals of one cluster each."
_NO_LINE = (
    "No line joins marks of which one is of requests that take one of several times, or of points "
    "that were repeated."
)


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of latencies: of a run by endpoints, of a matrix against what it varies."""
    return draw(answer) if answer.points else endpoint_latency.charts_of(answer)


def draw(answer: Answer, quantity: Quantity = MEDIAN, stem: str = "sweep") -> dict[str, Figure]:
    """The charts of a matrix by the stems of their files; none where there is nothing to draw.

    The parameter with the most values (numbers before words) is the x axis; a second one has a
    column a value; of more, each combination has a chart of its own. With an option that only one
    of the systems has, points do not lie on common axes, and there is none.
    """
    matrix = answer.source
    assert isinstance(matrix, Matrix)
    left_out = matrix.untrusted
    pairs = [
        (row, array)
        for row, array in zip(answer.figures.rows, answer.figures.arrays, strict=True)
        if below(row, quantity.key) is not None and row["point"] not in left_out
    ]
    varied = [p for p in matrix.parameters if len(p.values) > 1 and p.name not in REPEATED]
    varied.sort(key=lambda parameter: (_is_numeric(parameter), len(parameter.values)), reverse=True)
    if not varied or any(row[p.name] not in p.values for p in varied for row, _ in pairs):
        return {}
    axes, rest = varied[:2], varied[2:]
    charts = {}
    labels = ["".join(f", {p.name} {written(row[p.name])}" for p in rest) for row, _ in pairs]
    for name, label, mine in by_label(stem, pairs, labels):
        is_some = any(below(row, quantity.key) for row, _ in mine)
        if is_some and len({row[axes[0].name] for row, _ in mine}) > 1:  # no panel with one dot
            charts[name] = _draw(matrix, mine, axes, label, quantity)
    return charts


def _draw(
    matrix: Matrix, pairs: Pairs, axes: Sequence[Parameter], label: str, quantity: Quantity
) -> Figure:
    x, *column = axes
    ticks = {_place(value, x): written(value) for value in x.values}
    dots = list(_dots(matrix, pairs, x, column, quantity))
    words = Words(
        _found(dots, ticks, f" {quantity.unit} at {x.name} ", matrix.titles)
        or f"{matrix.study}: {quantity.what}",
        f"{quantity.title} · {matrix.study} on {matrix.topology}{label}: "
        f"{count(len(matrix.complete), 'point')}, each on a cluster of its own",
        x.name,
        (
            _BARS if any(dot.ci95 for dot in dots) else "",
            _NO_LINE if any(not is_line(line) for line in _lines(dots)) else "",
            f"{count(len(matrix.missing), 'point')} missing." if matrix.missing else "",
        ),
    )
    columns = min(len(column[0].values), 4) if column else 3
    scale = Scale(ticks, f"{quantity.what}, {quantity.unit}")
    return draw_facets(words, dots, scale, matrix.titles, columns=columns)


def _dots(
    matrix: Matrix, pairs: Pairs, x: Parameter, column: Sequence[Parameter], quantity: Quantity
) -> Iterator[Dot]:
    """Panels row by row: endpoints from top to bottom, values of a second parameter across."""
    order = endpoint_order({row.get("endpoint", "") for row, _ in pairs}, matrix.manifest.study)
    tops = list(dict.fromkeys(map(row_of, order)))
    names = panel_names([row for row, _ in pairs])

    def place(named: tuple[tuple[Row, Any], str]) -> tuple[int, ...]:
        row = named[0][0]
        across = [parameter.values.index(row[parameter.name]) for parameter in column]
        return tops.index(row_of(row.get("endpoint", ""))), *across

    for (row, array), name in sorted(zip(pairs, names, strict=True), key=place):
        modes = row.get("modes", ())
        if isinstance(array, EndpointSummary):
            modes = endpoint_latency.modes_of(array)
        yield Dot(
            panel=(name, "".join(f"{p.name} {written(row[p.name])}" for p in column)),
            series=series_of(row),
            placement=row.get("placement", UNKNOWN),
            x=_place(row[x.name], x),
            y=below(row, quantity.key) / quantity.scale,
            ci95=row.get(quantity.ci95),
            joined=len(modes) < 2,
        )


def _place(value: Any, x: Parameter) -> float:
    return (number_of(value) or 0.0) if _is_numeric(x) else float(x.values.index(value))


def _is_numeric(parameter: Parameter) -> bool:
    return all(number_of(value) is not None for value in parameter.values)


def _found(dots: Sequence[Dot], ticks: Mapping[float, str], at: str, titles: Titles) -> str | None:
    """The finding: the line that differs most, of those with requests that take one time."""
    labels, spans = row_labels(list(dict.fromkeys(dot.series for dot in dots)), titles), []
    lines = _lines(dots)
    for mine in lines:
        low, high = (extreme(mine, key=lambda dot: dot.y) for extreme in (min, max))
        if low.y > 0 and all(dot.joined for dot in mine):
            spans.append((high.y / low.y, low, high))
    if not spans:
        return None
    _, low, high = max(spans, key=lambda span: span[0])
    name = with_placement(" ".join((labels[low.series], *low.panel)).strip(), low.placement)
    ends = sorted((low, high), key=lambda dot: dot.x)
    which = f"{name} differs most" if len(lines) > 1 else name
    return f"{which}: " + ", ".join(f"{digits(e.y, 3)}{at}{ticks[e.x]}" for e in ends)


def _lines(dots: Sequence[Dot]) -> list[list[Dot]]:
    """The dots of each series and placement in a panel."""
    lines: dict[object, list[Dot]] = {}
    for dot in dots:
        lines.setdefault((dot.series, dot.panel, dot.placement), []).append(dot)
    return [*lines.values()]


def clusters_of(answer: Answer) -> Mapping[str, Figure]:
    """The median of every cluster, and their mean.

    A chart of each combination of what else is varied.
    """
    figures = answer.figures
    pairs = list(zip(figures.rows, figures.arrays, strict=True))
    labels = [
        "".join(f", {name} {written(row[name])}" for name in figures.parameters)
        for row in figures.rows
    ]
    return {
        name: _draw_clusters(answer.subject + label, mine, figures.titles)
        for name, label, mine in by_label("clusters", pairs, labels)
        if any(row["clusters"] > 1 for row, _ in mine)
    }


def _draw_clusters(subject: str, pairs: Pairs, titles: Titles) -> Figure:
    series = list(dict.fromkeys(series_of(row) for row, _ in pairs))
    looks, labels = styles(series), row_labels(series, titles)
    panels = panel_names([row for row, _ in pairs])
    known = [row for row, _ in pairs if row["spread"] is not None]
    most = max(known, key=lambda row: row["spread"])
    name = with_placement(f"{labels[series_of(most)]} {most['endpoint']}", most["placement"])
    words = Words(
        f"{name} takes {digits(most['least'], 3)} to {digits(most['most'], 3)} {MEDIAN.unit}, "
        "by cluster",
        f"{MEDIAN.title} · {subject}: a mark a cluster",
        "cluster",
        (_BARS, "Band and line: mean over clusters with its 95 % interval (Student's)."),
    )
    dots = [
        Dot(
            panel=(panel, ""),
            series=series_of(row),
            placement=row["placement"],
            x=one[REPLICATE] - 1.0,  # from 0 on: no axis of names is logarithmic
            y=one[MEDIAN.key],
            ci95=one.get(MEDIAN.ci95),
            joined=False,
        )
        for (row, clusters), panel in zip(pairs, panels, strict=True)
        for one in clusters
        if one[MEDIAN.key] is not None
    ]

    def beneath(axes: Axes, name: str) -> None:
        for (row, _), panel in zip(pairs, panels, strict=True):
            interval = row[f"{MEDIAN.key}_ci95"]
            if panel == name and interval:
                colour = looks[series_of(row)].at(row["placement"]).dark
                axes.axhspan(*interval, color=colour, alpha=0.13, linewidth=0)
                axes.axhline(row[MEDIAN.key], color=colour, linewidth=0.9, alpha=0.8)

    numbers = sorted({int(one[REPLICATE]) for _, rows in pairs for one in rows})
    scale = Scale({n - 1.0: str(n) for n in numbers}, MEDIAN.label, alike=False)
    return draw_facets(words, dots, scale, titles, beneath=beneath)
