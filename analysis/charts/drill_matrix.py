"""The matrix: drills × systems, and in each cell what a reader would look for in the timeline.

A cell has two lines, reads and writes. From the left: the share that was ok during the fault, a
box a vantage; the p99 during the fault, the darker the more it exceeds that before; and, over both
lines, how long until all was normal again and what was lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.bundle import Series
from analysis.charts.availability import colour_of, ink_on
from analysis.charts.lettering import (
    ASIDE,
    GROUP,
    LABEL,
    SUBTITLE,
    TITLE,
    Lettering,
    text_width,
    wrapped,
    write,
)
from analysis.charts.style import ALARM, FAINT, INK, QUIET, TINY_PT, applied, mixed
from analysis.drill.matrix import Cell, DrillKey, Matrix, Operation
from analysis.drill.matrix_wording import (
    NOT_RUN,
    drill_label,
    durability_text,
    recovery_text,
    runs_sentences,
    title_of,
)
from analysis.drill.wording import latency, percent
from analysis.names import EN_DASH, series_labels, shortened

LOST, KEPT = colour_of(0.0), colour_of(1.0)
SLOWEST = 100.0
"""From so many times the p99 of before on, the colour of a p99 gets no darker."""

_SLOW_COLOUR = "#a58ccb"
_UNTOLD = "#ffffff"
_END_HEADER = "normal again / lost"

_LEAST_WIDTH_IN = 10.0
_MARGIN_IN = 0.18
_TITLE_IN, _LINE_IN, _LEGEND_IN = 0.27, 0.165, 0.24
_HEAD_IN = 0.42
_BOX_IN, _BOX_GAP_IN = 0.2, 0.03
_ROW_PAD_IN = 0.11
_PAD_IN = 0.07
_LABEL_IN = 2.1
_CELL_GAP_IN = 0.22
_FIGURE = Lettering(TINY_PT + 0.5)
_ALARM_FIGURE = Lettering(TINY_PT + 0.5, ALARM, bold=True)


def draw(matrix: Matrix) -> Figure:
    """The picture of `matrix`."""
    with applied():
        layout = _Layout.of(matrix)
        figure = Figure(figsize=(layout.width, layout.height))
        FigureCanvasAgg(figure)
        y = _write_above(figure, layout)
        for row in layout.rows:
            _draw_row(figure, matrix, layout, row, y)
            y -= row.height
        for number, line in enumerate(reversed(layout.caption)):
            write(figure, (_MARGIN_IN, _MARGIN_IN + number * _LINE_IN), line, ASIDE)
    return figure


def p99_colour(operation: Operation) -> str:
    """White at the p99 of before, darker by the logarithm of how many times that it is."""
    slowdown = operation.slowdown
    if slowdown is None or slowdown <= 1:
        return _UNTOLD
    return mixed("#ffffff", _SLOW_COLOUR, min(1.0, math.log(slowdown) / math.log(SLOWEST)))


# -- what goes where -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """One drill: the lines of its name, the line below them, and how high it is, inches."""

    key: DrillKey
    name: list[str]
    aside: list[str]
    height: float


@dataclass(frozen=True)
class _Layout:
    """Widths of everything, inches; columns of all systems are alike."""

    rows: list[_Row]
    series: tuple[Series, ...]
    labels: dict[Series, list[str]]
    label_in: float
    share_in: float
    shares: int
    p99_in: float
    end_in: float
    title: list[str]
    caption: list[str]
    legend: list[list[tuple[float, str]]]
    width: float
    height: float
    head_in: float

    @classmethod
    def of(cls, matrix: Matrix) -> _Layout:
        rows = [_row(key) for key in matrix.drills]
        cells = list(matrix.cells.values())
        operations = [o for cell in cells for o in (cell.shown.reads, cell.shown.writes)]
        shares = max((len(operation.shares) for operation in operations), default=1)
        share_in = _widest(
            [_share_text(s.availability) for o in operations for s in o.shares], "100 %"
        )
        p99_in = _widest([_p99_text(operation) for operation in operations], "p99")
        end_in = _widest(
            [text for c in cells for text in (recovery_text(c.shown), durability_text(c))],
            _END_HEADER,
        )
        label_in = max(
            text_width(line, lettering)
            for row in rows
            for lines, lettering in ((row.name, GROUP), (row.aside, ASIDE))
            for line in lines
        )
        label_in += text_width("writes", LABEL) + 0.3
        cell_in = shares * (share_in + _BOX_GAP_IN) + p99_in + _BOX_GAP_IN + end_in
        columns = len(matrix.series)
        needed = 2 * _MARGIN_IN + label_in + columns * (cell_in + _CELL_GAP_IN)
        width = max(_LEAST_WIDTH_IN, needed)
        named = series_labels(matrix.series)
        labels = {one: wrapped(named[one], cell_in, GROUP) for one in matrix.series}
        text_in = width - 2 * _MARGIN_IN
        title = wrapped(title_of(matrix), text_in, TITLE)
        caption = [line for text in _caption(matrix) for line in wrapped(text, text_in, ASIDE)]
        legend = _legend_lines(width)
        head_in = (
            _MARGIN_IN
            + _TITLE_IN * len(title)
            + _LEGEND_IN * len(legend)
            + 0.1
            + _LINE_IN * max(len(lines) for lines in labels.values())
            + _LINE_IN
            + 0.08
        )
        below = _MARGIN_IN + _LINE_IN * len(caption) + 0.1
        return cls(
            rows=rows,
            series=matrix.series,
            labels=labels,
            label_in=label_in,
            share_in=share_in,
            shares=shares,
            p99_in=p99_in,
            end_in=end_in,
            title=title,
            caption=caption,
            legend=legend,
            width=width,
            height=head_in + sum(row.height for row in rows) + below,
            head_in=head_in,
        )

    @property
    def cell_in(self) -> float:
        return self.shares * (self.share_in + _BOX_GAP_IN) + self.p99_in + _BOX_GAP_IN + self.end_in

    def left_of(self, number: int) -> float:
        """Where the column of a system begins."""
        return _MARGIN_IN + self.label_in + number * (self.cell_in + _CELL_GAP_IN)


def _row(key: DrillKey) -> _Row:
    # Names of drills are words joined by hyphens, which is where they are broken.
    broken = wrapped(key.name.replace("-", "- "), _LABEL_IN, GROUP)
    name = [line.replace("- ", "-") for line in broken]
    aside = wrapped(drill_label(key), _LABEL_IN, ASIDE)
    text_in = _LINE_IN * (len(name) + len(aside))
    return _Row(key, name, aside, max(2 * _BOX_IN + _BOX_GAP_IN, text_in) + 2 * _ROW_PAD_IN)


def _widest(texts: list[str], header: str) -> float:
    """Width of a box that holds any of `texts` and its header."""
    return max(
        text_width(header, ASIDE) + 0.04,
        *(text_width(text, _ALARM_FIGURE) + 2 * _PAD_IN for text in [*texts, ""]),
    )


def _share_text(share: float | None) -> str:
    return EN_DASH if share is None else percent(share)


def _p99_text(operation: Operation) -> str:
    return latency(operation.p99_ms)


# -- words ---------------------------------------------------------------------------------------


def _caption(matrix: Matrix) -> list[str]:
    vantages = dict.fromkeys(
        " | ".join(share.vantage for share in cell.shown.reads.shares if share.vantage)
        for cell in matrix.cells.values()
    )
    named = "; ".join(text for text in vantages if text)
    boxes = f", a box a vantage ({named})" if named else ""
    lines = [
        "Upper line of a cell: reads, lower: writes. From the left: share that was ok of what was "
        f"due during the fault{boxes}; p99 of all that was ok, from when it was due, {EN_DASH} "
        "where nothing was; time from the first fault until all was normal again; acknowledged "
        "writes that were lost, corrupt, stale, resurrected or unexpected when every key was read "
        "again from every node.",
        *runs_sentences(matrix),
    ]
    if full := shortened(matrix.series):
        lines.append(f"In full: {'; '.join(full)}.")
    return lines


_LEGEND = (
    ("shares", "0 to 100 % ok"),
    ("slow", f"p99 as before, to {SLOWEST:g} times that and more"),
    ("kept", "nothing lost"),
    ("lost", "lost or wrong"),
    ("unknown", "not known"),
)
_WIDE_SWATCH_IN, _SWATCH_IN = 0.6, 0.22


def _legend_lines(width: float) -> list[list[tuple[float, str]]]:
    lines: list[list[tuple[float, str]]] = [[]]
    x = _MARGIN_IN
    for shape, label in _LEGEND:
        needed = _swatch_in(shape) + 0.07 + text_width(label, LABEL)
        if lines[-1] and x + needed > width - _MARGIN_IN:
            lines.append([])
            x = _MARGIN_IN
        lines[-1].append((x, shape))
        x += needed + 0.3
    return lines


def _swatch_in(shape: str) -> float:
    return _WIDE_SWATCH_IN if shape in ("shares", "slow") else _SWATCH_IN


def _write_above(figure: Figure, layout: _Layout) -> float:
    """Write title, legend and the heads of columns; return where the first row begins."""
    y = layout.height - _MARGIN_IN
    for line in layout.title:
        y -= _TITLE_IN
        write(figure, (_MARGIN_IN, y + 0.07), line, TITLE)
    for entries in layout.legend:
        y -= _LEGEND_IN
        for x, shape in entries:
            middle = y + _LEGEND_IN / 2
            _draw_swatch(figure, shape, x, middle)
            at = (x + _swatch_in(shape) + 0.07, middle)
            write(figure, at, dict(_LEGEND)[shape], LABEL, ("left", "center_baseline"))
    top = layout.height - layout.head_in
    for number, one in enumerate(layout.series):
        left = layout.left_of(number)
        lines = layout.labels[one]
        for line_number, line in enumerate(reversed(lines)):
            at = (left, top + _LINE_IN + 0.1 + line_number * _LINE_IN)
            write(figure, at, line, GROUP)
        x = left + layout.shares * (layout.share_in + _BOX_GAP_IN)
        ok = "ok by vantage" if layout.shares > 1 else "ok"
        write(figure, (left, top + 0.08), ok, ASIDE)
        write(figure, (x, top + 0.08), "p99", ASIDE)
        x += layout.p99_in + _BOX_GAP_IN
        write(figure, (x, top + 0.08), _END_HEADER, ASIDE)
    return top


def _draw_swatch(figure: Figure, shape: str, x: float, y: float) -> None:
    bottom, steps = y - 0.065, 12
    if shape == "kept":
        _box(figure, (x, bottom), (_SWATCH_IN, 0.13), KEPT)
    elif shape == "lost":
        _box(figure, (x, bottom), (_SWATCH_IN, 0.13), LOST)
    elif shape == "unknown":
        _box(figure, (x, bottom), (_SWATCH_IN, 0.13), _UNTOLD, hatch="//////")
    else:
        for step in range(steps):
            share = step / (steps - 1)
            colour = (
                colour_of(share) if shape == "shares" else mixed("#ffffff", _SLOW_COLOUR, share)
            )
            corner = (x + _WIDE_SWATCH_IN * step / steps, bottom)
            _box(figure, corner, (_WIDE_SWATCH_IN / steps, 0.13), colour, edge=False)


# -- rows ----------------------------------------------------------------------------------------


def _draw_row(figure: Figure, matrix: Matrix, layout: _Layout, row: _Row, top: float) -> None:
    """One drill, its upper edge at `top` inches."""
    _rule(figure, layout, top)
    middle = top - row.height / 2
    y = middle + _LINE_IN * (len(row.name) + len(row.aside)) / 2
    for lines, lettering in ((row.name, GROUP), (row.aside, ASIDE)):
        for line in lines:
            y -= _LINE_IN
            write(figure, (_MARGIN_IN, y + 0.04), line, lettering)
    upper = middle + _BOX_GAP_IN / 2
    lower = upper - _BOX_GAP_IN - _BOX_IN
    right = _MARGIN_IN + layout.label_in - 0.08
    for word, bottom in (("reads", upper), ("writes", lower)):
        at = (right, bottom + _BOX_IN / 2)
        write(figure, at, word, SUBTITLE, ("right", "center_baseline"))
    for number, one in enumerate(layout.series):
        cell = matrix.cells.get((row.key, one))
        left = layout.left_of(number)
        if cell is None:
            at = (left + layout.cell_in / 2, middle)
            write(figure, at, NOT_RUN, SUBTITLE, ("center", "center_baseline"))
            continue
        _draw_operation(figure, layout, cell.shown.reads, (left, upper))
        _draw_operation(figure, layout, cell.shown.writes, (left, lower))
        _draw_end(figure, layout, cell, left, (upper, lower))


def _rule(figure: Figure, layout: _Layout, y: float) -> None:
    corner = (_MARGIN_IN, y)
    size = (layout.width - 2 * _MARGIN_IN, 0.0)
    looks: dict[str, Any] = {"edgecolor": FAINT, "linewidth": 0.7}
    figure.add_artist(Rectangle(corner, *size, transform=figure.dpi_scale_trans, **looks))


def _draw_operation(
    figure: Figure, layout: _Layout, operation: Operation, at: tuple[float, float]
) -> None:
    x, y = at
    # One vantage of a drill where others have two: its box is as wide as theirs together.
    count = len(operation.shares)
    across = layout.shares * (layout.share_in + _BOX_GAP_IN) - _BOX_GAP_IN
    width = (across - _BOX_GAP_IN * (count - 1)) / count
    for share in operation.shares:
        colour = _UNTOLD if share.availability is None else colour_of(share.availability)
        text = _share_text(share.availability)
        _box(figure, (x, y), (width, _BOX_IN), colour, text)
        x += width + _BOX_GAP_IN
    text = _p99_text(operation)
    _box(figure, (x, y), (layout.p99_in, _BOX_IN), p99_colour(operation), text)


def _draw_end(
    figure: Figure, layout: _Layout, cell: Cell, left: float, lines: tuple[float, float]
) -> None:
    """When all was normal again, and below it what was lost."""
    x = left + layout.cell_in - layout.end_in
    run = cell.shown
    bad = not run.is_complete or run.recovered is False
    lettering = _ALARM_FIGURE if bad else _FIGURE
    size = (layout.end_in, _BOX_IN)
    _box(figure, (x, lines[0]), size, _UNTOLD, recovery_text(run), lettering=lettering)
    verdict = cell.worst.verdict
    colour = {"pass": KEPT, "fail": LOST}.get(verdict, _UNTOLD)
    hatch = "" if verdict in ("pass", "fail") else "//////"
    _box(figure, (x, lines[1]), size, colour, durability_text(cell), hatch=hatch)


def _box(
    figure: Figure,
    corner: tuple[float, float],
    size: tuple[float, float],
    colour: str,
    text: str = "",
    *,
    hatch: str = "",
    edge: bool = True,
    lettering: Lettering = _FIGURE,
) -> None:
    """A box with `text` in the middle, in black or white as `colour` asks for."""
    figure.add_artist(
        Rectangle(
            corner,
            *size,
            transform=figure.dpi_scale_trans,
            facecolor=colour,
            edgecolor=FAINT if hatch else QUIET,
            linewidth=0.4 if edge else 0.0,
            hatch=hatch,
        )
    )
    if not text:
        return
    ink = lettering.colour if lettering.colour != INK else ink_on(colour)
    figure.text(
        corner[0] + size[0] / 2,
        corner[1] + size[1] / 2,
        text,
        transform=figure.dpi_scale_trans,
        fontsize=lettering.size_pt,
        fontweight="bold" if lettering.bold else "normal",
        color=ink,
        ha="center",
        va="center_baseline",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None,
    )
