"""The charts of object sizes: mean time, and its ratio between systems.

A row of panels is an operation, a column a number of nodes, a line a system. Lines stand a little
beside each other, so that no interval hides another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from wanlat.analysis import statistics
from wanlat.analysis.charts.facets import Dot, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.endpoints import READ
from wanlat.analysis.figures.sizes import FRESH, ONE, RatioOf, over
from wanlat.analysis.names import count, size
from wanlat.analysis.section import Answer, Figures, Row, series_of
from wanlat.analysis.statistics import Ratio
from wanlat.analysis.stats import intervals
from wanlat.analysis.stats.intervals import Interval, Values
from wanlat.bundle import REPLICATE
from wanlat.bundle.documents import REMOTE

_SAME = ("system", "version", "placement", "nodes", "operation", "object_bytes", "keys")

Mark = tuple[Row, float, Sequence[float] | None]
"""Where something was measured, the height there, and its 95 % interval."""
Found = tuple[str, str, str, Sequence[Mark]]
"""A finding, the label of y, what a height means, and the marks that show it."""


def charts_of(answer: Answer) -> dict[str, Figure]:
    """The charts by the stems of their files.

    Fresh keys, one key and each combination of further parameters have charts of their own. Of
    several clusters of the same the figures are over them.
    """
    charts: dict[str, Figure] = {}
    are_clusters = REPLICATE in answer.figures.parameters
    whole = _over_clusters(answer.figures) if are_clusters else answer.figures
    ratio = _of_clusters if are_clusters else statistics.of_means
    names = whole.parameters
    for (*values, keys), figures in _by(whole, *names, "keys"):
        label = "".join(f", {name} {v}" for name, v in zip(names, values, strict=True))
        behind = re.sub(r"[^\w.]+", "-", label) + "-one-key" * (keys == ONE)
        clusters = len(figures.arrays[0]) if are_clusters else 0
        for kind, finding in (("time", _times(figures)), ("ratio", _ratios(figures, ratio))):
            if finding is not None:
                subject = answer.subject + label + ", one key" * (keys == ONE)
                charts[f"sizes-{kind}{behind}"] = _draw(whole, subject, finding, clusters)
    return charts


def _over_clusters(figures: Figures) -> Figures:
    """A row for all clusters of the same, with their means as its array, shape (clusters,)."""
    others = tuple(name for name in figures.parameters if name != REPLICATE)
    rows, arrays = [], []
    for _, alike in _by(figures, *others, *_SAME):
        means = np.array([row["mean_ms"] for row in alike.rows])
        mean, ci95 = _estimate(means)
        rows.append({**alike.rows[0], "mean_ms": mean, "mean_ci95_ms": ci95})
        arrays.append(means)
    return replace(figures, rows=tuple(rows), arrays=tuple(arrays), parameters=others)


def _estimate(means: Values) -> tuple[float, Interval | None]:
    """The mean over clusters of their means; no interval where none can be drawn."""
    ci95 = intervals.of_mean(means) if means.size > 1 else None
    return float(means.mean()), ci95 if ci95 and ci95[0] > 0 else None


def _of_clusters(over: Values, under: Values, _: Sequence[int]) -> Ratio:
    return statistics.of_estimates(_estimate(over), _estimate(under))


def _by(figures: Figures, *names: str) -> Iterator[tuple[tuple[str, ...], Figures]]:
    """The figures by what rows have under these names, fresh keys before one."""
    places: dict[tuple[str, ...], list[tuple[Row, Any]]] = {}
    for pair in zip(figures.rows, figures.arrays, strict=True):
        places.setdefault(tuple(str(pair[0][name]) for name in names), []).append(pair)
    for values in sorted(places, key=lambda values: FRESH not in values):
        rows, arrays = zip(*places[values], strict=True)
        yield values, replace(figures, rows=rows, arrays=arrays)


def _times(figures: Figures) -> Found:
    """Which system has the shortest mean, and in how many cases."""
    title = f"A request takes {_range([row['mean_ms'] for row in figures.rows])} ms"
    if len(figures.series) > 1:
        cases = [
            min(mine.rows, key=lambda row: float(row["mean_ms"]))
            for _, mine in _by(figures, "nodes", "operation", "object_bytes")
        ]
        labels, won = figures.labels, Counter(map(series_of, cases)).most_common()
        counts = ", ".join(f"{labels[one]} in {number}" for one, number in won)
        title = f"The shortest mean time, of {len(cases)} cases: {counts}"
    marks = [(row, row["mean_ms"], row["mean_ci95_ms"]) for row in figures.rows]
    return title, "mean time of a request, ms", "", marks


def _ratios(figures: Figures, of_two: RatioOf) -> Found | None:
    """How long the others take by the first system; None without others."""
    base, *others = figures.series
    marks: list[Mark] = [
        (row, ratio.estimate, ratio.ci95) for row, ratio in over(figures, base, of_two)
    ]
    labels, name = figures.labels, figures.titles[base.system]
    heights = {one: [y for row, y, _ in marks if series_of(row) == one] for one in others}
    text = ", ".join(f"{labels[one]} takes {_range(mine)}" for one, mine in heights.items() if mine)
    if not text:
        return None
    placed = any(row["placement"] == REMOTE for row in figures.rows if series_of(row) == base)
    remote = " Its remote keys are the measure where it has some." if placed else ""
    return (
        f"{text} times as long as {name}",
        f"mean time / {name}'s",
        f"Above 1: {name} is faster.{remote} ",
        marks,
    )


def _range(values: Sequence[float]) -> str:
    """From the least to the greatest, in two digits, however great."""
    return " to ".join(f"{float(f'{end(values):.2g}'):g}" for end in (min, max))


def _draw(whole: Figures, subject: str, finding: Found, clusters: int) -> Figure:
    title, y_label, reading, marks = finding
    ranks = {one: rank for rank, one in enumerate(whole.series)}

    def place(mark: Mark) -> tuple[Any, ...]:
        row = mark[0]
        rank = ranks[series_of(row)]
        return row["operation"] != READ, row["nodes"] or 0, rank, row["object_bytes"]

    dots = [
        Dot(
            (f"{row['operation']}s", count(row["nodes"], "node") if row["nodes"] else ""),
            *(series_of(row), row["placement"], row["object_bytes"], y, ci95),
        )
        for row, y, ci95 in sorted(marks, key=place)
    ]
    words = Words(
        title,
        f"{subject} · means of single requests, none at the same time; bars: 95 %"
        + (f", over {count(clusters, 'cluster')}" if clusters else ""),
        "object size",
        (f"{reading}Lines stand a little beside each other.",),
    )
    ticks = {float(row["object_bytes"]): size(row["object_bytes"]) for row, *_ in marks}
    scale = Scale(ticks, y_label, at=1.0 if reading else None, beside=1.06)
    columns = max(len({row["nodes"] for row, *_ in marks}), 2)
    return draw_facets(words, dots, scale, whole.titles, columns=columns)
