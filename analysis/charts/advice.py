"""Which timeout: how far each value holds, and beside it what it costs when a leader dies.

A row of two panels is a system's timeout. Whiskers are 95 % intervals (of one cluster the limit's
are from where it held to where it did not); faint marks are single kills.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from wanlat.analysis.charts.frame import Words, dress, head, log_ticks, multiples
from wanlat.analysis.charts.style import ALARM, FAINT, INK, QUIET, applied, styles
from wanlat.analysis.figures.advice import Measured, by_question, cost_of, held, is_beyond, spelt
from wanlat.analysis.figures.envelope import RTT
from wanlat.analysis.names import count
from wanlat.analysis.section import Answer, Row, series_of
from wanlat.bundle.documents import Titles

_MARKS = "osD^vP"
"""Of the levels of loss, or jitter."""
_BESIDE = 0.96
"""Of a value: where its single kills are drawn."""
_SHADES = (1.0, 0.7, 0.5, 0.35)


def draw(answer: Answer) -> Figure:
    """How far every value holds, and its price, for each system."""
    figures = answer.figures
    measured = dict(zip(map(id, figures.rows), figures.arrays, strict=True))
    questions = by_question(figures.rows)
    looks, labels = styles(figures.series), figures.labels
    clusters = max(row["clusters"] for row in figures.rows)
    words = Words(
        "; ".join(_found(rows, figures.titles) for rows in questions),
        f"{answer.subject} · {count(clusters, 'cluster')} of each value",
        "timeout",
        (
            "Left: the RTT up to which the promise holds; a triangle: at least, the search ends "
            "there. Right: from the leader's death to the next acknowledged write, the sites near "
            "each other; faint: single kills. Whiskers: 95 %, of one cluster's limit from where "
            "the promise held to where it did not.",
        ),
    )
    levels = list(dict.fromkeys(e["at"] for row in figures.rows for e in row["limits"] if _is(e)))
    with applied():
        figure, panels = multiples(
            words, 2 * len(questions), columns=2, panel_in=3.4, share="col", share_y=False
        )
        for number, rows in enumerate(questions):
            series = series_of(rows[0])
            frontier, price = panels[2 * number : 2 * number + 2]
            head(frontier, labels[series], "holds up to, ms RTT")
            head(price, "", "without an acknowledged write, s")
            _log(frontier, figures.rows, _frontier(frontier, rows, levels, looks[series].dark))
            _log(price, figures.rows, _price(price, rows, measured, looks[series].dark))
        keys = [(_key(number), level) for number, level in enumerate(levels)]
        if any(row["rule_ms"] for row in figures.rows):
            keys.append((Line2D([], [], color=QUIET, lw=1, ls="--"), "by the makers' rule"))
        return dress(figure, words, keys=keys)


def _is(limit: Row) -> bool:
    return bool(limit["axis"] == RTT)


def _key(number: int) -> Line2D:
    mark = _mark(number)
    return Line2D([], [], color=INK, marker=mark, ms=4, lw=1, alpha=_shade(number))


def _mark(number: int) -> str:
    return _MARKS[number % len(_MARKS)]


def _shade(number: int) -> float:
    return _SHADES[min(number, len(_SHADES) - 1)]


def _found(rows: Sequence[Row], titles: Titles) -> str:
    """The finding: the shortest value and the longest, what each holds and costs."""
    parts = []
    for row in (rows[0], *rows[1:][-1:]):
        costs = f", costs {cost} s" if (cost := cost_of(row)) else ""
        parts.append(f"{spelt(row['value_ms'])} {held(row)}{costs}")
    return f"{titles[rows[0]['system']]}, {rows[0]['timeout']}: {'; '.join(parts)}"


def _frontier(axes: Axes, rows: Sequence[Row], levels: Sequence[str], colour: str) -> list[float]:
    """Draw limits; return how high they lie."""
    drawn: list[float] = []
    for number, level in enumerate(levels):
        look: dict[str, Any] = {"color": colour, "alpha": _shade(number)}
        line: list[tuple[float, float]] = []
        for row in rows:
            limit = next((e for e in row["limits"] if _is(e) and e["at"] == level), None)
            is_found = limit is not None and limit["limit"] is not None
            if limit is None or not (is_found or is_beyond(limit)):
                continue
            middle = limit["limit"] if is_found else limit["inside"]
            marker, size = (_mark(number), 5) if is_found else ("^", 8)
            axes.plot(row["value_ms"], middle, marker, ms=size, **look)
            line.append((row["value_ms"], middle))
            if limit["limit_ci95"]:
                axes.vlines(row["value_ms"], *limit["limit_ci95"], lw=2, **look)
        if line:
            axes.plot(*zip(*line, strict=True), lw=1, **look)
        drawn += [middle for _, middle in line]
    ruled = [(row["value_ms"], row["rule_ms"]) for row in rows if row["rule_ms"]]
    if ruled:
        axes.plot(*zip(*ruled, strict=True), color=QUIET, lw=1, ls="--", zorder=1)
        drawn += [rule_ms for _, rule_ms in ruled]
    return drawn


def _price(axes: Axes, rows: Sequence[Row], costs: dict[int, Measured], colour: str) -> list[float]:
    """Draw what a kill costs; return how high that lies."""
    drawn: list[float] = []
    for row in rows:
        x = row["value_ms"]
        kills = [k.answered_s for k in costs[id(row)].kills if k.answered_s is not None]
        beside = [_BESIDE * x] * len(kills)
        axes.plot(beside, kills, "o", ms=3, color=FAINT, mec=QUIET, mew=0.5, zorder=2)
        drawn += kills
        if row["answered_s"] is None:
            if row["kills"]:
                axes.plot(x, row["waited_s"], "^", ms=8, color=ALARM)
                drawn.append(row["waited_s"])
            continue
        axes.plot(x, row["answered_s"], "o", ms=5, color=colour, zorder=4)
        if row["answered_s_ci95"]:
            axes.vlines(x, *row["answered_s_ci95"], lw=2, color=colour, zorder=3)
            drawn += row["answered_s_ci95"]
    line = [(row["value_ms"], row["answered_s"]) for row in rows if row["answered_s"]]
    if line:
        axes.plot(*zip(*line, strict=True), lw=1, color=colour, zorder=3)
    return drawn


def _log(axes: Axes, rows: Sequence[Row], drawn: Sequence[float]) -> None:
    """Axes by ratios, with a tick at each value."""
    values = [row["value_ms"] for row in rows]
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 1.3, max(values) * 1.3)
    axes.set_xticks(values, [spelt(ms) for ms in values])
    axes.set_xticks([], minor=True)
    shown = [height for height in drawn if height > 0]
    if shown:
        axes.set_yscale("log")
        floor, ceiling = min(shown) / 1.4, max(shown) * 1.4
        axes.set_ylim(floor, ceiling)
        log_ticks(axes.yaxis, ceiling / floor)
