"""What does growth cost: endpoint latency as a bucket, or a cluster, grows?

Three curves through a few medians, and which of them these allow. Weighted least squares, with
errors that are known beforehand: the standard error of each median, and how much runs differ. So
each curve can be wrong by itself, however the others fare: it is rejected where noise leaves points
so far off it less than once in twenty times (chi-square, or F where the difference of runs is
itself an estimate). A shape is named only where it is the only one left. docs/growth.md says how
often that goes wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.latency import EndpointSummary, latency
from wanlat.analysis.figures.result import Figures, Row, figures_of, series_of, short
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.placement import PLACEMENTS
from wanlat.analysis.stats.intervals import Z95, students_quantile
from wanlat.analysis.sweep import Sweep, number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.stats.intervals import Interval

    Values = NDArray[np.float64]

MIN_SIZES = 3
"""Through two points goes every curve."""
REJECTED = 0.05
CONSTANT_WITHIN = 0.20
"""What changes by less, over the whole range and for certain, is called constant."""
ASSUMED = 0.05
"""By how much the medians of two runs of the same may differ where no point was run twice."""
_MOST_NOISE, _SPARE = 0.5, 0.2
_BALANCED, _APART = 0.2, 2.0
"""Two modes: a fifth of the requests at least is on either side of a gap in which latency at
least doubles, so that the median of another run may lie on the other side."""
_SEED = "seed"
"""A varied seed repeats points: the same values, another run."""
_ENOUGH = {("ListObjectsPage", "objects"): 1000.0}
"""From so many on an endpoint does all its work: a page of fewer objects is a shorter page."""


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
SHAPES = (Verdict.CONSTANT, *GROWING)


@dataclass(frozen=True)
class Axis:
    """What grows. `fold` is what counts as one step of a logarithm, `step` of a line."""

    parameter: str
    noun: str
    fold: float
    fold_name: str
    step: float
    step_name: str

    def steps(self, shape: Verdict, x: Values) -> Values:
        """Steps from the least x to each, as `shape` counts them, shape (n,)."""
        import numpy as np

        if shape is Verdict.CONSTANT:
            return np.zeros(x.size)
        if shape is Verdict.LINEAR:
            return np.asarray((x - x.min()) / self.step)
        return np.asarray(np.log(x / x.min()) / math.log(self.fold))

    def unit(self, shape: Verdict) -> str | None:
        """What a slope is per; None of a constant."""
        return {Verdict.LINEAR: self.step_name, Verdict.LOGARITHMIC: self.fold_name}.get(shape)


AXES = (
    Axis("prefill.objects", "objects", 10.0, "tenfold", 1000.0, "1,000 objects"),
    Axis("nodes", "nodes", 2.0, "doubling", 1.0, "node"),
)


@dataclass(frozen=True)
class Levels:
    """Medians at the points of a matrix, shapes (n,), by the number of objects or nodes.

    `spread_ms` are standard errors within the run: they know nothing of how runs differ.
    """

    x: Values
    median_ms: Values
    spread_ms: Values


@dataclass(frozen=True)
class Noise:
    """How much the median of a run differs from that of another run of the same: a share of it.

    `runs` are the degrees of freedom it was estimated with from repeated points; None: there were
    none, and `share` is what is assumed.
    """

    share: float
    runs: int | None

    @property
    def quantile(self) -> float:
        """How many standard errors make a 95 % interval."""
        return Z95 if self.runs is None else students_quantile(self.runs)

    def chance(self, chi2: float, freedom: int) -> float:
        """Of a sum of squares as great: chi-square, or F where the errors are estimates."""
        from scipy import special

        if self.runs is None:
            return float(special.chdtrc(freedom, chi2))
        return float(special.fdtrc(freedom, self.runs, chi2 / freedom))


@dataclass(frozen=True)
class Curve:
    """median = base + slope x steps from the least x, fitted: (slope and) base in ms.

    `chance` is how often noise alone leaves points as far off the best such curve; `change` is what
    it makes of the base over the whole range, as a share of it, with its 95 % interval.
    """

    shape: Verdict
    axis: Axis
    coefficients: Values
    covariance: Values
    quantile: float
    chi2: float
    chance: float
    change: float
    change_ci95: Interval

    @property
    def base_ms(self) -> float:
        """The curve at the least x."""
        return float(self.coefficients[-1])

    @property
    def slope_ms(self) -> float:
        """Per step; 0 of a constant."""
        return float(self.coefficients[0]) if self.shape in GROWING else 0.0

    @property
    def slope_ci95_ms(self) -> Interval | None:
        """None of a constant."""
        if self.shape not in GROWING:
            return None
        reach = self.quantile * math.sqrt(float(self.covariance[0, 0]))
        return self.slope_ms - reach, self.slope_ms + reach

    def band(self, x: Values) -> tuple[Values, Values, Values]:
        """The curve at `x`, the least of which is the least measured, and its 95 % interval, ms."""
        import numpy as np

        powers = np.vander(self.axis.steps(self.shape, x), len(self.coefficients))
        middle = powers @ self.coefficients
        variance = np.einsum("ij,jk,ik->i", powers, self.covariance, powers)
        reach = self.quantile * np.sqrt(np.maximum(variance, 0.0))
        return middle, middle - reach, middle + reach


@dataclass(frozen=True)
class Judged:
    """What the medians of one endpoint say. `change` is from the least x to the greatest."""

    verdict: Verdict
    curves: tuple[Curve, ...] = ()
    change: float | None = None
    change_ci95: Interval | None = None

    @property
    def fitting(self) -> tuple[Curve, ...]:
        """The curves that the medians allow: the verdict's, or all that are not rejected."""
        named = tuple(curve for curve in self.curves if curve.shape is self.verdict)
        if named or self.verdict is Verdict.NEITHER:
            return named
        allowed = tuple(curve for curve in self.curves if curve.chance >= REJECTED)
        if self.verdict is Verdict.UNDECIDED:
            return allowed
        return tuple(curve for curve in allowed if curve.shape in GROWING)


def medians(bundle: Bundle) -> Figures | None:
    """The median latency of each endpoint and placement of `bundle`, ms; None without one.

    Of runs whose network was not as asked for, of loads and of round trips there is none.
    """
    if not is_trusted(bundle) or bundle.is_load or bundle.is_reclaim:
        return None
    found = latency(bundle)
    entries: Sequence[EndpointSummary] = found.arrays if found is not None else ()
    return figures_of(
        (
            {
                **entry.series._asdict(),
                "endpoint": entry.endpoint,
                "placement": entry.placement,
                "ok": entry.ok,
                "failed": entry.n - entry.ok,
                "median_ms": entry.latency.median_ms,
                "ci95_ms": list(entry.latency.median_ci95_ms),
                "two_modes": has_two_modes(entry.values_ms),
            },
            None,
        )
        for entry in entries
        if entry.latency is not None and entry.latency.median_ci95_ms is not None
    )


def has_two_modes(ms: Values) -> bool:
    """Whether latencies `ms`, shape (n,), are of two kinds, each as likely to hold the median.

    Where a store waits for an acknowledgement that its peer delays, part of its requests take 40 ms
    and the others one: their median tells which part is greater, and not what growth costs.
    """
    import numpy as np

    values = np.sort(ms[ms > 0])
    edge = max(math.ceil(_BALANCED * values.size), 2)
    low, high = values[edge - 1 : -edge], values[edge : values.size - edge + 1]
    return bool(low.size and (high / low).max() >= _APART)


def growth(sweep: Sweep, figures: Figures) -> Figures | None:
    """Each endpoint and placement of each system by what grows in `sweep`; None if nothing does.

    Objects in a bucket, and nodes. Studies of object sizes have tables of their own. Arrays: the
    `Judged`, with the curves.
    """
    if sweep.varies("object_size"):
        return None
    return figures_of(
        found
        for axis in AXES
        if sweep.varies(axis.parameter)
        for found in _along(sweep, figures, axis)
    )


def _along(sweep: Sweep, figures: Figures, axis: Axis) -> Iterator[tuple[Row, Judged]]:
    others = [name for name in figures.parameters if name not in (axis.parameter, _SEED)]
    by_system: dict[tuple[Any, ...], dict[tuple[str, str], list[Row]]] = {}
    for row in figures.rows:
        x = number_of(row[axis.parameter])
        if x is None or x < max(1.0, _ENOUGH.get((row["endpoint"], axis.noun), 0.0)):
            continue
        where = tuple((name, str(row[name])) for name in others)
        groups = by_system.setdefault((where, series_of(row)), {})
        groups.setdefault((row["endpoint"], row["placement"]), []).append({**row, "x": x})
    systems = list(dict.fromkeys(point.system for point in sweep.points))
    ranks = {system: rank for rank, system in enumerate(systems)}
    for (where, series), groups in sorted(
        by_system.items(),
        key=lambda each: (each[0][0], ranks.get(each[0][1].system, len(ranks)), each[0][1]),
    ):
        study = dict(sweep.manifest).get("study")
        names = endpoint_order((endpoint for endpoint, _ in groups), study)
        rows = {
            key: sorted(groups[key], key=lambda row: (row["x"], row["point"]))
            for key in sorted(groups, key=lambda k: (names.index(k[0]), PLACEMENTS.index(k[1])))
        }
        jumps = {key: any(row["two_modes"] for row in mine) for key, mine in rows.items()}
        levels = {key: _levels(mine) for key, mine in rows.items()}
        # Modes that swap places would make runs seem to differ, and hide what grows beside them.
        noise = noise_of([levels[key] for key in rows if not jumps[key]], axis)
        for (endpoint, placement), mine in rows.items():
            key = (endpoint, placement)
            judged = Judged(Verdict.TWO_MODES) if jumps[key] else judge(levels[key], axis, noise)
            row = {
                **series._asdict(),
                "topology": sweep.topology,
                "endpoint": endpoint,
                "placement": placement,
                "parameter": axis.parameter,
                **({"others": dict(where)} if where else {}),
                "verdict": judged.verdict,
                "why": _why(judged, mine, axis),
                "change": short(judged.change),
                "change_ci95": _shortened(judged.change_ci95),
                "noise": {"share": short(noise.share), "from_repeated_runs": noise.runs},
                "levels": [_level(level) for level in mine],
                "fits": [_fit(curve) for curve in judged.curves],
            }
            yield row, judged


def noise_of(levels: Sequence[Levels], axis: Axis) -> Noise:
    """How much runs differ, by all endpoints of a system together; `levels` are those of each.

    From repeated points: the variance of repeated medians, in which their own errors are once
    more, so that it is rather too much. Endpoints of a run may share its luck, so that many of
    them count for no more degrees of freedom than one. Without repeated points it is ASSUMED, or
    more where the points lie farther off the best curves.
    """
    import numpy as np

    squares, freedoms = 0.0, [0]
    for of_one in levels:
        same = [of_one.median_ms[of_one.x == x] for x in np.unique(of_one.x)]
        squares += sum(float(((ms - ms.mean()) ** 2).sum() / ms.mean() ** 2) for ms in same)
        freedoms.append(of_one.x.size - len(same))
    if not any(freedoms):
        return Noise(_scatter(levels, axis), None)
    return Noise(math.sqrt(squares / sum(freedoms)), max(freedoms))


def _scatter(levels: Sequence[Levels], axis: Axis) -> float:
    """The least share from ASSUMED on that explains how far off the best curves points lie.

    With room to spare, for few points scatter less than their like four times in five.
    """
    import numpy as np
    from scipy import special

    counted = [of_one for of_one in levels if np.unique(of_one.x).size >= MIN_SIZES]
    freedom = sum(of_one.x.size - 2 for of_one in counted)
    allowed, share = float(special.chdtri(freedom, 1 - _SPARE)) if freedom else math.inf, ASSUMED
    while share < _MOST_NOISE:
        noise = Noise(share, None)
        fitted = [[_fitted(shape, each, axis, noise).chi2 for shape in GROWING] for each in counted]
        if sum(map(min, fitted)) <= allowed:
            break
        share *= 1.1
    return share


def judge(levels: Levels, axis: Axis, noise: Noise) -> Judged:
    """Which shape `levels` allow."""
    import numpy as np

    if np.unique(levels.x).size < MIN_SIZES:
        return Judged(Verdict.TOO_FEW)
    constant, *growing = curves = [_fitted(shape, levels, axis, noise) for shape in SHAPES]
    better = min(growing, key=lambda curve: curve.chi2)
    allowed = [curve for curve in growing if curve.chance >= REJECTED]
    counted = [curve for curve in growing if curve is better or curve in allowed]
    ci95 = (min(c.change_ci95[0] for c in counted), max(c.change_ci95[1] for c in counted))
    verdict = _verdict(constant, better, allowed, ci95, noise)
    return Judged(verdict, tuple(curves), better.change, ci95)


def _fitted(shape: Verdict, levels: Levels, axis: Axis, noise: Noise) -> Curve:
    import numpy as np

    steps, ms = axis.steps(shape, levels.x), levels.median_ms
    degree = int(shape in GROWING)
    # Errors are shares of what is measured: of a curve, that is what it says, not the points.
    errors = np.hypot(levels.spread_ms, noise.share * ms)
    for _ in range(3):
        found, covariance = np.polyfit(steps, ms, degree, w=1 / errors, cov="unscaled")
        fitted = np.polyval(found, steps)
        errors = np.hypot(levels.spread_ms, noise.share * np.maximum(fitted, 0.1 * ms))
        errors = np.maximum(errors, 1e-9)
    chi2 = float((((ms - fitted) / errors) ** 2).sum())
    base_ms, reach = max(float(found[-1]), 1e-12), noise.quantile * math.sqrt(covariance[0, 0])
    # The slope's share of the base; the base's own error moves the share by less than itself.
    slope_ms = float(found[0]) if degree else 0.0
    ends = [slope * float(steps.max()) / base_ms for slope in (slope_ms - reach, slope_ms + reach)]
    return Curve(
        *(shape, axis, found, covariance, noise.quantile, chi2),
        chance=noise.chance(chi2, steps.size - len(found)),
        change=slope_ms * float(steps.max()) / base_ms,
        change_ci95=(ends[0], ends[1]),
    )


def _verdict(
    constant: Curve, better: Curve, allowed: Sequence[Curve], ci95: Interval, noise: Noise
) -> Verdict:
    if not _is_growth(constant, better, ci95, noise):
        fits_constant = constant.chance >= REJECTED
        if fits_constant and ci95[0] >= -CONSTANT_WITHIN and ci95[1] <= CONSTANT_WITHIN:
            return Verdict.CONSTANT
        return Verdict.UNDECIDED if fits_constant or allowed else Verdict.NEITHER
    if not allowed:
        return Verdict.NEITHER
    if better.slope_ms < 0:
        return Verdict.FALLS  # of whatever shape: it is no cost
    return allowed[0].shape if len(allowed) == 1 else Verdict.GROWS


def _is_growth(constant: Curve, better: Curve, ci95: Interval, noise: Noise) -> bool:
    """Whether the better of two slopes is there: each has half of the chance to err.

    Also by its own errors, which are greater than a constant's where it is higher, and by those of
    the other shape where that fits.
    """
    if ci95[0] <= 0 <= ci95[1]:
        return False
    return noise.chance(max(constant.chi2 - better.chi2, 0.0), 1) < REJECTED / len(GROWING)


def _levels(rows: Sequence[Row]) -> Levels:
    import numpy as np

    low, high = np.array([row["ci95_ms"] for row in rows]).T
    x, median_ms = (np.array([row[key] for row in rows]) for key in ("x", "median_ms"))
    return Levels(x, median_ms, (high - low) / 2 / Z95)


def _why(judged: Judged, rows: Sequence[Row], axis: Axis) -> str:
    chances = ", ".join(f"{curve.shape} {curve.chance:.2g}" for curve in judged.curves)
    said = f"; chance of points as far off, were it so: {chances}" if chances else ""
    return f"{len({row['x'] for row in rows})} numbers of {axis.noun}{said}."


def _level(row: Row) -> Row:
    figures = {key: row[key] for key in ("x", "point", "ok", "failed", "two_modes")}
    return figures | {
        "median_ms": short(row["median_ms"]),
        "ci95_ms": _shortened(row["ci95_ms"]),
    }


def _fit(curve: Curve) -> Row:
    return {
        "shape": curve.shape,
        "base_ms": short(curve.base_ms),
        "slope_ms": short(curve.slope_ms),
        "slope_ci95_ms": _shortened(curve.slope_ci95_ms),
        "per": curve.axis.unit(curve.shape),
        "chance": short(curve.chance),
    }


def _shortened(interval: Sequence[float] | None) -> list[float | None] | None:
    return None if interval is None else [short(bound) for bound in interval]
