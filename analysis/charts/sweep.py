"""The chart of any sweep: median latency against what was swept, one line a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.lines import Line, LinePanel, XAxis, YAxis, draw_lines
from wanlat.analysis.charts.panels import Panel
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.endpoints import endpoint_order, row_names, row_of
from wanlat.analysis.names import count, series_labels, shortened
from wanlat.analysis.placement import MEANING, PLACEMENTS, REMOTE, is_known, with_placement
from wanlat.analysis.sweep import Parameter, Point, number_of
from wanlat.analysis.sweep_table import written

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Series
    from wanlat.analysis.statistics import Interval
    from wanlat.analysis.sweep_summary import SweepSummary

_MOST_COLUMNS = 4


@dataclass(frozen=True)
class _Figure:
    """What is drawn of one endpoint at one point."""

    point: Point
    series: Series
    endpoint: str
    placement: str
    y: float
    ci95: Interval | None


def draw(summary: SweepSummary) -> dict[str, Figure]:
    """The charts of `summary` by the stems of their files; none where there is nothing to draw.

    The parameter with the most values (numbers before words) is the x axis; a second one has a
    column a value; of more, each combination has a chart of its own. Of a list of grids, or with an
    option that only one of the systems has, points do not lie on common axes, and there is none.
    """
    figures = _latencies(summary)
    label = "median, ms"
    if not figures:
        figures, label = _round_trips(summary), "round trips"
    x = _x_of(summary.sweep.parameters)
    if not figures or x is None or not _is_grid(figures, summary.sweep.parameters):
        return {}
    others = [p for p in summary.sweep.parameters if p is not x and len(p.values) > 1]
    columns, rest = _columns(others)
    charts = {}
    for combination in product(*(parameter.values for parameter in rest)):
        fixed = dict(zip((p.name for p in rest), combination, strict=True))
        mine = [f for f in figures if _is_at(f.point, fixed)]
        if mine:
            stem = "-".join(["sweep", *(f"{_plain(n)}-{_plain(v)}" for n, v in fixed.items())])
            charts[stem] = _draw(summary, mine, x, columns, fixed, label)
    return charts


def _latencies(summary: SweepSummary) -> list[_Figure]:
    return [
        _Figure(
            point,
            entry.series,
            entry.endpoint,
            entry.placement,
            entry.latency.median_ms,
            entry.latency.median_ci95_ms,
        )
        for point, entry in summary.entries
        if entry.latency is not None and point.name not in summary.untrusted
    ]


def _round_trips(summary: SweepSummary) -> list[_Figure]:
    return [
        _Figure(point, e.series, e.endpoint, e.placement, e.round_trips, e.ci95)
        for point, e in summary.round_trips
        if e.round_trips is not None and point.name not in summary.untrusted
    ]


def _x_of(parameters: Sequence[Parameter]) -> Parameter | None:
    """The parameter with the most values, numbers first."""
    varied = [parameter for parameter in parameters if len(parameter.values) > 1]
    return max(varied, key=lambda p: (_is_numeric(p), len(p.values)), default=None)


def _is_grid(figures: Sequence[_Figure], parameters: Sequence[Parameter]) -> bool:
    """Whether every point has a value of every parameter that is swept."""
    points = {figure.point.name: figure.point for figure in figures}.values()
    return all(point.value(p.name) in p.values for p in parameters for point in points)


def _is_numeric(parameter: Parameter) -> bool:
    return all(number_of(value) is not None for value in parameter.values)


def _columns(others: Sequence[Parameter]) -> tuple[Parameter | None, list[Parameter]]:
    """The parameter that has a column a value, and those whose combinations are charts."""
    fitting = [p for p in others if len(p.values) <= _MOST_COLUMNS]
    columns = max(fitting, key=lambda p: len(p.values), default=None)
    return columns, [p for p in others if p is not columns]


def _is_at(point: Point, values: Mapping[str, Any]) -> bool:
    return all(point.value(name) == value for name, value in values.items())


def _draw(
    summary: SweepSummary,
    figures: Sequence[_Figure],
    x: Parameter,
    columns: Parameter | None,
    fixed: Mapping[str, Any],
    label: str,
) -> Figure:
    names = endpoint_order({f.endpoint for f in figures}, summary.sweep.manifest.get("study"))
    rows = list(dict.fromkeys(row_of(name) for name in names))
    values: tuple[Any, ...] = columns.values if columns else (None,)
    cells = []
    for row in rows:
        called = " · ".join(dict.fromkeys(row_names([n])[n] for n in row if n in names))
        line: list[LinePanel | None] = []
        for value in values:
            mine = [
                f
                for f in figures
                if f.endpoint in row and (columns is None or f.point.value(columns.name) == value)
            ]
            head = Panel(called, f"{columns.name} {written(value)}" if columns else "")
            line.append(LinePanel(head, _lines(summary, mine, x)) if mine else None)
        cells.append(line)
    if columns is None:  # one column of panels would be mostly paper
        flat = [cell for line in cells for cell in line]
        width = min(3, len(flat))
        flat += [None] * (-len(flat) % width)
        cells = [flat[start : start + width] for start in range(0, len(flat), width)]
    return draw_lines(
        _words(summary, figures, x, fixed, label), cells, XAxis(x.name, _ticks(x)), YAxis(label)
    )


def _ticks(x: Parameter) -> tuple[tuple[float, str], ...]:
    numeric = _is_numeric(x)
    ticks = [
        ((number_of(value) or 0.0) if numeric else float(place), written(value))
        for place, value in enumerate(x.values)
    ]
    return tuple(sorted(ticks))


def _lines(summary: SweepSummary, figures: Sequence[_Figure], x: Parameter) -> tuple[Line, ...]:
    looks = styles(summary.series)
    numeric = _is_numeric(x)

    def place(value: Any) -> float:
        return (number_of(value) or 0.0) if numeric else float(x.values.index(value))

    lines = []
    for series, placement in product(summary.series, PLACEMENTS):
        mine = [f for f in figures if f.series == series and f.placement == placement]
        mine = [f for f in mine if f.point.value(x.name) in x.values]
        for endpoint in dict.fromkeys(f.endpoint for f in mine):
            dots = sorted(
                (place(f.point.value(x.name)), f.y, f.ci95) for f in mine if f.endpoint == endpoint
            )
            lines.append(
                Line(
                    looks[series].at(placement),
                    tuple(at for at, _, _ in dots),
                    tuple(y for _, y, _ in dots),
                    tuple(ci95 for _, _, ci95 in dots),
                )
            )
    return tuple(lines)


def _words(
    summary: SweepSummary,
    figures: Sequence[_Figure],
    x: Parameter,
    fixed: Mapping[str, Any],
    label: str,
) -> Words:
    labels, looks = series_labels(summary.series), styles(summary.series)
    legend = [
        LegendEntry(looks[one].at(placement), with_placement(labels[one], placement))
        for one, placement in product(summary.series, PLACEMENTS)
        if any(f.series == one and f.placement == placement for f in figures)
    ]
    at = "".join(f", {name} {written(value)}" for name, value in fixed.items())
    sweep = summary.sweep
    missing = len(sweep.missing)
    caption = [
        "Marks are medians with their 95 % intervals (order statistics)."
        if label.startswith("median")
        else "Marks are round trips with their 95 % intervals.",
        *([MEANING + " Open marks: remote."] if _has_remote(figures) else []),
        *([f"{count(missing, 'point')} of {len(sweep.points)} missing."] if missing else []),
        *(["In full: " + "; ".join(full) + "."] if (full := shortened(summary.series)) else []),
    ]
    return Words(
        title=f"{sweep.study} on {sweep.topology}{at}",
        subtitle=f"{count(len(sweep.complete), 'point')}, each on a cluster of its own",
        headers=(),
        x_label=x.name,
        caption=tuple(caption),
        legend=tuple(legend),
    )


def _has_remote(figures: Sequence[_Figure]) -> bool:
    return any(is_known(f.placement) and f.placement == REMOTE for f in figures)


def _plain(value: object) -> str:
    return "".join(c if c.isalnum() or c in "._" else "-" for c in written(value)).strip("-")
