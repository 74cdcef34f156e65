"""The marks that a row of latencies is drawn with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from wanlat.analysis.charts.rows import ROW_IN
from wanlat.analysis.charts.style import ALARM, INK, SMALL_PT, SeriesStyle

if TYPE_CHECKING:
    from wanlat.analysis.statistics import Values

_BAR_IN = 0.84 * ROW_IN
# Samples have the upper two thirds of a bar and the lines of statistics the rest, so that neither
# hides the other.
_STRIP_IN = 0.58 * _BAR_IN
_STRIP_ABOVE_IN = 0.155 * _BAR_IN
STATISTICS_BELOW_IN = 0.31 * _BAR_IN
# Of the same nominal size a triangle looks smaller than a square.
_DOT_AREA = {"s": 7.0, "D": 6.0, "o": 9.0}
_OTHER_DOT_AREA = 11.0
_DOTS_AS_SHAPES = 2000
_TICK_PT = 0.28 * _BAR_IN * 72
_GOLDEN = 0.6180339887498949


def strip_offsets(n: int) -> Values:
    """Where across a strip each of n samples lies, shape (n,), in -0.5..0.5.

    Spread evenly, and the same each time: fractional parts of multiples of the golden ratio, the
    most even of such sequences.
    """
    multiples = np.arange(1, n + 1, dtype=np.float64) * _GOLDEN
    return multiples - np.floor(multiples) - 0.5


def draw_bar(
    axes: Axes, mean_ms: float, centre: float, look: SeriesStyle, *, hollow: bool = False
) -> None:
    """A bar from zero to `mean_ms`; a `hollow` one, for figures not ours, is an outline."""
    axes.barh(
        centre,
        mean_ms,
        height=_BAR_IN,
        color="white" if hollow else look.fill,
        edgecolor=look.dark,
        hatch="" if hollow else look.hatch,
        linewidth=0.9 if hollow else 0.8,
        linestyle="--" if hollow else "-",
        zorder=2,
    )


def draw_strip(axes: Axes, values_ms: Values, centre: float, look: SeriesStyle) -> None:
    """Every sample that the axis reaches as a dot, in its order, spread over the upper part."""
    inside = values_ms <= axes.get_xlim()[1]
    face, edge = look.dot
    ys = centre - _STRIP_ABOVE_IN + strip_offsets(values_ms.size) * _STRIP_IN
    axes.scatter(
        values_ms[inside],
        ys[inside],
        s=_dot_area(look.marker, values_ms.size),
        marker=look.marker,
        color=face,
        edgecolors=edge,
        linewidths=0.6 if look.is_remote else 0.2,
        alpha=0.85,
        zorder=3,
        clip_on=False,
        # In an SVG every dot is an element; a picture of so many is smaller and no less clear.
        rasterized=values_ms.size > _DOTS_AS_SHAPES,
    )


def _dot_area(marker: str, n: int) -> float:
    """Area of a dot, points²: that of 100 samples, more where they are fewer."""
    crowding = min(2.5, max(0.35, math.sqrt(100 / max(n, 1))))
    return _DOT_AREA.get(marker, _OTHER_DOT_AREA) * crowding


def draw_extremes(
    axes: Axes, figures_ms: tuple[float | None, float, float | None], y: float, look: SeriesStyle
) -> None:
    """A line at `y` from the smallest to the greatest with a tick at each, an arrow where cut.

    `figures_ms` are smallest, mean and greatest. An extreme that is None is not known: the line
    ends at the mean there, without a tick.
    """
    limit = axes.get_xlim()[1]
    low_ms, mean_ms, high_ms = figures_ms
    ends_ms = [mean_ms if value is None else min(value, limit) for value in (low_ms, high_ms)]
    axes.plot(ends_ms, [y, y], color=look.dark, linewidth=0.8, zorder=2.5)
    for value_ms in (low_ms, high_ms):
        if value_ms is None:
            continue
        cut = value_ms > limit
        axes.plot(
            [min(value_ms, limit)],
            [y],
            marker=">" if cut else "|",
            markersize=5.5 if cut else _TICK_PT,
            markeredgewidth=1.2,
            color=ALARM if cut else look.dark,
            zorder=4,
            clip_on=False,
        )


def draw_interval(axes: Axes, interval_ms: Sequence[float], y: float) -> None:
    """The interval of the mean at `y`, black, with caps so that a narrow one is seen."""
    axes.plot(
        list(interval_ms),
        [y, y],
        color=INK,
        linewidth=2.2,
        marker="|",
        markersize=_TICK_PT,
        markeredgewidth=1.3,
        zorder=5,
        solid_capstyle="butt",
        clip_on=False,
    )


def write_on_row(axes: Axes, centre: float, text: str) -> None:
    """Say in the place of a bar why there is none."""
    axes.annotate(
        text,
        (0, centre),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL_PT,
        color=ALARM,
        style="italic",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )
