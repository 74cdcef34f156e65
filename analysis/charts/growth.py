"""The charts of growth: medians against objects or nodes, with the curves that fit.

A panel is an endpoint; in it, a system has a colour, and dashes where several curves fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.facets import Dot, Scale, by_what_is_said, draw_facets, panel_names
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.growth import AXES, GROWING, Axis, Judged, Verdict, change_of
from wanlat.analysis.names import count, display_system, row_labels
from wanlat.analysis.section import Answer, Row, series_of

Pair = tuple[Row, Judged]

_SHORT = {Verdict.GROWS: "grows", Verdict.NEITHER: "neither"}


def charts_of(answer: Answer) -> dict[str, Figure]:
    """The charts by the stems of their files; of each combination of further parameters its own."""
    pairs = list(zip(answer.figures.rows, answer.figures.arrays, strict=True))
    charts: dict[str, Figure] = {}
    for axis in AXES:
        along = [pair for pair in pairs if pair[0]["parameter"] == axis.parameter]
        said = [
            "".join(f", {name} {value}" for name, value in row.get("others", {}).items())
            for row, _ in along
        ]
        for stem, told, mine in by_what_is_said(f"growth-{axis.noun}", along, said):
            charts[stem] = _draw(answer.of + told, mine, axis)
    return charts


def _draw(of: str, pairs: Sequence[Pair], axis: Axis) -> Figure:
    rows = [row for row, _ in pairs]
    series = list(dict.fromkeys(series_of(row) for row in rows))
    looks, short, verdicts = styles(series), row_labels(series), dict[str, list[str]]()
    names = panel_names(rows)
    for row, name in zip(rows, names, strict=True):
        whose = with_placement(short[series_of(row)], row["placement"])
        verdict = _SHORT.get(row["verdict"], row["verdict"])
        verdicts.setdefault(name, []).append(f"{whose}: {verdict}")
    dots = [
        Dot(
            (panel, "\n".join(verdicts[panel])),
            *(series_of(row), row["placement"], level["x"], level["median_ms"], level["ci95_ms"]),
            joined=False,
        )
        for panel in verdicts
        for row, name in zip(rows, names, strict=True)
        for level in row["levels"]
        if name == panel
    ]

    def beneath(axes: Axes, panel: str) -> None:
        for (row, judged), name in zip(pairs, names, strict=True):
            if name == panel:
                look = looks[series_of(row)].at(row["placement"])
                _draw_curves(axes, row, judged, (look.dark, look.colour))

    sizes = sorted({dot.x for dot in dots})
    words = Words(
        _found(rows, axis, sizes),
        f"The cost of {axis.noun} · {of} · medians of single requests, bars: 95 % of the run",
        "objects in the bucket" if axis.noun == "objects" else "nodes of the cluster",
        (
            "A curve is drawn where its shape fits: solid where it is the only one, with its 95 %, "
            "runs of the same that differ included; dashed where others fit as well. No curve: "
            "none fits, there are too few points, or requests take one of two times.",
        ),
    )
    scale = Scale({x: f"{x:,g}" for x in sizes}, "median, ms", alike=False)
    return draw_facets(words, dots, scale, beneath=beneath)


def _draw_curves(axes: Axes, row: Row, judged: Judged, colours: tuple[str, str]) -> None:
    at = np.geomspace(row["levels"][0]["x"], row["levels"][-1]["x"], 100)
    is_one = len(judged.fitting) == 1
    for curve in judged.fitting:
        middle, low, high = curve.band(at)
        middle[middle <= 0] = np.nan  # no latency, however well it fits
        axes.plot(at, middle, color=colours[0], lw=1.1, ls="-" if is_one else (0, (3, 2)), zorder=3)
        if is_one:
            band = np.maximum(low, 0), high
            axes.fill_between(at, *band, color=colours[1], alpha=0.18, lw=0, zorder=2)


def _found(rows: Sequence[Row], axis: Axis, sizes: Sequence[float]) -> str:
    """The finding: what grows most, and how many endpoints grow."""
    range_ = f"From {sizes[0]:,.0f} to {sizes[-1]:,.0f} {axis.noun}"
    cases = count(len(rows), "case")
    grown = [row for row in rows if row["verdict"] in (*GROWING, Verdict.GROWS)]
    if not grown:
        return f"{range_}: growth is shown in none of {cases}"
    most = max(grown, key=lambda row: float(row["change"]))
    name = with_placement(most["endpoint"], most["placement"])
    by_system = ", ".join(dict.fromkeys(display_system(row["system"]) for row in grown))
    return (
        f"{range_}: {display_system(most['system'])}'s {name} grows most, by "
        f"{change_of(most).replace('+', '')}; growth is shown in {len(grown)} of {cases} "
        f"({by_system})"
    )
