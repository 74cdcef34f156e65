"""Small multiples of marks with intervals, against what was varied.

Axes are logarithmic where their figures span decades. The frame is `charts.frame`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.style import QUIET, SeriesStyle, applied

LOG_FROM = 8.0
"""Figures that span this factor, or more, are drawn on a logarithmic axis."""
_BEYOND = 6.0
"""A bar is drawn up to so many times the greatest mark: one of a single slow request among fast
ones may reach to thousands of times, and all the rest would be pressed into a line."""
_GOES_ON = "A bar that leaves its panel goes on."
_BETWEEN_TICKS = 0.11
"""At least, of a panel's width, of three panels in a row."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Marks:
    """Marks of one series in a panel: `x`, `y`, and each y's 95 % interval (None: not known).

    A `dashed` line joins what is not ours, or of the other placement; marks that are not `joined`
    have none.
    """

    look: SeriesStyle
    x: Sequence[float]
    y: Sequence[float]
    ci95: Sequence[Interval | None]
    dashed: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Facet:
    """One panel: whose it is, what it shows, and the marks on it."""

    name: str
    what: str
    marks: tuple[Marks, ...]


@dataclass(frozen=True)
class Scale:
    """How the panels are read: the ticks of x with their labels, and the label of y.

    `at` is a height at which a line is drawn across, such as a ratio of 1. Panels that are not
    `alike` have heights of their own. These begin at zero where they are not logarithmic: what
    grows by 3 % must not look as if it doubled.
    """

    ticks: Mapping[float, str]
    y_label: str
    at: float | None = None
    alike: bool = True


def draw_facets(
    words: Words,
    facets: Sequence[Facet],
    scale: Scale,
    looks: Sequence[tuple[SeriesStyle, str]],
    *,
    columns: int = 3,
    beneath: Callable[[Axes, int], None] = lambda _axes, _number: None,
) -> Figure:
    """A chart with a panel for each of `facets`; `beneath` draws under the marks of the n-th."""
    limits = [_limits(facets if scale.alike else [facet], scale) for facet in facets]
    if any(
        not low <= bound <= high
        for facet, (low, high, _) in zip(facets, limits, strict=True)
        for bound in _bounds([facet])
    ):
        words = replace(words, caption=(*words.caption, _GOES_ON))
    columns = min(columns, len(facets))
    with applied():
        figure, panels = multiples(
            words,
            len(facets),
            columns=columns,
            panel_in=2.3,
            y_label=scale.y_label,
            share_y="all" if scale.alike else "none",
        )
        for number, (axes, facet) in enumerate(zip(panels, facets, strict=True)):
            head(axes, facet.name, facet.what)
            _set_x(axes, scale.ticks, _BETWEEN_TICKS * columns / 3)
            set_y(axes, *limits[number])
            if scale.at is not None:
                axes.axhline(scale.at, color=QUIET, linewidth=1.0, zorder=1)
            beneath(axes, number)
            for marks in facet.marks:
                _draw(axes, marks)
        return dress(figure, words, looks)


def set_y(axes: Axes, low: float, high: float, is_log: bool) -> None:
    """Let the heights of a panel run from `low` to `high`, with ticks that can be read."""
    if not is_log:
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        return
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    decades = math.log10(high / low)
    subs = (1.0,) if decades > 3 else (1.0, 2.0, 5.0) if decades > 1 else (1.0, 1.5, 2, 3, 5, 7)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def spans_decades(values: Sequence[float]) -> bool:
    """Whether `values` are better drawn on a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= LOG_FROM


def _limits(facets: Sequence[Facet], scale: Scale) -> tuple[float, float, bool]:
    """Where the heights begin and end, and whether they are logarithmic."""
    values = [float(y) for facet in facets for marks in facet.marks for y in marks.y]
    values += [] if scale.at is None else [scale.at]
    bounds, least, greatest = _bounds(facets), min(values), max(values)
    if spans_decades(values):
        low = max(min((least, *(bound for bound in bounds if bound > 0))), least / _BEYOND)
        return low / 1.3, min(max((greatest, *bounds)), greatest * _BEYOND) * 1.3, True
    return min(0.0, least), max((greatest, *bounds)) * 1.06 or 1.0, False


def _bounds(facets: Sequence[Facet]) -> list[float]:
    """Where the bars end."""
    return [b for facet in facets for marks in facet.marks for ci in marks.ci95 if ci for b in ci]


def _set_x(axes: Axes, ticks: Mapping[float, str], apart: float) -> None:
    """Ticks as far as their labels leave each other room, the shortest ones first."""
    is_log = spans_decades(list(ticks))
    places = {x: math.log(x) if is_log else x for x in ticks}
    low, width = min(places.values()), max(places.values()) - min(places.values())
    margin = 0.06 * width or 0.5
    kept: list[float] = []
    for x in sorted(ticks, key=lambda x: len(ticks[x])):
        if all(abs(places[x] - places[other]) >= apart * width for other in kept):
            kept.append(x)
    if is_log:
        axes.set_xscale("log")
        axes.set_xlim(math.exp(low - margin), math.exp(low + width + margin))
    else:
        axes.set_xlim(low - margin, low + width + margin)
    axes.xaxis.set_major_locator(FixedLocator(kept))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: ticks.get(x, "")))
    axes.xaxis.set_minor_locator(NullLocator())


def _draw(axes: Axes, marks: Marks) -> None:
    face, edge = marks.look.dot
    is_open = marks.dashed or marks.look.is_remote
    known = [(x, y, ci) for x, y, ci in zip(marks.x, marks.y, marks.ci95, strict=True) if ci]
    if known:
        reach = np.array([(max(0.0, y - ci[0]), max(0.0, ci[1] - y)) for _, y, ci in known]).T
        axes.errorbar(
            [x for x, _, _ in known],
            [y for _, y, _ in known],
            yerr=reach,
            fmt="none",
            ecolor=marks.look.dark,
            elinewidth=0.9,
            capsize=1.8,
            capthick=0.8,
            zorder=3.5,
        )
    axes.plot(
        marks.x,
        marks.y,
        color=marks.look.dark,
        linewidth=1.1,
        linestyle="none" if not marks.joined else (0, (3, 2)) if is_open else "-",
        marker=marks.look.marker,
        markersize=4.4,
        markerfacecolor="white" if marks.dashed else face,
        markeredgecolor=marks.look.dark if is_open else edge,
        markeredgewidth=0.9 if is_open else 0.4,
        zorder=4,
        clip_on=False,
    )
