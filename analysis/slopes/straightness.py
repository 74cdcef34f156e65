"""Whether a mode's latencies follow a line at all, or only pass near one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.slopes.bootstrap import IDLE_STEP_MS, RTT_ERROR_MS, Line
from wanlat.analysis.slopes.levels import Levels
from wanlat.analysis.slopes.robust import bisquare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]

SIGNIFICANT = 0.002
"""How often noise alone may look as crooked, before it is asked whether it matters."""
MIN_DEVIATION_MS = 2.0
MIN_DEVIATION_SHARE = 0.01
"""A deviation matters from MIN_DEVIATION_MS, and from this share of the range of RTTs: a hundredth
of a round trip. The greater of the two counts."""
WIDEN_BELOW = 0.05
"""Lines this crooked, that still are lines, know less than their visits' noise says."""
ABSENT_SHARE = 0.25
ABSENT_CHANCE = 0.002
"""A mode is absent from an RTT where it has less than this part of its share there, and would have
so few by chance more rarely than this."""
MOST_UNEXPLAINED = 0.5
_OWN_VISIT_NOISE_MS = 0.3


@dataclass(frozen=True)
class Straightness:
    """How far a line's levels lie off it, and what chance says to that.

    `worst_rtt_ms`, `deviation_ms`: the level that is farthest off, and by how much (positive:
    slower). `chance`: how often noise would look as crooked. `inflate`: by how much more visits of
    one RTT differ from the line than from each other (1: no more), where that is more than chance.
    `agreed_ms`: how far off the line every visit of that level is at least, to the same side.
    """

    worst_rtt_ms: float
    deviation_ms: float
    chance: float
    inflate: float
    agreed_ms: float

    def matters(self, range_ms: float) -> bool:
        """Whether a line is the wrong model for practical purposes too."""
        least = max(MIN_DEVIATION_MS, MIN_DEVIATION_SHARE * range_ms)
        far = abs(self.deviation_ms) > least and self.agreed_ms > least / 2
        return far and self.chance < SIGNIFICANT


def straightness(line: Line, levels: Levels) -> Straightness:
    """Deviations of the levels' means from `line` against the noise of visits within levels.

    The classic test of lack of fit (Draper and Smith 1998, 2.1), with medians for means. Where no
    RTT was visited twice, the noise of visits is not known, and is taken as what the requests' own
    spread gives and _OWN_VISIT_NOISE_MS.
    """
    import numpy as np
    from scipy.stats import chi2, f

    points = line.points
    count = int(levels.count)
    plain = points.precision
    sums = np.bincount(points.level, weights=plain, minlength=count)
    present = sums > 0
    means = np.bincount(points.level, weights=plain * line.residuals_ms, minlength=count)
    means = np.where(present, means / np.maximum(sums, 1e-12), 0.0)
    medians = np.array(
        [
            float(np.median(line.residuals_ms[points.level == level])) if present[level] else 0.0
            for level in range(count)
        ]
    )
    worst = int(np.abs(medians).argmax())
    sides = line.residuals_ms[points.level == worst] * float(np.sign(medians[worst]))
    agreed = float(sides.min())
    freedom = int(present.sum()) - 2
    # What levels may be off because the RTT is not what was measured is no crookedness.
    known = (RTT_ERROR_MS * line.slope) ** 2
    replicates = points.count - int(present.sum())
    if replicates < 3:
        near = np.bincount(points.level, weights=points.near, minlength=count) > 0
        noise = np.bincount(points.level, weights=points.within_ms**2, minlength=count)
        visits = np.maximum(np.bincount(points.level, minlength=count), 1)
        variance = noise / visits**2 + _OWN_VISIT_NOISE_MS**2 / visits + known
        variance = variance + np.where(near & ~near.all(), IDLE_STEP_MS**2, 0.0)
        chance = float(chi2.sf((means[present] ** 2 / variance[present]).sum(), max(freedom, 1)))
        return Straightness(float(levels.rtt_ms[worst]), float(medians[worst]), chance, 1.0, agreed)
    # Medians, because a visit that the line gave up may be the odd one; not so where the whole
    # level was given up. The median of three or more varies by about half more than their mean.
    off = line.residuals_ms - medians[points.level]
    trust = bisquare(off / max(line.scale_ms, 1e-9))
    within = max(float((line.weights * trust * off**2).sum()) / replicates, 1e-18)
    repeats = np.bincount(points.level, minlength=count)
    mass = np.asarray(np.bincount(points.level, weights=line.weights, minlength=count))
    mass = np.where(repeats > 2, mass / 1.5, mass)
    between = float((mass * medians**2 / (1 + mass * known / within)).sum()) / max(freedom, 1)
    ratio = between / within
    chance = float(f.sf(ratio, max(freedom, 1), replicates))
    inflate = max(1.0, ratio) ** 0.5 if chance < WIDEN_BELOW else 1.0
    return Straightness(float(levels.rtt_ms[worst]), float(medians[worst]), chance, inflate, agreed)


def absent_level(near_line: NDArray[np.bool_], levels: Levels) -> int | None:
    """The level at which requests on the line are missing; None: they are everywhere.

    `near_line`, shape (n,): whether a request lies on the main mode's line or on one that cannot be
    told from it there.
    """
    import numpy as np
    from scipy.stats import binom

    sizes = np.bincount(levels.of, minlength=levels.count)
    counts = np.bincount(levels.of[near_line], minlength=levels.count)
    shares = counts / sizes
    # The share where the mode is, which the levels without it must not lessen.
    usual = float(np.median(shares[shares >= np.median(shares)]))
    chance = binom.cdf(counts, sizes, usual)
    missing = (shares < ABSENT_SHARE * usual) & (chance < ABSENT_CHANCE)
    if not missing.any():
        return None
    return int(np.where(missing, shares, np.inf).argmin())
