"""What does growth cost: endpoint latency as a bucket, or a cluster, grows?

A logarithm and a line through a few medians, and which of them these allow. Weighted least squares,
with errors that are known beforehand: the standard error of each median, and how much runs differ.
So each curve can be wrong by itself: it is rejected where noise leaves points so far off it less
than once in twenty times. Whether there is growth says the interval of the change over all curves
that are left; a shape is named only where one is. docs/how-to/growth.md says how often that goes
wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.latency import latency
from wanlat.analysis.names import change, display_system, format_ms, with_interval
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
from wanlat.analysis.stats.intervals import Z95, of_median, students_quantile
from wanlat.bundle.documents import PLACEMENTS
from wanlat.bundle.matrix import REPEATED, Matrix
from wanlat.bundle.run import Run
from wanlat.bundle.units import number_of

Values = NDArray[np.float64]

MIN_SIZES = 3
"""Through two points goes every curve."""
REJECTED = 0.05
CONSTANT_WITHIN = 0.20
"""What changes by less, over the whole range and for certain, is called constant."""
ASSUMED, _MOST_NOISE = 0.05, 0.5
"""By how much the medians of two runs of the same may differ where no point was run twice."""
_ENOUGH = {("ListObjectsPage", "objects"): 1000.0}
"""From so many on an endpoint does all its work: a page of fewer objects is a shorter page."""
_OWN = ("system", "version", "endpoint", "placement")


class Verdict(StrEnum):
    """What the medians say; a shape is the verdict that names it."""

    CONSTANT = "constant"
    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"
    GROWS = "grows, shape not decided"
    FALLS = "falls"
    TWO_MODES = "two modes"
    NEITHER = "neither shape"
    UNDECIDED = "not decided"
    TOO_FEW = "too few points"


GROWING = (Verdict.LOGARITHMIC, Verdict.LINEAR)


class Axis(NamedTuple):
    """What grows, and what counts as one step of it, by the places of GROWING."""

    parameter: str
    noun: str
    sizes: tuple[float, float]
    names: tuple[str, str]

    def steps(self, shape: Verdict, x: Values) -> Values:
        """Steps from the least x to each, as `shape` counts them, shape (n,)."""
        fold, step = self.sizes
        steps = (
            (x - x.min()) / step if shape is Verdict.LINEAR else np.log(x / x.min()) / np.log(fold)
        )
        return np.asarray(steps)


AXES = (
    Axis("prefill.objects", "objects", (10.0, 1000.0), ("tenfold", "1,000 objects")),
    Axis("nodes", "nodes", (2.0, 1.0), ("doubling", "node")),
)


class Levels(NamedTuple):
    """Medians by the number of objects or nodes, and their errors within a run, shapes (n,)."""

    x: Values
    median_ms: Values
    error_ms: Values


class Noise(NamedTuple):
    """How much the median of a run differs from that of another run of the same: a share of it.

    Estimated with `runs` degrees of freedom from repeated points; None: there were none.
    """

    share: float
    runs: int | None


class Curve(NamedTuple):
    """median = base + slope x steps from the least x; `coefficients` are slope and base, ms.

    `reach` is their covariance times the square of how many errors make a 95 % interval. `chance`
    is how often noise alone leaves points as far off. `change` is what the curve makes of the base
    over the whole range, a share, with its interval.
    """

    shape: Verdict
    axis: Axis
    coefficients: Values
    reach: Values
    chi2: float
    chance: float
    change: tuple[float, float, float]

    def band(self, x: Values) -> tuple[Values, Values, Values]:
        """The curve at `x`, the least of which is the least measured, and its 95 % interval, ms."""
        powers = np.vander(self.axis.steps(self.shape, x), 2)
        middle = powers @ self.coefficients
        reach = np.sqrt(np.einsum("ij,jk,ik->i", powers, self.reach, powers))
        return middle, middle - reach, middle + reach

    def to_json(self) -> Row:
        """The entry of summary.json."""
        (slope_ms, base_ms), reach = self.coefficients, math.sqrt(self.reach[0, 0])
        return {
            "shape": self.shape,
            "base_ms": short(base_ms),
            "slope_ms": short(slope_ms),
            "slope_ci95_ms": [short(slope_ms - reach), short(slope_ms + reach)],
            "per": self.axis.names[GROWING.index(self.shape)],
            "chance": short(self.chance),
        }


class Judged(NamedTuple):
    """What the medians of one endpoint say; `fitting` are the curves that are not rejected.

    `change` is from the least x to the greatest, a share, with the interval of all `fitting`.
    """

    verdict: Verdict
    curves: Sequence[Curve] = ()
    fitting: Sequence[Curve] = ()
    change: Sequence[float] = ()


def medians(bundle: Run) -> Figures | None:
    """The median latency of each endpoint and placement of `bundle`, ms; None without one.

    Of runs whose network was not as asked for, of loads and of round trips there is none.
    """
    found = latency(bundle)
    if found is None or not bundle.is_trusted or bundle.is_load or bundle.is_reclaim:
        return None
    rows = [
        {name: row[name] for name in (*_OWN, "ok")}
        | {
            "failed": row["n"] - row["ok"],
            "median_ms": float(np.median(entry.values_ms)),
            "ci95_ms": of_median(entry.values_ms),
            "two_modes": has_two_modes(entry.values_ms),
        }
        for row, entry in zip(found.rows, found.arrays, strict=True)
        if row["median_ci95_ms"] is not None
    ]
    return figures_of((row, None) for row in rows)


def has_two_modes(ms: Values) -> bool:
    """Whether latencies `ms`, shape (n,), are of two kinds, each as likely to hold the median.

    Where a store waits for an acknowledgement that its peer delays, part of its requests take 40 ms
    and the others one: their median tells which part is greater, and not what growth costs. So:
    a gap in which latency at least doubles, with a fifth of the requests on either side.
    """
    values = np.sort(ms[ms > 0])
    edge = max(math.ceil(0.2 * values.size), 2)
    low, high = values[edge - 1 : -edge], values[edge : values.size - edge + 1]
    return bool(low.size and (high / low).max() >= 2)


def growth(matrix: Matrix, figures: Figures) -> Figures | None:
    """Each endpoint and placement of each system by what grows in `matrix`; None if nothing does.

    Objects in a bucket, and nodes. Studies of object sizes have tables of their own. Arrays: the
    `Judged`, with the curves.
    """
    if matrix.varies("object_size"):
        return None
    axes = [axis for axis in AXES if matrix.varies(axis.parameter)]
    return figures_of(found for axis in axes for found in _along(matrix, figures, axis))


def _along(matrix: Matrix, figures: Figures, axis: Axis) -> Iterator[tuple[Row, Judged]]:
    """System by system, since what runs differ by is one figure of a system."""
    others = [name for name in figures.parameters if name not in (axis.parameter, *REPEATED)]
    systems = [point.system for point in matrix.points]
    names = endpoint_order({row["endpoint"] for row in figures.rows}, matrix.manifest.study)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in figures.rows:
        x = number_of(row[axis.parameter])
        if x is not None and x >= _ENOUGH.get((row["endpoint"], axis.noun), 1.0):
            where = tuple((name, str(row[name])) for name in others)
            whose = (where, systems.index(row["system"]), series_of(row))
            key = (whose, names.index(row["endpoint"]), PLACEMENTS.index(row["placement"]))
            groups.setdefault(key, []).append({**row, "x": x})
    for whose, keys in groupby(sorted(groups), key=lambda key: key[0]):
        runs = [sorted(groups[key], key=lambda row: (row["x"], row["point"])) for key in keys]
        # Modes that swap places would make runs seem to differ, and hide what grows beside them.
        calm = [rows for rows in runs if not any(row["two_modes"] for row in rows)]
        noise = noise_of([_levels(rows) for rows in calm], axis)
        of_axis = {"parameter": axis.parameter} | ({"others": dict(whose[0])} if whose[0] else {})
        for rows in runs:
            is_calm = rows in calm
            judged = judge(_levels(rows), axis, noise) if is_calm else Judged(Verdict.TWO_MODES)
            yield {**_row(rows, judged, noise), **of_axis}, judged


def _row(levels: Sequence[Row], judged: Judged, noise: Noise) -> Row:
    change, *ci95 = map(short, judged.change or (None,))
    return {
        **{key: levels[0][key] for key in _OWN},
        "verdict": judged.verdict,
        "change": change,
        "change_ci95": ci95 or None,
        "noise": {"share": short(noise.share), "from_repeated_runs": noise.runs},
        "levels": [
            {key: row[key] for key in ("x", "point", "ok", "failed", "two_modes")}
            | {"median_ms": short(row["median_ms"]), "ci95_ms": [*map(short, row["ci95_ms"])]}
            for row in levels
        ],
        "fits": [curve.to_json() for curve in judged.curves],
    }


def _levels(rows: Sequence[Row]) -> Levels:
    low, high = np.array([row["ci95_ms"] for row in rows]).T
    x, median_ms = (np.array([row[key] for row in rows]) for key in ("x", "median_ms"))
    return Levels(x, median_ms, (high - low) / 2 / Z95)


def noise_of(levels: Sequence[Levels], axis: Axis) -> Noise:
    """How much runs differ, by all endpoints of a system together; `levels` are those of each.

    From repeated points: the variance of repeated medians. Endpoints of a run may share its luck,
    so that many count for no more degrees of freedom than one. Else ASSUMED, or the least that
    explains how far points lie off the best curves; few scatter less than their like four times in
    five, and that is allowed for.
    """
    squares, freedoms = 0.0, [0]
    for each in levels:
        same = [each.median_ms[each.x == x] for x in np.unique(each.x)]
        squares += sum(float(((ms - ms.mean()) ** 2).sum() / ms.mean() ** 2) for ms in same)
        freedoms.append(each.x.size - len(same))
    if any(freedoms):
        return Noise(math.sqrt(squares / sum(freedoms)), max(freedoms))
    counted = [each for each in levels if each.x.size >= MIN_SIZES]
    allowed = special.chdtri(max(sum(each.x.size - 2 for each in counted), 1), 0.8)
    noise = Noise(ASSUMED, None)
    while noise.share < _MOST_NOISE:
        best = [min(_fit(shape, each, axis, noise).chi2 for shape in GROWING) for each in counted]
        if sum(best) <= allowed:
            break
        noise = Noise(noise.share * 1.1, None)
    return noise


def judge(levels: Levels, axis: Axis, noise: Noise) -> Judged:
    """Which shape `levels` allow, and whether they grow at all."""
    if np.unique(levels.x).size < MIN_SIZES:
        return Judged(Verdict.TOO_FEW)
    curves = [_fit(shape, levels, axis, noise) for shape in GROWING]
    better = min(curves, key=lambda curve: curve.chi2)
    left = [curve for curve in curves if curve.chance >= REJECTED]
    bounds = [bound for curve in left or [better] for bound in curve.change[1:]]
    low, high = min(bounds), max(bounds)
    if not left:
        verdict = Verdict.NEITHER
    elif high < 0:
        verdict = Verdict.FALLS  # of whatever shape: it is no cost
    elif low > 0:
        verdict = left[0].shape if len(left) == 1 else Verdict.GROWS
    else:
        is_constant = max(-low, high) <= CONSTANT_WITHIN
        verdict = Verdict.CONSTANT if is_constant else Verdict.UNDECIDED
    return Judged(verdict, curves, left, (better.change[0], low, high))


def _fit(shape: Verdict, levels: Levels, axis: Axis, noise: Noise) -> Curve:
    steps, ms = axis.steps(shape, levels.x), levels.median_ms
    # Errors are shares of what is measured: of a curve, that is what it says, not the points.
    errors = np.hypot(levels.error_ms, noise.share * ms)
    for _ in range(3):
        found, covariance = np.polyfit(steps, ms, 1, w=1 / errors, cov="unscaled")
        fitted = np.polyval(found, steps)
        errors = np.hypot(levels.error_ms, noise.share * np.maximum(fitted, 0.1 * ms))
        errors = np.maximum(errors, 1e-9)
    chi2, freedom, quantile = float((((ms - fitted) / errors) ** 2).sum()), steps.size - 2, Z95
    chance = special.chdtrc(freedom, chi2)
    if noise.runs is not None:
        quantile = students_quantile(noise.runs)
        chance = special.fdtrc(freedom, noise.runs, chi2 / freedom)
    # The slope's share of the base; the base's own error moves the share by less than itself.
    share, half = steps.max() / max(found[1], 1e-12), quantile * math.sqrt(covariance[0, 0])
    low, middle, high = (float((found[0] + off) * share) for off in (-half, 0.0, half))
    reach = covariance * quantile**2
    return Curve(shape, axis, found, reach, chi2, float(chance), (middle, low, high))


def change_of(row: Row) -> str:
    """By how much the median changes over the whole range, with its interval."""
    return change(row["change"], row["change_ci95"])


def _added(row: Row) -> str:
    """What a step adds, by each shape that is left; nothing where no growth is shown."""
    is_open = row["verdict"] == Verdict.GROWS
    return ", or ".join(
        f"{with_interval(fit['slope_ms'], fit['slope_ci95_ms'], 2)} per {fit['per']}"
        for fit in row["fits"]
        if fit["per"] and (fit["chance"] >= REJECTED if is_open else fit["shape"] == row["verdict"])
    )


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


def _noise(rows: Sequence[Row]) -> str:
    """How much runs differ, system by system, and from what that is known."""
    said = []
    for row in rows:
        share, runs = row["noise"]["share"], row["noise"]["from_repeated_runs"]
        source = (
            f"from {runs} repeated runs" if runs else "no point was run twice: give --replicates"
        )
        said.append(f"{display_system(row['system'])} {100 * share:.1f} % ({source})")
    return "Two runs of the same differ by: " + "; ".join(dict.fromkeys(said)) + "."


def _verdicts(axis: Axis) -> Table:
    return Table(
        f"The cost of {axis.noun}",
        lambda figures: figures.where(lambda row: row["parameter"] == axis.parameter),
        (
            Column("at", _others, words=True, optional=True),
            ENDPOINT,
            Column("medians, ms", _medians, words=True),
            Column("verdict", "{verdict}", words=True),
            Column("change [95 %]", change_of),
            Column("adds, ms [95 %]", _added, words=True),
        ),
        (
            Note(
                f"Change: of the median from the fewest to the most {axis.noun}. Constant: by less "
                f"than {100 * CONSTANT_WITHIN:.0f} % for certain. A shape: the only one that fits."
            ),
            Note(
                "*: requests take one of two times, and the median is that of the more frequent "
                "one; nothing is fitted to it.",
                lambda row: any(level["two_modes"] for level in row["levels"]),
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
        "logarithmic": "base_ms + slope_ms x log(x / least x), the base of the log as `per` says",
        "linear": "base_ms + slope_ms x (x - least x)",
        "chance": f"of points as far off, were the curve right; below {REJECTED:g}: rejected",
        "verdict": "the shape that is left, where the change of all that are left is not 0; "
        f"constant: none of more than {100 * CONSTANT_WITHIN:g} % possible",
        "two_modes": "a fifth of the requests at least is on either side of a gap in which latency "
        "at least doubles: medians may jump, and nothing is fitted",
        "noise": "by how much medians of two runs of the same differ: from repeated points, else "
        f"{100 * ASSUMED:g} % or what the points' distance from the best curves asks for",
    },
    charts="wanlat.analysis.charts.growth:charts_of",
    tables=tuple(_verdicts(axis) for axis in AXES),
)
