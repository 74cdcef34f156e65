"""The chart of round trips: how many each endpoint makes, systems side by side.

A filled mark is the slope of latency against RTT with its interval, a hollow one the chain of
messages in the packet record, and grey is what no store that keeps its promise can do without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.rows import ROW_IN, Cell, Row, Words, frame
from wanlat.analysis.charts.style import (
    ALARM,
    FAINT,
    INK,
    QUIET,
    SMALL_PT,
    SeriesStyle,
    applied,
    styles,
)
from wanlat.analysis.charts.wording import subtitle_of_visits
from wanlat.analysis.endpoints import row_names
from wanlat.analysis.names import (
    EN_DASH,
    display_system,
    format_trips,
    format_trips_interval,
    listing,
    row_labels,
    series_labels,
    series_note,
    shortened,
)
from wanlat.analysis.notes import run_note
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.round_trips_block import RoundTrips
from wanlat.analysis.round_trips_notes import on_disagreements, why_not_all
from wanlat.analysis.round_trips_table import (
    NO_NUMBER,
    NOT_A_LINE,
    bytes_cell,
    chain_cell,
    packets_cell,
)
from wanlat.analysis.summary import Summary

_BELOW_ZERO = 0.04
"""Room left of zero, of the width: marks at zero are whole."""
_MARGIN = 0.35
"""Round trips beyond the greatest mark."""
_SLOPE_ABOVE_IN = 0.14 * ROW_IN
_CHAIN_BELOW_IN = 0.2 * ROW_IN
_INTERVAL_BELOW_IN = -_SLOPE_ABOVE_IN
_MAIN_AREA = 46.0
_CHAIN_AREA = 34.0
_FLOOR = "#ececec"
_MOST_GRID_LINES = 16
_GRID_STEPS = (1, 2, 5, 10, 20, 50, 100)
_WHYS_AT_MOST = 5


def draw(bundle: Bundle, summary: Summary) -> Figure:
    """The chart of `summary`, a study of round trips."""
    entries = summary.round_trips or ()
    looks = styles(summary.series)
    limit = _limit(entries)
    with applied():
        chart = frame(_words(bundle, summary, entries), _rows(summary, entries), limit)
        axes = chart.axes
        axes.set_xlim(-_BELOW_ZERO * limit, limit)
        _draw_grid(axes, limit)
        for entry, centre in zip(entries, chart.centres, strict=True):
            _draw_entry(axes, entry, centre, looks[entry.series])
    return chart.figure


def _draw_grid(axes: Axes, limit: float) -> None:
    """A line at every whole number of round trips, or at every second, fifth… of many."""
    step = next((s for s in _GRID_STEPS if limit / s <= _MOST_GRID_LINES), _GRID_STEPS[-1])
    whole = range(0, int(limit) + 1, step)
    axes.set_xticks(list(whole))
    for trips in whole:
        axes.axvline(trips, color=FAINT, linewidth=0.8, zorder=0.5)


def _draw_entry(axes: Axes, entry: RoundTrips, centre: float, look: SeriesStyle) -> None:
    if entry.least_round_trips is not None:
        _draw_least(axes, entry.least_round_trips, centre)
    if entry.chain_round_trips is not None:
        _draw_chains(axes, entry, centre + _CHAIN_BELOW_IN)
    if entry.given is None:
        _write_why(axes, entry, centre)
        return
    y = centre - _SLOPE_ABOVE_IN
    for number, mode in reversed(list(enumerate(entry.modes))):
        _draw_whisker(axes, mode.ci95, y, main=number == 0)
        axes.scatter(
            [mode.round_trips],
            [y],
            s=_MAIN_AREA * (1.0 if len(entry.modes) == 1 else max(mode.share, 0.08)),
            marker=look.marker,
            color=look.colour,
            edgecolors=look.dark,
            linewidths=0.9,
            zorder=4 if number == 0 else 3.5,
            clip_on=False,
        )


def _draw_whisker(axes: Axes, interval: Sequence[float], y: float, *, main: bool) -> None:
    axes.plot(
        list(interval),
        [y, y],
        color=INK if main else QUIET,
        linewidth=1.3 if main else 0.9,
        marker="|",
        markersize=7 if main else 5,
        markeredgewidth=1.1,
        zorder=3,
        solid_capstyle="butt",
        clip_on=False,
    )


def _draw_chains(axes: Axes, entry: RoundTrips, y: float) -> None:
    """Hollow diamonds, their size by share; the most usual one red where it disagrees."""
    for number, chain in enumerate(entry.chains):
        if number and chain.share < 0.03:
            continue
        disagrees = number == 0 and entry.agrees is False
        axes.scatter(
            [chain.round_trips],
            [y],
            s=_CHAIN_AREA * (1.0 if len(entry.chains) == 1 else max(chain.share, 0.12)),
            marker="D",
            facecolors="white",
            edgecolors=ALARM if disagrees else INK,
            linewidths=1.0,
            zorder=3.2,
            clip_on=False,
        )


def _draw_least(axes: Axes, least: float, centre: float) -> None:
    """Grey up to the least round trips, and a dark edge there: what is out of reach."""
    left = axes.get_xlim()[0]
    top = centre - ROW_IN * 0.46
    axes.add_patch(
        Rectangle(
            (left, top),
            least - left,
            ROW_IN * 0.92,
            facecolor=_FLOOR,
            edgecolor="none",
            zorder=0.2,
        )
    )
    axes.plot([least, least], [top, top + ROW_IN * 0.92], color=QUIET, linewidth=1.6, zorder=0.8)


def _write_why(axes: Axes, entry: RoundTrips, centre: float) -> None:
    """Say in the place of a mark why there is none, right of what is out of reach."""
    why = NOT_A_LINE if entry.estimate is not None else "no number"
    axes.annotate(
        f"{why}: see below",
        (max(entry.least_round_trips or 0.0, 0.0), centre - _SLOPE_ABOVE_IN),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL_PT,
        color=ALARM,
        style="italic",
    )


def _limit(entries: Sequence[RoundTrips]) -> float:
    greatest = 1.0
    for entry in entries:
        values = [mode.ci95[1] for mode in entry.modes]
        values += [chain.round_trips for chain in entry.chains]
        values += [entry.least_round_trips or 0.0]
        greatest = max(greatest, *values)
    return math.ceil(greatest) + _MARGIN if np.isfinite(greatest) else 1.0


def _rows(summary: Summary, entries: Sequence[RoundTrips]) -> list[Row]:
    labels = row_labels(summary.series)
    names = row_names(summary.endpoint_names)
    return [
        Row(names[e.endpoint], with_placement(labels[e.series], e.placement), _cells(e))
        for e in entries
    ]


def _cells(entry: RoundTrips) -> tuple[Cell, ...]:
    least = entry.least_round_trips
    return (
        _number_cell(entry),
        Cell(chain_cell(entry), alarming=entry.agrees is False),
        Cell(EN_DASH if least is None else f"{least:g}"),
        Cell(bytes_cell(entry)),
        Cell(packets_cell(entry)),
        Cell(str(entry.n), alarming=entry.failed > 0),
    )


def _number_cell(entry: RoundTrips) -> Cell:
    if entry.round_trips is None:
        return Cell(NOT_A_LINE if entry.estimate is not None else NO_NUMBER, alarming=True)
    return Cell(f"{format_trips(entry.round_trips)} {format_trips_interval(entry.ci95)}")


def _words(bundle: Bundle, summary: Summary, entries: Sequence[RoundTrips]) -> Words:
    labels, looks = series_labels(summary.series), styles(summary.series)
    legend = []
    for one in summary.series:
        note = f" ({series_note(one)})" if series_note(one) else ""
        legend.append(LegendEntry(looks[one], labels[one] + note))
    return Words(
        title=f"Round trips of one request on {bundle.topology}",
        subtitle=subtitle_of_visits(bundle, summary),
        headers=("slope [95 %]", "chain", "least", "WAN bytes", "packets", "requests"),
        x_label="round trips between sites that a request waits for, one after the other",
        caption=_caption(bundle, summary, entries),
        legend=tuple(legend),
    )


def _caption(bundle: Bundle, summary: Summary, entries: Sequence[RoundTrips]) -> tuple[str, ...]:
    lines = [
        "Filled: slope of latency against RTT, with its 95 % interval in black; where requests "
        "fall into several modes, one mark each, its area by share. Hollow diamond: longest chain "
        "of messages in the packet record. The two share nothing but the requests. WAN bytes and "
        "packets: of one request, background taken off.",
        _least_sentence(entries),
    ]
    if any(is_known(entry.placement) for entry in entries):
        lines.append(MEANING)
    lines += [f"{said} Their diamonds are red." for said in on_disagreements(entries)]
    lines += [f"No number. {said}" for said in why_not_all(entries)]
    if full := shortened(summary.series):
        lines.append(f"In full: {'; '.join(full)}.")
    if note := run_note(bundle):
        lines.append(note)
    absent = [display_system(o.system) for o in bundle.systems if o not in summary.series]
    if absent:
        lines.append(f"Not one measured sample of {', '.join(absent)}.")
    return tuple(lines)


def _least_sentence(entries: Sequence[RoundTrips]) -> str:
    """What grey means, in plain words, and the reason of the most frequent cases."""
    known = [entry for entry in entries if entry.least_round_trips is not None]
    if not known:
        return "What no store could beat is not known for this run."
    reasons: dict[str, int] = {}
    for entry in known:
        if entry.least_why and entry.least_round_trips:
            reasons[entry.least_why] = reasons.get(entry.least_why, 0) + 1
    ordered = sorted(reasons, key=lambda why: -reasons[why])
    because = (
        f" Why: {listing([why.rstrip('.') for why in ordered], _WHYS_AT_MOST)}." if ordered else ""
    )
    unknown = " Rows without grey: not known." if len(known) < len(entries) else ""
    return (
        "Grey: the least round trips. No store that makes this one's promise, with its replicas "
        "where they are, can do with fewer: replicas that must answer and lie in other sites are "
        f"at least one round trip away.{because}{unknown}"
    )
