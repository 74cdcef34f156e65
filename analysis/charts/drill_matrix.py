"""The matrix: drills × systems, and in each cell what a reader would look for in the timeline.

A cell has two lines, reads and writes. From the left: the share that was ok during the fault, a
box for each client; the p99 during the fault, the darker the more it exceeds that before; and, over
both lines, how long until all was normal again and what was lost.
"""

from __future__ import annotations

import math
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from wanlat.analysis.charts.availability import colour_of, ink_on
from wanlat.analysis.charts.drill_matrix_layout import (
    ALARM_FIGURE,
    BOX_GAP_IN,
    BOX_IN,
    END_HEADER,
    FIGURE,
    LEGEND,
    LEGEND_IN,
    LINE_IN,
    MARGIN_IN,
    SLOWEST,
    SWATCH_IN,
    TITLE_IN,
    WIDE_SWATCH_IN,
    Layout,
    Row,
    p99_text,
    share_text,
    swatch_in,
)
from wanlat.analysis.charts.lettering import (
    ASIDE,
    GROUP,
    LABEL,
    SUBTITLE,
    TITLE,
    Lettering,
    write,
)
from wanlat.analysis.charts.style import FAINT, INK, QUIET, applied, mixed
from wanlat.analysis.drill.matrix import Cell, Matrix, Operation
from wanlat.analysis.drill.matrix_wording import NOT_RUN, durability_text, recovery_text

LOST, KEPT = colour_of(0.0), colour_of(1.0)

_SLOW_COLOUR = "#a58ccb"
_UNTOLD = "#ffffff"


def draw(matrix: Matrix) -> Figure:
    """The picture of `matrix`."""
    with applied():
        layout = Layout.of(matrix)
        figure = Figure(figsize=(layout.width, layout.height))
        FigureCanvasAgg(figure)
        y = _write_above(figure, layout)
        for row in layout.rows:
            _draw_row(figure, matrix, layout, row, y)
            y -= row.height
        for number, line in enumerate(reversed(layout.caption)):
            write(figure, (MARGIN_IN, MARGIN_IN + number * LINE_IN), line, ASIDE)
    return figure


def p99_colour(operation: Operation) -> str:
    """White at the p99 of before, darker by the logarithm of how many times that it is."""
    slowdown = operation.slowdown
    if slowdown is None or slowdown <= 1:
        return _UNTOLD
    return mixed("#ffffff", _SLOW_COLOUR, min(1.0, math.log(slowdown) / math.log(SLOWEST)))


def _write_above(figure: Figure, layout: Layout) -> float:
    """Write title, legend and the heads of columns; return where the first row begins."""
    y = layout.height - MARGIN_IN
    for line in layout.title:
        y -= TITLE_IN
        write(figure, (MARGIN_IN, y + 0.07), line, TITLE)
    for entries in layout.legend:
        y -= LEGEND_IN
        for x, shape in entries:
            middle = y + LEGEND_IN / 2
            _draw_swatch(figure, shape, x, middle)
            at = (x + swatch_in(shape) + 0.07, middle)
            write(figure, at, dict(LEGEND)[shape], LABEL, ("left", "center_baseline"))
    top = layout.height - layout.head_in
    for number, one in enumerate(layout.series):
        left = layout.left_of(number)
        lines = layout.labels[one]
        for line_number, line in enumerate(reversed(lines)):
            at = (left, top + LINE_IN + 0.1 + line_number * LINE_IN)
            write(figure, at, line, GROUP)
        x = left + layout.shares * (layout.share_in + BOX_GAP_IN)
        ok = "ok by client" if layout.shares > 1 else "ok"
        write(figure, (left, top + 0.08), ok, ASIDE)
        write(figure, (x, top + 0.08), "p99", ASIDE)
        x += layout.p99_in + BOX_GAP_IN
        write(figure, (x, top + 0.08), END_HEADER, ASIDE)
    return top


def _draw_swatch(figure: Figure, shape: str, x: float, y: float) -> None:
    bottom, steps = y - 0.065, 12
    if shape == "kept":
        _box(figure, (x, bottom), (SWATCH_IN, 0.13), KEPT)
    elif shape == "lost":
        _box(figure, (x, bottom), (SWATCH_IN, 0.13), LOST)
    elif shape == "unknown":
        _box(figure, (x, bottom), (SWATCH_IN, 0.13), _UNTOLD, hatch="//////")
    else:
        for step in range(steps):
            share = step / (steps - 1)
            colour = (
                colour_of(share) if shape == "shares" else mixed("#ffffff", _SLOW_COLOUR, share)
            )
            corner = (x + WIDE_SWATCH_IN * step / steps, bottom)
            _box(figure, corner, (WIDE_SWATCH_IN / steps, 0.13), colour, edge=False)


def _draw_row(figure: Figure, matrix: Matrix, layout: Layout, row: Row, top: float) -> None:
    """One drill, its upper edge at `top` inches."""
    _rule(figure, layout, top)
    middle = top - row.height / 2
    y = middle + LINE_IN * (len(row.name) + len(row.aside)) / 2
    for lines, lettering in ((row.name, GROUP), (row.aside, ASIDE)):
        for line in lines:
            y -= LINE_IN
            write(figure, (MARGIN_IN, y + 0.04), line, lettering)
    upper = middle + BOX_GAP_IN / 2
    lower = upper - BOX_GAP_IN - BOX_IN
    right = MARGIN_IN + layout.label_in - 0.08
    for word, bottom in (("reads", upper), ("writes", lower)):
        at = (right, bottom + BOX_IN / 2)
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


def _rule(figure: Figure, layout: Layout, y: float) -> None:
    corner = (MARGIN_IN, y)
    size = (layout.width - 2 * MARGIN_IN, 0.0)
    looks: dict[str, Any] = {"edgecolor": FAINT, "linewidth": 0.7}
    figure.add_artist(Rectangle(corner, *size, transform=figure.dpi_scale_trans, **looks))


def _draw_operation(
    figure: Figure, layout: Layout, operation: Operation, at: tuple[float, float]
) -> None:
    x, y = at
    # A drill with one client where others have two: its box is as wide as theirs together.
    count = len(operation.shares)
    across = layout.shares * (layout.share_in + BOX_GAP_IN) - BOX_GAP_IN
    width = (across - BOX_GAP_IN * (count - 1)) / count
    for share in operation.shares:
        colour = _UNTOLD if share.availability is None else colour_of(share.availability)
        text = share_text(share.availability)
        _box(figure, (x, y), (width, BOX_IN), colour, text)
        x += width + BOX_GAP_IN
    text = p99_text(operation)
    _box(figure, (x, y), (layout.p99_in, BOX_IN), p99_colour(operation), text)


def _draw_end(
    figure: Figure, layout: Layout, cell: Cell, left: float, lines: tuple[float, float]
) -> None:
    """When all was normal again, and below it what was lost."""
    x = left + layout.cell_in - layout.end_in
    run = cell.shown
    bad = not run.is_complete or run.recovered is False
    lettering = ALARM_FIGURE if bad else FIGURE
    size = (layout.end_in, BOX_IN)
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
    lettering: Lettering = FIGURE,
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
