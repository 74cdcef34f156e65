"""Whether the machine was late at random, or when requests were slow, or failed.

Samples of a late network are left out by a rule that does not depend on what came of them. That
alone makes figures right where the machine is late for reasons of its own. Where the store's own
work makes it late, or lateness makes requests fail, those left out differ from the others, and no
rule of leaving out is right: so the two are compared.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr

from wanlat.analysis.stats.intervals import Values

LEAST_N = 5
"""Of fewer late requests no difference can be shown, and none is."""

Truths = NDArray[np.bool_]


def fisher_exact(table: tuple[int, int, int, int]) -> float:
    """The two-sided p-value of a 2 × 2 `table` (a, b, c, d), rows (a, b) and (c, d).

    The sum over all tables of the same margins that are no likelier (Fisher 1935). That of
    `scipy.stats.fisher_exact`, without the second that scipy.stats takes to import.
    """
    a, b, c, d = table
    row, column, total = a + b, a + c, a + b + c + d
    hits = np.arange(max(0, column - (c + d)), min(row, column) + 1)

    def log_choose(n: int, k: NDArray[np.int_]) -> Values:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), dtype=np.float64)

    logs = log_choose(row, hits) + log_choose(total - row, column - hits)
    weights = np.exp(logs - logs.max())
    observed = weights[hits == a][0]
    return min(1.0, float(weights[weights <= observed * (1 + 1e-7)].sum() / weights.sum()))


def rank_z(some: Values, others: Values) -> float:
    """How far the ranks of `some` lie above those of `others`, standard normal where they do not.

    Mann and Whitney's statistic (1947) with the correction for ties and for continuity; shapes (n,)
    and (m,), n, m > 0; 0 where all values are one.
    """
    n, m = some.size, others.size
    _, place, times = np.unique(
        np.concatenate([some, others]), return_inverse=True, return_counts=True
    )
    mean_ranks = np.cumsum(times) - (times - 1) / 2
    above = mean_ranks[place[:n]].sum() - n * (n + 1) / 2 - n * m / 2
    ties = float((times.astype(np.float64) ** 3 - times).sum()) / ((n + m) * (n + m - 1))
    variance = n * m / 12 * (n + m + 1 - ties)
    if variance <= 0:
        return 0.0
    return float(math.copysign(max(abs(above) - 0.5, 0.0), above) / math.sqrt(variance))


def difference(late: Truths, ok: Truths, took_ms: Values, held_up_ms: Values) -> float | None:
    """The p-value of late requests being as the others are, in outcome and, of ok ones, duration.

    All of shape (n,). A late request took `took_ms` less anything up to `held_up_ms` of its own: a
    difference is one whichever of the two it was. None where too few were late, or were not.
    """
    if min(late.sum(), (~late).sum()) < LEAST_N:
        return None
    counts = [int((one & other).sum()) for one in (late, ~late) for other in (ok, ~ok)]
    ps = [fisher_exact((counts[0], counts[1], counts[2], counts[3]))]
    some, others = ok & late, ok & ~late
    if min(some.sum(), others.sum()) >= LEAST_N:
        least_ms = took_ms - held_up_ms
        bounds = [rank_z(times[some], took_ms[others]) for times in (took_ms, least_ms)]
        is_one_way = bounds[0] * bounds[1] > 0
        z = min(map(abs, bounds)) if is_one_way else 0.0
        ps.append(2 * float(ndtr(-z)))
    return min(1.0, len(ps) * min(ps))
