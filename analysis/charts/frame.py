"""The frame of a chart: title and subtitle above, a legend, small multiples, a caption below.

matplotlib's constrained layout gives axes and legend their room. Title and caption stand outside of
it, above and below, and a picture is saved as large as all of it (`style.save`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from wanlat.analysis.charts.lettering import ASIDE, LABEL, SUBTITLE, TITLE, Lettering, wrapped
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle, lay_out


@dataclass(frozen=True)
class Words:
    """All text around the panels; `caption` is a sequence of paragraphs."""

    title: str
    subtitle: str
    x_label: str = ""
    caption: tuple[str, ...] = ()


WIDTH_IN = 10.0
_LINE = 1.35
"""Of a line, in sizes of its letters."""
_ABOVE_PT, _BELOW_PT = 6.0, 6.0
_LEGEND_PT, _IN_A_LINE = 16.0, 5


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
    """A figure with so many panels on common axes, row by row, and the words around them.

    `share`: axes are common to all panels, or to those of a column; where `share_y` is given it is
    that of their heights. Draw in the style
    (`style.applied`), and end with `dress`.
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(WIDTH_IN, 0.9 + rows * panel_in), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=share, sharey=share_y or share, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[panels:]:
        spare.set_visible(False)
    for one in axes[:panels]:
        one.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
        one.tick_params(length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    for lowest in axes[max(panels - columns, 0) : panels]:
        lowest.tick_params(labelbottom=True)
    figure.supxlabel(words.x_label, fontsize=LABEL.size_pt)
    figure.supylabel(y_label, fontsize=LABEL.size_pt)
    return figure, axes[:panels]


def head(axes: Axes, name: str, what: str) -> None:
    """Write above a panel whose it is, and below that what it shows."""
    axes.set_title(what, loc="left", fontsize=LABEL.size_pt, pad=4)
    lines = what.count("\n") + 1
    axes.annotate(
        name,
        (0, 1),
        xytext=(0, 5 + lines * LABEL.size_pt * _LINE),
        xycoords="axes fraction",
        textcoords="offset points",
        fontweight="bold",
        va="baseline",
    )


def dress(
    figure: Figure,
    words: Words,
    looks: Sequence[tuple[SeriesStyle, str]] = (),
    *,
    keys: Sequence[tuple[Any, str]] = (),
    verdicts: Sequence[tuple[str, Lettering]] = (),
) -> Figure:
    """Add a legend of series, the title and the subtitle above, and the caption below.

    A chart that has no series has `keys` in its legend: an artist, or a tuple of artists that stand
    side by side, and what it means. `verdicts` are lines of their own below the subtitle.
    """
    width_in, up = 0.98 * figure.get_figwidth(), _ABOVE_PT  # a margin on either side
    if looks or keys:
        pairs: list[Any] = [(swatch(style), mark(style)) for style, _ in looks]
        figure.legend(
            [*pairs, *(artist for artist, _ in keys)],
            [label for _, label in (*looks, *keys)],
            loc="lower left",
            bbox_to_anchor=(0, 1),
            borderaxespad=0,
            ncols=_IN_A_LINE,
            frameon=False,
            fontsize=LABEL.size_pt,
            handler_map={tuple: HandlerTuple(ndivide=None if keys else 1, pad=0)},
            markerscale=1.5 if keys else 1.0,
        )
        up += -(-(len(looks) + len(keys)) // _IN_A_LINE) * _LEGEND_PT
    above = [(line, TITLE) for line in wrapped(words.title, width_in, TITLE)]
    told = [(words.subtitle, SUBTITLE), *verdicts]
    above += [(line, how) for text, how in told for line in wrapped(text, width_in, how)]
    for line, lettering in reversed(above):
        _beyond(figure, line, lettering, (1, up), "bottom")
        up += lettering.size_pt * _LINE
    down = _BELOW_PT
    for line in (line for text in words.caption for line in wrapped(text, width_in, ASIDE)):
        _beyond(figure, line, ASIDE, (0, -down), "top")
        down += ASIDE.size_pt * _LINE
    return lay_out(figure, up / 72, down / 72)


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
