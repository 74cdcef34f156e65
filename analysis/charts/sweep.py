"""The chart of any matrix: medians of single endpoints against what was varied, a line a system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from wanlat.analysis.charts import endpoint_latency
from wanlat.analysis.charts.endpoint_latency import modes_of
from wanlat.analysis.charts.facets import Facet, Marks, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import styles
from wanlat.analysis.charts.wording import looks_of
from wanlat.analysis.endpoints import endpoint_order, row_names, row_of
from wanlat.analysis.figures.latency import group_of
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import count, format_ms, row_labels, shortened
from wanlat.analysis.notes import untrusted_points
from wanlat.analysis.placement import MEANING, REMOTE, with_placement
from wanlat.analysis.report.section import Answer, written
from wanlat.analysis.sweep import Parameter, Sweep, number_of

if TYPE_CHECKING:
    from wanlat.analysis.figures.latency import EndpointSummary

_MOST_COLUMNS = 4


@dataclass(frozen=True)
class Quantity:
    """What is drawn of a row: the key of a figure, that of its interval, and its name."""

    key: str
    ci95: str
    label: str


MEDIAN = Quantity("median_ms", "median_ci95_ms", "median, ms")
ROUND_TRIPS = Quantity("round_trips", "ci95", "round trips")

_Drawn = tuple[Row, "EndpointSummary | None"]
"""A row, and its requests where modes are to be looked for."""


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of latencies: of a run by endpoints, of a matrix against what it varies."""
    return draw(answer) if answer.points else endpoint_latency.charts_of(answer)


def draw(answer: Answer, quantity: Quantity = MEDIAN) -> Mapping[str, Figure]:
    """The charts of a matrix by the stems of their files; none where there is nothing to draw.

    The parameter with the most values (numbers before words) is the x axis; a second one has a
    column a value; of more, each combination has a chart of its own. Of a list of grids, or with an
    option that only one of the systems has, points do not lie on common axes, and there is none.
    """
    sweep = answer.source
    assert isinstance(sweep, Sweep)
    left_out = untrusted_points(sweep)
    drawn: list[_Drawn] = [
        (row, array)
        for row, array in zip(answer.figures.rows, answer.figures.arrays, strict=True)
        if row[quantity.key] is not None and row["point"] not in left_out
    ]
    varied = [each for each in sweep.parameters if len(each.values) > 1]
    x = max(varied, key=lambda p: (_is_numeric(p), len(p.values)), default=None)
    if (
        not drawn
        or x is None
        or any(row[p.name] not in p.values for p in varied for row, _ in drawn)
    ):
        return {}
    others = [each for each in varied if each is not x]
    fitting = [each for each in others if len(each.values) <= _MOST_COLUMNS]
    columns = max(fitting, key=lambda p: len(p.values), default=None)
    rest = [each for each in others if each is not columns]
    charts = {}
    for combination in product(*(parameter.values for parameter in rest)):
        fixed = dict(zip((p.name for p in rest), combination, strict=True))
        mine = [each for each in drawn if all(each[0][k] == v for k, v in fixed.items())]
        if mine:
            stem = "-".join(["sweep", *(f"{_plain(n)}-{_plain(v)}" for n, v in fixed.items())])
            charts[stem] = _draw(sweep, mine, x, columns, fixed, quantity)
    return charts


def _draw(
    sweep: Sweep,
    drawn: Sequence[_Drawn],
    x: Parameter,
    columns: Parameter | None,
    fixed: Mapping[str, Any],
    quantity: Quantity,
) -> Figure:
    names = endpoint_order({row["endpoint"] for row, _ in drawn}, sweep.manifest.get("study"))
    called = row_names(names)
    facets = []
    for row_names_, value in product(
        dict.fromkeys(row_of(name) for name in names), columns.values if columns else (None,)
    ):
        name = next(called[each] for each in row_names_ if each in called).replace("\n", " ")
        mine = [
            each
            for each in drawn
            if each[0]["endpoint"] in row_names_
            and (columns is None or each[0][columns.name] == value)
        ]
        head = f"{columns.name} {written(value)}" if columns else ""
        facets.append(Facet(name, head, _marks(mine, x, quantity)))
    series = list(dict.fromkeys(series_of(row) for row, _ in drawn))
    groups = [group_of(row) for row, _ in drawn]
    words = Words(
        title=_found(drawn, x, quantity) or f"{sweep.study} on {sweep.topology}",
        subtitle=f"{sweep.study} on {sweep.topology}"
        + "".join(f", {name} {written(value)}" for name, value in fixed.items())
        + f": {count(len(sweep.complete), 'point')}, each on a cluster of its own",
        x_label=x.name,
        caption=tuple(_caption(sweep, drawn, quantity)),
    )
    ticks = {_place(value, x): written(value) for value in x.values}
    scale = Scale(ticks=ticks, y_label=quantity.label)
    return draw_facets(
        words,
        [facet for facet in facets if facet.marks or columns],
        scale,
        looks_of(series, groups),
        columns=len(columns.values) if columns else 3,
    )


def _marks(drawn: Sequence[_Drawn], x: Parameter, quantity: Quantity) -> tuple[Marks, ...]:
    """The marks of each system and placement, along x; not joined where requests have modes."""
    looks = styles(list(dict.fromkeys(series_of(row) for row, _ in drawn)))
    made = []
    for group in dict.fromkeys(group_of(row) for row, _ in drawn):
        mine = sorted(
            (each for each in drawn if group_of(each[0]) == group),
            key=lambda each: _place(each[0][x.name], x),
        )
        made.append(
            Marks(
                look=looks[group.series].at(group.placement),
                x=[_place(row[x.name], x) for row, _ in mine],
                y=[row[quantity.key] for row, _ in mine],
                ci95=[row[quantity.ci95] for row, _ in mine],
                joined=not any(_has_modes(each) for each in mine),
            )
        )
    return tuple(made)


def _has_modes(each: _Drawn) -> bool:
    row, array = each
    if "modes" in row:  # of round trips
        return len(row["modes"]) > 1
    return array is not None and len(modes_of(array)) > 1


def _place(value: Any, x: Parameter) -> float:
    return (number_of(value) or 0.0) if _is_numeric(x) else float(x.values.index(value))


def _is_numeric(parameter: Parameter) -> bool:
    return all(number_of(value) is not None for value in parameter.values)


def _found(drawn: Sequence[_Drawn], x: Parameter, quantity: Quantity) -> str | None:
    """The finding: the series that differs most, of those whose requests take one time."""
    spans = []
    for group in dict.fromkeys(group_of(row) for row, _ in drawn):
        mine = [each for each in drawn if group_of(each[0]) == group]
        values = [row[quantity.key] for row, _ in mine]
        if len(mine) > 1 and min(values) > 0 and not any(map(_has_modes, mine)):
            spans.append((max(values) / min(values), group, [row for row, _ in mine]))
    if not spans:
        return None
    _, group, rows = max(spans, key=lambda span: span[0])
    label = row_labels(list(dict.fromkeys(series_of(row) for row, _ in drawn)))[group.series]
    name = with_placement(f"{label} {group.endpoint}", group.placement)
    unit = "round trips" if quantity is ROUND_TRIPS else "ms"
    ends = sorted(
        (f(rows, key=lambda row: row[quantity.key]) for f in (min, max)),
        key=lambda row: _place(row[x.name], x),
    )
    low, high = (
        f"{format_ms(row[quantity.key])} {unit} at {x.name} {written(row[x.name])}" for row in ends
    )
    return f"{name} differs most: {low}, {high}"


def _caption(sweep: Sweep, drawn: Sequence[_Drawn], quantity: Quantity) -> list[str]:
    missing = len(sweep.missing)
    series = list(dict.fromkeys(series_of(row) for row, _ in drawn))
    full = shortened(series)
    return [
        f"Marks: {quantity.label}, with 95 % intervals of one cluster each. No line joins marks of "
        "which one is of requests that take one of several times.",
        *([f"{MEANING} Open marks: remote."] if _has_remote(drawn) else []),
        *([f"{count(missing, 'point')} of {len(sweep.points)} missing."] if missing else []),
        *([f"In full: {'; '.join(full)}."] if full else []),
    ]


def _has_remote(drawn: Sequence[_Drawn]) -> bool:
    return any(row["placement"] == REMOTE for row, _ in drawn)


def _plain(value: object) -> str:
    return "".join(c if c.isalnum() or c in "._" else "-" for c in written(value)).strip("-")
