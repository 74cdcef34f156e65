"""The frame of a chart: title and subtitle above, a legend, small multiples, a caption below.

matplotlib's constrained layout gives axes and legend their room. Title and caption stand outside of
it, above and below, and a picture is saved as large as all of it (`style.save`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from wanlat.analysis.charts.lettering import ASIDE, LABEL, SUBTITLE, TITLE, Lettering, wrapped
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle

WIDTH_IN = 10.0
_LINE = 1.35
"""Of a line, in sizes of its letters."""
_ABOVE_PT, _BELOW_PT = 6.0, 6.0
_LEGEND_PT, _IN_A_LINE = 16.0, 5


def multiples(
    words: Words, panels: int, *, columns: int = 3, panel_in: float = 2.4, y_label: str = ""
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels on common axes, row by row, and the words around them.

    Draw in the style (`style.applied`), and end with `dress`.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(WIDTH_IN, 0.9 + rows * panel_in), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for one in axes[:panels]:
        one.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
        one.tick_params(length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    figure.supxlabel(words.x_label, fontsize=LABEL.size_pt)
    figure.supylabel(y_label, fontsize=LABEL.size_pt)
    return figure, axes[:panels]


def head(axes: Axes, name: str, what: str) -> None:
    """Write above a panel whose it is, and below that what it shows."""
    axes.set_title(what, loc="left", fontsize=LABEL.size_pt, pad=4)
    axes.annotate(
        name,
        (0, 1),
        xytext=(0, 5 + LABEL.size_pt * _LINE),
        xycoords="axes fraction",
        textcoords="offset points",
        fontweight="bold",
        va="baseline",
    )


def dress(figure: Figure, words: Words, looks: Sequence[tuple[SeriesStyle, str]] = ()) -> Figure:
    """Add a legend of series, the title and the subtitle above, and the caption below."""
    width_in, up = figure.get_figwidth(), _ABOVE_PT
    if looks:
        pairs: list[Any] = [(swatch(style), mark(style)) for style, _ in looks]
        figure.legend(
            pairs,
            [label for _, label in looks],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0,
            ncols=_IN_A_LINE,
            frameon=False,
            fontsize=LABEL.size_pt,
            handler_map={tuple: HandlerTuple(ndivide=1)},
        )
        up += -(-len(looks) // _IN_A_LINE) * _LEGEND_PT
    above = [(line, TITLE) for line in wrapped(words.title, width_in, TITLE)]
    above += [(line, SUBTITLE) for line in wrapped(words.subtitle, width_in, SUBTITLE)]
    for line, lettering in reversed(above):
        _beyond(figure, line, lettering, (1, up), "bottom")
        up += lettering.size_pt * _LINE
    down = _BELOW_PT
    for line in (line for text in words.caption for line in wrapped(text, width_in, ASIDE)):
        _beyond(figure, line, ASIDE, (0, -down), "top")
        down += ASIDE.size_pt * _LINE
    # Laid out once, for all files that it is saved as.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def swatch(style: SeriesStyle) -> Patch:
    """The patch that stands for a series in a legend."""
    return Patch(facecolor=style.fill, edgecolor=style.dark, hatch=style.hatch, linewidth=0.9)


def mark(style: SeriesStyle) -> Line2D:
    """The mark on it."""
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=style.marker,
        markersize=4.5,
        markerfacecolor=style.dot[0],
        markeredgecolor=style.dot[1],
        markeredgewidth=0.9 if style.is_remote else 0.5,
    )


def _beyond(
    figure: Figure, text: str, lettering: Lettering, at: tuple[float, float], va: str
) -> None:
    """Set a line so many points above the figure's upper edge (1), or below its lower one (0)."""
    figure.text(
        0.01,
        at[0],
        text,
        transform=offset_copy(figure.transFigure, figure, y=at[1], units="points"),
        fontsize=lettering.size_pt,
        color=lettering.colour,
        fontweight="bold" if lettering.bold else "normal",
        va=va,
    )
