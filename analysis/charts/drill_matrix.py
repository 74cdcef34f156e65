"""The matrix: drills × systems, and in each cell what a reader would look for in the timeline.

A cell has two lines, reads and writes. From the left: the share of what was due during the fault
that was ok, a box for each client; how many were due and never sent; the p99 during the fault, the
darker the more it exceeds that before; and, over both lines, how long until all was normal again
and what was lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from wanlat.analysis.charts.frame import Words, dress, sheet
from wanlat.analysis.charts.style import (
    ASIDE,
    FAINT,
    INK,
    QUIET,
    SHARES_KEY,
    SMALL_PT,
    TINY_PT,
    UNSENT_COLOUR,
    applied,
    colour_of,
    mixed,
    scale_of,
)
from wanlat.analysis.figures.drill.matrix import DrillMatrix, DrillRun, Row, worst
from wanlat.analysis.names import EN_DASH, series_labels, shortened
from wanlat.analysis.report import drill as report

SLOWEST = 100.0
"""From so many times the p99 of before on, the colour of a p99 gets no darker."""
_SLOW, _PLAIN, _UNKNOWN = "#a58ccb", "white", ""
_LINE, _GAP, _PITCH = 0.2, 0.03, 0.63
_COLUMNS = {"ok by client": 1.6, "expired": 0.5, "p99": 0.65, "normal again / lost": 1.75}
"""What a cell has beside each other, and how wide it is, inches."""
_WIDTH = sum(_COLUMNS.values())

Box = tuple[float, int, float, str, str]
"""Where in its cell a box begins, on which of its lines, and how wide it is; text and colour."""


def draw(matrix: DrillMatrix) -> Figure:
    """The picture of `matrix`."""
    labels, height = series_labels(matrix.series, matrix.titles), len(matrix.drills) * _PITCH
    beside = 0.083 * max(len(key.name) for key in matrix.drills) + 0.8
    width = max(len(labels) * (_WIDTH + 0.2), 10.0 - beside)
    with applied():
        figure = sheet(width + beside, height + 0.45)
        axes = figure.subplots()
        axes.set(xlim=(0, width), ylim=(height, -0.45), xticks=[])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=SMALL_PT, labelcolor=QUIET)
        tops = [row * _PITCH + 0.1 for row in range(len(matrix.drills))]
        lines = [top + line * (_LINE + _GAP) + _LINE / 2 for top in tops for line in (0, 1)]
        axes.set_yticks(lines, ["reads", "writes"] * len(tops))
        lefts = [number * (_WIDTH + 0.2) for number in range(len(labels))]
        for left, name in zip(lefts, labels.values(), strict=True):
            axes.text(left, -0.26, name, fontweight="bold")
            for header, begin, _ in _columns():
                axes.text(left + begin, -0.08, header, **ASIDE)
        for key, top in zip(matrix.drills, tops, strict=True):
            middle, scale = top + _LINE + _GAP / 2, report.scaled(key.scale)
            where = f"{key.topology}{f', times{scale}' if scale else ''}"
            axes.axhline(top - 0.1, color=FAINT, linewidth=0.7)
            axes.text(-0.55, middle - 0.02, key.name, ha="right", va="bottom", fontweight="bold")
            axes.text(-0.55, middle + 0.02, where, ha="right", va="top", **ASIDE)
        for (key, top), (one, left) in product(
            zip(matrix.drills, tops, strict=True), zip(matrix.series, lefts, strict=True)
        ):
            if (key, one) not in matrix.cells:
                at = left + _WIDTH / 2, top + _LINE
                axes.text(*at, report.NOT_RUN, ha="center", va="center", color=QUIET)
            for box in _boxes(matrix.cells.get((key, one), ())):
                _draw_box(axes, left, top, box)
        words = Words(report.finding_of_matrix(matrix), "", caption=tuple(_caption(matrix)))
        return dress(figure, words, keys=_keys())


def _columns() -> Iterator[tuple[str, float, float]]:
    """Header, left edge and width of each column of a cell."""
    begin = 0.0
    for header, width in _COLUMNS.items():
        yield header, begin, width - _GAP
        begin += width


def _boxes(runs: Sequence[DrillRun]) -> Iterator[Box]:
    """The boxes of a cell: of the run that is shown, and what was lost in the worst of all."""
    if not runs:
        return
    shares, expired, p99, end = (column[1:] for column in _columns())
    for line, served in enumerate(runs[0].figures["during"].values()):
        by_client = served["availability_by_client"].values() or [served["availability"]]
        # A drill with one client where others have two: its box is as wide as theirs together.
        pitch = (shares[1] + _GAP) / len(by_client)
        for number, share in enumerate(by_client):
            colour = _PLAIN if share is None else colour_of(share)
            yield number * pitch, line, pitch - _GAP, report.percent(share), colour
        late = served["expired"]
        yield expired[0], line, expired[1], str(late), UNSENT_COLOUR if late else _PLAIN
        yield p99[0], line, p99[1], report.latency(served["p99_ms"]), _p99_colour(served)
    figures, verdict = runs[0].figures, worst(runs).figures["durability"]["verdict"]
    is_known = figures["status"] == "complete" and figures["recovered"] is not None
    back = (_PLAIN if figures["recovered"] else colour_of(0.0)) if is_known else _UNKNOWN
    lost = {"pass": colour_of(1.0), "fail": colour_of(0.0)}.get(verdict, _UNKNOWN)
    yield end[0], 0, end[1], report.recovery_text(runs[0]), back
    yield end[0], 1, end[1], report.durability_text(runs), lost


def _p99_colour(served: Row) -> str:
    """White at the p99 of before, darker by the logarithm of how many times that it is."""
    during_ms, before_ms = served["p99_ms"], served["p99_before_ms"]
    if during_ms is None or not before_ms:
        return _PLAIN
    slower = math.log(during_ms / before_ms, SLOWEST)
    return mixed(_PLAIN, _SLOW, min(1.0, max(0.0, slower)))


def _draw_box(axes: Axes, left: float, top: float, box: Box) -> None:
    """A box with its text in the middle, in black or white whichever is read best on its colour."""
    begin, line, width, text, colour = box
    corner = left + begin, top + line * (_LINE + _GAP)
    axes.add_patch(Rectangle(corner, width, _LINE, **_looks(colour)))
    looks: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": TINY_PT + 0.5}
    looks["color"] = "white" if sum(to_rgb(colour or _PLAIN)) < 1.5 else INK
    if not colour:
        looks["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    axes.text(corner[0] + width / 2, corner[1] + _LINE / 2, text, **looks)


def _looks(colour: str) -> dict[str, Any]:
    """How a box of a colour is drawn, here and in the legend; hatched where nothing is known."""
    hatched = {"facecolor": _PLAIN, "hatch": "//////", "edgecolor": QUIET}
    return {"linewidth": 0.4, **({"facecolor": colour, "edgecolor": QUIET} if colour else hatched)}


def _keys() -> list[tuple[Any, str]]:
    slower = [mixed(_PLAIN, _SLOW, n / 10) for n in range(11)]
    fills = {
        "nothing lost": colour_of(1.0),
        "lost or wrong, not back": colour_of(0.0),
        "not known": _UNKNOWN,
        "due and expired": UNSENT_COLOUR,
    }
    return [
        SHARES_KEY,
        scale_of(slower, f"p99 as before, to {SLOWEST:g} times that and more"),
        *((Patch(**_looks(colour)), text) for text, colour in fills.items()),
    ]


def _caption(matrix: DrillMatrix) -> Iterator[str]:
    of_runs = (runs[0].figures["during"]["reads"] for runs in matrix.cells.values())
    clients = dict.fromkeys(" | ".join(reads["availability_by_client"]) for reads in of_runs)
    yield (
        "Upper line of a cell: reads, lower: writes. From the left: share that was ok of what was "
        f"due during the fault, a box for each client ({'; '.join(clients)}), {EN_DASH} where "
        "nothing was; how many expired, because earlier ones were waiting; p99 of "
        "all that was ok, from when it was due; time from the first fault until all was normal "
        "again, where drills ran one at a time; acknowledged writes that were lost, corrupt, "
        "stale, resurrected or unexpected when every key was read again from every node. Of "
        "several runs of a cell the newest complete one is shown, with the worst durability of "
        "all."
    )
    if full := shortened(matrix.series, matrix.titles):
        yield f"In full: {'; '.join(full)}."
