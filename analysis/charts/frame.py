"""The frame of a chart: title and subtitle above, a legend, small multiples, a caption below.

matplotlib's constrained layout gives panels and what belongs to them their places; a figure grows
by the lines that stand above and below.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import offset_copy
from numpy.typing import NDArray

from wanlat.analysis.charts.lettering import ASIDE, LABEL, SUBTITLE, TITLE, Lettering
from wanlat.analysis.charts.style import SeriesStyle

WIDTH_IN = 10.0
_LINE = 1.35
"""Of a line, in sizes of its letters."""
_LETTERS = {False: 134, True: 120}
"""So many letters of one point stand in an inch, bold ones or not."""
_MARGIN_IN, _LEGEND_IN, _IN_A_LINE = 0.1, 0.23, 5
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Words:
    """All text around the panels; `caption` is a sequence of paragraphs."""

    title: str
    subtitle: str
    x_label: str = ""
    caption: tuple[str, ...] = ()


def multiples(
    words: Words,
    panels: int,
    *,
    columns: int = 3,
    panel_in: float = 2.4,
    y_label: str = "",
    share: Literal["all", "col"] = "all",
    share_y: Literal["all", "col", "row", "none"] | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels on common axes, row by row.

    `share`: axes are common to all panels, or to those of a column; where `share_y` is given it is
    that of their heights. Draw in the style (`style.applied`), and end with `dress`.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(WIDTH_IN, 0.3 + rows * panel_in), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=share, sharey=share_y or share, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for one in axes[:panels]:
        one.grid(visible=True, zorder=0)
        one.tick_params(length=2.5, pad=2)
    for lowest in axes[max(panels - columns, 0) : panels]:
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel(words.x_label)
    for leftmost in axes[:panels:columns]:
        leftmost.set_ylabel(y_label)
    return figure, axes[:panels]


def head(axes: Axes, name: str, what: str) -> None:
    """Write above a panel whose it is, and below that what it shows."""
    axes.set_title(what, loc="left", fontsize=LABEL.size_pt, pad=4)
    up_pt = 5 + (what.count("\n") + bool(what)) * LABEL.size_pt * _LINE
    above = offset_copy(axes.transAxes, axes.get_figure(root=True), y=up_pt, units="points")
    axes.text(0, 1, name, transform=above, fontweight="bold")


def dress(
    figure: Figure,
    words: Words,
    looks: Sequence[tuple[SeriesStyle, str]] = (),
    *,
    keys: Sequence[tuple[Any, str]] = (),
    verdicts: Sequence[tuple[str, Lettering]] = (),
) -> Figure:
    """Add the title, the subtitle and a legend of series above, the caption below, and lay out.

    A chart that has no series has `keys` in its legend: an artist, or a tuple of artists that stand
    side by side, and what it means. `verdicts` are lines of their own below the subtitle.
    """
    width_in, panels_in = figure.get_size_inches()
    above = _lines([(words.title, TITLE), (words.subtitle, SUBTITLE), *verdicts], width_in)
    below = _lines([(text, ASIDE) for text in words.caption], width_in)
    entries = [((swatch(look), mark(look)), label) for look, label in looks] + list(keys)
    legend_in = -(-len(entries) // _IN_A_LINE) * _LEGEND_IN
    up_in, down_in = (
        _MARGIN_IN + sum(how.size_pt for _, how in of) * _LINE / 72 for of in (above, below)
    )
    height_in = up_in + legend_in + panels_in + down_in
    figure.set_figheight(height_in)
    for lines, top_in in ((above, height_in - _MARGIN_IN), (below, down_in - _MARGIN_IN / 2)):
        for n, (text, how) in enumerate(lines):
            y_in = top_in - sum(other.size_pt for _, other in lines[:n]) * _LINE / 72
            said = figure.text(0.015, y_in / height_in, text, va="top", color=how.colour)
            said.set(fontsize=how.size_pt, fontweight="bold" if how.bold else "normal")
    if entries:
        figure.legend(
            *zip(*entries, strict=True),
            loc="upper left",
            bbox_to_anchor=(0.01, 1 - up_in / height_in),
            borderaxespad=0,
            ncols=_IN_A_LINE,
            handler_map={tuple: HandlerTuple(ndivide=None if keys else 1, pad=0)},
            markerscale=1.5 if keys else 1.0,
        )
    engine: Any = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0.01, down_in / height_in, 0.98, panels_in / height_in))
        engine.execute(figure)  # once, for all files that it is saved as
        figure.set_layout_engine("none")
    return figure


def swatch(style: SeriesStyle) -> Patch:
    """The patch that stands for a series in a legend."""
    return Patch(facecolor=style.fill, edgecolor=style.dark, hatch=style.hatch, linewidth=0.9)


def mark(style: SeriesStyle) -> Line2D:
    """The mark on it."""
    face, edge = style.dot
    width = 0.9 if style.is_remote else 0.5
    return Line2D([], [], ls="", marker=style.marker, ms=4.5, mfc=face, mec=edge, mew=width)


def round_ticks(axis: Axis, most: int = 6) -> None:
    """At most so many ticks, at round numbers."""
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))


def log_ticks(axis: Axis, span: float = 1e9) -> None:
    """Ticks of a logarithmic axis as plain numbers, the more the fewer decades it spans."""
    subs = (1,) if span > 1e3 else (1, 2, 5) if span > 10 else (1, 1.5, 2, 3, 5, 7)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def spread(n: int) -> NDArray[np.float64]:
    """Where across a strip each of n samples lies, shape (n,), in -0.5..0.5.

    Evenly, and the same each time: fractional parts of multiples of the golden ratio, the most
    even of such sequences.
    """
    return np.arange(1.0, n + 1.0) * _GOLDEN % 1.0 - 0.5


def _lines(texts: Sequence[tuple[str, Lettering]], width_in: float) -> list[tuple[str, Lettering]]:
    """Texts in lines that the figure's width has room for."""
    return [
        (line, how)
        for text, how in texts
        for line in textwrap.wrap(text, int(_LETTERS[how.bold] * width_in / how.size_pt))
    ]
