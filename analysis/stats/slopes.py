"""A line through latencies against RTT: its slope, how well it is known, and whether it is one.

The unit of evidence is the RTT step and not the request: what disturbs one request of a step (the
machine is busy, the RTT is not what was measured) disturbs the next one too. So each step counts
with the median of its requests (`points_of`), and through these goes a robust line (`line_through`)
with draws of its slope and intercept. docs/statistics.md, "Round trips", says how often the
intervals hold.

Three things make a slope uncertain, and each is in the draws:

- the *noise of steps*: residuals of steps, drawn again and again with replacement, each time with a
  new line, whose distance from the first is divided by its own standard error (bootstrap-t; Efron
  and Tibshirani 1993, 12.5) and taken both ways (symmetric: Hall 1988). `stats.bootstrap` draws
  values and not residuals: with 15 steps at five RTTs, those intervals are too narrow;
- the *error of the measured RTT* that steps of one RTT share: RTT_ERROR_MS a level;
- the *step of idleness*: a request that waits for no link meets a machine that is awake.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, chdtrc, fdtrc

Values = NDArray[np.float64]
Indexes = NDArray[np.int_]
Truths = NDArray[np.bool_]

SAME_RTT_MS = 0.5
"""Nearer than what calibration tolerates is the same RTT, measured twice."""
SAME_RTT_SHARE = 0.01
"""The same, as a share of the range of RTTs; the greater of the two counts."""
NEAR_RTT_MS = 2.0
"""Below this RTT a request hardly waits, and the machine does not fall idle within it."""
RTT_ERROR_MS = 0.03
"""Standard deviation of what the measured RTT of a level is off, the same at each of its steps."""
IDLE_STEP_MS = 1.5
"""Standard deviation of how much slower the store itself is where its machine has been idle.

A request without a WAN link to wait for keeps the processor awake and its caches warm; one that
waits for 25 ms or 200 ms does not. On the machine where this was written, medians of the reference
store went from 0.5 ms at RTT 0 to 1.2 ms at 25, 50, 100 and 200 ms alike, and to 2 ms where it was
busy. So what is seen at RTT 0 hardly counts for the slope unless noise is greater than that."""
TUNING = 9.0
"""Of Tukey's bisquare, in scales. The usual 4.685 gives up steps in which the machine was merely
busy, and the line then depends on which steps it took for the odd ones. What is to be given up is a
step during which something else happened: 20 scales off and more."""
FEW_STEPS = 8
"""Of fewer nobody can tell which is the odd one: least squares, and Student's t for a bootstrap."""
RARE = 0.002
"""What noise alone does more rarely than this was not noise."""
MIN_DEVIATION_MS = 2.0
MIN_DEVIATION_SHARE = 0.01
"""A deviation matters from MIN_DEVIATION_MS, and from this share of the range of RTTs: a hundredth
of a round trip. The greater of the two counts."""
WIDEN_BELOW = 0.05
"""Lines that noise makes as crooked more rarely than this, and that still are lines, are known less
well than the noise of their steps says."""
ABSENT_SHARE = 0.25
"""A mode is absent from an RTT where less than this part of its usual share is on its line."""
_OWN_STEP_NOISE_MS = 0.3
_MAD_TO_SIGMA = 1.4826
_MEDIAN_TO_MEAN_ERROR = 1.2533
_ROUNDS = 15


@dataclass(frozen=True)
class Levels:
    """The different RTTs in ascending order, shape (L,), and the index of its own for each point.

    Measured RTTs of one requested RTT differ a little.
    """

    rtt_ms: Values
    of: Indexes

    @property
    def count(self) -> int:
        """How many different RTTs there are."""
        return int(self.rtt_ms.size)

    @property
    def sizes(self) -> Indexes:
        """How many points each level has, shape (L,)."""
        return np.bincount(self.of, minlength=self.count)


def levels_of(rtt_ms: Values) -> Levels:
    """The levels of `rtt_ms`, shape (n,): a gap between neighbours begins a new one."""
    order = np.argsort(rtt_ms, kind="stable")
    gap = max(SAME_RTT_MS, SAME_RTT_SHARE * float(np.ptp(rtt_ms)))
    of = np.empty(rtt_ms.size, dtype=np.int_)
    of[order] = np.concatenate(([0], np.cumsum(np.diff(rtt_ms[order]) > gap)))
    return Levels(np.bincount(of, weights=rtt_ms) / np.bincount(of), of)


@dataclass(frozen=True)
class Points:
    """One point a step: shape (S,).

    `precision` is the reciprocal of the variance of `latency_ms`, relative to a step with an
    average number of requests. `near`: the RTT is below NEAR_RTT_MS. `within_ms`: the standard
    error that the spread of the requests within the step gives, no more.
    """

    rtt_ms: Values
    latency_ms: Values
    precision: Values
    near: Truths
    within_ms: Values
    level: Indexes


def points_of(rtt_ms: Values, latency_ms: Values, step: Indexes, level: Indexes) -> Points:
    """The medians of the steps; arrays of shape (n,), a request each."""
    _, first, of, counts = np.unique(
        step, return_index=True, return_inverse=True, return_counts=True
    )
    ordered = latency_ms[np.lexsort((latency_ms, of))]
    begin = np.cumsum(counts) - counts
    medians = (ordered[begin + (counts - 1) // 2] + ordered[begin + counts // 2]) / 2
    off = np.abs(latency_ms - medians[of])
    # Half of the deviations of a step of two or one are 0 by construction.
    several = counts[of] >= 3
    spread = _MAD_TO_SIGMA * float(np.median(off[several])) if several.any() else 0.0
    x = np.bincount(of, weights=rtt_ms) / counts
    return Points(
        rtt_ms=x,
        latency_ms=medians,
        # Half of the variance is the step's own, half that of a median of so many requests.
        precision=2 / (1 + counts.mean() / counts),
        near=x < NEAR_RTT_MS,
        within_ms=_MEDIAN_TO_MEAN_ERROR * spread / np.sqrt(counts),
        level=level[first],
    )


@dataclass(frozen=True)
class Robust:
    """Robust straight lines, a row each: shape (...,), and (..., m) for what belongs to points.

    `trust` is the bisquare's weight of each point: 1 heeded in full, 0 given up as odd. `scale` is
    the robust standard deviation of a point of precision 1. `variance`, shape (..., 3), has the
    variances of slope and intercept and their covariance.
    """

    slope: Values
    intercept: Values
    residuals: Values
    trust: Values
    scale: Values
    spread: Values
    """What stands for the variance of a point of precision 1 in that of the line."""
    variance: Values


def robust(x: Values, y: Values, precision: Values, shared: Values) -> Robust:
    """The robust line through each row of `y`, (..., m); `x`, (m,), has three different values.

    Tukey's bisquare from Theil and Sen's start. `precision` (m,) is the reciprocal of each point's
    own variance relative to the others'. `shared` (m,) is how much less it counts, 0 to 1, because
    other points share its error: that lessens its pull on the line, but does not make it any
    noisier by itself.
    """
    root, weights = np.sqrt(precision), precision * shared
    if x.size < FEW_STEPS:
        slope, intercept = _least_squares(x, y, np.broadcast_to(weights, y.shape))
        residuals = y - intercept[..., None] - slope[..., None] * x
        spread = (weights * residuals**2).sum(-1) / (x.size - 2)
        variance = _variance(x, weights, spread)
        return Robust(
            slope, intercept, residuals, np.ones_like(y), np.sqrt(spread), spread, variance
        )
    # What the points' own noise is, is seen where nothing else is in it.
    clean = shared == 1 if (shared == 1).sum() > 3 else np.ones(x.size, dtype=bool)
    count, freedom = float(clean.sum()), max(float(clean.sum()) - 2, 1.0)
    slope, intercept = _theil_sen(x, y)
    standard = (y - intercept[..., None] - slope[..., None] * x) * root
    # Two of the residuals are free of charge: the line was drawn through them.
    scale = _MAD_TO_SIGMA * np.median(np.abs(standard[..., clean]), axis=-1) * count / freedom
    scale = np.maximum(scale, 1e-9 + 1e-9 * np.abs(y).max(-1))[..., None]
    trust = bisquare(standard * np.sqrt(shared) / scale)
    for _ in range(_ROUNDS):
        slope, intercept = _least_squares(x, y, trust * weights)
        standard = (y - intercept[..., None] - slope[..., None] * x) * root
        trust = bisquare(standard * np.sqrt(shared) / scale)
    z, psi = standard[..., clean] / (TUNING * scale), standard[..., clean] * trust[..., clean]
    steepness = np.where(np.abs(z) < 1, (1 - z**2) * (1 - 5 * z**2), 0.0).mean(-1)
    steepness = np.maximum(steepness, 0.2)
    # Huber's variance of an M-estimate, with his correction for few points (1981, 7.6).
    correction = 1 + 2 / count * (1 - steepness) / steepness
    spread = (psi**2).sum(-1) / freedom / steepness**2 * correction**2
    variance = _variance(x, weights, spread)
    return Robust(slope, intercept, standard / root, trust, scale[..., 0], spread, variance)


def bisquare(z: Values) -> Values:
    """Tukey's weight of standardized residuals."""
    return np.where(np.abs(z) < TUNING, (1 - (z / TUNING) ** 2) ** 2, 0.0)


def _theil_sen(x: Values, y: Values) -> tuple[Values, Values]:
    """Median of the slopes between all pairs of points of different x, and of what is left."""
    first, second = np.triu_indices(x.size, 1)
    run = x[second] - x[first]
    # Points of nearly one x (steps of the same RTT) say nothing of the slope.
    apart = np.abs(run) > 0.02 * np.ptp(x)
    slope = np.median((y[..., second[apart]] - y[..., first[apart]]) / run[apart], axis=-1)
    return slope, np.median(y - slope[..., None] * x, axis=-1)


def _least_squares(x: Values, y: Values, weights: Values) -> tuple[Values, Values]:
    """Weighted least squares, a row a line; `weights` of the shape of `y`."""
    total = np.maximum(weights.sum(-1), 1e-12)
    x_mean, y_mean = (weights @ x) / total, (weights * y).sum(-1) / total
    across = x - x_mean[..., None]
    slope = (weights * across * y).sum(-1) / np.maximum((weights * across**2).sum(-1), 1e-12)
    return slope, y_mean - slope * x_mean


def _variance(x: Values, weights: Values, spread: Values) -> Values:
    """Variances of slope, intercept, and their covariance, from the variance of a unit weight."""
    total = weights.sum()
    mean = float((weights * x).sum() / total)
    across = float((weights * (x - mean) ** 2).sum())
    return np.stack(
        (spread / across, spread * (1 / total + mean**2 / across), -spread * mean / across), axis=-1
    )


@dataclass(frozen=True)
class Straightness:
    """How far the levels lie off a line.

    `deviation_ms` is by how much they do at `worst_rtt_ms`, where it is most (positive: slower).
    `bends`: that is no noise, and a line is the wrong model for practical purposes too. `inflate`:
    by how much more steps of one RTT differ from the line than from each other (1: no more), where
    that is more than chance.
    """

    worst_rtt_ms: float
    deviation_ms: float
    bends: bool
    inflate: float


@dataclass(frozen=True)
class Line:
    """A line and its draws of (slope, intercept), shape (draws, 2).

    `spread_ms` is the standard deviation of a step of average precision.
    """

    slope: float
    intercept_ms: float
    spread_ms: float
    draws: Values
    straight: Straightness


def line_through(points: Points, levels: Levels, rng: np.random.Generator, *, draws: int) -> Line:
    """The robust line through `points`, which are of three different RTTs or more.

    Half of the draws are resamples, the other half their mirror images. A line that is crooked, and
    still one, gets draws as much wider.
    """
    shared = _shared_weights(points)
    weights = points.precision * shared
    whole = robust(points.rtt_ms, points.latency_ms, points.precision, shared)
    slope, intercept = float(whole.slope), float(whole.intercept)

    def drawn(inflate: float) -> Values:
        noise = inflate * _noise(points, whole, weights, shared, rng, draws)
        systematic = _systematic(points, weights * whole.trust, slope, rng, draws)
        return np.array([slope, intercept]) + noise + systematic

    made = drawn(1.0)
    straight = _straightness(points, whole, weights, levels)
    spread_ms = float(np.sqrt(whole.spread))
    line = Line(slope, intercept, spread_ms, made, straight)
    return line if straight.inflate == 1 else replace(line, draws=drawn(straight.inflate))


def _shared_weights(points: Points) -> Values:
    """Weights (S,) that make least squares heed the step of idleness that all near steps share.

    The mean of k steps with a shared error of variance s² and one of their own of variance v
    has the variance v/k + s²: that of k steps that count v / (v + k s²) each.
    """
    near, shared = points.near, np.ones(points.rtt_ms.size)
    if near.all() or not near.any():
        return shared
    own = float(robust(points.rtt_ms, points.latency_ms, points.precision, shared).scale) ** 2
    shared[near] = own / (own + near.sum() * IDLE_STEP_MS**2)
    return np.maximum(shared, 0.01)


def _noise(
    points: Points,
    whole: Robust,
    weights: Values,
    shared: Values,
    rng: np.random.Generator,
    draws: int,
) -> Values:
    """What the noise of steps does to slope and intercept: shape (draws, 2), around 0."""
    x, half = points.rtt_ms, draws // 2
    errors = np.sqrt(whole.variance[:2])
    if x.size < FEW_STEPS:
        slope, intercept, both = whole.variance
        values, axes = np.linalg.eigh(np.array([[slope, both], [both, intercept]]))
        normal = rng.standard_normal((half, 2)) * np.sqrt(np.maximum(values, 0)) @ axes.T
        students = normal / np.sqrt(rng.chisquare(x.size - 2, (half, 1)) / (x.size - 2))
        return np.concatenate((students, -students))
    across = x - float((weights * x).sum() / weights.sum())
    leverage = weights * (1 / weights.sum() + across**2 / (weights * across**2).sum())
    # A residual is smaller than its error, the more so the more the line bends to its point.
    pool = whole.residuals * np.sqrt(points.precision) / np.sqrt(1 - leverage)
    if (shared == 1).sum() >= FEW_STEPS:
        pool = pool[shared == 1]
    pool = pool - np.median(pool)
    again = pool[rng.integers(0, pool.size, (half, x.size))] / np.sqrt(points.precision)
    drawn = robust(x, again, points.precision, shared)
    # A resample of one step alone has no spread, and would be infinitely sure.
    drawn_errors = np.maximum(np.sqrt(drawn.variance[:, :2]), 0.05 * errors + 1e-12)
    noise = np.stack((drawn.slope, drawn.intercept), axis=-1) / drawn_errors * errors
    return np.concatenate((noise, -noise))


def _systematic(
    points: Points, weights: Values, slope: float, rng: np.random.Generator, draws: int
) -> Values:
    """What errors that steps share do to slope and intercept: shape (draws, 2), around 0."""
    x, total = points.rtt_ms, weights.sum()
    mean = float((weights * x).sum() / total)
    pull = weights * (x - mean) / (weights * (x - mean) ** 2).sum()
    pulls = np.stack((pull, weights / total - mean * pull), axis=-1)
    each = np.zeros((int(points.level.max()) + 1, 2))
    np.add.at(each, points.level, pulls)
    noise = rng.standard_normal((draws, each.shape[0])) * RTT_ERROR_MS * abs(slope) @ each
    if points.near.any() and not points.near.all():
        noise += rng.standard_normal((draws, 1)) * IDLE_STEP_MS * pulls[points.near].sum(0)
    return np.asarray(noise, dtype=np.float64)


def _straightness(points: Points, whole: Robust, weights: Values, levels: Levels) -> Straightness:
    """Deviations of the levels' medians from the line against the noise of steps within levels.

    The classic test of lack of fit (Draper and Smith 1998, 2.1), with medians for means, because a
    step that the line gave up may be the odd one; not so where the whole level was given up. Where
    no RTT was taken twice, the noise of steps is not known, and is taken as what the requests' own
    spread gives and _OWN_STEP_NOISE_MS.
    """
    level, off = points.level, whole.residuals

    def each(weights: Values | Truths) -> Values:
        return np.bincount(level, weights=weights, minlength=levels.count).astype(np.float64)

    repeats = np.bincount(level, minlength=levels.count)
    present = repeats > 0
    medians = np.array(
        [float(np.median(off[level == n])) if repeats[n] else 0.0 for n in range(levels.count)]
    )
    worst = int(np.abs(medians).argmax())
    freedom = max(int(present.sum()) - 2, 1)
    replicates = level.size - int(present.sum())
    # What levels may be off because the RTT is not what was measured is no crookedness.
    known = (RTT_ERROR_MS * float(whole.slope)) ** 2
    inflate = 1.0
    if replicates < 3:
        means = each(points.precision * off) / np.maximum(each(points.precision), 1e-12)
        steps = np.maximum(repeats, 1)
        variance = each(points.within_ms**2) / steps**2 + _OWN_STEP_NOISE_MS**2 / steps + known
        near = each(points.near) > 0
        variance = variance + np.where(near & ~near.all(), IDLE_STEP_MS**2, 0.0)
        chance = float(chdtrc(freedom, (means[present] ** 2 / variance[present]).sum()))
    else:
        from_median = off - medians[level]
        trust = bisquare(from_median / max(float(whole.scale), 1e-9))
        within = max(float((weights * trust * from_median**2).sum()) / replicates, 1e-18)
        # The median of three or more varies by about half more than their mean.
        mass = np.where(repeats > 2, each(weights) / 1.5, each(weights))
        between = float((mass * medians**2 / (1 + mass * known / within)).sum()) / freedom
        chance = float(fdtrc(freedom, replicates, between / within))
        if chance < WIDEN_BELOW:
            inflate = max(1.0, between / within) ** 0.5
    least = max(MIN_DEVIATION_MS, MIN_DEVIATION_SHARE * float(np.ptp(levels.rtt_ms)))
    deviation = float(medians[worst])
    # Every step of that RTT is off to the same side, and not only most of them.
    agreed = float((off[level == worst] * np.sign(deviation)).min())
    bends = abs(deviation) > least and agreed > least / 2 and chance < RARE
    return Straightness(float(levels.rtt_ms[worst]), deviation, bends, inflate)


def absent_level(on_line: Truths, levels: Levels) -> int | None:
    """The level at which requests on the line are missing; None: they are everywhere.

    `on_line`, shape (n,): whether a request lies on the main mode's line or on one that cannot be
    told from it there. Missing are so many as chance leaves out more rarely than RARE.
    """
    counts = np.bincount(levels.of[on_line], minlength=levels.count)
    shares = counts / levels.sizes
    # The share where the mode is, which the levels without it must not lessen.
    usual = float(np.median(shares[shares >= np.median(shares)]))
    missing = (shares < ABSENT_SHARE * usual) & (bdtr(counts, levels.sizes, usual) < RARE)
    return int(np.where(missing, shares, np.inf).argmin()) if missing.any() else None
