"""The legend of a chart: a swatch for each series, in lines above the plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from wanlat.analysis.charts.lettering import LABEL, text_width, write
from wanlat.analysis.charts.style import SeriesStyle

LINE_IN = 0.24

_SWATCH_IN = (0.3, 0.13)
_SWATCH_ABOVE_IN = 0.055
_GAP_IN = 0.08
_BETWEEN_IN = 0.3


@dataclass(frozen=True)
class LegendEntry:
    """A swatch and what it stands for. A `hollow` one is an outline."""

    style: SeriesStyle
    label: str
    hollow: bool = False


PlacedEntry = tuple[float, LegendEntry]
"""An entry and where on its line it begins, inches."""


def legend_lines(
    entries: Sequence[LegendEntry], left: float, right: float
) -> list[list[PlacedEntry]]:
    """The entries of each line of a legend that reaches from `left` to `right`, inches."""
    lines: list[list[PlacedEntry]] = []
    x = right
    for entry in entries:
        needed = _SWATCH_IN[0] + _GAP_IN + text_width(entry.label, LABEL)
        if x + needed > right:
            lines.append([])
            x = left
        lines[-1].append((x, entry))
        x += needed + _BETWEEN_IN
    return lines


def draw_legend_line(figure: Figure, entries: Sequence[PlacedEntry], y: float) -> None:
    """Draw one line of a legend, its lower edge at `y` inches."""
    for x, entry in entries:
        _draw_swatch(figure, (x, y + _SWATCH_ABOVE_IN), entry)
        middle = y + _SWATCH_ABOVE_IN + _SWATCH_IN[1] / 2
        at = (x + _SWATCH_IN[0] + _GAP_IN, middle)
        write(figure, at, entry.label, LABEL, ("left", "center_baseline"))


def _draw_swatch(figure: Figure, at: tuple[float, float], entry: LegendEntry) -> None:
    style = entry.style
    figure.add_artist(
        Rectangle(
            at,
            *_SWATCH_IN,
            transform=figure.dpi_scale_trans,
            facecolor="white" if entry.hollow else style.fill,
            edgecolor=style.dark,
            hatch="" if entry.hollow else style.hatch,
            linewidth=0.9,
            linestyle="--" if entry.hollow else "-",
        )
    )
    if entry.hollow:
        return
    figure.add_artist(
        Line2D(
            [at[0] + _SWATCH_IN[0] / 2],
            [at[1] + _SWATCH_IN[1] / 2],
            transform=figure.dpi_scale_trans,
            marker=style.marker,
            markersize=4.5,
            markerfacecolor=style.dot[0],
            markeredgecolor=style.dot[1],
            markeredgewidth=0.9 if style.is_remote else 0.5,
            linestyle="none",
        )
    )
