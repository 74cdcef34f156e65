"""Three curves through a few points, and which of them the points allow.

Weighted least squares, with errors that are known beforehand: the standard error of each median,
and how much runs differ. So each curve can be wrong by itself, however the others fare: it is
rejected where noise leaves points so far off it less than once in twenty times (chi-square, or F
where the difference of runs is itself an estimate). A shape is named only where it is the only one
left. docs/growth.md says how often that goes wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wanlat.analysis.growth.model import Axis, Fit, Forecast, Level, Noise, Shape, Verdict
from wanlat.analysis.growth.modes import Split
from wanlat.analysis.statistics import CONFIDENCE, Interval

GROWING: tuple[Shape, ...] = ("logarithmic", "linear")
SHAPES: tuple[Shape, ...] = ("constant", *GROWING)
MIN_SIZES = 3
"""Through two points goes every curve."""
REJECTED = 0.05
CONSTANT_WITHIN = 0.20
"""What changes by less, over the whole range and for certain, is called constant."""
ASSUMED = 0.05
"""By how much the medians of two runs of the same may differ where no point was run twice."""
_MOST_NOISE = 0.5
_SPARE = 0.2
FARTHEST = 10.0
"""A forecast goes at most so many times beyond the greatest x that was measured."""


@dataclass(frozen=True)
class Judged:
    """What the points say; fields as of `Growth`."""

    fits: tuple[Fit, ...]
    verdict: Verdict
    change: float | None
    change_ci95: Interval | None
    forecast: Forecast | None
    why: str


@dataclass(frozen=True)
class _Curve:
    """A fitted shape; `chi2` is its weighted sum of squares."""

    fit: Fit
    chi2: float
    freedom: int


def judge(levels: Sequence[Level], axis: Axis, noise: Noise, to: float | None = None) -> Judged:
    """Which shape `levels` allow; `to` is the x of a forecast that is wished for."""
    sizes = sorted({level.x for level in levels})
    if len(sizes) < MIN_SIZES:
        why = f"{len(sizes)} numbers of {axis.noun}; a shape needs {MIN_SIZES} at least."
        return Judged((), "too few points", None, None, None, why)
    curves = {shape: _curve(shape, levels, axis, noise) for shape in SHAPES}
    change, ci95 = _change(curves, sizes)
    verdict = _verdict(curves, noise, ci95)
    return Judged(
        fits=tuple(curve.fit for curve in curves.values()),
        verdict=verdict,
        change=change,
        change_ci95=ci95,
        forecast=_forecast(curves, verdict, noise, sizes[-1], to),
        why=_why(verdict, curves, sizes, axis),
    )


def unjudged(splits: Sequence[Split], axis: Axis) -> Judged:
    """Medians that jump between two modes; `splits` are those of each point."""
    slow = [100 * split.slow for split in splits]
    low, high = min(slow), max(slow)
    why = (
        f"Requests take one of two times; {low:.0f} to {high:.0f} % of a point's took the longer. "
        f"Its median is that of the more frequent one, and says nothing about {axis.noun}."
    )
    return Judged((), "two modes", None, None, None, why)


def noise_of(levels: Sequence[Sequence[Level]], axis: Axis) -> Noise:
    """How much runs differ, by all endpoints of a system together; `levels` are those of each.

    From repeated points: the variance of repeated medians, in which their own errors are once
    more, so that it is rather too much. Endpoints of a run may share its luck, so that many of
    them count for no more degrees of freedom than one.

    Without repeated points it is ASSUMED, or more where the points lie farther off the best curves.
    """
    squares, count, freedom = 0.0, 0, 0
    for of_one in levels:
        mine = 0
        for x in {level.x for level in of_one}:
            same = [level for level in of_one if level.x == x]
            if len(same) < 2:
                continue
            middle = sum(level.median_ms for level in same) / len(same)
            spread = sum((level.median_ms - middle) ** 2 for level in same) / (len(same) - 1)
            squares += (len(same) - 1) * spread / middle**2
            mine += len(same) - 1
        count += mine
        freedom = max(freedom, mine)
    if not freedom:
        return _at_least(ASSUMED, levels, axis)
    return Noise(math.sqrt(squares / count), freedom)


def _at_least(assumed: float, levels: Sequence[Sequence[Level]], axis: Axis) -> Noise:
    """The least share from `assumed` on that explains how far off the best curves points lie.

    With room to spare, for few points scatter less than their like four times in five.
    """
    from scipy import special

    noise = Noise(assumed, None)
    counted = [of_one for of_one in levels if len({level.x for level in of_one}) >= MIN_SIZES]
    while noise.share < _MOST_NOISE:
        best = [
            min((_curve(shape, of_one, axis, noise) for shape in GROWING), key=lambda c: c.chi2)
            for of_one in counted
        ]
        freedom = sum(curve.freedom for curve in best)
        allowed = float(special.chdtri(freedom, 1 - _SPARE)) if freedom else math.inf
        if sum(curve.chi2 for curve in best) <= allowed:
            break
        noise = Noise(noise.share * 1.1, None)
    return noise


def error_ms(level: Level, noise: Noise) -> float:
    """The standard error of a level as one of many runs."""
    return math.hypot(level.spread_ms, noise.share * level.median_ms)


def _curve(shape: Shape, levels: Sequence[Level], axis: Axis, noise: Noise) -> _Curve:
    import numpy as np

    least = min(level.x for level in levels)
    steps = np.array([axis.along(shape, level.x, least) for level in levels])
    medians = np.array([level.median_ms for level in levels])
    # Errors are shares of what is measured: of a curve, that is what it says, not the points.
    errors = np.array([error_ms(level, noise) for level in levels])
    columns = [np.ones(steps.size)] if shape == "constant" else [np.ones(steps.size), steps]
    for _ in range(3):
        weighted = np.stack(columns, axis=1) / errors[:, None]
        covariance = np.linalg.inv(weighted.T @ weighted)
        found = covariance @ weighted.T @ (medians / errors)
        fitted = np.stack(columns, axis=1) @ found
        spreads = np.array([level.spread_ms for level in levels])
        errors = np.hypot(spreads, noise.share * np.maximum(fitted, 0.1 * medians))
        errors = np.maximum(errors, 1e-9)
    chi2 = float((((medians - fitted) / errors) ** 2).sum())
    freedom = steps.size - len(columns)
    chance = _chance_of(chi2, freedom, noise)
    slope, interval = 0.0, None
    known = (math.sqrt(float(covariance[0, 0])), 0.0, 0.0)
    if shape != "constant":
        slope = float(found[1])
        known = (known[0], math.sqrt(float(covariance[1, 1])), float(covariance[0, 1]))
        reach = _quantile(noise) * known[1]
        interval = (slope - reach, slope + reach)
    fit = Fit(shape, axis, least, float(found[0]), slope, interval, chance, known, _quantile(noise))
    return _Curve(fit, chi2, freedom)


def _change(curves: dict[Shape, _Curve], sizes: Sequence[float]) -> tuple[float, Interval]:
    """From the least x to the greatest, as a share: of the better of the shapes that grow.

    The interval is that of all of them that the points allow, and of the better in any case.
    """
    better = min((curves[shape] for shape in GROWING), key=lambda curve: curve.chi2)
    allowed = [
        curve
        for curve in (curves[shape] for shape in GROWING)
        if curve is better or curve.fit.chance >= REJECTED
    ]
    ends = [_ends(curve, sizes) for curve in allowed]
    low = min(low for low, _ in ends)
    high = max(high for _, high in ends)
    fit = better.fit
    return fit.at(sizes[-1]) / max(fit.base_ms, 1e-12) - 1, (low, high)


def _ends(curve: _Curve, sizes: Sequence[float]) -> Interval:
    fit = curve.fit
    assert fit.slope_ci95_ms is not None
    steps = fit.axis.along(fit.shape, sizes[-1], sizes[0])
    base = max(fit.base_ms, 1e-12)
    # The slope's share of the base; the base's own error moves the share by less than itself.
    return fit.slope_ci95_ms[0] * steps / base, fit.slope_ci95_ms[1] * steps / base


def _verdict(curves: dict[Shape, _Curve], noise: Noise, change_ci95: Interval) -> Verdict:
    growing = [curves[shape] for shape in GROWING]
    allowed = [curve for curve in growing if curve.fit.chance >= REJECTED]
    better = min(growing, key=lambda curve: curve.chi2)
    is_growth = _moves(curves["constant"], better, noise)
    if not is_growth:
        fits_constant = curves["constant"].fit.chance >= REJECTED
        low, high = change_ci95
        within = low >= -CONSTANT_WITHIN and high <= CONSTANT_WITHIN
        if fits_constant and within:
            return "constant"
        return "not decided" if fits_constant or allowed else "neither shape"
    if not allowed:
        return "neither shape"
    if better.fit.slope_ms < 0:
        return "falls"  # of whatever shape: it is no cost
    return allowed[0].fit.shape if len(allowed) == 1 else "grows, shape not decided"


def _moves(constant: _Curve, better: _Curve, noise: Noise) -> bool:
    """Whether the better of two slopes is there: each has half of the chance to err.

    Also by its own errors, which are greater than a constant's where it is higher.
    """
    interval = better.fit.slope_ci95_ms
    if interval is None or interval[0] <= 0 <= interval[1]:
        return False
    gained = max(constant.chi2 - better.chi2, 0.0)
    return _chance_of(gained, 1, noise) < REJECTED / len(GROWING)


def _chance_of(chi2: float, freedom: int, noise: Noise) -> float:
    """Of a sum of squares as great; chi-square, or F where the errors are estimates themselves."""
    from scipy import special

    if noise.runs is None:
        return float(special.chdtrc(freedom, chi2))
    return float(special.fdtrc(freedom, noise.runs, chi2 / freedom))


def _forecast(
    curves: dict[Shape, _Curve], verdict: Verdict, noise: Noise, greatest: float, to: float | None
) -> Forecast | None:
    """None where it is too far, no shape fits, or what it would say is "anything"."""
    if to is None or not greatest < to <= FARTHEST * greatest:
        return None
    if verdict in SHAPES:
        shapes = [shape for shape in SHAPES if shape == verdict]
    elif verdict == "grows, shape not decided":
        shapes = [shape for shape in GROWING if curves[shape].fit.chance >= REJECTED]
    else:
        return None
    ends = [_next_run(curves[shape], noise, to) for shape in shapes]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return Forecast(to, (max(low, 0.0), high), tuple(shapes))


def _next_run(curve: _Curve, noise: Noise, x: float) -> Interval:
    middle = curve.fit.at(x)
    reach = curve.fit.reach * math.hypot(curve.fit.error_at(x), noise.share * middle)
    return middle - reach, middle + reach


def _quantile(noise: Noise) -> float:
    from scipy import special

    tail = 0.5 + CONFIDENCE / 2
    if noise.runs is None:
        return float(special.ndtri(tail))
    return float(special.stdtrit(noise.runs, tail))


def _why(verdict: Verdict, curves: dict[Shape, _Curve], sizes: Sequence[float], axis: Axis) -> str:
    said = ", ".join(f"{shape} {_chance(curves[shape].fit.chance)}" for shape in SHAPES)
    chances = f"Chance of points as far off, were it so: {said}."
    reading = {
        "constant": f"Changes by less than {100 * CONSTANT_WITHIN:.0f} % over the whole range.",
        "logarithmic": "No constant, and no line.",
        "linear": "No constant, and no logarithm.",
        "grows, shape not decided": "It grows; both a logarithm and a line fit.",
        "falls": "It falls: growth costs nothing.",
        "neither shape": "Points lie farther off each of the curves than their errors explain.",
        "not decided": "No growth is shown, and none of more than "
        f"{100 * CONSTANT_WITHIN:.0f} % is ruled out.",
    }[verdict]
    return f"{reading} {chances} {len(sizes)} numbers of {axis.noun}."


def _chance(chance: float) -> str:
    return f"{100 * chance:.0f} %" if chance >= 0.01 else "under 1 %"
