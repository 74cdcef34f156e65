"""The chart that shows where round trips come from: every request's latency against its RTT.

A panel is one endpoint of one system. A point is one request, at the RTT that was measured during
its RTT step; a line is a mode, and its slope the number of round trips, written at its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis import trace_files
from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts import round_trips, sweep
from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.lettering import Lettering
from wanlat.analysis.charts.round_trips import finding, write
from wanlat.analysis.charts.rows import strip_offsets
from wanlat.analysis.charts.style import (
    ALARM,
    FAINT,
    INK,
    TINY_PT,
    SeriesStyle,
    applied,
    styles,
)
from wanlat.analysis.charts.wording import looks_of, subtitle_of_rtt_steps
from wanlat.analysis.endpoints import row_names, row_of
from wanlat.analysis.figures.round_trips import RoundTrips, Status
from wanlat.analysis.names import count, format_trips, row_labels, shortened
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.placement import MEANING, is_known
from wanlat.analysis.report.round_trips import NO_SLOPE, percents

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer

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
_SHARE = "axes fraction"
_LABEL_APART = 0.075
"""Of a panel's height, what is written at the ends of two lines."""

_Cell = list[RoundTrips]


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of a run whose network was as requested, and a trace of each endpoint.

    Of a matrix, the round trips against what it varies.
    """
    bundle = answer.source
    if answer.points:
        return sweep.draw(answer, sweep.ROUND_TRIPS)
    if not isinstance(bundle, Bundle) or not is_trusted(bundle):
        return {}
    recorded = [each.group for each in answer.figures.arrays if each.chain_round_trips is not None]
    return {
        "round-trips": round_trips.draw(answer),
        "latency-against-rtt": draw(answer),
        **trace_files.charts_of(bundle, recorded),
    }


def draw(answer: Answer) -> Figure:
    """The chart of the section `round_trips`, of a run."""
    entries, series = answer.figures.arrays, answer.figures.series
    looks, labels = styles(series), row_labels(series)
    names = row_names([entry.endpoint for entry in entries])
    columns, cells = _cells(answer)
    rtt_limit = max((float(e.points.rtt_ms.max(initial=0.0)) for e in entries), default=0.0) or 1.0
    limits = {n: _limit_ms(cell, rtt_limit) for n, cell in enumerate(cells) if cell}
    if len(series) > 1:  # systems compare: the panels of a row are on one scale
        limits = {
            n: max(v for m, v in limits.items() if m // columns == n // columns) for n in limits
        }
    beyond = sum(
        int((entry.points.latency_ms > limits[n]).sum()) for n in limits for entry in cells[n]
    )
    words = _words(answer, beyond)
    with applied():
        figure, panels = multiples(
            words, len(cells), columns=columns, panel_in=1.9, y_label="latency, ms", share_y="none"
        )
        for number, (axes, cell) in enumerate(zip(panels, cells, strict=True)):
            if not cell:
                axes.set_visible(False)
                continue
            below = number + columns
            axes.tick_params(labelbottom=below >= len(cells) or not cells[below])
            whose = labels[cell[0].series] if len(series) > 1 else ""
            known = dict.fromkeys(names[entry.endpoint].replace("\n", " ") for entry in cell)
            head(axes, " · ".join(known), whose)
            axes.set_xlim(-0.05 * rtt_limit, 1.05 * rtt_limit)
            axes.set_ylim(-0.03 * limits[number], limits[number])
            axes.grid(visible=False)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
            _draw_panel(axes, cell, looks, rtt_limit, limits[number])
        found = looks_of(series, [entry.group for entry in entries])
        return dress(figure, words, found)


def _cells(answer: Answer) -> tuple[int, list[_Cell]]:
    """Columns, and the entries of each panel: a row an endpoint and a column a system."""
    entries, series = answer.figures.arrays, answer.figures.series
    rows = list(dict.fromkeys(row_of(entry.endpoint) for entry in entries))
    if len(series) == 1:
        names = list(dict.fromkeys(entry.endpoint for entry in entries))
        cells = [[entry for entry in entries if entry.endpoint == name] for name in names]
        return _COLUMNS_OF_ONE_SYSTEM, cells
    return len(series), [
        [entry for entry in entries if entry.endpoint in row and entry.series == one]
        for row, one in product(rows, series)
    ]


def _limit_ms(cell: _Cell, rtt_limit: float) -> float:
    """Where the axis of latency ends: past everything but lone requests far off the rest.

    And never nearer than one round trip at the greatest RTT: a flat line must look flat.
    """
    greatest = bulk = rtt_limit
    for entry in cell:
        if entry.points.latency_ms.size:
            greatest = max(greatest, float(entry.points.latency_ms.max()))
            bulk = max(bulk, float(np.percentile(entry.points.latency_ms, 95)))
        for mode in entry.modes:
            bulk = max(bulk, mode.intercept_ms + mode.round_trips * rtt_limit)
    return 1.06 * (greatest if greatest <= _CUT_BEYOND * bulk else 1.1 * bulk)


def _draw_panel(
    axes: Axes, cell: _Cell, looks: dict[Any, SeriesStyle], rtt_limit: float, limit_ms: float
) -> None:
    most = limit_ms / rtt_limit
    step = next((s for s in _GUIDE_STEPS if most / s <= _MOST_GUIDES), _GUIDE_STEPS[-1])
    for trips in range(step, int(most) + 1, step):
        axes.plot([0, rtt_limit], [0, trips * rtt_limit], color=FAINT, linewidth=0.7, zorder=0)
    ends, said = np.array([0.0, rtt_limit]), []
    for entry in cell:
        look = looks[entry.series].at(entry.placement)
        _draw_points(axes, entry, look, rtt_limit, limit_ms)
        shares = percents([mode.share for mode in entry.modes])
        for number, mode in enumerate(entry.modes):
            line = mode.intercept_ms + mode.round_trips * ends
            axes.plot(
                ends,
                line,
                color=look.dark,
                linewidth=1.5 if number == 0 else 1.1,
                linestyle="-" if number == 0 else (0, (4, 2)),
                zorder=2.5,
            )
            aside = [entry.placement] if is_known(entry.placement) else []
            aside += [f"{shares[number]} %"] if shares[number] < 100 else []
            words = " · ".join([format_trips(mode.round_trips), *aside])
            said.append((float(line[1]) / limit_ms, words, number == 0))
    _write_at_ends(axes, said)
    if missing := {entry.status for entry in cell} - {Status.LINE}:
        short = "not a line" if missing == {Status.NOT_A_LINE} else "no slope"
        write(axes, f"{short}: see below", (0.03, 0.93), 0, Lettering(TINY_PT, ALARM), _SHARE)


def _draw_points(
    axes: Axes, entry: RoundTrips, look: SeriesStyle, rtt_limit: float, limit_ms: float
) -> None:
    """Requests on a line as dots, the others as red crosses, what is beyond as red triangles."""
    points = entry.points
    n = points.rtt_ms.size
    x = points.rtt_ms + strip_offsets(n) * 2 * _SPREAD * rtt_limit
    y = np.minimum(points.latency_ms, limit_ms)
    inside = points.latency_ms <= limit_ms
    on_line = entry.given.members >= 0 if entry.given else np.ones(n, dtype=bool)
    face, edge = look.dot
    dots: dict[str, Any] = {
        "color": face,
        "edgecolors": edge,
        "marker": look.marker,
        "s": _AREA.get(look.marker, _OTHER_AREA),
        "alpha": 0.75,
        "linewidths": 0.5 if look.is_remote else 0.2,
    }
    alarming: dict[str, Any] = {"color": ALARM, "s": 14}
    for chosen, how in (
        (on_line & inside, dots),
        (~on_line & inside, {**alarming, "marker": "x", "linewidths": 0.9}),
        (~inside, {**alarming, "marker": "^"}),
    ):
        axes.scatter(
            x[chosen], y[chosen], zorder=3, clip_on=False, rasterized=n > _DOTS_AS_SHAPES, **how
        )


def _write_at_ends(axes: Axes, said: Sequence[tuple[float, str, bool]]) -> None:
    """Words at the ends of lines, moved up and down so that none hides another."""
    ordered = sorted(said)
    heights: list[float] = []
    for at, _, _ in ordered:
        heights.append(max(at, heights[-1] + _LABEL_APART if heights else 0.0))
    ceiling = 1.0
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], ceiling)
        ceiling = heights[number] - _LABEL_APART
    for height, (_, text, is_main) in zip(heights, ordered, strict=True):
        write(axes, text, (1, height), 4, Lettering(TINY_PT, INK, is_main), _SHARE)


def _words(answer: Answer, beyond: int) -> Words:
    bundle = answer.source
    assert isinstance(bundle, Bundle)
    caption = [
        "Every point: one request, at the RTT measured during its RTT step, spread a little so "
        "that points do not hide each other. Lines: modes, the solid one with the greatest share; "
        "at the end the slope, which is the round trips. Grey lines: whole round trips that take "
        "no other time (where there are many, every second, fifth, …). Red crosses: requests on "
        "no line.",
    ]
    if any(is_known(row["placement"]) for row in answer.figures.rows):
        caption.append(f"{MEANING} Open points: remote.")
    if beyond:
        caption.append(f"{count(beyond, 'request')} beyond an axis, at the red triangles.")
    caption += answer.say([NO_SLOPE])
    if full := shortened(answer.figures.series):
        caption.append(f"In full: {'; '.join(full)}.")
    return Words(
        title=finding(answer),
        subtitle=f"Latency against RTT · {answer.of} · {subtitle_of_rtt_steps(bundle)}",
        x_label="RTT of every WAN link as measured, ms",
        caption=tuple(caption),
    )
