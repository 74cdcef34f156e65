"""Where everything of the matrix goes: widths of its columns, heights of its rows, its words."""

from __future__ import annotations

from dataclasses import dataclass

from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.lettering import (
    ASIDE,
    GROUP,
    LABEL,
    TITLE,
    Lettering,
    text_width,
    wrapped,
)
from wanlat.analysis.charts.style import ALARM, TINY_PT
from wanlat.analysis.drill.matrix import DrillKey, Matrix, Operation
from wanlat.analysis.drill.matrix_wording import (
    drill_label,
    durability_text,
    recovery_text,
    runs_sentences,
    title_of,
)
from wanlat.analysis.drill.wording import latency, percent
from wanlat.analysis.names import EN_DASH, series_labels, shortened

SLOWEST = 100.0
"""From so many times the p99 of before on, the colour of a p99 gets no darker."""

END_HEADER = "normal again / lost"

_LEAST_WIDTH_IN = 10.0
MARGIN_IN = 0.18
TITLE_IN, LINE_IN, LEGEND_IN = 0.27, 0.165, 0.24
BOX_IN, BOX_GAP_IN = 0.2, 0.03
_ROW_PAD_IN = 0.11
_PAD_IN = 0.07
_LABEL_IN = 2.1
_CELL_GAP_IN = 0.22
FIGURE = Lettering(TINY_PT + 0.5)
ALARM_FIGURE = Lettering(TINY_PT + 0.5, ALARM, bold=True)


@dataclass(frozen=True)
class Row:
    """One drill: the lines of its name, the line below them, and how high it is, inches."""

    key: DrillKey
    name: list[str]
    aside: list[str]
    height: float


@dataclass(frozen=True)
class Layout:
    """Widths of everything, inches; columns of all systems are alike."""

    rows: list[Row]
    series: tuple[Series, ...]
    labels: dict[Series, list[str]]
    label_in: float
    share_in: float
    shares: int
    p99_in: float
    end_in: float
    cell_in: float
    title: list[str]
    caption: list[str]
    legend: list[list[tuple[float, str]]]
    width: float
    height: float
    head_in: float

    @classmethod
    def of(cls, matrix: Matrix) -> Layout:
        """The layout that the longest texts of `matrix` ask for."""
        rows = [_row(key) for key in matrix.drills]
        cells = list(matrix.cells.values())
        operations = [o for cell in cells for o in (cell.shown.reads, cell.shown.writes)]
        shares = max((len(operation.shares) for operation in operations), default=1)
        share_in = _widest(
            [share_text(s.availability) for o in operations for s in o.shares], "100 %"
        )
        p99_in = _widest([p99_text(operation) for operation in operations], "p99")
        end_in = _widest(
            [text for c in cells for text in (recovery_text(c.shown), durability_text(c))],
            END_HEADER,
        )
        label_in = max(
            text_width(line, lettering)
            for row in rows
            for lines, lettering in ((row.name, GROUP), (row.aside, ASIDE))
            for line in lines
        )
        label_in += text_width("writes", LABEL) + 0.3
        cell_in = shares * (share_in + BOX_GAP_IN) + p99_in + BOX_GAP_IN + end_in
        columns = len(matrix.series)
        needed = 2 * MARGIN_IN + label_in + columns * (cell_in + _CELL_GAP_IN)
        width = max(_LEAST_WIDTH_IN, needed)
        named = series_labels(matrix.series)
        labels = {one: wrapped(named[one], cell_in, GROUP) for one in matrix.series}
        text_in = width - 2 * MARGIN_IN
        title = wrapped(title_of(matrix), text_in, TITLE)
        caption = [line for text in _caption(matrix) for line in wrapped(text, text_in, ASIDE)]
        legend = _legend_lines(width)
        head_in = (
            MARGIN_IN
            + TITLE_IN * len(title)
            + LEGEND_IN * len(legend)
            + 0.1
            + LINE_IN * max(len(lines) for lines in labels.values())
            + LINE_IN
            + 0.08
        )
        below = MARGIN_IN + LINE_IN * len(caption) + 0.1
        return cls(
            rows=rows,
            series=matrix.series,
            labels=labels,
            label_in=label_in,
            share_in=share_in,
            shares=shares,
            p99_in=p99_in,
            end_in=end_in,
            cell_in=cell_in,
            title=title,
            caption=caption,
            legend=legend,
            width=width,
            height=head_in + sum(row.height for row in rows) + below,
            head_in=head_in,
        )

    def left_of(self, number: int) -> float:
        """Where the column of a system begins."""
        return MARGIN_IN + self.label_in + number * (self.cell_in + _CELL_GAP_IN)


def _row(key: DrillKey) -> Row:
    # Names of drills are words joined by hyphens, which is where they are broken.
    broken = wrapped(key.name.replace("-", "- "), _LABEL_IN, GROUP)
    name = [line.replace("- ", "-") for line in broken]
    aside = wrapped(drill_label(key), _LABEL_IN, ASIDE)
    text_in = LINE_IN * (len(name) + len(aside))
    return Row(key, name, aside, max(2 * BOX_IN + BOX_GAP_IN, text_in) + 2 * _ROW_PAD_IN)


def _widest(texts: list[str], header: str) -> float:
    """Width of a box that holds any of `texts` and its header."""
    return max(
        text_width(header, ASIDE) + 0.04,
        *(text_width(text, ALARM_FIGURE) + 2 * _PAD_IN for text in [*texts, ""]),
    )


def share_text(share: float | None) -> str:
    """A share that was ok, as its box says it."""
    return EN_DASH if share is None else percent(share)


def p99_text(operation: Operation) -> str:
    """The p99 during the fault, as its box says it."""
    return latency(operation.p99_ms)


def _caption(matrix: Matrix) -> list[str]:
    clients = dict.fromkeys(
        " | ".join(share.client for share in cell.shown.reads.shares if share.client)
        for cell in matrix.cells.values()
    )
    named = "; ".join(text for text in clients if text)
    boxes = f", a box for each client ({named})" if named else ""
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


LEGEND = (
    ("shares", "0 to 100 % ok"),
    ("slow", f"p99 as before, to {SLOWEST:g} times that and more"),
    ("kept", "nothing lost"),
    ("lost", "lost or wrong"),
    ("unknown", "not known"),
)
WIDE_SWATCH_IN, SWATCH_IN = 0.6, 0.22


def _legend_lines(width: float) -> list[list[tuple[float, str]]]:
    lines: list[list[tuple[float, str]]] = [[]]
    x = MARGIN_IN
    for shape, label in LEGEND:
        needed = swatch_in(shape) + 0.07 + text_width(label, LABEL)
        if lines[-1] and x + needed > width - MARGIN_IN:
            lines.append([])
            x = MARGIN_IN
        lines[-1].append((x, shape))
        x += needed + 0.3
    return lines


def swatch_in(shape: str) -> float:
    """Width of a sample in the legend, inches."""
    return WIDE_SWATCH_IN if shape in ("shares", "slow") else SWATCH_IN
