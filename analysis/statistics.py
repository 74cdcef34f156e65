"""What is computed from the latencies of one endpoint, and by which definition.

Only requests that succeeded come here; how many did not is counted elsewhere and never averaged in.
docs/reference/statistics.md has why each definition was chosen and how well the intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wanlat.analysis.stats import intervals
from wanlat.analysis.stats.intervals import (
    RESAMPLES,
    Z95,
    Counts,
    Interval,
    Values,
    bca_interval_of_mean,
    draws,
    mean,
    median,
    percentile_interval,
)

PERCENTILE_DEFINITION = "linear interpolation at (n-1)p (Hyndman and Fan 1996, type 7)"
MEAN_INTERVAL_DEFINITION = (
    f"bootstrap, BCa, {RESAMPLES} resamples, seeded; its Edgeworth expansion beyond 2000 samples"
)
MEDIAN_INTERVAL_DEFINITION = "order statistics, binomial, coverage at least 95 %"

MIN_N_FOR_MEAN_INTERVAL = 20
"""With fewer, the bootstrap holds the mean clearly less often than 95 times in 100."""
MAX_N_FOR_BOOTSTRAP = 2_000
"""With more, what resampling comes to is computed: faster, and the same within 3 % of the width."""
MIN_N_FOR_P99 = 100
"""With fewer, p99 lies between the two greatest samples and adds nothing to the maximum."""
MILD_IQR, SEVERE_IQR = 1.5, 3.0
"""Interquartile ranges from the quartiles, beyond which an outlier is mild, and severe."""


@dataclass(frozen=True)
class Latency:
    """Statistics of `n` latencies, milliseconds. An interval is None where none can be given."""

    n: int
    mean_ms: float
    median_ms: float
    min_ms: float
    max_ms: float
    p95_ms: float
    p99_ms: float
    mean_ci95_ms: Interval | None
    median_ci95_ms: Interval | None
    outliers: int


@dataclass(frozen=True)
class Outliers:
    """How many of `n` values lie how far out. They are counted, and stay in every figure.

    Mild ones lie beyond 1.5 interquartile ranges from the quartiles and within 3, severe ones
    beyond 3 (Tukey 1977, Exploratory Data Analysis, 2D).
    """

    n: int
    low_severe: int
    low_mild: int
    high_mild: int
    high_severe: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.low_severe + self.low_mild + self.high_mild + self.high_severe

    @property
    def share(self) -> float:
        """All of them, as a part of the values (0..1)."""
        return self.total / self.n

    def to_json(self) -> dict[str, int | float]:
        """Counts of each kind, and the share of all."""
        counts = asdict(self)
        del counts["n"]
        return {**counts, "share": round(self.share, 6)}


def describe(
    values_ms: Values, seed: int | Sequence[int], held_up_ms: Values | None = None
) -> Latency | None:
    """Statistics of `values_ms`, shape (n,); None if it is empty.

    `seed` fixes the resamples of the bootstrap: the same values and seed give the same interval.
    `held_up_ms`, shape (n,): by how much a late network may have lengthened each. Intervals reach
    down to where they lie without it.
    """
    if values_ms.size == 0:
        return None
    least_ms = values_ms if held_up_ms is None else values_ms - held_up_ms
    ordered = np.sort(values_ms)  # whatever partitions it below is then done in no time
    median, p95, p99 = percentiles(ordered, (50, 95, 99))
    return Latency(
        n=int(values_ms.size),
        mean_ms=float(values_ms.mean()),
        median_ms=median,
        min_ms=float(ordered[0]),
        max_ms=float(ordered[-1]),
        p95_ms=p95,
        p99_ms=p99,
        mean_ci95_ms=_reaching(values_ms, least_ms, lambda ms: mean_interval(ms, seed)),
        median_ci95_ms=_reaching(ordered, least_ms, intervals.of_median),
        outliers=outliers_of(ordered).total,
    )


def _reaching(
    values_ms: Values, least_ms: Values, interval: Callable[[Values], Interval | None]
) -> Interval | None:
    """The interval of values that may have been anything down to `least_ms`."""
    usual = interval(values_ms)
    if usual is None or least_ms.sum() == values_ms.sum():
        return usual
    lower = interval(least_ms)
    return usual if lower is None else (min(lower[0], usual[0]), usual[1])


def percentiles(values: Values, percents: Sequence[float]) -> list[float]:
    """Percentiles of `values`, shape (n,) with n >= 1, by PERCENTILE_DEFINITION."""
    return [float(p) for p in np.percentile(values, list(percents), method="linear")]


def mean_interval(values: Values, seed: int | Sequence[int]) -> Interval | None:
    """95 % interval of the mean of `values`, shape (n,): bootstrap, BCa (Efron 1987).

    Of more than MAX_N_FOR_BOOTSTRAP values it is computed, not drawn: the mean's skewness gives
    bias, acceleration and quantiles (Hall 1992, The Bootstrap and Edgeworth Expansion, 3.10). The
    two agree within 3 % of the width. None for fewer than MIN_N_FOR_MEAN_INTERVAL values, and for
    values that are all the same.
    """
    if values.size < MIN_N_FOR_MEAN_INTERVAL or values.min() == values.max():
        return None
    if values.size <= MAX_N_FOR_BOOTSTRAP:
        return bca_interval_of_mean(values, seed)
    mean, error = float(values.mean()), float(values.std()) / math.sqrt(values.size)
    sixth = float(((values - mean) ** 3).sum()) / (6 * (error * values.size) ** 3)
    moved = (sixth + (sixth + z) / (1 - sixth * (sixth + z)) for z in (-Z95, Z95))
    low, high = (mean + error * (z + sixth * (z * z - 1)) for z in moved)
    return low, high


def outliers_of(values: Values) -> Outliers:
    """The outliers among `values`, shape (n,) with n >= 1; quartiles as all percentiles here."""
    lower, upper = percentiles(values, (25, 75))
    mild, severe = MILD_IQR * (upper - lower), SEVERE_IQR * (upper - lower)
    low_severe = int((values < lower - severe).sum())
    high_severe = int((values > upper + severe).sum())
    return Outliers(
        n=int(values.size),
        low_severe=low_severe,
        low_mild=int((values < lower - mild).sum()) - low_severe,
        high_mild=int((values > upper + mild).sum()) - high_severe,
        high_severe=high_severe,
    )


_MAX_N_FOR_BOOTSTRAP = 10_000  # with more, the normal interval of the logarithm is the same
MIN_N_FOR_RATIO = 10
"""Of fewer, even the bootstrap-t holds the ratio of two means clearly less than 9 times in 10."""

Estimate = tuple[float, "Interval | None"]
"""A figure and its 95 % interval."""


@dataclass(frozen=True)
class Ratio:
    """How many times one is the other; `ci95` is None where no interval can be given."""

    estimate: float
    ci95: Interval | None

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        ci95 = self.ci95 and [round(bound, 6) for bound in self.ci95]
        return {"ratio": round(self.estimate, 6), "ci95": ci95}


def of_means(over: Values, under: Values, seed: Sequence[int]) -> Ratio:
    """Mean of `over` / mean of `under`, independent samples of shapes (n,) and (m,), n, m > 0.

    Bootstrap-t of the logarithm (Efron and Tibshirani 1993, 12.5): resampled ratios, each divided
    by its own standard error, so that a skewed sample is as wide as it is; of more than
    _MAX_N_FOR_BOOTSTRAP values the normal interval, with which it agrees there. The interval is
    None where one of them has fewer than MIN_N_FOR_RATIO values, or all its values are the same.
    """
    estimate = float(np.mean(over) / np.mean(under))
    if min(over.size, under.size) < MIN_N_FOR_RATIO or 0 in (np.ptp(over), np.ptp(under)):
        return Ratio(estimate, None)
    whole = (
        _mean_and_error(values, np.ones((1, values.size), np.int64)) for values in (over, under)
    )
    error = math.hypot(*(pair[0, 1] for pair in whole))
    if max(over.size, under.size) > _MAX_N_FOR_BOOTSTRAP:
        return _around(estimate, -Z95 * error, Z95 * error)
    rng = np.random.default_rng(list(seed))
    tops, bottoms = draws(over, _mean_and_error, rng), draws(under, _mean_and_error, rng)
    shifts = np.log(tops[:, 0] / bottoms[:, 0]) - math.log(estimate)
    widths = np.hypot(tops[:, 1], bottoms[:, 1])
    low, high = percentile_interval(shifts[widths > 0] / widths[widths > 0])
    return _around(estimate, -high * error, -low * error)


def of_estimates(over: Estimate, under: Estimate) -> Ratio:
    """The ratio of two positive figures of which only the 95 % intervals are known.

    The method of variance estimates recovery (Zou and Donner 2008) on logarithms. It takes the two
    for independent: of figures that rise and fall together, as mean and median of one sample do,
    the interval is too wide, never too narrow.
    """
    estimate = over[0] / under[0]
    if over[1] is None or under[1] is None or min(*over[1], *under[1]) <= 0:
        return Ratio(estimate, None)
    top, bottom = (
        [math.log(one / estimate[0]) for one in estimate[1] or ()] for estimate in (over, under)
    )
    return _around(estimate, -math.hypot(top[0], bottom[1]), math.hypot(top[1], bottom[0]))


def of_mean_to_median(values: Values, seed: Sequence[int]) -> Ratio:
    """Mean / median of one sample, shape (n,), n > 0: percentile bootstrap, both of each resample.

    None for an interval of fewer than MIN_N_FOR_MEAN_INTERVAL values, or if all are the same.
    """
    estimate = float(np.mean(values) / np.median(values))
    if values.size < MIN_N_FOR_MEAN_INTERVAL or np.ptp(values) == 0:
        return Ratio(estimate, None)
    drawn = draws(values, lambda v, counts: mean(v, counts) / median(v, counts), seed)
    return Ratio(estimate, percentile_interval(drawn, estimate))


def _around(estimate: float, below: float, above: float) -> Ratio:
    """The ratio with an interval from so far below (negative) to so far above, in logarithms."""
    return Ratio(estimate, (estimate * math.exp(below), estimate * math.exp(above)))


def _mean_and_error(values: Values, counts: Counts) -> Values:
    """Mean of each resample, and its standard error over it: that of its logarithm; (b, 2)."""
    n, middle = values.size, values.mean()
    off = values - middle
    means = counts @ off / n
    variances = np.maximum(counts @ off**2 / n - means**2, 0) * n / (n - 1)
    means = means + middle
    return np.stack([means, np.sqrt(variances / n) / means], axis=1)
