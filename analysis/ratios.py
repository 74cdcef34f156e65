"""The ratio of two times, with its 95 % interval: the only thing that is compared across machines.

A ratio of 2 between two stores means the same on a laptop of today as in a table of some years
ago; that one of them took 1.3 ms does not. docs/statistics.md says how often the intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from wanlat.analysis.compare.difference import of_intervals
from wanlat.analysis.statistics import (
    MAX_N_FOR_BOOTSTRAP,
    MIN_N_FOR_MEAN_INTERVAL,
    median_interval,
)

if TYPE_CHECKING:
    import numpy as np

    from wanlat.analysis.statistics import Interval, Values

MIN_N_FOR_RATIO = 10
"""Of fewer, even the bootstrap-t holds the ratio of two means clearly less than 9 times in 10."""
RESAMPLES = 4999
_Z95 = 1.959963984540054
_VALUES_AT_ONCE = 2_000_000
_PERCENTS = (2.5, 97.5)


class Verdict(StrEnum):
    """Whether what was said is so."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "not decided"


@dataclass(frozen=True)
class Ratio:
    """How many times one is the other; `ci95` is None where no interval can be given."""

    estimate: float
    ci95: Interval | None

    def is_above(self, bound: float) -> Verdict:
        """Whether it is greater than `bound`, as far as the interval can tell."""
        if self.ci95 is None or self.ci95[0] <= bound <= self.ci95[1]:
            return Verdict.UNDECIDED
        return Verdict.HOLDS if self.ci95[0] > bound else Verdict.FAILS

    def is_within(self, low: float, high: float) -> Verdict:
        """Whether it lies between the two, as far as the interval can tell."""
        if self.ci95 is None:
            return Verdict.UNDECIDED
        if low < self.ci95[0] and self.ci95[1] < high:
            return Verdict.HOLDS
        outside = self.ci95[1] <= low or self.ci95[0] >= high
        return Verdict.FAILS if outside else Verdict.UNDECIDED

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json."""
        return {
            "ratio": round(self.estimate, 6),
            "ci95": None if self.ci95 is None else [round(bound, 6) for bound in self.ci95],
        }


def opposite(verdict: Verdict) -> Verdict:
    """The verdict on the contrary."""
    return {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}.get(verdict, verdict)


def of_means(over: Values, under: Values, seed: Sequence[int]) -> Ratio:
    """Mean of `over` / mean of `under`, independent samples of shapes (n,) and (m,), n, m > 0.

    Bootstrap-t of the logarithm (Efron and Tibshirani 1993, 12.5): resampled ratios, each divided
    by its own standard error, so that a skewed sample is as wide as it is; of more than
    MAX_N_FOR_BOOTSTRAP values the normal interval, with which it agrees there. None for an interval
    where one of them has fewer than MIN_N_FOR_RATIO values, or all its values are the same.
    """
    import numpy as np

    estimate = float(np.mean(over) / np.mean(under))
    if min(over.size, under.size) < MIN_N_FOR_RATIO or 0 in (np.ptp(over), np.ptp(under)):
        return Ratio(estimate, None)
    error = math.hypot(_relative_error(over), _relative_error(under))
    if max(over.size, under.size) > MAX_N_FOR_BOOTSTRAP:
        return _around(estimate, -_Z95 * error, _Z95 * error)
    rng = np.random.default_rng(list(seed))
    means, errors = [], []
    for values in (over, under):
        drawn = _resampled(values, rng)
        means.append(drawn[0])
        errors.append(drawn[1])
    shifts = np.log(means[0] / means[1]) - math.log(estimate)
    widths = np.hypot(errors[0], errors[1])
    ratios = shifts[widths > 0] / widths[widths > 0]
    low, high = (float(bound) for bound in np.percentile(ratios, _PERCENTS))
    return _around(estimate, -high * error, -low * error)


def of_medians(over: Values, under: Values) -> Ratio:
    """Median of `over` / median of `under`, independent samples; from the intervals of both."""
    import numpy as np

    return of_estimates(
        (float(np.median(over)), median_interval(over)),
        (float(np.median(under)), median_interval(under)),
    )


Estimate = tuple[float, "Interval | None"]
"""A figure and its 95 % interval."""


def of_estimates(over: Estimate, under: Estimate) -> Ratio:
    """The ratio of two positive figures of which only the 95 % intervals are known.

    The method of variance estimates recovery (Zou and Donner 2008) on logarithms. It takes the two
    for independent: of figures that rise and fall together, as mean and median of one sample do,
    the interval is too wide, never too narrow.
    """
    estimate = over[0] / under[0]
    if over[1] is None or under[1] is None or min(*over[1], *under[1]) <= 0:
        return Ratio(estimate, None)
    found = of_intervals(
        math.log(under[0]), _logs(under[1]), math.log(over[0]), _logs(over[1])
    ).ci95
    return Ratio(estimate, (math.exp(found[0]), math.exp(found[1])))


def of_mean_to_median(values: Values, seed: Sequence[int]) -> Ratio:
    """Mean / median of one sample, shape (n,), n > 0: percentile bootstrap, both of each resample.

    None for an interval of fewer than MIN_N_FOR_MEAN_INTERVAL values, or if all are the same.
    """
    import numpy as np

    estimate = float(np.mean(values) / np.median(values))
    if values.size < MIN_N_FOR_MEAN_INTERVAL or np.ptp(values) == 0:
        return Ratio(estimate, None)
    rng = np.random.default_rng(list(seed))

    def ratio(picked: Values) -> Values:
        found: Values = picked.mean(axis=1) / np.median(picked, axis=1)
        return found

    drawn = _in_batches(values, rng, ratio)
    low, high = (float(bound) for bound in np.percentile(drawn, _PERCENTS))
    # A bootstrap off centre may leave its own estimate outside; an interval must not.
    return Ratio(estimate, (min(low, estimate), max(high, estimate)))


def _around(estimate: float, below: float, above: float) -> Ratio:
    """The ratio with an interval from so far below (negative) to so far above, in logarithms."""
    return Ratio(estimate, (estimate * math.exp(below), estimate * math.exp(above)))


def _logs(interval: Interval) -> Interval:
    return math.log(interval[0]), math.log(interval[1])


def _relative_error(values: Values) -> float:
    """The standard error of the mean over the mean: that of its logarithm."""
    return float(values.std(ddof=1) / values.mean() / math.sqrt(values.size))


def _resampled(values: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Mean and relative standard error of each resample, shapes (RESAMPLES,)."""
    import numpy as np

    def both(picked: Values) -> Values:
        means = picked.mean(axis=1)
        errors = picked.std(axis=1, ddof=1) / means / math.sqrt(values.size)
        stacked: Values = np.stack([means, errors], axis=1)
        return stacked

    drawn = _in_batches(values, rng, both)
    return drawn[:, 0], drawn[:, 1]


def _in_batches(
    values: Values, rng: np.random.Generator, statistic: Callable[[Values], Values]
) -> Values:
    """`statistic` of RESAMPLES resamples, not all of which are held at once."""
    import numpy as np

    at_once = max(1, _VALUES_AT_ONCE // values.size)
    parts = []
    for begin in range(0, RESAMPLES, at_once):
        size = (min(at_once, RESAMPLES - begin), values.size)
        parts.append(statistic(values[rng.integers(0, values.size, size)]))
    return np.concatenate(parts)
