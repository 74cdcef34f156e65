"""The frame of a chart of rows: what a benchmark has a bar for, with its figures beside it.

Everything is placed in inches from measured text, so that nothing can be clipped or overlap,
however long a name is: labels to the left of the plot, columns of figures to the right of it,
title and legend above, caption below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.legend import LINE_IN as LEGEND_LINE_IN
from wanlat.analysis.charts.legend import LegendEntry, PlacedEntry, draw_legend_line, legend_lines
from wanlat.analysis.charts.lettering import (
    ALARMING,
    ASIDE,
    GROUP,
    LABEL,
    SUBTITLE,
    TITLE,
    text_width,
    wrapped,
    write,
)
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT

ROW_IN = 0.34

_WIDTH_IN = 10.0
_MARGIN_IN = 0.18
_TEXT_IN = _WIDTH_IN - 2 * _MARGIN_IN
_GAP_IN = 0.14
_AXIS_GAP_IN = 0.09
_GROUP_GAP_IN = 0.16
_TITLE_IN = 0.25
_LINE_IN = 0.165
_HEADERS_IN = 0.24
_AXIS_IN = 0.44
_MIN_PLOT_IN = 3.2
_ROUND_TRIP_STEPS = (1, 2, 5, 10, 20)
_ROUND_TRIP_GAP_IN = 0.06


@dataclass(frozen=True)
class Cell:
    """A figure to the right of a row; an `alarming` one is written in bold red."""

    text: str
    alarming: bool = False


@dataclass(frozen=True)
class Row:
    """One row: the group it belongs to, its own label, and a cell for each header.

    The name of a group may have two lines, which is what one row has room for.
    """

    group: str
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Words:
    """All text around the plot; `caption` is a sequence of paragraphs."""

    title: str
    subtitle: str
    headers: tuple[str, ...]
    x_label: str
    caption: tuple[str, ...]
    legend: tuple[LegendEntry, ...] = field(default=())


@dataclass(frozen=True)
class RowChart:
    """A figure with its frame drawn; `axes` has x in data units and y in inches from its top.

    `centres` holds the y of each row.
    """

    figure: Figure
    axes: Axes
    centres: tuple[float, ...]


def frame(words: Words, rows: Sequence[Row], limit: float, row_in: float = ROW_IN) -> RowChart:
    """A figure with everything but the data: x runs from 0 to `limit`, a row is `row_in` high."""
    layout = _Layout.of(words, rows, row_in)
    figure = Figure(figsize=(layout.width, layout.height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes(
        (
            layout.left / layout.width,
            layout.below / layout.height,
            (layout.width - layout.left - layout.right) / layout.width,
            layout.plot / layout.height,
        )
    )
    axes.set_xlim(0, limit)
    axes.set_ylim(layout.plot, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(axis="x", length=3, pad=2)
    for rule in layout.rules:
        axes.axhline(rule, color=FAINT, linewidth=0.7, zorder=0)
    _write_above(figure, layout)
    _write_beside(figure, layout, rows, words.headers)
    _write_below(figure, layout, words.x_label)
    return RowChart(figure, axes, layout.centres)


def mark_round_trips(chart: RowChart, rtt_ms: float) -> None:
    """Dotted lines at whole multiples of `rtt_ms`, numbered at the top: "1 RTT", "2", "3", …."""
    limit = chart.axes.get_xlim()[1]
    per_in = limit / (chart.axes.get_position().width * chart.figure.get_figwidth())
    for step in _ROUND_TRIP_STEPS:
        multiples = range(step, int(limit / rtt_ms) + 1, step) if rtt_ms > 0 else range(0)
        names = [f"{m} RTT" if m == step else str(m) for m in multiples]
        widths_in = [text_width(name, ASIDE) for name in names]
        needed_in = max(((a + b) / 2 for a, b in pairwise(widths_in)), default=0.0)
        if step * rtt_ms >= (needed_in + _ROUND_TRIP_GAP_IN) * per_in:
            break
    else:
        return  # so short an RTT explains nothing of latencies this long
    for multiple, name, width_in in zip(multiples, names, widths_in, strict=True):
        x = multiple * rtt_ms
        chart.axes.axvline(x, color="#8c8c8c", linewidth=0.8, linestyle=(0, (1, 2.2)), zorder=0.5)
        if x + width_in / 2 * per_in > limit:
            continue  # its name would come close to the headers beside the plot
        chart.axes.annotate(
            name,
            (x, 0),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=TINY_PT,
            color=QUIET,
            annotation_clip=False,
        )


@dataclass(frozen=True)
class _Layout:
    """Where everything goes, inches; `left`, `right`, `below` are what the plot leaves free."""

    title: list[str]
    subtitle: list[str]
    legend: list[list[PlacedEntry]]
    caption: list[str]
    columns: list[float]
    """Width of each column of cells."""
    left: float
    right: float
    below: float
    width: float
    height: float
    plot: float
    """Height of the plot."""
    centres: tuple[float, ...]
    rules: list[float]

    @classmethod
    def of(cls, words: Words, rows: Sequence[Row], row_in: float) -> _Layout:
        title = wrapped(words.title, _TEXT_IN, TITLE)
        subtitle = wrapped(words.subtitle, _TEXT_IN, SUBTITLE)
        caption = [line for text in words.caption for line in wrapped(text, _TEXT_IN, ASIDE)]
        legend = legend_lines(words.legend, _MARGIN_IN, _WIDTH_IN - _MARGIN_IN)
        columns = [_column_width(header, rows, n) for n, header in enumerate(words.headers)]
        names = [line for row in rows for line in row.group.split("\n")]
        left = _MARGIN_IN + max(text_width(name, GROUP) for name in names) + _AXIS_GAP_IN
        if _labels_differ(rows):
            left += _GAP_IN + max(text_width(row.label, LABEL) for row in rows)
        right = _MARGIN_IN + sum(column + _GAP_IN for column in columns)
        centres, rules, plot = _positions(rows, row_in)
        above = (
            _MARGIN_IN
            + _TITLE_IN * len(title)
            + _LINE_IN * len(subtitle)
            + 0.06
            + LEGEND_LINE_IN * len(legend)
            + _HEADERS_IN
        )
        below = _AXIS_IN + 0.1 + _LINE_IN * len(caption) + 0.1
        return cls(
            title=title,
            subtitle=subtitle,
            legend=legend,
            caption=caption,
            columns=columns,
            left=left,
            right=right,
            below=below,
            width=max(_WIDTH_IN, left + _MIN_PLOT_IN + right),
            height=above + plot + below,
            plot=plot,
            centres=centres,
            rules=rules,
        )

    @property
    def top(self) -> float:
        """Of the plot."""
        return self.below + self.plot

    @property
    def column_edges(self) -> list[float]:
        """The right edge of each column of cells."""
        widths = (_GAP_IN + column for column in self.columns)
        return list(accumulate(widths, initial=self.width - self.right))[1:]


def _write_above(figure: Figure, layout: _Layout) -> None:
    y = layout.height - _MARGIN_IN
    for line in layout.title:
        y -= _TITLE_IN
        write(figure, (_MARGIN_IN, y + 0.07), line, TITLE)
    for line in layout.subtitle:
        y -= _LINE_IN
        write(figure, (_MARGIN_IN, y + 0.04), line, SUBTITLE)
    y -= 0.06
    for entries in layout.legend:
        y -= LEGEND_LINE_IN
        draw_legend_line(figure, entries, y)


def _write_beside(
    figure: Figure, layout: _Layout, rows: Sequence[Row], headers: Sequence[str]
) -> None:
    edges = layout.column_edges
    for edge, header in zip(edges, headers, strict=True):
        write(figure, (edge, layout.top + 0.06), header, ASIDE, ("right", "baseline"))
    for group, y in _group_middles(rows, layout.centres):
        names = group.split("\n")
        for number, name in enumerate(names):
            down = y + (number - (len(names) - 1) / 2) * _LINE_IN
            write(figure, (_MARGIN_IN, layout.top - down), name, GROUP, ("left", "center_baseline"))
    show_labels = _labels_differ(rows)
    for row, centre in zip(rows, layout.centres, strict=True):
        y = layout.top - centre
        if show_labels:
            at = (layout.left - _AXIS_GAP_IN, y)
            write(figure, at, row.label, LABEL, ("right", "center_baseline"))
        for edge, cell in zip(edges, row.cells, strict=True):
            lettering = ALARMING if cell.alarming else LABEL
            write(figure, (edge, y), cell.text, lettering, ("right", "center_baseline"))


def _write_below(figure: Figure, layout: _Layout, x_label: str) -> None:
    middle = (layout.left + layout.width - layout.right) / 2
    y = layout.below - _AXIS_IN
    write(figure, (middle, y + 0.1), x_label, LABEL, ("center", "baseline"))
    y -= 0.1
    for line in layout.caption:
        y -= _LINE_IN
        write(figure, (_MARGIN_IN, y + 0.04), line, ASIDE)


def _labels_differ(rows: Sequence[Row]) -> bool:
    return len({row.label for row in rows}) > 1


def _column_width(header: str, rows: Sequence[Row], number: int) -> float:
    cells = [row.cells[number] for row in rows]
    return max(
        text_width(header, ASIDE),
        *(text_width(cell.text, ALARMING if cell.alarming else LABEL) for cell in cells),
    )


def _positions(rows: Sequence[Row], row_in: float) -> tuple[tuple[float, ...], list[float], float]:
    """The middle of each row, the lines between groups, and the height of the plot."""
    centres: list[float] = []
    rules: list[float] = []
    y = _GROUP_GAP_IN / 2
    for number, row in enumerate(rows):
        if number and row.group != rows[number - 1].group:
            rules.append(y + _GROUP_GAP_IN / 2)
            y += _GROUP_GAP_IN
        centres.append(y + row_in / 2)
        y += row_in
    return tuple(centres), rules, y + _GROUP_GAP_IN / 2


def _group_middles(rows: Sequence[Row], centres: Sequence[float]) -> list[tuple[str, float]]:
    middles = []
    pairs = zip((row.group for row in rows), centres, strict=True)
    for group, members in groupby(pairs, key=lambda pair: pair[0]):
        ys = [y for _, y in members]
        middles.append((group, (ys[0] + ys[-1]) / 2))
    return middles
