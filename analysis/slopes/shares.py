"""How often each mode occurs, counted where modes can be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]

Interval = tuple[float, float]


def share(member: NDArray[np.bool_], visit: Indexes) -> tuple[float, Interval]:
    """Share of `member`, shape (n,), and its 95 % interval.

    Wilson's interval (1927) with as many requests as the visits are worth: where shares differ
    from visit to visit more than drawing lots would make them, fewer than there are (Rao and Scott
    1992), and Student's quantile for so many visits.
    """
    import numpy as np
    from scipy.stats import t

    _, of = np.unique(visit, return_inverse=True)
    counts = np.bincount(of).astype(float)
    inside = np.bincount(of, weights=member)
    n, visits = counts.sum(), counts.size
    p = float(inside.sum() / n)
    effect, quantile = 1.0, 1.96
    if visits > 2 and 0 < p < 1:
        among = float(((inside - p * counts) ** 2).sum()) * visits / (visits - 1)
        effect = max(1.0, among / (n * p * (1 - p)))
        if effect > 1:
            quantile = float(t.ppf(0.975, visits - 1))
    worth, square = n / effect, quantile**2
    middle = (p + square / (2 * worth)) / (1 + square / worth)
    half = (
        quantile
        / (1 + square / worth)
        * float(np.sqrt(p * (1 - p) / worth + square / (4 * worth**2)))
    )
    return p, (max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def mean_error(members: Indexes, visit: Indexes, slopes: Values) -> float:
    """Standard error that uncertain shares give the mean of `slopes` over explained requests.

    `members`, shape (n,), are indexes of `slopes`, -1 for none. The greater of what drawing lots
    gives and of what the visits differ.
    """
    import numpy as np

    explained = members >= 0
    each = slopes[members[explained]]
    n = each.size
    if n < 2 or np.ptp(slopes) == 0:
        return 0.0
    off = each - each.mean()
    names, of = np.unique(visit[explained], return_inverse=True)
    among = 0.0
    if names.size > 2:
        among = float((np.bincount(of, weights=off) ** 2).sum()) * names.size / (names.size - 1)
    return float(np.sqrt(max(among, float((off**2).sum())))) / n
