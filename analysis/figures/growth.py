"""What does growth cost: endpoint latency as a bucket, or a cluster, grows?

The median at each size, and by how much it changes from the smallest to the largest. The interval
of that change is of clusters: from how much medians of repeated points differ. Without repeated
points there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.latency import latency
from wanlat.analysis.names import change, format_ms
from wanlat.analysis.section import (
    ENDPOINT,
    PLACED,
    Column,
    Figures,
    Note,
    Row,
    Section,
    Table,
    figures_of,
    series_of,
    short,
)
from wanlat.analysis.stats.intervals import of_median, students_quantile
from wanlat.bundle.documents import PLACEMENTS, Titles
from wanlat.bundle.matrix import REPEATED, Matrix
from wanlat.bundle.run import Run
from wanlat.bundle.units import number_of

Values = NDArray[np.float64]

_ENOUGH = {("ListObjectsPage", "objects"): 1000.0}
"""From so many on an endpoint does all its work: a page of fewer objects is a shorter page."""
_OWN = ("system", "version", "endpoint", "placement")


class Axis(NamedTuple):
    """The parameter that grows, and the name of what it counts."""

    parameter: str
    noun: str


AXES = (Axis("prefill.objects", "objects"), Axis("nodes", "nodes"))


class Noise(NamedTuple):
    """How much medians of two runs of the same point differ, a share; `runs` degrees of freedom."""

    share: float
    runs: int


def medians(bundle: Run) -> Figures | None:
    """The median latency of each endpoint and placement of `bundle`, ms; None without one.

    Of runs on a network that was not as requested, of loads and of round trips there is none.
    """
    requests = latency(bundle)
    if requests is None or not bundle.is_trusted or bundle.is_load or bundle.is_reclaim:
        return None
    rows = [
        {name: row[name] for name in (*_OWN, "ok")}
        | {
            "failed": row["n"] - row["ok"],
            "median_ms": float(np.median(entry.values_ms)),
            "ci95_ms": of_median(entry.values_ms),
            "two_modes": has_two_modes(entry.values_ms),
        }
        for row, entry in zip(requests.rows, requests.arrays, strict=True)
        if row["median_ci95_ms"] is not None
    ]
    return figures_of((row, None) for row in rows)


def has_two_modes(ms: Values) -> bool:
    """Whether latencies `ms`, shape (n,), are of two kinds, each as likely to hold the median.

    Where a store waits for an acknowledgement that its peer delays, part of its requests take 40 ms
    and the others one: their median shows which part is greater, and not what growth costs. So:
    a gap in which latency at least doubles, with a fifth of the requests on either side.
    """
    values = np.sort(ms[ms > 0])
    edge = max(math.ceil(0.2 * values.size), 2)
    low, high = values[edge - 1 : -edge], values[edge : values.size - edge + 1]
    return bool(low.size and (high / low).max() >= 2)


def growth(matrix: Matrix, figures: Figures) -> Figures | None:
    """Each endpoint and placement of each system by what grows in `matrix`; None if nothing does.

    Objects in a bucket, and nodes. Studies of object sizes have tables of their own.
    """
    if matrix.varies("object_size"):
        return None
    axes = [axis for axis in AXES if matrix.varies(axis.parameter)]
    return figures_of((row, None) for axis in axes for row in _along(matrix, figures, axis))


def _along(matrix: Matrix, figures: Figures, axis: Axis) -> Iterator[Row]:
    """System by system, since what runs differ by is one figure of a system."""
    others = [name for name in figures.parameters if name not in (axis.parameter, *REPEATED)]
    systems = [point.system for point in matrix.points]
    names = endpoint_order({row["endpoint"] for row in figures.rows}, matrix.manifest.study)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in figures.rows:
        x = number_of(row[axis.parameter])
        if x is not None and x >= _ENOUGH.get((row["endpoint"], axis.noun), 1.0):
            where = tuple((name, str(row[name])) for name in others)
            owner = (where, systems.index(row["system"]), series_of(row))
            key = (owner, names.index(row["endpoint"]), PLACEMENTS.index(row["placement"]))
            groups.setdefault(key, []).append({**row, "x": x})
    for owner, keys in groupby(sorted(groups), key=lambda key: key[0]):
        runs = [sorted(groups[key], key=lambda row: (row["x"], row["point"])) for key in keys]
        noise = noise_of([rows for rows in runs if not _has_two_modes(rows)])
        of_axis = {"parameter": axis.parameter} | ({"others": dict(owner[0])} if owner[0] else {})
        for rows in runs:
            yield {**_row(rows, noise), **of_axis}


def _has_two_modes(levels: Sequence[Row]) -> bool:
    return any(level["two_modes"] for level in levels)


def _row(levels: Sequence[Row], noise: Noise | None) -> Row:
    total, *ci95 = map(short, change_over(levels, noise) or (None,))
    return {
        **{key: levels[0][key] for key in _OWN},
        "change": total,
        "change_ci95": ci95 or None,
        "noise": noise and {"share": short(noise.share), "from_repeated_runs": noise.runs},
        "levels": [
            {key: row[key] for key in ("x", "point", "ok", "failed", "two_modes")}
            | {"median_ms": short(row["median_ms"]), "ci95_ms": [*map(short, row["ci95_ms"])]}
            for row in levels
        ],
    }


def _by_size(levels: Sequence[Row]) -> list[Values]:
    """Medians of all runs at each size, ms, the smallest size first."""
    sizes = sorted({level["x"] for level in levels})
    return [np.array([row["median_ms"] for row in levels if row["x"] == x]) for x in sizes]


def noise_of(endpoints: Sequence[Sequence[Row]]) -> Noise | None:
    """How much runs differ, by all endpoints of a system together; None: no point was run twice.

    `endpoints` are the levels of each. The share is the root of the variance of repeated medians.
    Endpoints of a run may share its luck, so that many count for no more degrees of freedom than
    one.
    """
    repeated = [_by_size(levels) for levels in endpoints]
    freedoms = [sum(ms.size - 1 for ms in sizes) for sizes in repeated]
    if not any(freedoms):
        return None
    squares = sum(
        float(((ms - ms.mean()) ** 2).sum() / ms.mean() ** 2) for sizes in repeated for ms in sizes
    )
    return Noise(math.sqrt(squares / sum(freedoms)), max(freedoms))


def change_over(levels: Sequence[Row], noise: Noise | None) -> list[float]:
    """The change of the median from the smallest to the largest size, a share, and its interval.

    No interval where there is no `noise`. Nothing where there is one size, or where requests are of
    two modes: their medians may jump from one to the other.
    """
    sizes = _by_size(levels)
    if _has_two_modes(levels) or len(sizes) == 1:
        return []
    first, last = sizes[0], sizes[-1]
    ratio = float(last.mean() / first.mean())
    if noise is None:
        return [ratio - 1]
    reach = students_quantile(noise.runs) * noise.share * math.sqrt(1 / first.size + 1 / last.size)
    return [ratio - 1, ratio * math.exp(-reach) - 1, ratio * math.exp(reach) - 1]


def change_of(row: Row) -> str:
    """By how much the median changes over the whole range, with its interval."""
    return change(row["change"], row["change_ci95"])


def _medians(row: Row) -> str:
    """Medians by what grows; one of two modes is marked."""
    by_x = groupby(row["levels"], key=lambda level: level["x"])
    return "; ".join(
        f"{x:,.0f}: " + ", ".join(format_ms(e["median_ms"]) + "*" * e["two_modes"] for e in here)
        for x, here in by_x
    )


def _others(row: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.get("others", {}).items())


def _has_failures(row: Row) -> bool:
    return any(level["failed"] for level in row["levels"])


def _noise(rows: Sequence[Row], titles: Titles) -> str:
    """How much runs differ, system by system, and from how many repeated runs that is known."""
    shares = [
        f"{titles[row['system']]} {100 * row['noise']['share']:.1f} % "
        f"(from {row['noise']['from_repeated_runs']} repeated runs)"
        if row["noise"]
        else f"{titles[row['system']]} not known, so changes have no interval: give --replicates"
        for row in rows
    ]
    return "Two runs of the same differ by: " + "; ".join(dict.fromkeys(shares)) + "."


def _table(axis: Axis) -> Table:
    return Table(
        f"The cost of {axis.noun}",
        lambda figures: figures.where(lambda row: row["parameter"] == axis.parameter),
        (
            Column("at", _others, words=True, optional=True),
            ENDPOINT,
            Column("medians, ms", _medians, words=True),
            Column("change [95 %]", change_of),
        ),
        (
            Note(f"Change: of the median from the fewest to the most {axis.noun}."),
            Note(
                "*: requests take one of two times, and the median is that of the more frequent "
                "one; it may jump, so no change is given.",
                lambda row: _has_two_modes(row["levels"]),
            ),
            Note(_noise),
            Note("Failures are in no figure: {rows}.", _has_failures),
            PLACED,
        ),
        is_trouble=_has_failures,
        group=lambda row: (series_of(row), row.get("others")),
    )


GROWTH = Section(
    key="growth",
    of_runs=False,
    title="The cost of growth",
    figures=medians,
    across=growth,
    rows="endpoints",
    columns=(),
    definitions={
        "change": "of the median from the fewest to the most, a share; null: two modes",
        "two_modes": "a fifth of the requests at least is on either side of a gap in which latency "
        "at least doubles: medians may jump",
        "noise": "by how much medians of two runs of the same differ, from repeated points; null: "
        "no point was run twice, and changes have no interval",
    },
    charts="wanlat.analysis.charts.growth:charts_of",
    tables=tuple(_table(axis) for axis in AXES),
)
