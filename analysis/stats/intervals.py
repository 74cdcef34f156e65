"""95 % intervals that need no resampling, and the correction for many verdicts at once.

scipy.special alone is imported: scipy.stats takes a second, and a report has to be quick.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

Interval = tuple[float, float]

CONFIDENCE = 0.95
Z95 = 1.959963984540054
"""Quantile of the normal distribution at (1 + CONFIDENCE) / 2."""


def wilson(hits: float, n: float, quantile: float = Z95) -> Interval:
    """Wilson's interval (1927) of a share of `hits` out of `n`; (0, 1) for n = 0.

    Neither needs to be whole: requests that are not independent are worth fewer than they are.
    Student's `quantile` is for so few clusters that the normal one is too small.
    """
    if n <= 0:
        return 0.0, 1.0
    share, square = hits / n, quantile**2
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = quantile / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    # Exact at the ends, where rounding would leave a hair.
    low = 0.0 if hits <= 0 else max(0.0, min(share, centre - half))
    return low, 1.0 if hits >= n else min(1.0, max(share, centre + half))


def of_median(values: Values) -> Interval | None:
    """Interval of the median of `values`, shape (n,), from its order statistics.

    The k-th smallest and the k-th greatest value, with the greatest k whose binomial coverage is
    at least 95 % (Conover, Practical Nonparametric Statistics, 3.2). It assumes nothing about
    the distribution. None below six values, where even the extremes do not cover 95 %.
    """
    import numpy as np
    from scipy.special import bdtr, bdtrik

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
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def holm(ps: Sequence[float]) -> list[float]:
    """Each of `ps` as if it had been the only one (Holm 1979, Scand. J. Statist. 6)."""
    adjusted, running = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, (len(ps) - rank) * ps[index])
        adjusted[index] = min(1.0, running)
    return adjusted
