"""Small multiples of marks with intervals, against what was varied.

Axes are logarithmic where their figures span decades. The frame is `charts.frame`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from wanlat.analysis.charts.frame import (
    Words,
    caption,
    dress,
    head,
    legend,
    log_ticks,
    multiples,
    round_ticks,
)
from wanlat.analysis.charts.style import QUIET, SeriesStyle, applied, styles
from wanlat.analysis.endpoints import row_names
from wanlat.analysis.section import Row
from wanlat.bundle.documents import PLACEMENTS, Titles
from wanlat.bundle.run import Series

T = TypeVar("T")

LOG_FROM = 8.0
"""Figures that span this factor, or more, are drawn on a logarithmic axis."""
_BEYOND = 6.0
"""A bar is drawn up to so many times the greatest mark: one of a single slow request among fast
ones may reach to thousands of times, and all the rest would be pressed into a line; it leaves its
panel."""
_BETWEEN_TICKS = 0.11
"""At least, of a panel's width, of three panels in a row."""


@dataclass(frozen=True)
class Dot:
    """A mark: its panel (a name, and what it shows), its series, and y's 95 % interval.

    A line joins those of a series and placement in a panel if all of them are `joined`, and each x
    has one.
    """

    panel: tuple[str, str]
    series: Series
    placement: str
    x: float
    y: float
    ci95: Sequence[float] | None = None
    joined: bool = True


@dataclass(frozen=True)
class Scale:
    """How the panels are read: the ticks of x with their labels, and the label of y.

    `at` is a height at which a line is drawn across, such as a ratio of 1. Panels that are not
    `alike` have heights of their own. These begin at zero where they are not logarithmic: what
    grows by 3 % must not look as if it doubled. Lines stand `beside` each other by this factor.
    """

    ticks: Mapping[float, str]
    y_label: str
    at: float | None = None
    alike: bool = True
    beside: float = 1.0


def draw_facets(
    words: Words,
    dots: Sequence[Dot],
    scale: Scale,
    titles: Titles,
    *,
    columns: int = 3,
    beneath: Callable[[Axes, str], None] = lambda _axes, _name: None,
) -> Figure:
    """A chart with a panel for each that `dots` name; `beneath` draws under the marks of one."""
    names = dict.fromkeys(dot.panel for dot in dots)
    panels = {name: [dot for dot in dots if dot.panel == name] for name in names}
    series = list(dict.fromkeys(dot.series for dot in dots))
    placed = {(dot.series, dot.placement) for dot in dots}
    looks = styles(series)
    lines = [(one, where) for one in looks for where in PLACEMENTS if (one, where) in placed]
    words = replace(words, caption=caption(series, titles, placed, *words.caption))
    columns = min(columns, len(panels))
    with applied():
        figure, axes_of = multiples(
            words, len(panels), columns=columns, y_label=scale.y_label, share_y=scale.alike
        )
        for axes, (panel, marks) in zip(axes_of, panels.items(), strict=True):
            head(axes, *panel)
            _set_x(axes, scale.ticks, _BETWEEN_TICKS * columns / 3)
            _set_y(axes, dots if scale.alike else marks, scale)
            if scale.at is not None:
                axes.axhline(scale.at, color=QUIET, linewidth=1.0, zorder=1)
            beneath(axes, panel[0])
            for number, (one, where) in enumerate(lines):
                if mine := [dot for dot in marks if (dot.series, dot.placement) == (one, where)]:
                    aside = scale.beside ** (number - (len(lines) - 1) / 2)
                    _draw(axes, mine, looks[one].at(where), aside)
        return dress(figure, words, legend(series, titles, placed))


def panel_names(rows: Sequence[Row]) -> list[str]:
    """What the panel of each row is headed: endpoints that do the same share one."""
    called = row_names(row.get("endpoint", "") for row in rows)
    return [called[row.get("endpoint", "")].replace("\n", " ") for row in rows]


def by_label(
    stem: str, items: Sequence[T], labels: Sequence[str]
) -> Iterator[tuple[str, str, list[T]]]:
    """A chart for each label of items: its file's stem, the label, its items."""
    for label in dict.fromkeys(labels):
        mine = [item for item, its in zip(items, labels, strict=True) if its == label]
        yield stem + re.sub(r"[^\w.]+", "-", label), label, mine


def spans_decades(values: Sequence[float]) -> bool:
    """Whether `values` are better drawn on a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= LOG_FROM


def _set_y(axes: Axes, dots: Sequence[Dot], scale: Scale) -> None:
    """Let the heights of a panel have room for `dots`, with ticks that can be read."""
    values = [dot.y for dot in dots] + ([] if scale.at is None else [scale.at])
    bounds, least, greatest = [b for dot in dots for b in dot.ci95 or ()], min(values), max(values)
    if spans_decades(values):
        low = max(min((least, *(bound for bound in bounds if bound > 0))), least / _BEYOND) / 1.3
        high = min(max((greatest, *bounds)), greatest * _BEYOND) * 1.3
        axes.set_yscale("log")
        log_ticks(axes.yaxis, high / low)
    else:
        low, high = min(0.0, least), max((greatest, *bounds)) * 1.06 or 1.0
        round_ticks(axes.yaxis, 5)
    axes.set_ylim(low, high)


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
    ends = low - margin, low + width + margin
    if is_log:
        axes.set_xscale("log")
        ends = math.exp(ends[0]), math.exp(ends[1])
    axes.set_xlim(ends)
    axes.xaxis.set_major_locator(FixedLocator(kept))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: ticks.get(x, "")))
    axes.xaxis.set_minor_locator(NullLocator())


def _draw(axes: Axes, dots: Sequence[Dot], look: SeriesStyle, aside: float) -> None:
    """The marks of one line, its intervals, and the line where there is one."""
    dots = sorted(dots, key=lambda dot: dot.x)
    x, y = [dot.x * aside for dot in dots], [dot.y for dot in dots]
    ends = np.array([dot.ci95 or (math.nan, math.nan) for dot in dots], float).reshape(-1, 2).T
    reach = np.maximum([y - ends[0], ends[1] - y], 0)
    bars: dict[str, Any] = {"ecolor": look.dark, "elinewidth": 0.9, "capsize": 1.8, "capthick": 0.8}
    axes.errorbar(x, y, yerr=reach, fmt="none", zorder=3.5, **bars)
    face, edge = look.dot
    width, dashes = (0.9, (0, (3, 2))) if look.is_remote else (0.4, "-")
    line: dict[str, Any] = {
        "color": look.dark,
        "lw": 1.1,
        "ls": dashes if is_line(dots) else "none",
    }
    mark: dict[str, Any] = {
        "marker": look.marker,
        "ms": 4.4,
        "mfc": face,
        "mec": edge,
        "mew": width,
    }
    axes.plot(x, y, zorder=4, clip_on=False, **line, **mark)


def is_line(dots: Sequence[Dot]) -> bool:
    """Whether a line joins the marks of a series and placement in a panel, as of `Dot`."""
    return all(dot.joined for dot in dots) and len({dot.x for dot in dots}) == len(dots)
