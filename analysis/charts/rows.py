"""A chart of rows: what a benchmark has a bar for, with its figures beside it.

Rows of one endpoint stand below its name; labels are ticks of the axis, figures stand to the right
of it, RTTs are a second axis above. matplotlib's constrained layout gives all of it its room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.frame import WIDTH_IN
from wanlat.analysis.charts.lettering import ALARMING, ASIDE, LABEL, Lettering, text_width
from wanlat.analysis.charts.style import ALARM, FAINT, QUIET, SMALL_PT, TINY_PT, SeriesStyle

if TYPE_CHECKING:
    from wanlat.analysis.stats.intervals import Values

BAR = 0.84
"""Height of a bar, in heights of a row."""
_ROW_IN = 0.3
_HEADING, _BETWEEN = 0.73, 0.12
"""Of an endpoint's name, and below its rows, in heights of a row."""
_GAP_PT = 12.0
_DOTTED: Any = (0, (1, 2.2))
# Of the same nominal size a triangle looks smaller than a square.
_DOT_AREA = {"s": 7.0, "D": 6.0, "o": 9.0}
_OTHER_DOT_AREA = 11.0
_DOTS_AS_SHAPES = 2000
MOST_DOTS = 5000
"""Of a row, picked evenly through the run where there are more: a picture of more says no more."""
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Row:
    """One row: the endpoint it belongs to, its own label, and the figures beside it.

    The last figure of an `alarming` one is written in bold red.
    """

    group: str
    label: str
    cells: tuple[str, ...]
    alarming: bool = False


@dataclass(frozen=True)
class RowChart:
    """A figure with its frame drawn; y of its axes is in rows, and `centres` has each row's."""

    figure: Figure
    axes: Axes
    centres: tuple[float, ...]


def row_chart(
    rows: Sequence[Row], headers: Sequence[str], limit_ms: float, rtt_ms: float | None
) -> RowChart:
    """A figure with everything but the bars: x runs from 0 to `limit_ms`.

    Where each endpoint has one row, without a label of its own, its name is the label. Draw in the
    style (`style.applied`), and end with `frame.dress`.
    """
    alone = all(not row.label for row in rows)
    centres, headings, y = [], [], 0.0
    for name, members in groupby(rows, key=lambda row: row.group):
        if not alone:
            headings.append((name, y))
            y += _HEADING
        for _ in members:
            centres.append(y + 0.5)
            y += 1
        y += _BETWEEN
    figure = Figure(figsize=(WIDTH_IN, 0.7 + y * _ROW_IN), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_xlim(0, limit_ms)
    axes.set_ylim(y, 0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10]))
    axes.set_yticks(centres, [row.group if alone else row.label for row in rows])
    axes.tick_params(axis="y", length=0, labelsize=LABEL.size_pt)
    axes.tick_params(axis="x", length=3, pad=2)
    axes.set_xlabel("latency of one request, ms", fontsize=LABEL.size_pt)
    for number, (name, top) in enumerate(headings):
        _write(axes, (0, top + _HEADING / 2), (4, 0), name, Lettering(9.0, bold=True), "left")
        if number:
            axes.axhline(top - _BETWEEN / 2, color=FAINT, linewidth=0.7, zorder=0)
    if rtt_ms:
        _rule(axes, rtt_ms)
    right_pt = 0.0
    for column, header in enumerate(headers):
        last = column == len(headers) - 1
        cells = [(row.cells[column], ALARMING if row.alarming and last else LABEL) for row in rows]
        width = max(text_width(text, how) for text, how in [(header, ASIDE), *cells])
        right_pt += _GAP_PT + 72 * width
        for centre, (text, how) in zip(centres, cells, strict=True):
            _write(axes, (1, centre), (right_pt, 0), text, how)
        _write(axes, (1, 0), (right_pt, 10), header, ASIDE)
    return RowChart(figure, axes, tuple(centres))


def draw_bar(
    axes: Axes,
    length_ms: float,
    centre: float,
    look: SeriesStyle,
    *,
    height: float = BAR,
    hollow: bool = False,
) -> None:
    """A bar from zero to `length_ms`; a `hollow` one, for figures not ours, is an outline."""
    axes.barh(
        centre,
        length_ms,
        height=height,
        color="white" if hollow else look.fill,
        edgecolor=look.dark,
        hatch="" if hollow else look.hatch,
        linewidth=0.9 if hollow else 0.6,
        linestyle="--" if hollow else "-",
        zorder=2,
    )


def draw_strip(
    axes: Axes, values_ms: Values, at: tuple[float, float], look: SeriesStyle, total: int
) -> None:
    """Samples that the axis reaches as dots, in their order: of `total` ones in their row.

    `at` is the middle of what they are spread over, and how high that is.
    """
    if total > MOST_DOTS:
        share = math.ceil(MOST_DOTS * values_ms.size / total)
        values_ms = values_ms[np.linspace(0, values_ms.size - 1, share).astype(int)]
        total = MOST_DOTS
    inside = values_ms <= axes.get_xlim()[1]
    face, edge = look.dot
    crowding = min(2.5, max(0.35, math.sqrt(100 / max(total, 1))))
    axes.scatter(
        values_ms[inside],
        (at[0] + 0.8 * at[1] * strip_offsets(values_ms.size))[inside],
        s=_DOT_AREA.get(look.marker, _OTHER_DOT_AREA) * crowding,
        marker=look.marker,
        color=face,
        edgecolors=edge,
        linewidths=0.6 if look.is_remote else 0.2,
        alpha=0.85,
        zorder=3,
        clip_on=False,
        # In an SVG every dot is an element; a picture of so many is smaller and no less clear.
        rasterized=total > _DOTS_AS_SHAPES,
    )


def strip_offsets(n: int) -> Values:
    """Where across a strip each of n samples lies, shape (n,), in -0.5..0.5.

    Spread evenly, and the same each time: fractional parts of multiples of the golden ratio, the
    most even of such sequences.
    """
    multiples = np.arange(1, n + 1, dtype=np.float64) * _GOLDEN
    return multiples - np.floor(multiples) - 0.5


def write_beyond(axes: Axes, centre: float, text: str, look: SeriesStyle) -> None:
    """Name at the axis' end what lies beyond it."""
    _write(
        *(axes, (1, centre), (-2, 0), f"{text} »", Lettering(TINY_PT, look.dark)),
        ground="white",
    )


def write_on_row(axes: Axes, centre: float, text: str) -> None:
    """Say in the place of a bar why there is none."""
    _write(axes, (0, centre), (5, 0), text, Lettering(SMALL_PT, ALARM), "left", ground="white")


def _rule(axes: Axes, rtt_ms: float) -> None:
    """A second axis above, in RTTs, with a line at each of its ticks."""

    def as_trips(ms: Any) -> Any:
        return ms / rtt_ms

    def as_ms(trips: Any) -> Any:
        return trips * rtt_ms

    ruler = axes.secondary_xaxis("top", functions=(as_trips, as_ms))
    locator = MaxNLocator(nbins=12, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1)
    ruler.xaxis.set_major_locator(locator)
    ruler.tick_params(length=0, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    ruler.spines["top"].set_visible(False)
    ruler.set_xlabel("RTTs", fontsize=TINY_PT, color=QUIET, labelpad=2, loc="left")
    limit = axes.get_xlim()[1]
    for multiple in locator.tick_values(0, limit / rtt_ms):
        if 0 < multiple * rtt_ms <= limit:
            x = float(multiple) * rtt_ms
            axes.axvline(x, color="#8c8c8c", linewidth=0.8, linestyle=_DOTTED, zorder=0.5)


def _write(
    axes: Axes,
    at: tuple[float, float],
    offset_pt: tuple[float, float],
    text: str,
    how: Lettering,
    align: str = "right",
    *,
    ground: str = "none",
) -> None:
    """Set `text` beside a place: so far along the axis (0..1), so many rows down."""
    axes.annotate(
        text,
        at,
        xycoords=("axes fraction", "data"),
        xytext=offset_pt,
        textcoords="offset points",
        fontsize=how.size_pt,
        color=how.colour,
        fontweight="bold" if how.bold else "normal",
        ha=align,
        va="center",
        annotation_clip=False,
        zorder=6,
        bbox={"facecolor": ground, "edgecolor": "none", "pad": 1.0, "alpha": 0.8},
    )
