"""A line through latencies against RTT: its slope, how well it is known, and whether it is one.

The unit of evidence is the RTT step and not the request: what disturbs one request of a step (the
machine is busy, the RTT is not what was measured) disturbs the next one too. So each step counts
with the median of its requests, and through these goes a robust line: Tukey's bisquare from Theil
and Sen's start. Three things make its slope uncertain, and each is in the draws: the noise of steps
(Huber's variance, Student's t), the error of the measured RTT that steps of one RTT share, and that
a request which waits for no link meets a machine that is awake. docs/reference/statistics.md has
how often the intervals hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, fdtrc

Values = NDArray[np.float64]
Indexes = NDArray[np.int_]
Truths = NDArray[np.bool_]

SAME_RTT_MS, SAME_RTT_SHARE = 0.5, 0.01
"""Nearer than that, or than that share of the range of RTTs, is the same RTT measured twice."""
NEAR_RTT_MS = 2.0
"""Below this RTT a request hardly waits, and the machine does not fall idle within it."""
RTT_ERROR_MS = 0.03
"""Standard deviation of what the measured RTT of a level is off, the same at each of its steps."""
IDLE_STEP_MS = 1.5
"""Standard deviation of how much slower the store itself is where its machine has been idle.

Medians of the reference store went from 0.5 ms at RTT 0 to 1.2 ms at 25, 50, 100 and 200 ms alike,
and to 2 ms where the machine was busy. So what is seen at RTT 0 hardly counts for the slope unless
noise is greater than that."""
TUNING = 9.0
"""Of the bisquare, in scales. The usual 4.685 gives up steps in which the machine was merely busy;
what is to be given up is a step during which something else happened: 20 scales off and more."""
FEW_STEPS = 8
"""Of fewer it is not known which is the odd one: least squares."""
RARE = 0.002
"""What noise alone does more rarely than this was not noise."""
MIN_DEVIATION_MS, MIN_DEVIATION_SHARE = 2.0, 0.01
"""A deviation matters from so many ms, and from this share of the range of RTTs."""
ABSENT_SHARE = 0.25
"""Lines are absent from an RTT where less than this part of the usual share is on them."""
_MAD_TO_SIGMA = 1.4826
_ROUNDS = 15


@dataclass(frozen=True)
class Levels:
    """The different RTTs, ascending, shape (L,), and the index of its own for each request.

    Measured RTTs of one requested RTT differ a little.
    """

    rtt_ms: Values
    level: Indexes

    @property
    def count(self) -> int:
        """How many different RTTs there are."""
        return int(self.rtt_ms.size)

    def counted(self, chosen: Truths) -> Indexes:
        """How many of the requests that are `chosen`, shape (n,), each level has: shape (L,)."""
        return np.bincount(self.level[chosen], minlength=self.count)


def levels_of(rtt_ms: Values) -> Levels:
    """The levels of `rtt_ms`, shape (n,): a gap between neighbours begins a new one."""
    order = np.argsort(rtt_ms, kind="stable")
    gap = max(SAME_RTT_MS, SAME_RTT_SHARE * float(np.ptp(rtt_ms)))
    level_of = np.empty(rtt_ms.size, dtype=np.int_)
    level_of[order] = np.concatenate(([0], np.cumsum(np.diff(rtt_ms[order]) > gap)))
    return Levels(np.bincount(level_of, weights=rtt_ms) / np.bincount(level_of), level_of)


@dataclass(frozen=True)
class Line:
    """A line and its draws of (slope, intercept), shape (B, 2), half of them mirror images.

    `bend` is, in words, how the latencies bend, where a line is the wrong model of them.
    """

    slope: float
    intercept_ms: float
    draws: Values
    bend: str | None


def line_through(
    rtt_ms: Values,
    latency_ms: Values,
    step: Indexes,
    level: Indexes,
    rng: np.random.Generator,
    *,
    draws: int,
) -> Line:
    """The robust line through requests, shape (n,) each, of three different RTTs or more."""
    _, first, group, n = np.unique(step, return_index=True, return_inverse=True, return_counts=True)
    x, level = np.bincount(group, weights=rtt_ms) / n, level[first]
    y = np.array([np.median(latency_ms[group == number]) for number in range(n.size)])
    # Half of the variance is the step's own, half that of a median of so many requests.
    precision = 2 / (1 + n.mean() / n)
    near = x < NEAR_RTT_MS
    near &= not near.all()
    shared = np.ones(x.size)
    if near.any():
        # The mean of k steps with a shared error of variance s² and one of their own of variance v
        # has the variance v/k + s²: that of k steps that count v / (v + k s²) each.
        own = _robust(x, y, precision, shared).scale ** 2
        shared[near] = max(own / (own + near.sum() * IDLE_STEP_MS**2), 0.01)
    fit = _robust(x, y, precision, shared)
    weights = precision * shared
    made = _draws(x, level, near, weights * fit.trust, fit, rng, draws)
    made += [fit.slope, fit.intercept]
    return Line(fit.slope, fit.intercept, made, _bend(x, level, weights, fit))


@dataclass(frozen=True)
class _Robust:
    """A robust line through m points, and how far each is off (`residuals`, shape (m,)).

    `trust` is the bisquare's weight of each: 1 heeded in full, 0 given up as odd. `scale` is the
    robust standard deviation of a point of precision 1, `spread` what stands for its variance in
    that of the line.
    """

    slope: float
    intercept: float
    residuals: Values
    trust: Values
    scale: float
    spread: float


def _robust(x: Values, y: Values, precision: Values, shared: Values) -> _Robust:
    """The robust line through `y`, shape (m,); `x` has three different values.

    `precision` is the reciprocal of each point's own variance relative to the others'. `shared` is
    how much less it counts, 0 to 1, because other points share its error: that lessens its pull on
    the line, but does not make it any noisier by itself.
    """
    # What the points' own noise is, is seen where nothing else is in it.
    clean = shared == 1 if (shared == 1).sum() > 3 else np.ones(x.size, dtype=bool)
    count, freedom = float(clean.sum()), max(float(clean.sum()) - 2, 1.0)
    first, second = np.triu_indices(x.size, 1)
    run = x[second] - x[first]
    apart = np.abs(run) > 0.02 * np.ptp(x)  # steps of the same RTT say nothing of the slope
    slope = float(np.median((y[second] - y[first])[apart] / run[apart]))
    standard = (y - slope * x - np.median(y - slope * x)) * np.sqrt(precision)
    # Two of the residuals are free of charge: the line was drawn through them.
    scale = _MAD_TO_SIGMA * float(np.median(np.abs(standard[clean]))) * count / freedom
    scale = max(scale, 1e-9 + 1e-9 * float(np.abs(y).max()))
    tuning = TUNING if x.size >= FEW_STEPS else math.inf
    trust = _bisquare(standard * np.sqrt(shared) / scale, tuning)
    for _ in range(_ROUNDS):
        weights = trust * precision * shared
        mean, across = _moments(x, weights)
        slope = float((weights * (x - mean) * y).sum() / max(across, 1e-12))
        intercept = float((weights * y).sum() / max(weights.sum(), 1e-12)) - slope * mean
        standard = (y - intercept - slope * x) * np.sqrt(precision)
        trust = _bisquare(standard * np.sqrt(shared) / scale, tuning)
    z, psi = standard[clean] / (tuning * scale), (standard * trust)[clean]
    steepness = max(float(np.where(np.abs(z) < 1, (1 - z**2) * (1 - 5 * z**2), 0.0).mean()), 0.2)
    # Huber's variance of an M-estimate, with his correction for few points (1981, 7.6).
    correction = 1 + 2 / count * (1 - steepness) / steepness
    spread = float((psi**2).sum()) / freedom / steepness**2 * correction**2
    return _Robust(slope, intercept, standard / np.sqrt(precision), trust, scale, spread)


def _bisquare(z: Values, tuning: float = TUNING) -> Values:
    """Tukey's weight of standardized residuals."""
    return np.where(np.abs(z) < tuning, (1 - (z / tuning) ** 2) ** 2, 0.0)


def _moments(x: Values, weights: Values) -> tuple[float, float]:
    """The weighted mean of `x`, and its weighted sum of squares around it."""
    mean = float((weights * x).sum() / max(weights.sum(), 1e-12))
    return mean, float((weights * (x - mean) ** 2).sum())


def _draws(
    x: Values,
    level: Indexes,
    near: Truths,
    weights: Values,
    fit: _Robust,
    rng: np.random.Generator,
    draws: int,
) -> Values:
    """What all errors do to slope and intercept: shape (draws, 2), around 0."""
    mean, across = _moments(x, weights)
    freedom = max(x.size - 2, 1)
    # Slope, and the height of the line at the mean RTT: their errors are independent.
    size = np.sqrt(fit.spread / np.array([across, weights.sum()]))
    half = rng.standard_normal((draws // 2, 2)) * size
    half /= np.sqrt(rng.chisquare(freedom, (draws // 2, 1)) / freedom)
    off = np.concatenate((half, -half))
    # What errors that steps share do: by how much a ms at a step moves slope and height.
    pulls = np.stack((weights * (x - mean) / across, weights / weights.sum()), axis=-1)
    moments = np.zeros((int(level.max()) + 1, 2))
    np.add.at(moments, level, pulls)
    off += rng.standard_normal((draws, len(moments))) * RTT_ERROR_MS * abs(fit.slope) @ moments
    off += rng.standard_normal((draws, 1)) * IDLE_STEP_MS * pulls[near].sum(0)
    return np.column_stack((off[:, 0], off[:, 1] - mean * off[:, 0]))


def _bend(x: Values, level: Indexes, weights: Values, fit: _Robust) -> str | None:
    """How the levels bend away from the line, in words; None: not, or it may be noise.

    The classic test of lack of fit (Draper and Smith 1998, 2.1): deviations of the levels' medians
    from the line against the noise of steps within levels. Medians for means, because a step that
    the line gave up may be the odd one. Where hardly an RTT was taken twice, the noise of steps is
    not known, and nothing is called a bend.
    """
    _, group, repeats = np.unique(level, return_inverse=True, return_counts=True)
    off = fit.residuals
    medians = np.array([np.median(off[group == number]) for number in range(repeats.size)])
    worst = int(np.abs(medians).argmax())
    deviation = float(medians[worst])
    replicates, freedom = level.size - repeats.size, max(repeats.size - 2, 1)
    least = max(MIN_DEVIATION_MS, MIN_DEVIATION_SHARE * float(np.ptp(x)))
    # Every step of that RTT is off to the same side, and not only most of them.
    agreed = float((off[group == worst] * np.sign(deviation)).min())
    if replicates < 3 or abs(deviation) <= least or agreed <= least / 2:
        return None
    within = max(float((weights * (off - medians[group]) ** 2).sum()) / replicates, 1e-18)
    # The median of three or more varies by about half more than their mean.
    mass = np.bincount(group, weights=weights) / np.where(repeats > 2, 1.5, 1.0)
    between = float((mass * medians**2).sum()) / freedom
    if fdtrc(freedom, replicates, between / within) >= RARE:
        return None
    return (
        f"the latencies bend: at an RTT of {x[group == worst].mean():.4g} ms they are "
        f"{abs(deviation):.3g} ms {'slower' if deviation > 0 else 'faster'} than the closest line, "
        f"and RTT steps of one RTT differ by {math.sqrt(fit.spread):.2g} ms only (standard "
        "deviation)"
    )


def absent_level(on_line: Truths, levels: Levels) -> int | None:
    """The level at which requests on a line (`on_line`, shape (n,)) are missing; None: nowhere.

    Missing are so many as chance leaves out more rarely than RARE.
    """
    counts, sizes = levels.counted(on_line), levels.counted(np.ones_like(on_line))
    shares = counts / sizes
    # The share where lines are, which the levels without them must not lessen.
    usual = float(np.median(shares[shares >= np.median(shares)]))
    missing = (shares < ABSENT_SHARE * usual) & (bdtr(counts, sizes, usual) < RARE)
    return int(np.where(missing, shares, np.inf).argmin()) if missing.any() else None
