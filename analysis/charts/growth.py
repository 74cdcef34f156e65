"""The charts of growth: medians against objects or nodes, with the curves that fit.

A panel is an endpoint; in it, a system has a colour, and dashes where several curves fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.facets import Facet, Marks, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import SeriesStyle, styles
from wanlat.analysis.endpoints import row_names, row_of
from wanlat.analysis.figures.growth import AXES, GROWING, Axis, Judged, Verdict
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import count, display_system, row_labels, series_labels
from wanlat.analysis.placement import MEANING, PLACEMENTS, is_known, with_placement
from wanlat.analysis.report.growth import change_of

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Series
    from wanlat.analysis.report.section import Answer

Pair = tuple[Row, Judged]

_CURVE_POINTS = 100
_SHORT = {Verdict.GROWS: "grows", Verdict.NEITHER: "neither"}
_GROWS = (*GROWING, Verdict.GROWS)


def charts_of(answer: Answer) -> dict[str, Figure]:
    """The charts by the stems of their files; of each combination of further parameters its own."""
    pairs = list(zip(answer.figures.rows, answer.figures.arrays, strict=True))
    charts: dict[str, Figure] = {}
    for axis in AXES:
        along = [pair for pair in pairs if pair[0]["parameter"] == axis.parameter]
        for others in dict.fromkeys(tuple(row.get("others", {}).items()) for row, _ in along):
            mine = [pair for pair in along if tuple(pair[0].get("others", {}).items()) == others]
            behind = "".join(f"-{_plain(name)}-{_plain(value)}" for name, value in others)
            said = "".join(f", {name} {value}" for name, value in others)
            charts[f"growth-{axis.noun}{behind}"] = _draw(answer, mine, axis, said)
    return charts


def _draw(answer: Answer, pairs: Sequence[Pair], axis: Axis, said: str) -> Figure:
    series = list(dict.fromkeys(series_of(row) for row, _ in pairs))
    looks, short, labels = styles(series), row_labels(series), series_labels(series)
    names = row_names(dict.fromkeys(row["endpoint"] for row, _ in pairs))
    panels = [
        [pair for pair in pairs if row_of(pair[0]["endpoint"]) == one]
        for one in dict.fromkeys(row_of(row["endpoint"]) for row, _ in pairs)
    ]

    def look_of(row: Row) -> SeriesStyle:
        return looks[series_of(row)].at(row["placement"])

    facets = [
        Facet(
            names[mine[0][0]["endpoint"]].replace(" ·\n", " · "),
            "\n".join(_verdicts([row for row, _ in mine], short)),
            tuple(_marks(row, look_of(row)) for row, _ in mine),
        )
        for mine in panels
    ]

    def beneath(axes: Axes, number: int) -> None:
        for row, judged in panels[number]:
            _draw_curves(axes, row, judged, look_of(row))

    placed = dict.fromkeys((series_of(row), row["placement"]) for row, _ in pairs)
    legend = [
        (looks[one].at(placement), with_placement(labels[one], placement))
        for one in series
        for placement in PLACEMENTS
        if (one, placement) in placed
        and (is_known(placement) or not any(o == one and is_known(p) for o, p in placed))
    ]
    sizes = sorted({level["x"] for row, _ in pairs for level in row["levels"]})
    words = Words(
        title=_found([row for row, _ in pairs], axis, sizes),
        subtitle=f"The cost of {axis.noun} · {answer.of}{said} · medians of single requests, bars: "
        "95 % of the run",
        x_label="objects in the bucket" if axis.noun == "objects" else "nodes of the cluster",
        caption=(
            "A curve is drawn where its shape fits: solid where it is the only one, with its 95 %, "
            "runs of the same that differ included; dashed where others fit as well. No curve: "
            "none fits, there are too few points, or requests take one of two times.",
            *([MEANING + " Open marks: remote."] if any(is_known(p) for _, p in placed) else []),
        ),
    )
    ticks = {x: _count(x) for x in sizes}
    scale = Scale(ticks, "median, ms", alike=False)
    return draw_facets(words, facets, scale, legend, beneath=beneath)


def _verdicts(rows: Sequence[Row], short: Mapping[Series, str]) -> list[str]:
    return [
        f"{with_placement(short[series_of(row)], row['placement'])}: "
        f"{_SHORT.get(row['verdict'], row['verdict'])}"
        for row in rows
    ]


def _marks(row: Row, look: SeriesStyle) -> Marks:
    levels = row["levels"]
    return Marks(
        look,
        [level["x"] for level in levels],
        [level["median_ms"] for level in levels],
        [(level["ci95_ms"][0], level["ci95_ms"][1]) for level in levels],
        joined=False,
    )


def _draw_curves(axes: Axes, row: Row, judged: Judged, look: SeriesStyle) -> None:
    at = np.geomspace(row["levels"][0]["x"], row["levels"][-1]["x"], _CURVE_POINTS)
    is_one = len(judged.fitting) == 1
    for curve in judged.fitting:
        middle, low, high = curve.band(at)
        middle[middle <= 0] = np.nan  # no latency, however well it fits
        style = "-" if is_one else (0, (3, 2))
        axes.plot(at, middle, color=look.dark, lw=1.1, linestyle=style, zorder=3)
        if is_one:
            low = np.maximum(low, 0)
            axes.fill_between(at, low, high, color=look.colour, alpha=0.18, lw=0, zorder=2)


def _found(rows: Sequence[Row], axis: Axis, sizes: Sequence[float]) -> str:
    """The finding: what grows most, and how many endpoints grow."""
    range_ = f"From {sizes[0]:,.0f} to {sizes[-1]:,.0f} {axis.noun}"
    grown = [row for row in rows if row["verdict"] in _GROWS]
    if not grown:
        return f"{range_}: growth is shown in none of {count(len(rows), 'case')}"
    most = max(grown, key=lambda row: float(row["change"]))
    name = (
        f"{display_system(most['system'])}'s {with_placement(most['endpoint'], most['placement'])}"
    )
    change = (change_of(most) or "").replace("+", "")
    by_system = ", ".join(dict.fromkeys(display_system(row["system"]) for row in grown))
    cases = f"{len(grown)} of {count(len(rows), 'case')} ({by_system})"
    return f"{range_}: {name} grows most, by {change}; growth is shown in {cases}"


def _count(size: float) -> str:
    for scale, letter in ((1e6, "M"), (1e3, "k")):
        if size >= scale and size % scale == 0:
            return f"{size / scale:g}{letter}"
    return f"{size:g}"


def _plain(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text).strip("-")
