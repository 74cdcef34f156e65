"""Panels of lines: what was measured against what was varied, with intervals.

The frame is `panels`; here are the axes, which are logarithmic where figures span decades, and the
lines, whose marks are the looks of their series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts.lettering import ASIDE, text_width
from wanlat.analysis.charts.panels import Panel, PanelChart, panels
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle, applied

_LOG_FROM = 8.0
"""Figures that span more than this factor are drawn on a logarithmic axis."""
_BEYOND = 6.0
"""A bar is drawn up to so many times the greatest mark: one of a single slow request among fast
ones may reach to thousands of times, and all the rest would be pressed into a line."""
_GOES_ON = "A bar that leaves its panel goes on."
_PANEL_IN = 1.75
_BETWEEN_TICKS_IN = 0.06
_FEW_TICKS = 3


@dataclass(frozen=True)
class Line:
    """One line: `x`, `y`, and the 95 % interval of each y (None: not known), all the same length.

    A `dashed` one is of something that is not ours, or of the other placement.
    """

    look: SeriesStyle
    x: tuple[float, ...]
    y: tuple[float, ...]
    ci95: tuple[tuple[float, float] | None, ...]
    dashed: bool = False


@dataclass(frozen=True)
class LinePanel:
    """One panel; `marked` are heights at which a line is drawn across, such as a ratio of 1."""

    head: Panel
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class XAxis:
    """Where the figures of the x axis stand, and how they are written there.

    Beyond the first and the last there is room for `beside`, in the axis' figures.
    """

    label: str
    ticks: tuple[tuple[float, str], ...]
    beside: float = 0.0


@dataclass(frozen=True)
class YAxis:
    """`at` is a height at which a line is drawn across each panel, such as a ratio of 1."""

    label: str
    at: float | None = None
    is_log: bool | None = None
    """None: where the figures span a factor of 8."""


def draw_lines(
    words: Words, cells: Sequence[Sequence[LinePanel | None]], x: XAxis, y: YAxis
) -> Figure:
    """A chart with a panel for each of `cells`; all share one y axis, so that they compare."""
    flat = [cell for row in cells for cell in row if cell]
    limits = _limits(flat, y)
    if any(not limits[0] <= bound <= limits[1] for bound in _bounds(flat)):
        words = replace(words, caption=(*words.caption, _GOES_ON))
    with applied():
        chart = panels(
            words,
            [[cell.head if cell else None for cell in row] for row in cells],
            (0.12, _PANEL_IN),
            y.label,
        )
        placed = [cell for row in cells for cell in row]
        for cell, axes in zip(placed, chart.axes, strict=True):
            if cell and axes:
                _draw_panel(chart, axes, cell, x, y, limits)
    return chart.figure


def spans_decades(values: Sequence[float]) -> bool:
    """Whether `values`, some of them, are better drawn on a logarithmic axis."""
    positive = [value for value in values if value > 0]
    return (
        bool(positive)
        and len(positive) == len(values)
        and max(positive) / min(positive) > _LOG_FROM
    )


def _draw_panel(
    chart: PanelChart,
    axes: Axes,
    cell: LinePanel,
    x: XAxis,
    y: YAxis,
    limits: tuple[float, float, bool],
) -> None:
    low, high, is_log = limits
    if is_log:
        axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    _set_x(chart, axes, x)
    _set_y(axes, low, high, is_log=is_log)
    axes.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
    if y.at is not None:
        axes.axhline(y.at, color=QUIET, linewidth=1.0, zorder=1)
    for line in cell.lines:
        _draw_line(axes, line)


def _draw_line(axes: Axes, line: Line) -> None:
    face, edge = line.look.dot
    colour = line.look.dark
    axes.plot(
        line.x,
        line.y,
        color=colour,
        linewidth=1.1,
        linestyle=(0, (3, 2)) if line.dashed or line.look.is_remote else "-",
        zorder=3,
    )
    known = [(x, y, ci) for x, y, ci in zip(line.x, line.y, line.ci95, strict=True) if ci]
    if known:
        reach = np.array(
            [
                [max(0.0, y - ci[0]) for _, y, ci in known],
                [max(0.0, ci[1] - y) for _, y, ci in known],
            ]
        )
        axes.errorbar(
            [at for at, _, _ in known],
            [height for _, height, _ in known],
            yerr=reach,
            fmt="none",
            ecolor=colour,
            elinewidth=0.9,
            capsize=1.8,
            capthick=0.8,
            zorder=3.5,
        )
    common: Any = {"zorder": 4, "clip_on": False}
    axes.plot(
        line.x,
        line.y,
        linestyle="none",
        marker=line.look.marker,
        markersize=4.2,
        markerfacecolor="white" if line.dashed else face,
        markeredgecolor=colour if line.dashed else edge,
        markeredgewidth=0.9 if line.dashed or line.look.is_remote else 0.4,
        **common,
    )


def _limits(cells: Sequence[LinePanel], y: YAxis) -> tuple[float, float, bool]:
    """Where the y axis begins and ends, and whether it is logarithmic."""
    values = [v for cell in cells for line in cell.lines for v in line.y]
    bounds = _bounds(cells)
    if y.at is not None:
        values.append(y.at)
    if not values:
        return 0.0, 1.0, False
    is_log = spans_decades(values) if y.is_log is None else y.is_log
    if is_log:
        positive = [value for value in values if value > 0]
        least, greatest = min(positive), max(positive)
        low = max(min((least, *(b for b in bounds if b > 0))), least / _BEYOND)
        high = min(max((greatest, *bounds)), greatest * _BEYOND)
        return low / 1.3, high * 1.3, True
    top = max((*values, *bounds))
    return min(0.0, *values), top * 1.06 or 1.0, False


def _bounds(cells: Sequence[LinePanel]) -> list[float]:
    """Where the bars end."""
    return [b for cell in cells for line in cell.lines for ci in line.ci95 if ci for b in ci]


def _set_x(chart: PanelChart, axes: Axes, x: XAxis) -> None:
    at = [place for place, _ in x.ticks]
    is_log = spans_decades(at)
    if is_log:
        axes.set_xscale("log")
    places = [math.log(place) for place in at] if is_log else at
    width = max(places) - min(places) if places else 0.0
    margin = max(0.05 * width if width else 0.5, x.beside)
    if is_log:
        axes.set_xlim(math.exp(min(places) - margin), math.exp(max(places) + margin))
    else:
        axes.set_xlim(min(places) - margin, max(places) + margin)
    room_in = axes.get_position().width * chart.figure.get_figwidth()
    kept = _fitting(x.ticks, places, room_in / (width + 2 * margin))
    axes.xaxis.set_major_locator(FixedLocator([x.ticks[n][0] for n in kept]))
    axes.set_xticklabels([x.ticks[n][1] for n in kept])
    axes.xaxis.set_minor_locator(NullLocator())


def _fitting(
    ticks: Sequence[tuple[float, str]], places: Sequence[float], inches_per: float
) -> list[int]:
    """The ticks whose labels leave each other room; the last one always."""
    kept: list[int] = []
    left_in = math.inf
    for number in reversed(range(len(ticks))):
        half = text_width(ticks[number][1], ASIDE) / 2
        middle = places[number] * inches_per
        if middle + half + _BETWEEN_TICKS_IN <= left_in:
            kept.append(number)
            left_in = middle - half
    return kept[::-1]


def _set_y(axes: Axes, low: float, high: float, *, is_log: bool) -> None:
    if not is_log:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        return
    axes.yaxis.set_major_locator(
        LogLocator(base=10, subs=_subs(math.log10(high / low)), numticks=20)
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _subs(decades: float) -> tuple[float, ...]:
    """What is written beside powers of ten, the more the fewer of those there are."""
    if decades > _FEW_TICKS:
        return (1.0,)
    return (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
