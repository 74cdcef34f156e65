"""The matrix: drills × systems, and in each cell what a reader would look for in the timeline.

A cell has two lines, reads and writes. From the left: the share of what was sent during the fault
that was ok, a box for each client; how many were due and never sent; the p99 during the fault, the
darker the more it exceeds that before; and, over both lines, how long until all was normal again
and what was lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from wanlat.analysis.charts.availability import UNSENT_COLOUR, colour_of, ink_on
from wanlat.analysis.charts.frame import Words, dress
from wanlat.analysis.charts.lettering import ASIDE, GROUP, SUBTITLE, Lettering, text_width
from wanlat.analysis.charts.style import ALARM, FAINT, INK, QUIET, TINY_PT, applied, mixed
from wanlat.analysis.figures.drill.matrix import Cell, DrillKey, DrillMatrix, Served
from wanlat.analysis.names import EN_DASH, series_labels, shortened
from wanlat.analysis.report.drill import latency, percent
from wanlat.analysis.report.drill_matrix import (
    NOT_RUN,
    durability_text,
    finding_of_matrix,
    recovery_text,
    runs_sentences,
)

SLOWEST = 100.0
"""From so many times the p99 of before on, the colour of a p99 gets no darker."""
_SLOW, _PLAIN = "#a58ccb", "#ffffff"
_FIGURE, _ALARMING = Lettering(TINY_PT + 0.5), Lettering(TINY_PT + 0.5, ALARM, bold=True)
_LINE, _GAP, _APART, _HEAD, _LEAST_WIDTH = 0.2, 0.03, 0.24, 0.45, 10.0
_END_HEADER, _UNSENT_HEADER = "normal again / lost", "not sent"


@dataclass(frozen=True)
class _Columns:
    """What a cell has beside each other, inches from its left edge; alike for all systems.

    The boxes of all clients together are `shares` wide.
    """

    shares: float
    unsent: tuple[float, float]
    """Where a box begins, and how wide it is."""
    p99: tuple[float, float]
    end: tuple[float, float]

    @property
    def pitch(self) -> float:
        """From one cell to the next."""
        return sum(self.end) + _APART


def _columns(matrix: DrillMatrix) -> _Columns:
    """The columns that hold the longest texts of `matrix`."""
    cells = list(matrix.cells.values())
    served = [each for cell in cells for each in (cell.shown.reads, cell.shown.writes)]
    texts = [percent(share) for each in served for share in each.shares.values()]
    clients = max((len(each.shares) for each in served), default=1)
    shares = clients * (_widest(texts, "100 %") + _GAP) - _GAP
    unsent = shares + _GAP, _widest([str(each.not_sent) for each in served], _UNSENT_HEADER)
    p99 = sum(unsent) + _GAP, _widest([latency(each.p99_ms) for each in served], "p99")
    end_at = sum(p99) + _GAP
    ends = [text for cell in cells for text in (recovery_text(cell.shown), durability_text(cell))]
    names = [text_width(label, GROUP) for label in series_labels(matrix.series).values()]
    end = end_at, max(_widest(ends, _END_HEADER), max(names, default=0.0) - end_at)
    return _Columns(shares, unsent, p99, end)


def draw(matrix: DrillMatrix) -> Figure:
    """The picture of `matrix`."""
    columns, rows = _columns(matrix), len(matrix.drills)
    pitch = 2 * _LINE + _GAP + 0.2
    names = [_label(key) for key in matrix.drills]
    width = columns.pitch * len(matrix.series)
    beside = max(text_width(name, GROUP) for name, _ in names) + 0.8
    with applied():
        size = (max(width + beside, _LEAST_WIDTH), rows * pitch + _HEAD)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.set_xlim(0, max(width, size[0] - beside))
        axes.set_ylim(rows * pitch, -_HEAD)
        axes.spines[:].set_visible(False)
        axes.set_xticks([])
        axes.tick_params(length=0, labelsize=SUBTITLE.size_pt, labelcolor=QUIET)
        middles = [number * pitch + pitch / 2 for number in range(rows)]
        half = (_LINE + _GAP) / 2
        axes.set_yticks(
            [middle + side * half for middle in middles for side in (-1, 1)],
            ["reads", "writes"] * rows,
        )
        for number, one in enumerate(matrix.series):
            _draw_head(axes, columns, number * columns.pitch, series_labels(matrix.series)[one])
        for key, (name, where), middle in zip(matrix.drills, names, middles, strict=True):
            axes.axhline(middle - pitch / 2, color=FAINT, linewidth=0.7)
            _text(axes, (-0.55, middle - 0.02), name, GROUP, ha="right", va="bottom")
            _text(axes, (-0.55, middle + 0.02), where, ASIDE, ha="right", va="top")
            for number, one in enumerate(matrix.series):
                left = number * columns.pitch
                cell = matrix.cells.get((key, one))
                if cell is None:
                    at = (left + (columns.pitch - _APART) / 2, middle)
                    _text(axes, at, NOT_RUN, SUBTITLE, ha="center", va="center")
                else:
                    _draw_cell(axes, columns, cell, (left, middle))
        words = Words(
            title=finding_of_matrix(matrix),
            subtitle="",
            caption=tuple(_caption(matrix)),
        )
        return dress(figure, words, keys=_keys())


def p99_colour(served: Served) -> str:
    """White at the p99 of before, darker by the logarithm of how many times that it is."""
    if served.slowdown is None or served.slowdown <= 1:
        return _PLAIN
    return mixed(_PLAIN, _SLOW, min(1.0, math.log(served.slowdown) / math.log(SLOWEST)))


def _draw_head(axes: Axes, columns: _Columns, left: float, label: str) -> None:
    _text(axes, (left, -0.26), label, GROUP, va="baseline")
    heads = {
        0.0: "ok by client",
        columns.unsent[0]: _UNSENT_HEADER,
        columns.p99[0]: "p99",
        columns.end[0]: _END_HEADER,
    }
    for x, text in heads.items():
        _text(axes, (left + x, -0.08), text, ASIDE, va="baseline")


def _draw_cell(axes: Axes, columns: _Columns, cell: Cell, at: tuple[float, float]) -> None:
    """A drill on a system: its left edge, and the middle between its two lines."""
    left, middle = at
    upper, lower = middle - _GAP / 2 - _LINE, middle + _GAP / 2
    run = cell.shown
    end = left + columns.end[0]
    for served, y in ((run.reads, upper), (run.writes, lower)):
        # A drill with one client where others have two: its box is as wide as theirs together.
        each = (columns.shares + _GAP) / len(served.shares)
        for number, share in enumerate(served.shares.values()):
            colour = _PLAIN if share is None else colour_of(share)
            _box(axes, (left + number * each, y), each - _GAP, colour, percent(share))
        grey = UNSENT_COLOUR if served.not_sent else _PLAIN
        _box(axes, (left + columns.unsent[0], y), columns.unsent[1], grey, str(served.not_sent))
        at = (left + columns.p99[0], y)
        _box(axes, at, columns.p99[1], p99_colour(served), latency(served.p99_ms))
    how = _ALARMING if not run.is_complete or run.document["recovered"] is False else _FIGURE
    _box(axes, (end, upper), columns.end[1], _PLAIN, recovery_text(run), how=how)
    fill = {"pass": colour_of(1.0), "fail": colour_of(0.0)}.get(cell.worst.verdict)
    hatch = "" if fill else "//////"
    _box(axes, (end, lower), columns.end[1], fill or _PLAIN, durability_text(cell), hatch=hatch)


def _box(
    axes: Axes,
    corner: tuple[float, float],
    width: float,
    colour: str,
    text: str,
    *,
    hatch: str = "",
    how: Lettering = _FIGURE,
) -> None:
    """A box with `text` in the middle, in black or white as `colour` asks for."""
    edge = FAINT if hatch else QUIET
    looks: dict[str, Any] = {"facecolor": colour, "edgecolor": edge, "linewidth": 0.4}
    axes.add_patch(Rectangle(corner, width, _LINE, hatch=hatch, **looks))
    ink = Lettering(how.size_pt, ink_on(colour)) if how.colour == INK else how
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
    middle = (corner[0] + width / 2, corner[1] + _LINE / 2)
    _text(axes, middle, text, ink, ha="center", va="center_baseline", bbox=behind)


def _text(axes: Axes, at: tuple[float, float], text: str, how: Lettering, **looks: Any) -> None:
    weight = "bold" if how.bold else "normal"
    axes.text(*at, text, fontsize=how.size_pt, color=how.colour, fontweight=weight, **looks)


def _keys() -> list[tuple[Any, str]]:
    def scale(colours: list[str]) -> tuple[Patch, ...]:
        return tuple(Patch(facecolor=colour, linewidth=0) for colour in colours)

    def fill(colour: str, hatch: str = "") -> Patch:
        return Patch(facecolor=colour, edgecolor=QUIET, linewidth=0.4, hatch=hatch)

    shares = [n / 10 for n in range(11)]
    return [
        (scale([colour_of(share) for share in shares]), "0 to 100 % ok of what was sent"),
        (
            scale([mixed(_PLAIN, _SLOW, share) for share in shares]),
            f"p99 as before, to {SLOWEST:g} times that and more",
        ),
        (fill(colour_of(1.0)), "nothing lost"),
        (fill(colour_of(0.0)), "lost or wrong"),
        (fill(_PLAIN, "//////"), "not known"),
        (fill(UNSENT_COLOUR), "due and never sent"),
    ]


def _label(key: DrillKey) -> tuple[str, str]:
    """A drill's name, and where it stood; how much shorter than written it was."""
    return key.name, key.topology + (f", times × {key.scale:g}" if key.scale != 1 else "")


def _widest(texts: list[str], header: str) -> float:
    """Width of a box that holds any of `texts` and its header, inches."""
    widths = [text_width(text, _ALARMING) + 0.12 for text in texts]
    return max(text_width(header, ASIDE) + 0.04, *widths)


def _caption(matrix: DrillMatrix) -> list[str]:
    clients = dict.fromkeys(
        " | ".join(name for name in cell.shown.reads.shares if name)
        for cell in matrix.cells.values()
    )
    named = "; ".join(text for text in clients if text)
    boxes = f", a box for each client ({named})" if named else ""
    lines = [
        "Upper line of a cell: reads, lower: writes. From the left: share that was ok of what was "
        f"sent during the fault{boxes}, {EN_DASH} where nothing was; how many were due and never "
        "sent, because an earlier one was waiting; p99 of all that was ok, from when it was due; "
        "time from the first fault until all was normal again; acknowledged writes that were lost, "
        "corrupt, stale, resurrected or unexpected when every key was read again from every node.",
        *runs_sentences(matrix),
    ]
    full = shortened(matrix.series)
    return [*lines, *([f"In full: {'; '.join(full)}."] if full else [])]
