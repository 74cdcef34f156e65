"""The map of an operating envelope: how far apart nodes may be, and which regions are.

A panel is a system. Across lies what the links have besides the RTT (loss, jitter), upwards the
RTT: bars are limits with their intervals, marks the networks that were tested, lines pairs of
regions.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from wanlat.analysis.charts.frame import Words, dress, head, log_ticks, multiples
from wanlat.analysis.charts.style import (
    ALARM,
    FAINT,
    INK,
    QUIET,
    TINY_PT,
    SeriesStyle,
    applied,
    styles,
)
from wanlat.analysis.figures.envelope import RTT, Tested, at, by_system, limit_of, placed
from wanlat.analysis.names import EN_DASH, count
from wanlat.analysis.section import Answer, Row, series_of

_APART = 1.12
"""At least, of the RTTs of pairs of regions that are named."""
_WIDTH = 0.72


def draw(answer: Answer) -> Figure:
    """The map of every system."""
    figures = answer.figures
    arrays = dict(zip(map(id, figures.rows), figures.arrays, strict=True))
    systems = [[row for row in rows if row["axis"] == RTT] for rows in by_system(figures.rows)]
    looks, labels = styles(figures.series), figures.labels
    firsts = [rows[0] for rows in systems if rows]
    named = [", ".join(filter(None, (figures.titles[r["system"]], r["varied"]))) for r in firsts]
    limits = zip(named, map(limit_of, firsts), strict=True)
    findings = [f"{name} holds up to {limit} RTT" for name, limit in limits]
    clusters = max(row["clusters"] for row in figures.rows)
    of_one = "from where the promise held to where it did not"
    interval = "95 % over clusters" if clusters > 1 else of_one
    words = Words(
        "; ".join(findings),
        f"{answer.subject} · {count(clusters, 'cluster')} of each system",
        caption=(
            f"Bars: the RTT up to which the promise holds; whiskers: {interval}. Marks: networks "
            "that were tested, filled where it held. Lines: RTTs between regions, from the "
            "topology that the study names.",
            *answer.sentences(answer.section.notes[:1]),
        ),
    )
    with applied():
        figure, panels = multiples(words, len(systems), columns=2, panel_in=4.2, y_label="RTT, ms")
        tested = [arrays[id(row)] for row in firsts]
        rtts = [test.network.rtt_ms for its in tested for test in its.tests]
        span = min(rtts) / 1.15, max(rtts) * 1.3  # of all panels, which share the axis
        for axes, rows in zip(panels, systems, strict=True):
            if rows:
                series = series_of(rows[0])
                head(axes, labels[series], rows[0]["varied"])
                _panel(axes, rows, arrays[id(rows[0])], looks[series], span)
        keys = [
            (Patch(facecolor=FAINT, edgecolor=QUIET), "the promise holds"),
            (Line2D([], [], ls="", marker="o", mfc=INK, mec=INK, ms=4), "tested: it held"),
            (Line2D([], [], ls="", marker="o", mfc="none", mec=ALARM, ms=4), "it did not"),
            (Line2D([], [], color=QUIET, lw=0.8), "a pair of regions"),
        ]
        return dress(figure, words, keys=keys)


def _panel(
    axes: Axes, rows: Sequence[Row], tested: Tested, look: SeriesStyle, span: tuple[float, float]
) -> None:
    places = {row["at"]: place for place, row in enumerate(rows)}
    rtts = [test.network.rtt_ms for test in tested.tests]
    axes.set_yscale("log")
    floor, ceiling = span
    axes.set_ylim(floor, ceiling)
    for row in rows:
        place, top = places[row["at"]], row["limit"] or row["inside"]
        if top is None:
            continue
        top = min(top, max(rtts))
        axes.bar(place, top - floor, _WIDTH, floor, color=look.colour, alpha=0.35, lw=0, zorder=1)
        if row["limit_ci95"]:
            low, high = row["limit_ci95"]
            axes.vlines(place, low, high, color=look.dark, lw=2.4, zorder=4)
            axes.hlines([low, high], place - 0.09, place + 0.09, color=look.dark, lw=1.2, zorder=4)
            top = max(top, high)
        axes.text(place, top * 1.1, limit_of(row), ha="center", fontsize=TINY_PT, zorder=5)
    for test in tested.tests:
        name = at(test.network, RTT)
        if name in places:
            x = places[name] + (0.22 if test.after is None else 0.3)
            edge, face = (INK, INK) if test.verdict == "holds" else (ALARM, "none")
            axes.plot(x, test.network.rtt_ms, "o", ms=3, mew=0.8, mec=edge, mfc=face)
    _regions(axes, rows[0], tested, len(rows))
    axes.grid(visible=False, axis="x")
    axes.set_xticks([*places.values()], [*places])
    axes.set_xlim(-0.6, len(rows) - 0.4)
    log_ticks(axes.yaxis, ceiling / floor)


def _regions(axes: Axes, row: Row, tested: Tested, columns: int) -> None:
    """Draw pairs of regions across; some are named, none of them on another."""
    outside, before = placed(row, tested.regions)[1], 0.0
    low, high = axes.get_ylim()
    shown = (pair for pair in tested.regions if low < pair.rtt_ms < high)
    for pair in sorted(shown, key=lambda pair: pair.rtt_ms):
        colour = ALARM if pair in outside else QUIET
        axes.axhline(pair.rtt_ms, color=colour, lw=0.4, alpha=0.5, zorder=0)
        if pair.rtt_ms >= before * _APART:
            before = pair.rtt_ms
            text = axes.text(columns - 0.38, pair.rtt_ms, EN_DASH.join(pair.sites), va="center")
            text.set(fontsize=TINY_PT - 1.5, color=colour)
