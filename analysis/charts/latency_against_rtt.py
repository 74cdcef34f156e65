"""The chart that shows where round trips come from: every request's latency against its RTT.

A panel is one endpoint of one system. A point is one request, at the RTT that was measured during
its visit; a line is a mode, and its slope the number of round trips, written at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as joined
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.agreement import percent
from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.charts.lettering import ASIDE, Lettering, text_width
from wanlat.analysis.charts.marks import strip_offsets
from wanlat.analysis.charts.panels import Panel, PanelChart, panels
from wanlat.analysis.charts.rows import Words
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
from wanlat.analysis.charts.wording import legend_of, subtitle_of_visits
from wanlat.analysis.endpoints import row_names, row_of
from wanlat.analysis.names import count, format_trips, format_trips_interval, row_labels, shortened
from wanlat.analysis.notes import run_note
from wanlat.analysis.placement import MEANING, is_known
from wanlat.analysis.round_trips_block import RoundTrips
from wanlat.analysis.round_trips_notes import why_not_all
from wanlat.analysis.summary import Group, Summary

if TYPE_CHECKING:
    from wanlat.analysis.round_trips import Mode

_COLUMNS_OF_ONE_SYSTEM = 3
_CUT_BEYOND = 2.5
"""Lone requests may stretch an axis this many times past the lines; farther off, they are cut."""
_SPREAD = 0.032
"""How far points are spread along the RTT, so that they do not hide each other; of the axis."""
_DOTS_AS_SHAPES = 4000
_GUIDE_STEPS = (1, 2, 5, 10, 20, 50)
_MOST_GUIDES = 6
_AREA = {"s": 6.0, "D": 5.0, "o": 7.0}
_OTHER_AREA = 8.5
_LINE_IN = 0.115
_BETWEEN_IN = 0.04
_LOWEST_IN = -0.12
_NUMBER = Lettering(TINY_PT, INK, bold=True)


@dataclass(frozen=True)
class _Said:
    """What is written at the end of a line: where that is (latency, ms), and the words."""

    at_ms: float
    lines: tuple[tuple[str, Lettering], ...]


def draw(bundle: Bundle, summary: Summary) -> Figure:
    """The chart of `summary`, a study of round trips."""
    entries = summary.round_trips or ()
    cells = _cells(summary, entries)
    looks, labels = styles(summary.series), row_labels(summary.series)
    rtt_limit = _rtt_limit(entries)
    limits = _limits(cells, rtt_limit, alike=len(summary.series) > 1)
    alone = len(summary.series) == 1
    rasterized = sum(entry.points.rtt_ms.size for entry in entries) > _DOTS_AS_SHAPES
    with applied():
        chart = panels(
            _words(bundle, summary, entries, limits),
            [[_head(cell, labels, alone=alone) if cell else None for cell in row] for row in cells],
            _label_room(cells),
            "latency, ms",
        )
        for cell, axes in zip(joined.from_iterable(cells), chart.axes, strict=True):
            if cell and axes:
                size = (rtt_limit, limits[cell[0].group])
                _draw_panel(chart, axes, cell, looks, size, rasterized=rasterized)
    return chart.figure


_Cell = list[RoundTrips]


def _cells(summary: Summary, entries: Sequence[RoundTrips]) -> list[list[_Cell | None]]:
    """The entries of each panel: a row an endpoint and a column a system; of one system, a grid."""
    rows = list(dict.fromkeys(row_of(entry.endpoint) for entry in entries))
    if len(summary.series) == 1:
        names = list(dict.fromkeys(entry.endpoint for entry in entries))
        flat: list[_Cell | None] = [[e for e in entries if e.endpoint == name] for name in names]
        columns = min(_COLUMNS_OF_ONE_SYSTEM, len(flat))
        flat += [None] * (-len(flat) % columns)
        return [flat[start : start + columns] for start in range(0, len(flat), columns)]
    return [
        [
            [e for e in entries if e.endpoint in row and e.series == series] or None
            for series in summary.series
        ]
        for row in rows
    ]


def _head(cell: _Cell, labels: dict[Series, str], *, alone: bool) -> Panel:
    names = list(dict.fromkeys(entry.endpoint for entry in cell))
    name = " · ".join(row_names([each])[each] for each in names)
    return Panel(name, "" if alone else labels[cell[0].series])


def _draw_panel(
    chart: PanelChart,
    axes: Axes,
    cell: _Cell,
    looks: dict[Series, SeriesStyle],
    size: tuple[float, float],
    *,
    rasterized: bool,
) -> None:
    """A panel that reaches to `size`: RTT and latency, ms."""
    rtt_limit, limit_ms = size
    axes.set_xlim(-0.05 * rtt_limit, 1.05 * rtt_limit)
    axes.set_ylim(-0.03 * limit_ms, limit_ms)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    _draw_guides(axes, rtt_limit, limit_ms)
    said: list[_Said] = []
    for entry in cell:
        look = looks[entry.series].at(entry.placement)
        _draw_points(axes, entry, look, size, rasterized=rasterized)
        for number, mode in enumerate(entry.modes):
            _draw_line(axes, mode, look, rtt_limit, main=number == 0)
            end_ms = mode.intercept_ms + mode.round_trips * rtt_limit
            said.append(_Said(end_ms, _words_of(entry, mode)))
    _write_at_ends(chart, axes, said)
    whys = list(dict.fromkeys(_why(entry, cell) for entry in cell if entry.why is not None))
    if whys:
        _write_why(axes, whys)


def _draw_guides(axes: Axes, rtt_limit: float, limit_ms: float) -> None:
    """Faint lines of whole round trips from the origin, so that a slope can be read by eye."""
    most = limit_ms / rtt_limit
    step = next((s for s in _GUIDE_STEPS if most / s <= _MOST_GUIDES), _GUIDE_STEPS[-1])
    for trips in range(step, int(most) + 1, step):
        axes.plot([0, rtt_limit], [0, trips * rtt_limit], color=FAINT, linewidth=0.7, zorder=0)


def _draw_points(
    axes: Axes,
    entry: RoundTrips,
    look: SeriesStyle,
    size: tuple[float, float],
    *,
    rasterized: bool,
) -> None:
    rtt_limit, limit_ms = size
    points = entry.points
    n = points.rtt_ms.size
    x = points.rtt_ms + strip_offsets(n) * 2 * _SPREAD * rtt_limit
    on_line = entry.given.members >= 0 if entry.given else np.ones(n, dtype=bool)
    inside = points.latency_ms <= limit_ms
    face, edge = look.dot
    common: Any = {"alpha": 0.75, "zorder": 3, "clip_on": False, "rasterized": rasterized}
    axes.scatter(
        x[on_line & inside],
        points.latency_ms[on_line & inside],
        s=_AREA.get(look.marker, _OTHER_AREA),
        marker=look.marker,
        color=face,
        edgecolors=edge,
        linewidths=0.5 if look.is_remote else 0.2,
        **common,
    )
    axes.scatter(
        x[~on_line & inside],
        points.latency_ms[~on_line & inside],
        s=14,
        marker="x",
        color=ALARM,
        linewidths=0.9,
        **common,
    )
    beyond = np.full(int((~inside).sum()), limit_ms)
    axes.scatter(x[~inside], beyond, s=14, marker="^", color=ALARM, zorder=4, clip_on=False)


def _draw_line(axes: Axes, mode: Mode, look: SeriesStyle, rtt_limit: float, *, main: bool) -> None:
    ends = np.array([0.0, rtt_limit])
    axes.plot(
        ends,
        mode.intercept_ms + mode.round_trips * ends,
        color=look.dark,
        linewidth=1.5 if main else 1.1,
        linestyle="-" if main else (0, (4, 2)),
        zorder=2.5,
    )


def _words_of(entry: RoundTrips, mode: Mode) -> tuple[tuple[str, Lettering], ...]:
    """Round trips with their interval; below, whose they are and of how many requests."""
    aside = [entry.placement] if is_known(entry.placement) else []
    if len(entry.modes) > 1:
        aside.append(percent(mode.share))
    number = (format_trips(mode.round_trips), _NUMBER)
    below = [" · ".join(aside)] if aside else []
    return (number, (format_trips_interval(mode.ci95), ASIDE), *((text, ASIDE) for text in below))


def _write_at_ends(chart: PanelChart, axes: Axes, said: Sequence[_Said]) -> None:
    """Words at the ends of lines, moved up and down so that none hides another."""
    if not said:
        return
    low_ms, high_ms = axes.get_ylim()
    height_in = axes.get_position().height * chart.figure.get_figheight()
    per_in = (high_ms - low_ms) / height_in
    ordered = sorted(said, key=lambda one: one.at_ms)
    heights = [_LINE_IN * len(one.lines) + _BETWEEN_IN for one in ordered]
    wanted = [
        (min(max(one.at_ms, low_ms), high_ms) - low_ms) / per_in - height / 2
        for one, height in zip(ordered, heights, strict=True)
    ]
    bottoms = _apart(wanted, heights, height_in - _LOWEST_IN)
    for one, bottom_in, height in zip(ordered, bottoms, heights, strict=True):
        top_in = bottom_in + height
        for number, (text, lettering) in enumerate(one.lines):
            axes.annotate(
                text,
                (1, 0),
                xycoords="axes fraction",
                xytext=(5, (top_in - _LINE_IN * (number + 1) + 0.02) * 72),
                textcoords="offset points",
                fontsize=lettering.size_pt,
                color=lettering.colour,
                fontweight="bold" if lettering.bold else "normal",
                va="baseline",
                annotation_clip=False,
            )


def _apart(wanted: Sequence[float], heights: Sequence[float], ceiling: float) -> list[float]:
    """Where boxes of `heights` stand, from the lowest, as near to `wanted` as they may: inches.

    None begins below _LOWEST_IN. What would reach above `ceiling` pushes down what is below it.
    """
    placed: list[float] = []
    for number, at in enumerate(wanted):
        floor = placed[-1] + heights[number - 1] if placed else _LOWEST_IN
        placed.append(max(at, floor))
    for number in reversed(range(len(placed))):
        placed[number] = max(min(placed[number], ceiling - heights[number]), _LOWEST_IN)
        ceiling = placed[number]
    return placed


def _why(entry: RoundTrips, cell: _Cell) -> str:
    whose = f"{entry.placement}: " if len(cell) > 1 and is_known(entry.placement) else ""
    return f"{whose}{entry.why}"


def _write_why(axes: Axes, whys: Sequence[str]) -> None:
    """Say in the panel that there is no number; the caption has the whole sentence."""
    short = "not a line" if all("ot a line" in why for why in whys) else "no number"
    axes.annotate(
        f"{short}: see below",
        (0.03, 0.97),
        xycoords="axes fraction",
        va="top",
        fontsize=TINY_PT,
        color=ALARM,
        style="italic",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        zorder=6,
    )


def _label_room(cells: Sequence[Sequence[_Cell | None]]) -> tuple[float, float]:
    """Inches that the words at the ends of a panel's lines take, across and upwards."""
    widths, heights = [0.0], [0.0]
    for cell in joined.from_iterable(cells):
        said = [_words_of(entry, mode) for entry in cell or () for mode in entry.modes]
        widths += [text_width(text, lettering) for lines in said for text, lettering in lines]
        heights.append(sum(_LINE_IN * len(lines) + _BETWEEN_IN for lines in said))
    return max(widths) + 0.12, max(heights) + 2 * _LOWEST_IN


def _rtt_limit(entries: Sequence[RoundTrips]) -> float:
    greatest = max(
        (float(e.points.rtt_ms.max()) for e in entries if e.points.rtt_ms.size), default=0
    )
    return greatest if greatest > 0 else 1.0


def _limits(
    cells: Sequence[Sequence[_Cell | None]], rtt_limit: float, *, alike: bool
) -> dict[Group, float]:
    """Where the axis of latency of each panel ends; `alike`: the same for the panels of a row.

    Past everything but lone requests far off the rest, and never nearer than one round trip at
    the greatest RTT: a flat line must look flat.
    """
    limits: dict[Group, float] = {}
    for row in cells:
        own = {cell[0].group: _limit_ms(cell, rtt_limit) for cell in row if cell}
        widest = max(own.values())
        for cell in row:
            for entry in cell or ():
                limits[entry.group] = widest if alike else own[(cell or [entry])[0].group]
    return limits


def _limit_ms(cell: _Cell, rtt_limit: float) -> float:
    greatest, bulk = 0.0, 0.0
    for entry in cell:
        if entry.points.latency_ms.size:
            greatest = max(greatest, float(entry.points.latency_ms.max()))
            bulk = max(bulk, float(np.percentile(entry.points.latency_ms, 95)))
        for mode in entry.modes:
            bulk = max(bulk, mode.intercept_ms + mode.round_trips * rtt_limit)
    bulk = max(bulk, rtt_limit)
    return 1.06 * (max(greatest, rtt_limit) if greatest <= _CUT_BEYOND * bulk else 1.1 * bulk)


def _words(
    bundle: Bundle, summary: Summary, entries: Sequence[RoundTrips], limits: Mapping[Group, float]
) -> Words:
    return Words(
        title=f"Latency against RTT on {bundle.topology}",
        subtitle=subtitle_of_visits(bundle, summary),
        headers=(),
        x_label="RTT of every WAN link as measured, ms",
        caption=_caption(bundle, summary, entries, limits),
        legend=legend_of(summary),
    )


def _caption(
    bundle: Bundle, summary: Summary, entries: Sequence[RoundTrips], limits: Mapping[Group, float]
) -> tuple[str, ...]:
    lines = [
        "Every point: one request, at the RTT measured during its visit, spread a little so that "
        "points do not hide each other. Lines: modes, the solid one with the greatest share; at "
        "the end the slope, which is the round trips, with its 95 % interval. Grey lines: whole "
        "round trips that take no other time (where there are many, every second, fifth, …). Red "
        "crosses: requests on no line.",
    ]
    if any(is_known(entry.placement) for entry in entries):
        lines.append(f"{MEANING} Open points: remote.")
    beyond = sum(int((e.points.latency_ms > limits[e.group]).sum()) for e in entries)
    if beyond:
        lines.append(f"{count(beyond, 'request')} beyond an axis, at the red triangles.")
    lines += [f"No number. {said}" for said in why_not_all(entries)]
    if full := shortened(summary.series):
        lines.append(f"In full: {'; '.join(full)}.")
    if note := run_note(bundle):
        lines.append(note)
    return tuple(lines)
