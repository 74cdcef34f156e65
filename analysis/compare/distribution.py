"""How many round trips each request took, and which part of the requests gained some.

A store may take one way or another (a replica here or a continent away), so that its round trips
are a distribution. Comparing the greatest mode alone misses a slow way that appears beside it, and
comparing means alone cannot tell one round trip more in 30 % of the requests from 0.3 in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.compare.difference import Z95, Difference, of_shares, with_p

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


_CHANCE = 0.05


@dataclass(frozen=True)
class Distribution:
    """Round trips of single requests, shape (n,), n > 0, NaN: not known, and the visit of each."""

    round_trips: Values
    visit: NDArray[np.int_]

    @property
    def levels(self) -> list[float]:
        """The different numbers of round trips that occur, ascending."""
        import numpy as np

        return [float(level) for level in np.unique(self.round_trips) if np.isfinite(level)]

    def above(self, cut: float, *, unknown: bool) -> tuple[float, float]:
        """How many take more than `cut`, out of how many, counted as independent requests.

        Those of which it is not known count as more where `unknown`.
        """
        import numpy as np

        beyond = self.round_trips > cut
        if unknown:
            beyond = beyond | np.isnan(self.round_trips)
        inflation = visit_effect(beyond.astype("float64"), self.visit)
        return float(beyond.sum()) / inflation, beyond.size / inflation

    def filled(self, unknown: float) -> Values:
        """Those of which it is not known taken for so many."""
        import numpy as np

        return np.where(np.isnan(self.round_trips), unknown, self.round_trips)


def visit_effect(values: Values, visit: NDArray[np.int_]) -> float:
    """How many of the requests are worth one: by how much visits differ beyond chance, at least 1.

    Requests of one visit may share what decides their way (who leads, which connection is open).
    The variance between visits over that of all requests, both a request; at most what leaves as
    many independent requests as visits. 1 where it may be chance (5 %, by the chi-squared
    distribution, which the variance between visits of independent requests has).
    """
    import numpy as np
    from scipy.stats import chi2

    _, which = np.unique(visit, return_inverse=True)
    sizes = np.bincount(which)
    if sizes.size < 2 or values.size <= sizes.size:
        return 1.0
    spread = float(((values - values.mean()) ** 2).sum()) / (values.size - 1)
    if spread <= 0:
        return 1.0
    means = np.bincount(which, weights=values) / sizes
    freedom = sizes.size - 1
    between = float((sizes * (means - values.mean()) ** 2).sum()) / freedom
    ratio = between / spread
    return max(1.0, ratio) if chi2.sf(ratio * freedom, freedom) < _CHANCE else 1.0


def of_means(
    old: tuple[Values, NDArray[np.int_]], new: tuple[Values, NDArray[np.int_]]
) -> Difference:
    """Of the means of two samples, each given with the visit of every value: Welch's, but normal.

    Where visits differ beyond chance, the variance is that of visits.
    """
    variance = sum(
        float(values.var()) * visit_effect(values, visit) / values.size
        for values, visit in (old, new)
    )
    estimate, half = float(new[0].mean() - old[0].mean()), Z95 * math.sqrt(variance)
    return with_p(estimate, (estimate - half, estimate + half))


@dataclass(frozen=True)
class Gained:
    """The requests that took at most `cut` round trips in OLD and take more in NEW.

    `difference.estimate` is their share; negative: so many take fewer. `p` is for all cuts that
    were tried.
    """

    cut: float
    difference: Difference


def gained_at(old: Distribution, new: Distribution, cut: float, step: float) -> Gained:
    """The share that took at most `cut` in OLD and more than `cut + step` in NEW, as a difference.

    The k-th fastest request of one run is held against the k-th fastest of the other: the share
    whose round trips grew by more than `step` at this place of the distribution. Never more than
    truly gained, whichever the cut: a request of which nothing is known counts as slow in OLD and
    as fast in NEW, so that a mode that was overlooked in one of the runs is no change.
    """
    before, after = old.above(cut, unknown=True), new.above(cut + step, unknown=False)
    return Gained(cut, of_shares(*before, *after))


def gained(old: Distribution, new: Distribution, step: float) -> Gained:
    """The greatest share of requests that gained more than `step` round trips, or lost as many.

    Cuts at each level that occurs: between two of them no share can be greater.
    """
    more = [gained_at(old, new, level, step) for level in old.levels]
    less = [_turned(gained_at(new, old, level, step)) for level in new.levels]
    worst = max(more, key=lambda each: each.difference.estimate)
    best = min(less, key=lambda each: each.difference.estimate)
    # Worse counts first: that some requests became faster is no comfort to those that did not.
    decided = worst if worst.difference.estimate > 0 else best
    if decided.difference.estimate * (1 if decided is worst else -1) <= 0:
        return Gained(worst.cut, Difference(0.0, _around_zero(old, new), 0.5))
    tried = len(more) if decided is worst else len(less)
    difference = decided.difference
    return Gained(
        decided.cut,
        Difference(difference.estimate, difference.ci95, min(1.0, difference.p * tried)),
    )


def _turned(seen: Gained) -> Gained:
    """The same as the other bundle sees it."""
    low, high = seen.difference.ci95
    return Gained(seen.cut, Difference(-seen.difference.estimate, (-high, -low), seen.difference.p))


def _around_zero(old: Distribution, new: Distribution) -> tuple[float, float]:
    """Nobody gained and nobody lost; within what that is known."""
    return of_shares(0.0, old.round_trips.size, 0.0, new.round_trips.size).ci95
