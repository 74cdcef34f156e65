"""The charts of round trips: how many each endpoint makes, and how latency follows RTT.

In the first a filled mark is the slope of latency against RTT with its interval, a hollow one a
critical path in the packet record, and grey is what no store that keeps its promise can do without.
In the second a panel is one endpoint of one system, a point one request, at the RTT that was
measured during its RTT step, and a line a mode, with its slope written at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts import matrix, rows, sequence
from wanlat.analysis.charts.frame import (
    Words,
    caption,
    dress,
    error_sentences,
    head,
    legend,
    multiples,
    round_ticks,
    spread,
    subtitle,
)
from wanlat.analysis.charts.style import ALARM, INK, QUIET, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.endpoints import is_known, row_of
from wanlat.analysis.figures import round_trips as report
from wanlat.analysis.figures.round_trips import RoundTrips, Status
from wanlat.analysis.names import EN_DASH, format_trips, listing
from wanlat.analysis.section import Answer, Row, rests_on, series_of
from wanlat.bundle.run import Run

_AREA, _LEAST_AREA = 60.0, 3.0
"""Of the mark of all requests, points²; that of a part of them is as much smaller."""
_SLOPE_AT, _PATH_AT = -0.16, 0.2
"""Of a row's height, from its middle: filled marks are above, hollow ones below."""
_LABEL = 0.28
"""Of the axis: what is written where there is no slope, behind all marks of its row."""
_WHYS_AT_MOST = 5
_CUT_BEYOND = 2.5
"""Lone requests may stretch an axis this many times past the lines; farther off, they are cut."""
_SPREAD = 0.064
"""How far points are spread along the RTT, so that they do not hide each other; of the axis."""
_DOTS_AS_SHAPES = 4000
_APART = 0.075
"""Of a panel's height, what is written at the ends of two lines."""


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of a run if its network was as requested, and a trace of each endpoint.

    Of a matrix, the round trips against what it varies.
    """
    bundle = answer.source
    if answer.points:
        return matrix.draw(answer, matrix.ROUND_TRIPS)
    if not isinstance(bundle, Run) or not bundle.is_trusted:
        return {}
    recorded = [e.group for e in answer.figures.arrays if e.chain_round_trips is not None]
    return {
        "round-trips": draw_marks(answer),
        "latency-against-rtt": draw_lines(answer),
        **sequence.charts_of(bundle, recorded),
    }


def finding(answer: Answer) -> str:
    """Of each system the endpoints with the most round trips: "quorum PutObject takes 3 or 1"."""
    labels = answer.figures.labels
    by_system: dict[str, list[tuple[float, str, str]]] = {}
    for row in answer.figures.rows:
        if trips := report.usual(row, "modes" if row["status"] is Status.LINE else "chains"):
            mine = max(trips)[0], row["endpoint"], report.or_else(trips, 0)
            by_system.setdefault(labels[series_of(row)], []).append(mine)
    if not by_system:
        return "No number of round trips"
    most = []
    for name, every in by_system.items():
        top, _, number = max(every, key=lambda part: part[0])
        names = list(dict.fromkeys(endpoint for _, endpoint, its in every if its == number))
        more = f" and {len(names) - 1} more" if len(names) > 2 else ""
        most.append((top, f"{name} {names[0] if more else ' and '.join(names)}{more}", number))
    (_, name, number), *others = sorted(most, key=lambda part: -part[0])
    takes = f"take{'' if ' and ' in name else 's'} {number}"
    takes += f" round trip{'' if number == '1' else 's'}"
    return ", ".join([f"{name} {takes}", *(f"{name} {number}" for _, name, number in others)])


def draw_marks(answer: Answer) -> Figure:
    """How many round trips each endpoint makes, systems side by side."""
    entries, series = answer.figures.arrays, answer.figures.series
    looks, labels, titles = styles(series), answer.figures.labels, answer.figures.titles
    words = Words(
        finding(answer),
        f"Round trips of one request · {answer.subject} · {subtitle(answer.source)}",
        "round trips between sites that a request waits for, one after the other",
        caption(
            series,
            titles,
            {(entry.series, entry.placement) for entry in entries},
            "Filled: slope of latency against RTT, one mark for each mode, its area by share, with "
            "its 95 % interval. Hollow: critical paths in the packet record, by share. The two "
            "share nothing but the requests; red: they disagree.",
            _on_least(answer.figures.rows),
            *answer.sentences([report.NO_SLOPE, report.DISAGREEMENT]),
            *error_sentences(answer.source),
        ),
    )
    beside = []
    for row in answer.figures.rows:
        cells = report.slope_cell(row), report.path_cell(row) or EN_DASH, str(rests_on(row))
        labelled = row["endpoint"], labels[series_of(row)], row["placement"]
        beside.append(rows.Row(*labelled, cells, row["failed"] > 0))
    headers = ("round trips [95 %]", "critical path", "requests")
    marks = [([entry], looks[entry.series]) for entry in entries]
    return chart_of_marks(words, beside, headers, marks, legend(series, titles))


def chart_of_marks(
    words: Words,
    beside: Sequence[rows.Row],
    headers: Sequence[str],
    marks: Sequence[tuple[Sequence[RoundTrips], SeriesStyle]],
    entries: Sequence[tuple[SeriesStyle, str]],
    row_in: float = 0.3,
) -> Figure:
    """A chart of rows of marks, one mark for each cluster, with `entries` as its legend.

    `beside` and `headers` are those of `rows.row_chart`, with rows of `row_in` inches.
    """
    with applied():
        figure, axes, centres = rows.row_chart(words, beside, headers, row_in)
        axes.set_xlim(*_limits([row for row, _ in marks]))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True))
        axes.grid(visible=True, axis="x")
        for (row, look), y in zip(marks, centres, strict=True):
            _draw_row(axes, row, y, look)
        return dress(figure, words, entries)


def _limits(charted: Sequence[Sequence[RoundTrips]]) -> tuple[float, float]:
    """Of the axis of round trips: room for the marks of all rows, and for what stands behind."""
    left = -0.3
    right = max((_farthest(row) for row in charted), default=1.0) + 0.35
    for row in charted:
        if any(entry.status is not Status.LINE for entry in row):
            right = max(right, left + (_farthest(row) + 0.35 - left) / (1 - _LABEL))
    return left, right


def _farthest(row: Iterable[RoundTrips]) -> float:
    """How far the marks of a row reach, in round trips; at least to one."""
    reach = 1.0
    for entry in row:
        values = [*(mode.ci95[1] for mode in entry.modes), entry.least_round_trips or 1.0]
        reach = max([reach, *values, *(chain.round_trips for chain in entry.chains)])
    return reach


def _draw_row(axes: Axes, row: Sequence[RoundTrips], y: float, look: SeriesStyle) -> None:
    """Draw the marks of the entries of a row, one for each cluster; its middle is `y`."""
    for entry in row:
        _draw_marks(axes, entry, y, look)
    whys = dict.fromkeys(_why_not(entry) for entry in row if entry.status is not Status.LINE)
    if whys:
        left, right = axes.get_xlim()
        at = (_farthest(row) - left) / (right - left), y
        rows.write(axes, f"{' or '.join(whys)}: see below", at, 6, color=ALARM)


def _draw_marks(axes: Axes, entry: RoundTrips, y: float, look: SeriesStyle) -> None:
    left, _ = axes.get_xlim()
    least = entry.least_round_trips
    if least is not None:
        axes.barh(y, least - left, left=left, height=0.92, color="#ececec", zorder=0.2)
        axes.plot([least, least], [y - 0.46, y + 0.46], color=QUIET, linewidth=1.6, zorder=0.8)
    marks: list[tuple[Any, ...]] = [
        (chain, y + _PATH_AT, "D", "white", ALARM if entry.agrees is False and n == 0 else INK)
        for n, chain in enumerate(entry.chains)
    ]
    for mode in reversed(entry.modes):
        axes.plot(mode.ci95, [y + _SLOPE_AT] * 2, marker="|", ms=5, lw=1.1, color=INK, zorder=3)
        marks.append((mode, y + _SLOPE_AT, look.marker, look.colour, look.dark))
    for mark, height, marker, face, edge in marks:
        area = max(_AREA * mark.share, _LEAST_AREA)
        at = mark.round_trips, height
        how: dict[str, Any] = {"c": face, "ec": edge, "lw": 0.9, "clip_on": False}
        axes.scatter(*at, s=area, marker=marker, zorder=4, **how)


def _why_not(entry: RoundTrips) -> str:
    """What stands in the place of a slope."""
    return "no slope" if entry.status is Status.NO_NUMBER else str(entry.status)


def _on_least(figures: Sequence[Row]) -> str:
    """What gray means, in plain words, and the reason of the most frequent cases."""
    if all(row["least_round_trips"] is None for row in figures):
        return ""
    whys = [str(row["least_why"]).rstrip(".") for row in figures if row["least_round_trips"]]
    ordered = sorted(dict.fromkeys(whys), key=lambda why: -whys.count(why))
    return (
        "Gray: the lower bound, where it is known. No store that makes this one's promise, with "
        "its replicas where they are, can do with fewer. "
        f"{f'Why: {listing(ordered, _WHYS_AT_MOST)}.' if ordered else ''}"
    )


def draw_lines(answer: Answer) -> Figure:
    """Every request's latency against its RTT, and the lines of the modes."""
    entries, series = answer.figures.arrays, answer.figures.series
    looks, labels, titles = styles(series), answer.figures.labels, answer.figures.titles
    names = {e.endpoint for e in entries}
    placed = {(entry.series, entry.placement) for entry in entries}
    order = list(dict.fromkeys(row_of(entry.endpoint) for entry in entries))
    reach = max((float(e.points.rtt_ms.max(initial=0.0)) for e in entries), default=0.0) or 1.0
    limits = {row: _limit_ms([e for e in entries if e.endpoint in row], reach) for row in order}
    words = Words(
        finding(answer),
        f"Latency against RTT · {answer.subject} · {subtitle(answer.source)}",
        "RTT of every WAN link as measured, ms",
        caption(
            series,
            titles,
            placed,
            "Every point: one request, spread a little so that points do not hide each other. "
            "Lines: modes, the solid one with the greatest share; at the end the slope, which is "
            "the round trips. Gray lines: whole round trips that take no other time. Red: "
            "unexplained requests (crosses), and those beyond the axis (triangles).",
            *answer.sentences([report.NO_SLOPE]),
            *error_sentences(answer.source),
        ),
    )
    columns = len(series) if len(series) > 1 else 3
    with applied():
        figure, panels = multiples(
            words,
            len(order) * len(series),
            columns=columns,
            panel_in=2.0,
            y_label="latency, ms",
            share_y=False,
        )
        for axes, (row, one) in zip(panels, product(order, series), strict=True):
            cell = [entry for entry in entries if entry.endpoint in row and entry.series == one]
            axes.set_visible(bool(cell))
            axes.tick_params(labelbottom=True)
            head(axes, " · ".join(name for name in row if name in names), labels[one])
            axes.set_xlim(-0.05 * reach, 1.05 * reach)
            axes.set_ylim(-0.03 * limits[row], limits[row])
            axes.grid(visible=False)
            round_ticks(axes.xaxis, 5)
            round_ticks(axes.yaxis, 5)
            _draw_panel(axes, cell, looks[one], reach)
        return dress(figure, words, legend(series, titles, placed))


def _limit_ms(entries: Sequence[RoundTrips], reach: float) -> float:
    """Where the axis of latency ends: past everything but lone requests far off the rest.

    And never nearer than one round trip at the greatest RTT: a flat line must look flat.
    """
    ms = [e.points.latency_ms for e in entries if e.points.latency_ms.size]
    lines = [m.intercept_ms + m.round_trips * reach for e in entries for m in e.modes]
    bulk = max([reach, *lines, *(float(np.percentile(latencies, 95)) for latencies in ms)])
    greatest = max([bulk, *(float(latencies.max()) for latencies in ms)])
    return 1.06 * (greatest if greatest <= _CUT_BEYOND * bulk else 1.1 * bulk)


def _draw_panel(axes: Axes, cell: Sequence[RoundTrips], look: SeriesStyle, reach: float) -> None:
    limit_ms, ends, labels = axes.get_ylim()[1], np.array([0.0, reach]), []
    step = -(-int(limit_ms / reach) // 6)
    for trips in range(step, int(limit_ms / reach) + 1, step):
        axes.plot(ends, trips * ends, color="#d9d9d9", linewidth=0.7, zorder=0)
    for entry in cell:
        _draw_points(axes, entry, look.at(entry.placement), reach)
        shares = report.percents([mode.share for mode in entry.modes])
        for number, mode in enumerate(entry.modes):
            line = mode.intercept_ms + mode.round_trips * ends
            dashes: Any = (0, (4, 2)) if number else "-"
            axes.plot(ends, line, color=look.dark, lw=1.1 if number else 1.5, ls=dashes, zorder=2.5)
            aside = [entry.placement] if is_known(entry.placement) else []
            aside += [f"{shares[number]} %"] if shares[number] < 100 else []
            words = " · ".join([format_trips(mode.round_trips), *aside])
            labels.append((float(line[1]) / limit_ms, words, "normal" if number else "bold"))
    how: dict[str, Any] = {"of_y": "axes fraction", "fontsize": TINY_PT}
    for entry in cell:
        if entry.status is not Status.LINE:
            rows.write(axes, f"{_why_not(entry)}: see below", (0.03, 0.93), 0, color=ALARM, **how)
    lowest = -1.0
    for number, (height, text, weight) in enumerate(sorted(labels)):
        # Up, so that none hides another, and not so far that the last would leave the panel.
        room = 1 - _APART * (len(labels) - 1 - number)
        lowest = max(min(height, room), lowest + _APART)
        rows.write(axes, text, (1, lowest), 4, fontweight=weight, **how)


def _draw_points(axes: Axes, entry: RoundTrips, look: SeriesStyle, reach: float) -> None:
    """Requests on a line as dots, the others as red crosses, what is beyond as red triangles."""
    points, (face, edge), limit_ms = entry.points, look.dot, axes.get_ylim()[1]
    n = points.rtt_ms.size
    x, y = points.rtt_ms + spread(n) * _SPREAD * reach, np.minimum(points.latency_ms, limit_ms)
    inside = points.latency_ms <= limit_ms
    on_line = entry.given.members >= 0 if entry.given else np.ones(n, dtype=bool)
    width = 0.5 if look.is_remote else 0.2
    dots = {"marker": look.marker, "c": face, "ec": edge, "s": 7, "alpha": 0.75, "lw": width}
    kinds: list[tuple[Any, dict[str, Any]]] = [
        (on_line & inside, dots),
        (~on_line & inside, {"marker": "x", "c": ALARM, "s": 14, "lw": 0.9}),
        (~inside, {"marker": "^", "c": ALARM, "s": 14}),
    ]
    for chosen, how in kinds:
        is_picture = n > _DOTS_AS_SHAPES
        axes.scatter(x[chosen], y[chosen], zorder=3, clip_on=False, rasterized=is_picture, **how)
