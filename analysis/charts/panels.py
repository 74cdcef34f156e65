"""The frame of a chart of small multiples: panels in rows and columns, words around them.

Everything is placed in inches from measured text, as in `rows`. To the right of each panel is
room for what is written at the ends of its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from wanlat.analysis.charts.legend import LINE_IN as LEGEND_LINE_IN
from wanlat.analysis.charts.legend import draw_legend_line, legend_lines
from wanlat.analysis.charts.lettering import (
    ASIDE,
    GROUP,
    LABEL,
    SUBTITLE,
    TITLE,
    text_width,
    wrapped,
    write,
)
from wanlat.analysis.charts.rows import Words

_MIN_WIDTH_IN = 10.0
_MARGIN_IN = 0.18
_TITLE_IN = 0.25
_LINE_IN = 0.165
_HEAD_LINE_IN = 0.16
_ABOVE_PANEL_IN = 0.12
_BELOW_PANEL_IN = 0.24
_AXIS_IN = 0.5
"""Left of a panel: the figures of its axis."""
_Y_LABEL_IN = 0.12
_PANEL_IN = (1.75, 1.35)
_X_LABEL_IN = 0.3
_GAP_IN = 0.08


@dataclass(frozen=True)
class Panel:
    """What stands above a panel: its name, and whose it is below that ("": nobody's)."""

    name: str
    whose: str = ""


@dataclass(frozen=True)
class PanelChart:
    """A figure with its frame drawn; `axes` has one for each panel, row by row, None where none is.

    To the right of each there is room for texts of `label_in` inches.
    """

    figure: Figure
    axes: tuple[Axes | None, ...]
    label_in: float


def panels(
    words: Words,
    cells: Sequence[Sequence[Panel | None]],
    room_in: tuple[float, float],
    y_label: str,
) -> PanelChart:
    """A figure with a panel for each of `cells`, rows of the same length, and nothing in them.

    `room_in` is what is wanted beside a panel and what a panel must be high at least, inches.
    """
    label_in, panel_in = room_in[0], max(_PANEL_IN[1], room_in[1])
    columns = max(len(row) for row in cells)
    width_in = _column_width(cells, label_in)
    around_in = 2 * _MARGIN_IN + _Y_LABEL_IN
    page_in = max(_MIN_WIDTH_IN, around_in + columns * width_in)
    step_in = (page_in - around_in) / columns
    plot_in = step_in - _AXIS_IN - label_in - _GAP_IN
    text_in = page_in - 2 * _MARGIN_IN
    title = wrapped(words.title, text_in, TITLE)
    subtitle = wrapped(words.subtitle, text_in, SUBTITLE)
    legend = legend_lines(words.legend, _MARGIN_IN, page_in - _MARGIN_IN)
    caption = [line for text in words.caption for line in wrapped(text, text_in, ASIDE)]
    heads = [_head_lines(row, plot_in + label_in) for row in cells]
    above_in = (
        _MARGIN_IN
        + _TITLE_IN * len(title)
        + _LINE_IN * len(subtitle)
        + 0.06
        + LEGEND_LINE_IN * len(legend)
    )
    rows_in = sum(
        _ABOVE_PANEL_IN + _HEAD_LINE_IN * lines + panel_in + _BELOW_PANEL_IN for lines in heads
    )
    below_in = _X_LABEL_IN + _LINE_IN * len(caption) + 0.2
    height_in = above_in + rows_in + below_in
    figure = Figure(figsize=(page_in, height_in))
    FigureCanvasAgg(figure)

    y = height_in - _MARGIN_IN
    for line in title:
        y -= _TITLE_IN
        write(figure, (_MARGIN_IN, y + 0.07), line, TITLE)
    for line in subtitle:
        y -= _LINE_IN
        write(figure, (_MARGIN_IN, y + 0.04), line, SUBTITLE)
    y -= 0.06
    for entries in legend:
        y -= LEGEND_LINE_IN
        draw_legend_line(figure, entries, y)

    axes: list[Axes | None] = []
    for row, lines in zip(cells, heads, strict=True):
        y -= _ABOVE_PANEL_IN + _HEAD_LINE_IN * lines
        for column in range(columns):
            cell = row[column] if column < len(row) else None
            left_in = _MARGIN_IN + _Y_LABEL_IN + column * step_in + _AXIS_IN
            if cell is None:
                axes.append(None)
                continue
            _write_head(figure, (left_in, y + 0.05), cell, plot_in + label_in)
            made = figure.add_axes(
                (
                    left_in / page_in,
                    (y - panel_in) / height_in,
                    plot_in / page_in,
                    panel_in / height_in,
                )
            )
            if not any(row[:column]):
                made.set_ylabel(y_label, fontsize=LABEL.size_pt)
                made.yaxis.set_label_coords(-(_AXIS_IN + 0.02) / plot_in, 0.5)
            axes.append(made)
        y -= panel_in + _BELOW_PANEL_IN
    middle = page_in / 2
    write(figure, (middle, y - 0.12), words.x_label, LABEL, ("center", "baseline"))
    y -= _X_LABEL_IN
    for line in caption:
        y -= _LINE_IN
        write(figure, (_MARGIN_IN, y + 0.04), line, ASIDE)
    return PanelChart(figure, tuple(axes), label_in)


def _column_width(cells: Sequence[Sequence[Panel | None]], label_in: float) -> float:
    """A column holds the longest word above its panels and never less than a readable panel."""
    longest = max(
        (
            text_width(word, GROUP)
            for row in cells
            for cell in row
            if cell
            for word in cell.name.split()
        ),
        default=0.0,
    )
    return _AXIS_IN + max(_PANEL_IN[0] + label_in, min(longest, 2 * _PANEL_IN[0])) + _GAP_IN


def _lines_of(cell: Panel, width_in: float) -> tuple[list[str], list[str]]:
    names = [line for part in cell.name.split("\n") for line in wrapped(part, width_in, GROUP)]
    return names, wrapped(cell.whose, width_in, LABEL)


def _head_lines(row: Sequence[Panel | None], width_in: float) -> int:
    return max(
        (sum(len(part) for part in _lines_of(cell, width_in)) for cell in row if cell), default=1
    )


def _write_head(figure: Figure, at: tuple[float, float], cell: Panel, width_in: float) -> None:
    """The words above a panel, their last line at `at`."""
    names, whose = _lines_of(cell, width_in)
    left, y = at
    y += _HEAD_LINE_IN * (len(names) + len(whose) - 1)
    for line in names:
        write(figure, (left, y), line, GROUP)
        y -= _HEAD_LINE_IN
    for line in whose:
        write(figure, (left, y), line, LABEL)
        y -= _HEAD_LINE_IN
