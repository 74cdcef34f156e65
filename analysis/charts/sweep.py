"""The charts of any matrix: figures against what was varied, a line a system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from wanlat.analysis.charts import endpoint_latency
from wanlat.analysis.charts.facets import Dot, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.endpoints import UNKNOWN, endpoint_order, row_names, row_of, with_placement
from wanlat.analysis.figures.latency import EndpointSummary
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import below, count, digits, row_labels
from wanlat.analysis.report.section import Answer, written
from wanlat.analysis.sweep import REPEATED, Parameter, Sweep, number_of


class Quantity(NamedTuple):
    """What is drawn of a row: the key of a figure (with dots: nested), its name and its unit."""

    key: str
    what: str
    unit: str
    scale: float = 1.0
    ci95: str = "no interval"


MEDIAN = Quantity("median_ms", "median", "ms", ci95="median_ci95_ms")
ROUND_TRIPS = Quantity("round_trips", "slope", "round trips", ci95="ci95")


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of latencies: of a run by endpoints, of a matrix against what it varies."""
    return draw(answer) if answer.points else endpoint_latency.charts_of(answer)


def draw(answer: Answer, quantity: Quantity = MEDIAN, stem: str = "sweep") -> dict[str, Figure]:
    """The charts of a matrix by the stems of their files; none where there is nothing to draw.

    The parameter with the most values (numbers before words) is the x axis; a second one has a
    column a value; of more, each combination has a chart of its own. With an option that only one
    of the systems has, points do not lie on common axes, and there is none.
    """
    sweep = answer.source
    assert isinstance(sweep, Sweep)
    left_out = sweep.untrusted
    pairs = [
        (row, array)
        for row, array in zip(answer.figures.rows, answer.figures.arrays, strict=True)
        if below(row, quantity.key) is not None and row["point"] not in left_out
    ]
    varied = [
        each for each in sweep.parameters if len(each.values) > 1 and each.name not in REPEATED
    ]
    varied.sort(key=lambda each: (_is_numeric(each), len(each.values)), reverse=True)
    if not varied or any(row[p.name] not in p.values for p in varied for row, _ in pairs):
        return {}
    axes, rest, charts = varied[:2], varied[2:], {}
    for values in product(*(each.values for each in rest)):
        fixed = {each.name: value for each, value in zip(rest, values, strict=True)}
        mine = [(row, array) for row, array in pairs if fixed.items() <= row.items()]
        if len({row[axes[0].name] for row, _ in mine}) > 1:  # no panel with one dot
            said = "".join(f", {name} {written(value)}" for name, value in fixed.items())
            name = stem + re.sub(r"[^\w.]+", "-", said)
            charts[name] = _draw(sweep, mine, axes, said, quantity)
    return charts


def _draw(
    sweep: Sweep,
    pairs: Sequence[tuple[Row, Any]],
    axes: Sequence[Parameter],
    said: str,
    quantity: Quantity,
) -> Figure:
    x, *column = axes
    ticks = {_place(value, x): written(value) for value in x.values}
    dots = list(_dots(sweep, pairs, x, column, quantity))
    words = Words(
        _found(dots, ticks, f" {quantity.unit} at {x.name} ") or f"{sweep.study}: {quantity.what}",
        f"{quantity.what.capitalize()} · {sweep.study} on {sweep.topology}{said}: "
        f"{count(len(sweep.complete), 'point')}, each on a cluster of its own",
        x.name,
        (
            "Bars: 95 % intervals of one cluster each." if any(dot.ci95 for dot in dots) else "",
            "No line joins marks of which one is of requests that take one of several times, or "
            "of points that were repeated.",
            f"{count(len(sweep.missing), 'point')} missing." if sweep.missing else "",
        ),
    )
    columns = min(len(column[0].values), 4) if column else 3
    scale = Scale(ticks, f"{quantity.what}, {quantity.unit}")
    return draw_facets(words, dots, scale, columns=columns)


def _dots(
    sweep: Sweep,
    pairs: Sequence[tuple[Row, Any]],
    x: Parameter,
    column: Sequence[Parameter],
    quantity: Quantity,
) -> Iterator[Dot]:
    names = endpoint_order({row.get("endpoint", "") for row, _ in pairs}, sweep.manifest["study"])
    called = row_names(names)
    for row_endpoints, value in product(
        dict.fromkeys(map(row_of, names)), column[0].values if column else [None]
    ):
        for row, array in pairs:
            endpoint = row.get("endpoint", "")
            if endpoint in row_endpoints and (not column or row[column[0].name] == value):
                modes = row.get("modes", ())
                if isinstance(array, EndpointSummary):
                    modes = endpoint_latency.modes_of(array)
                yield Dot(
                    panel=(
                        called[endpoint].replace("\n", " "),
                        f"{column[0].name} {written(value)}" if column else "",
                    ),
                    series=series_of(row),
                    placement=row.get("placement", UNKNOWN),
                    x=_place(row[x.name], x),
                    y=below(row, quantity.key) / quantity.scale,
                    ci95=row.get(quantity.ci95),
                    joined=len(modes) < 2,
                )


def _place(value: Any, x: Parameter) -> float:
    return (number_of(value) or 0.0) if _is_numeric(x) else float(x.values.index(value))


def _is_numeric(parameter: Parameter) -> bool:
    return all(number_of(value) is not None for value in parameter.values)


def _found(dots: Sequence[Dot], ticks: Mapping[float, str], at: str) -> str | None:
    """The finding: the line that differs most, of those whose requests take one time."""
    labels, spans = row_labels(list(dict.fromkeys(dot.series for dot in dots))), []
    for line in dict.fromkeys((dot.series, dot.panel, dot.placement) for dot in dots):
        mine = [dot for dot in dots if (dot.series, dot.panel, dot.placement) == line]
        low, high = (of(mine, key=lambda dot: dot.y) for of in (min, max))
        if low.y > 0 and all(dot.joined for dot in mine):
            spans.append((high.y / low.y, low, high))
    if not spans:
        return None
    _, low, high = max(spans, key=lambda span: span[0])
    name = with_placement(" ".join((labels[low.series], *low.panel)).strip(), low.placement)
    ends = sorted((low, high), key=lambda dot: dot.x)
    return f"{name} differs most: " + ", ".join(f"{digits(e.y, 3)}{at}{ticks[e.x]}" for e in ends)
