"""The ratio of two times, with its 95 % interval: the only thing that is compared across machines.

A ratio of 2 between two stores means the same on a laptop of today as in a table of some years
ago; that one of them took 1.3 ms does not. docs/statistics.md says how often the intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.statistics import MIN_N_FOR_MEAN_INTERVAL
from wanlat.analysis.stats.bootstrap import draws, mean, median, percentile_interval
from wanlat.analysis.stats.intervals import Z95

if TYPE_CHECKING:
    from wanlat.analysis.stats.bootstrap import Counts
    from wanlat.analysis.stats.intervals import Interval, Values

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
    import numpy as np

    estimate = float(np.mean(over) / np.mean(under))
    if min(over.size, under.size) < MIN_N_FOR_RATIO or 0 in (np.ptp(over), np.ptp(under)):
        return Ratio(estimate, None)
    whole = (_mean_and_error(each, np.ones((1, each.size), np.int64)) for each in (over, under))
    error = math.hypot(*(each[0, 1] for each in whole))
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
    top, bottom = ([math.log(one / each[0]) for one in each[1] or ()] for each in (over, under))
    return _around(estimate, -math.hypot(top[0], bottom[1]), math.hypot(top[1], bottom[0]))


def of_mean_to_median(values: Values, seed: Sequence[int]) -> Ratio:
    """Mean / median of one sample, shape (n,), n > 0: percentile bootstrap, both of each resample.

    None for an interval of fewer than MIN_N_FOR_MEAN_INTERVAL values, or if all are the same.
    """
    import numpy as np

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
    import numpy as np

    n, middle = values.size, values.mean()
    off = values - middle
    means = counts @ off / n
    variances = np.maximum(counts @ off**2 / n - means**2, 0) * n / (n - 1)
    means = means + middle
    return np.stack([means, np.sqrt(variances / n) / means], axis=1)
