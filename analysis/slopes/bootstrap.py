"""The line through visits, and how well it is known: a studentized bootstrap of visits.

Three things make the number uncertain, and each is in the draws:

- the *noise of visits*: residuals of visits, drawn again and again with replacement, each time with
  a new line, whose distance from the first is divided by its own standard error (bootstrap-t; Efron
  and Tibshirani 1993, 12.5) and taken both ways (symmetric: Hall 1988);
- the *error of the measured RTT* that visits of one RTT share: RTT_ERROR_MS a level;
- the *step of idleness*: a request that waits for no link meets a machine that is awake.

Fewer visits than bootstrapping can work with are left to Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.slopes.robust import MIN_POINTS_FOR_WEIGHTS, Lines, fit
from wanlat.analysis.slopes.visits import Points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

RTT_ERROR_MS = 0.03
"""Standard deviation of what the measured RTT of a level is off, the same at each of its visits."""
IDLE_STEP_MS = 1.5
"""Standard deviation of how much slower the store itself is where its machine has been idle.

A request without a WAN link to wait for keeps the processor awake and its caches warm; one that
waits for 25 ms or 200 ms does not. On the machine where this was written, medians of the reference
store went from 0.5 ms at RTT 0 to 1.2 ms at 25, 50, 100 and 200 ms alike, and to 2 ms where it was
busy. So what is seen at RTT 0 hardly counts for the slope unless noise is greater than that."""


@dataclass(frozen=True)
class Line:
    """A line through `points` and its draws of (slope, intercept), shape (draws, 2).

    `residuals_ms`, `trust` and `weights` (V,): of each visit; `spread_ms`: standard deviation of a
    visit of average precision, `scale_ms` the same without heed to odd visits.
    """

    points: Points
    slope: float
    intercept_ms: float
    residuals_ms: Values
    trust: Values
    weights: Values
    spread_ms: float
    scale_ms: float
    draws: Values


def line_through(
    points: Points, rng: np.random.Generator, *, draws: int, inflate: float = 1.0
) -> Line:
    """The robust line through `points`, which are of three different RTTs or more.

    Half of the draws are resamples, the other half their mirror images. `inflate` multiplies what
    the noise of visits does.
    """
    import numpy as np

    shared = _shared_weights(points)
    weights = points.precision * shared
    whole = fit(points.rtt_ms, points.latency_ms, points.precision, shared)
    noise = inflate * _noise(points, whole, weights, shared, rng, draws)
    slope, intercept = float(whole.slope), float(whole.intercept)
    systematic = _systematic(points, weights * whole.trust, slope, rng, draws)
    return Line(
        points=points,
        slope=slope,
        intercept_ms=intercept,
        residuals_ms=whole.residuals,
        trust=whole.trust,
        weights=weights,
        spread_ms=float(np.sqrt(whole.spread)),
        scale_ms=float(whole.scale),
        draws=np.array([slope, intercept]) + noise + systematic,
    )


def _shared_weights(points: Points) -> Values:
    """Weights (V,) that make least squares heed the step that all near visits share.

    The mean of k visits with a shared error of variance s² and one of their own of variance v
    has the variance v/k + s²: that of k visits that count v / (v + k s²) each.
    """
    import numpy as np

    shared = np.ones(points.count)
    near = points.near
    if near.all() or not near.any():
        return shared
    rough = fit(points.rtt_ms, points.latency_ms, points.precision, shared)
    own = float(rough.scale) ** 2
    shared[near] = own / (own + near.sum() * IDLE_STEP_MS**2)
    return np.maximum(shared, 0.01)


def _noise(
    points: Points,
    whole: Lines,
    weights: Values,
    shared: Values,
    rng: np.random.Generator,
    draws: int,
) -> Values:
    """What the noise of visits does to slope and intercept: shape (draws, 2), around 0."""
    import numpy as np

    half = draws // 2
    errors = np.sqrt(whole.variance[:2])
    if points.count < MIN_POINTS_FOR_WEIGHTS:
        joint = np.array(
            [[whole.variance[0], whole.variance[2]], [whole.variance[2], whole.variance[1]]]
        )
        values, axes = np.linalg.eigh(joint)
        freedom = points.count - 2
        normal = rng.standard_normal((half, 2)) * np.sqrt(np.maximum(values, 0)) @ axes.T
        students = normal / np.sqrt(rng.chisquare(freedom, (half, 1)) / freedom)
        return np.concatenate((students, -students))
    x = points.rtt_ms
    mean = float((weights * x).sum() / weights.sum())
    across = x - mean
    leverage = weights * (1 / weights.sum() + across**2 / (weights * across**2).sum())
    # A residual is smaller than its error, the more so the more the line bends to its point.
    pool = whole.residuals * np.sqrt(points.precision) / np.sqrt(1 - leverage)
    if (shared == 1).sum() >= MIN_POINTS_FOR_WEIGHTS:
        pool = pool[shared == 1]
    pool = pool - np.median(pool)
    again = pool[rng.integers(0, pool.size, (half, x.size))] / np.sqrt(points.precision)
    drawn = fit(x, again, points.precision, shared)
    # A resample of one visit alone has no spread, and would be infinitely sure.
    drawn_errors = np.maximum(np.sqrt(drawn.variance[:, :2]), 0.05 * errors + 1e-12)
    students = np.stack((drawn.slope, drawn.intercept), axis=-1) / drawn_errors
    noise = students * errors
    return np.concatenate((noise, -noise))


def _systematic(
    points: Points, weights: Values, slope: float, rng: np.random.Generator, draws: int
) -> Values:
    """What errors that visits share do to slope and intercept: shape (draws, 2), around 0."""
    import numpy as np

    x = points.rtt_ms
    total = weights.sum()
    mean = float((weights * x).sum() / total)
    pull = weights * (x - mean) / (weights * (x - mean) ** 2).sum()
    pulls = np.stack((pull, weights / total - mean * pull), axis=-1)
    each = np.zeros((int(points.level.max()) + 1, 2))
    np.add.at(each, points.level, pulls)
    off = rng.standard_normal((draws, each.shape[0])) * RTT_ERROR_MS * abs(slope)
    noise = off @ each
    if points.near.any() and not points.near.all():
        step = rng.standard_normal((draws, 1)) * IDLE_STEP_MS
        noise += step * pulls[points.near].sum(0)
    return np.asarray(noise, dtype=np.float64)
