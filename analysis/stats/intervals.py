"""95 % intervals that need no resampling, and the correction for many verdicts at once.

scipy.special alone is imported: scipy.stats takes a second, and a report has to be quick.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, ndtr, ndtri, stdtrit

Values = NDArray[np.float64]
Counts = NDArray[np.int64]

Interval = tuple[float, float]

CONFIDENCE = 0.95
Z95 = 1.959963984540054
"""Quantile of the normal distribution at (1 + CONFIDENCE) / 2."""


def wilson(hits: float, n: float) -> Interval:
    """Wilson's interval (1927) of a share of `hits` out of `n`; (0, 1) for n = 0.

    Neither needs to be whole: requests that are not independent are worth fewer than they are.
    """
    if n <= 0:
        return 0.0, 1.0
    share, square = hits / n, Z95**2
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = Z95 / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    # Exact at the ends, where rounding would leave a hair.
    low = 0.0 if hits <= 0 else max(0.0, min(share, centre - half))
    return low, 1.0 if hits >= n else min(1.0, max(share, centre + half))


def of_median(values: Values) -> Interval | None:
    """Interval of the median of `values`, shape (n,), from its order statistics.

    The k-th smallest and the k-th greatest value, with the greatest k of a binomial coverage of
    at least 95 % (Conover, Practical Nonparametric Statistics, 3.2). It assumes nothing about
    the distribution. None below six values, where even the extremes do not cover 95 %.
    """
    n, tail = int(values.size), (1 - CONFIDENCE) / 2
    if n == 0:
        return None
    # Coverage of the k-th smallest and greatest is 1 - 2 P(B < k), B ~ binomial(n, 1/2): the
    # greatest k for which P(B < k) stays below 2.5 %.
    rank = math.ceil(bdtrik(tail, n, 0.5))
    rank -= bool(rank > 0 and bdtr(rank - 1, n, 0.5) >= tail)
    if rank < 1:
        return None
    ordered = np.partition(values, (rank - 1, n - rank))
    return float(ordered[rank - 1]), float(ordered[n - rank])


def of_mean(values: Values) -> Interval:
    """Student's interval of the mean of `values`, shape (n,), n > 1."""
    mean = float(values.mean())
    half = float(values.std(ddof=1)) / math.sqrt(values.size) * students_quantile(values.size - 1)
    return mean - half, mean + half


def students_quantile(freedom: float) -> float:
    """Student's quantile at (1 + CONFIDENCE) / 2, for so many degrees of `freedom`."""
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def holm(ps: Sequence[float]) -> list[float]:
    """Each of `ps` as if it had been the only one (Holm 1979, Scand. J. Statist. 6)."""
    adjusted, running = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, (len(ps) - rank) * ps[index])
        adjusted[index] = min(1.0, running)
    return adjusted


RESAMPLES = 9999
"""The bound of an interval then differs from one seed to another by 0.7 % of the interval's width
(standard deviation, for a normal figure): less than three digits show. 999 would make it 2 %."""
_COUNTS_AT_ONCE = 250_000
"""Not all resamples are held at once: of 10,000 values they would take 800 MB, and what fits into
the processor's cache is three times as fast."""


def draws(
    values: Values,
    statistic: Callable[[Values, Counts], Values],
    seed: int | Sequence[int] | np.random.Generator,
    levels: Sequence[NDArray[Any]] = (),
) -> Values:
    """`statistic` of each of RESAMPLES resamples of `values`, shape (n,), n > 0.

    It makes of values and of how often each is in each resample, shape (b, n), an array (b,), or
    (b, k) of k figures: `mean`, `median`, and what is computed of them. `levels` have for each
    value what it belongs to, the outermost first (cluster, RTT step), shapes (n,); names of a step
    need only be unique in their cluster. The same arguments give the same draws. Shape
    (RESAMPLES,), or (RESAMPLES, k).
    """
    rng, n = np.random.default_rng(seed), values.size
    at_once = max(1, _COUNTS_AT_ONCE // n)
    made = []
    for start in range(0, RESAMPLES, at_once):
        size = min(at_once, RESAMPLES - start)
        made.append(statistic(values, _nested(levels, n, rng, size)))
    return np.concatenate(made)


def _nested(levels: Sequence[NDArray[Any]], n: int, rng: np.random.Generator, size: int) -> Counts:
    """How often each of `n` values is in each of `size` resamples, shape (size, n).

    Level by level: of each drawn parent as many children as it has. Of one that was drawn k times
    children are drawn k times anew. Unequal clusters make resamples unequally large.
    """
    if not levels:
        picked = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        return np.bincount(picked.ravel(), minlength=size * n).reshape(size, n)
    times, parent = np.ones((size, 1), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for level in (*levels, np.arange(n)):
        _, label = np.unique(level, return_inverse=True)
        distinct, child = np.unique(parent * n + label, return_inverse=True)
        drawn = np.empty((size, distinct.size), dtype=np.int64)
        for column in range(times.shape[1]):
            own = np.flatnonzero(distinct // n == column)
            shares = np.full(own.size, 1 / own.size)
            drawn[:, own] = rng.multinomial(times[:, column] * own.size, shares)
        times, parent = drawn, child
    return times[:, parent]


def percentile_interval(drawn: Values, estimate: float | None = None) -> Interval:
    """The interval that holds the middle 95 % of what was `drawn`, shape (B,).

    It is widened to the `estimate`, where given: a bootstrap off centre may leave its own estimate
    outside, an interval must not.
    """
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(bound) for bound in np.quantile(drawn, [tail, 1 - tail]))
    return (low, high) if estimate is None else (min(low, estimate), max(high, estimate))


def bca_interval_of_mean(values: Values, seed: int | Sequence[int]) -> Interval | None:
    """The interval of the mean of `values`, shape (n,), right for skewed ones (Efron 1987).

    That of `scipy.stats.bootstrap`, without the second that scipy.stats takes to import. None where
    all values are the same: a width of zero would claim certainty.
    """
    if np.ptp(values) == 0:
        return None
    drawn, estimate = draws(values, mean, seed), float(np.mean(values))
    # Bias: how far the estimate is from the middle of what was drawn. Acceleration: how fast the
    # standard error grows with the mean, from leaving out one value after the other.
    bias = ndtri(((drawn < estimate).mean() + (drawn <= estimate).mean()) / 2)
    off = values - estimate
    acceleration = (off**3).sum() / (6 * (off**2).sum() ** 1.5)
    tail = ndtri((1 - CONFIDENCE) / 2)
    moved = [bias + (bias + z) / (1 - acceleration * (bias + z)) for z in (tail, -tail)]
    if not np.isfinite(moved).all():
        return None
    low, high = (float(bound) for bound in np.quantile(drawn, ndtr(moved)))
    return low, high


def mean(values: Values, counts: Counts) -> Values:
    """Mean of each resample."""
    return np.asarray(counts @ values / counts.sum(axis=1), dtype=np.float64)


def median(values: Values, counts: Counts) -> Values:
    """Median of each resample: of an even number of values, the mean of the middle two."""
    order, n = np.argsort(values, kind="stable"), values.size
    reached = np.cumsum(counts[:, order], axis=1)
    low, high = ((reached > rank).argmax(axis=1) for rank in ((n - 1) // 2, n // 2))
    return np.asarray((values[order][low] + values[order][high]) / 2, dtype=np.float64)
