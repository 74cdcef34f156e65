"""A chart of rows: what a benchmark has a bar for, with its figures beside it.

Rows of one endpoint stand below its name; labels are ticks of the axis, figures stand to the right
of it, RTTs are a second axis above. matplotlib's constrained layout gives all of it its room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.frame import Words, multiples
from wanlat.analysis.charts.style import (
    ALARM,
    FAINT,
    INK,
    QUIET,
    SMALL_PT,
    TINY_PT,
    SeriesStyle,
)
from wanlat.analysis.endpoints import is_known, row_names, with_placement

BAR = 0.84
"""Height of a bar, in heights of a row."""
_HEADING, _BETWEEN = 0.73, 0.12
"""Of an endpoint's name, and below its rows, in heights of a row."""
_GAP_PT, _LETTER_PT = 11.0, 4.6
_DOTTED: Any = (0, (1, 2.2))


@dataclass(frozen=True)
class Row:
    """One row: its endpoint, the system and the placement it is of, and the figures beside it.

    The last figure of an `alarming` one is red.
    """

    endpoint: str
    label: str
    placement: str
    cells: tuple[str, ...]
    alarming: bool = False


def row_chart(
    words: Words, rows: Sequence[Row], headers: Sequence[str], row_in: float = 0.3
) -> tuple[Figure, Axes, list[float]]:
    """A figure with everything but the marks, its axes, and the middle of each row there.

    Where each endpoint has one row and there is one system, its name is the label.
    """
    names = row_names([row.endpoint for row in rows])
    groups = [names[row.endpoint].replace("\n", " ") for row in rows]
    placed = any(is_known(row.placement) for row in rows)
    alone = len(set(groups)) == len(rows) and not placed
    labels = groups if alone else [with_placement(row.label, row.placement) for row in rows]
    centres, headings, y = [], [], 0.0
    for name, members in groupby(groups):
        if not alone:
            headings.append((name, y))
            y += _HEADING
        centres += [y + 0.5 + number for number, _ in enumerate(members)]
        y = centres[-1] + 0.5 + _BETWEEN
    figure, (axes,) = multiples(words, 1, panel_in=0.4 + y * row_in)
    axes.set_ylim(y, 0)
    axes.grid(visible=False)
    axes.set_yticks(centres, labels)
    axes.tick_params(axis="y", length=0, labelsize=SMALL_PT, labelcolor=INK)
    for name, top in headings:
        write(axes, name, (0, top + _HEADING / 2), 4, fontsize=9, fontweight="bold")
        if top:
            axes.axhline(top - _BETWEEN / 2, color=FAINT, linewidth=0.7, zorder=0)
    right_pt = 0.0
    for column, header in enumerate(headers):
        cells = [row.cells[column] for row in rows]
        right_pt += _GAP_PT + _LETTER_PT * max(map(len, (header, *cells)))
        write(axes, header, (1, 0), right_pt, 10, ha="right", fontsize=TINY_PT, color=QUIET)
        for row, centre, text in zip(rows, centres, cells, strict=True):
            is_red = row.alarming and column == len(headers) - 1
            write(axes, text, (1, centre), right_pt, ha="right", color=ALARM if is_red else INK)
    return figure, axes, centres


def write(
    axes: Axes,
    text: str,
    at: tuple[float, float],
    right_pt: float,
    up_pt: float = 0.0,
    of_y: str = "data",
    **how: Any,
) -> None:
    """Write beside a place: x as a share of the axes' width, y in data, or as theirs."""
    axes.annotate(
        text,
        at,
        xycoords=("axes fraction", of_y),
        xytext=(right_pt, up_pt),
        textcoords="offset points",
        annotation_clip=False,
        zorder=6,
        **{"fontsize": SMALL_PT, "va": "center", **how},
    )


def draw_bar(axes: Axes, length: float, centre: float, height: float, look: SeriesStyle) -> None:
    """A bar from zero."""
    axes.barh(
        centre,
        length,
        height=height,
        color=look.fill,
        edgecolor=look.dark,
        hatch=look.hatch,
        linewidth=0.6,
        zorder=2,
    )


def rule(axes: Axes, rtt_ms: float) -> None:
    """A second axis above one of milliseconds, in RTTs, with a line at each of its ticks."""

    def trips(ms: Any) -> Any:
        return ms / rtt_ms

    def ms(trips: Any) -> Any:
        return trips * rtt_ms

    ruler = axes.secondary_xaxis("top", functions=(trips, ms))
    locator = MaxNLocator(nbins=12, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1)
    ruler.xaxis.set_major_locator(locator)
    ruler.tick_params(length=0, pad=2, labelcolor=QUIET)
    ruler.spines["top"].set_visible(False)
    ruler.set_xlabel("RTTs", fontsize=TINY_PT, color=QUIET, labelpad=2, loc="left")
    limit_ms = axes.get_xlim()[1]
    for multiple in locator.tick_values(0, limit_ms / rtt_ms):
        if 0 < multiple * rtt_ms <= limit_ms:
            x = float(multiple) * rtt_ms
            axes.axvline(x, color="#8c8c8c", linewidth=0.8, linestyle=_DOTTED, zorder=0.5)
