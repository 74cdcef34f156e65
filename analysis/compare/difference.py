"""The difference of two independent estimates: how great, within what, and how surprising.

Each way below gives the same three things, so that whatever is compared is judged alike. None
assumes that the two estimates are equally good: a base line of 300 requests may be held against a
candidate of 30.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.statistics import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

Interval = tuple[float, float]

RESAMPLES = 4999
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Difference:
    """New less old. `p`: of one as great or greater, in its direction, had nothing changed."""

    estimate: float
    ci95: Interval
    p: float


def of_draws(
    old: float, new: float, old_draws: Values, new_draws: Values, freedom: float = math.inf
) -> Difference:
    """From bootstrap draws of both, shapes (B,) and (C,): the percentiles of their differences.

    The tail beyond them, which B draws cannot show, is taken for that of Student's distribution
    with so many degrees of `freedom`, as wide as the percentile on the side of zero says.
    """
    import numpy as np

    size = min(old_draws.size, new_draws.size)
    drawn = new_draws[:size] - old_draws[:size]
    percents = (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE))
    low, high = (float(bound) for bound in np.percentile(drawn, percents))
    estimate = new - old
    # A bootstrap off centre may leave its own estimate outside; an interval must not.
    return with_p(estimate, (min(low, estimate), max(high, estimate)), freedom)


def of_intervals(old: float, old_ci95: Interval, new: float, new_ci95: Interval) -> Difference:
    """From two estimates and their 95 % intervals, which need not be symmetric.

    The method of variance estimates recovery (Zou and Donner 2008, Statistics in Medicine 27).
    """
    estimate = new - old
    below = math.hypot(new - new_ci95[0], old_ci95[1] - old)
    above = math.hypot(new_ci95[1] - new, old - old_ci95[0])
    return with_p(estimate, (estimate - below, estimate + above))


def of_shares(old_hits: float, old_n: float, new_hits: float, new_n: float) -> Difference:
    """Of two shares, hits out of n each (n > 0; need not be whole: see `analysis.compare.visits`).

    The interval is Newcombe's (1998, Statistics in Medicine 17, method 10), of Wilson's two; the
    probability Fisher's exact one of the counts, rounded so that it is not too small.
    """
    from scipy.stats import hypergeom

    old, new = old_hits / old_n, new_hits / new_n
    around = of_intervals(old, wilson(old_hits, old_n), new, wilson(new_hits, new_n))
    if new == old:
        return Difference(0.0, around.ci95, 0.5)
    # The same both ways: hits to the better are misses to the worse.
    less_n, less = math.floor(old_n), old
    more_n, more = math.floor(new_n), new
    if new < old:
        less_n, less, more_n, more = more_n, more, less_n, less
    less_hits, more_hits = math.ceil(less * less_n), math.floor(more * more_n)
    p = float(hypergeom.sf(more_hits - 1, less_n + more_n, less_hits + more_hits, more_n))
    return Difference(new - old, around.ci95, p)


def wilson(hits: float, n: float) -> Interval:
    """Wilson's 95 % interval (1927) of a share of `hits` out of `n` > 0."""
    share, z2 = hits / n, Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def of_statistic(
    old: Values, new: Values, statistic: Callable[..., Values], rng: np.random.Generator
) -> Difference:
    """Of a statistic (np.median, np.mean) of two independent samples, shapes (n,) and (m,), n > 0.

    Percentile bootstrap, RESAMPLES of each.
    """
    drawn = [_resampled(values, statistic, rng) for values in (old, new)]
    freedom = min(old.size, new.size) - 1
    return of_draws(float(statistic(old)), float(statistic(new)), drawn[0], drawn[1], freedom)


def _resampled(
    values: Values, statistic: Callable[..., Values], rng: np.random.Generator
) -> Values:
    import numpy as np

    at_once = max(1, 2_000_000 // values.size)
    parts = []
    for begin in range(0, RESAMPLES, at_once):
        count = min(at_once, RESAMPLES - begin)
        picked = values[rng.integers(0, values.size, (count, values.size))]
        parts.append(statistic(picked, axis=1))
    return np.concatenate(parts)


def with_p(estimate: float, ci95: Interval, freedom: float = math.inf) -> Difference:
    """The difference with this interval, its tail as wide as the bound towards zero is far."""
    from scipy.stats import norm, t

    # From the estimate to the bound that lies towards zero.
    reach = estimate - ci95[0] if estimate > 0 else ci95[1] - estimate
    if estimate == 0:
        return Difference(estimate, ci95, 0.5)
    if reach <= 0:
        return Difference(estimate, ci95, 0.0)
    deviations = Z95 * abs(estimate) / reach
    tail = norm.sf(deviations) if math.isinf(freedom) else t.sf(deviations, freedom)
    return Difference(estimate, ci95, float(tail))


def holm(ps: list[float]) -> list[float]:
    """Each of `ps` as if it had been the only one (Holm 1979, Scand. J. Statist. 6)."""
    adjusted, running = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, (len(ps) - rank) * ps[index])
        adjusted[index] = min(1.0, running)
    return adjusted
