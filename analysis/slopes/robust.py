"""Robust straight lines, many at once: Tukey's bisquare from Theil and Sen's start.

One shape throughout: x is (m,), the same for all lines; y is (..., m), a row a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

TUNING = 9.0
"""In units of the scale. The usual 4.685 gives up visits in which the machine was merely busy, and
the line then depends on which visits it took for the odd ones. What is to be given up is a visit
during which something else happened: 20 scales off and more."""
MIN_POINTS_FOR_WEIGHTS = 8
"""With fewer points nobody can tell which of them is the odd one: least squares."""
_ROUNDS = 15
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Lines:
    """Lines, a row each: shape (...,), and (..., m) for what belongs to points.

    `trust` is the bisquare's weight of each point: 1 heeded in full, 0 given up as odd. `scale` is
    the robust standard deviation of a point of precision 1, and `spread` what stands for its
    variance in that of the line. `variance`, shape (..., 3), has the variances of slope and
    intercept and their covariance.
    """

    slope: Values
    intercept: Values
    residuals: Values
    trust: Values
    scale: Values
    spread: Values
    variance: Values


def fit(x: Values, y: Values, precision: Values, shared: Values) -> Lines:
    """The robust line through each row of `y`; needs three different x.

    `precision` (m,) is the reciprocal of each point's own variance relative to the others'.
    `shared` (m,) is how much less it counts, 0 to 1, because other points share its error: that
    lessens its pull on the line, but does not make it any noisier by itself.
    """
    import numpy as np

    root = np.sqrt(precision)
    weights = precision * shared
    # What the points' own noise is, is seen where nothing else is in it.
    clean = shared == 1 if (shared == 1).sum() > 3 else np.ones(x.size, dtype=bool)
    freedom = max(float(clean.sum()) - 2, 1.0)
    if x.size < MIN_POINTS_FOR_WEIGHTS:
        slope, intercept = least_squares(x, y, np.broadcast_to(weights, y.shape))
        residuals = y - intercept[..., None] - slope[..., None] * x
        spread = (weights * residuals**2).sum(-1) / (x.size - 2)
        variance = _variance(x, weights, spread)
        trust = np.ones_like(y)
        return Lines(slope, intercept, residuals, trust, np.sqrt(spread), spread, variance)
    slope, intercept = theil_sen(x, y)
    standard = (y - intercept[..., None] - slope[..., None] * x) * root
    # Two of the residuals are free of charge: the line was drawn through them.
    count = float(clean.sum())
    scale = _MAD_TO_SIGMA * np.median(np.abs(standard[..., clean]), axis=-1) * count / freedom
    scale = np.maximum(scale, 1e-9 + 1e-9 * np.abs(y).max(-1))[..., None]
    trust = bisquare(standard * np.sqrt(shared) / scale)
    for _ in range(_ROUNDS):
        slope, intercept = least_squares(x, y, trust * weights)
        standard = (y - intercept[..., None] - slope[..., None] * x) * root
        trust = bisquare(standard * np.sqrt(shared) / scale)
    z = standard[..., clean] / (TUNING * scale)
    psi = standard[..., clean] * trust[..., clean]
    steepness = np.where(np.abs(z) < 1, (1 - z**2) * (1 - 5 * z**2), 0.0).mean(-1)
    steepness = np.maximum(steepness, 0.2)
    # Huber's variance of an M-estimate, with his correction for few points (1981, 7.6).
    correction = 1 + 2 / count * (1 - steepness) / steepness
    spread = (psi**2).sum(-1) / freedom / steepness**2 * correction**2
    variance = _variance(x, weights, spread)
    return Lines(slope, intercept, standard / root, trust, scale[..., 0], spread, variance)


def theil_sen(x: Values, y: Values) -> tuple[Values, Values]:
    """Median of the slopes between all pairs of points of different x, and of what is left."""
    import numpy as np

    first, second = np.triu_indices(x.size, 1)
    run = x[second] - x[first]
    # Points of nearly one x (visits of the same RTT) say nothing of the slope.
    apart = np.abs(run) > 0.02 * np.ptp(x)
    rises = y[..., second[apart]] - y[..., first[apart]]
    slope = np.median(rises / run[apart], axis=-1)
    intercept = np.median(y - slope[..., None] * x, axis=-1)
    return slope, intercept


def least_squares(x: Values, y: Values, weights: Values) -> tuple[Values, Values]:
    """Weighted least squares, a row a line; `weights` of the shape of `y`."""
    import numpy as np

    total = np.maximum(weights.sum(-1), 1e-12)
    x_mean = (weights @ x) / total
    y_mean = (weights * y).sum(-1) / total
    across = x - x_mean[..., None]
    slope = (weights * across * y).sum(-1) / np.maximum((weights * across**2).sum(-1), 1e-12)
    return slope, y_mean - slope * x_mean


def bisquare(z: Values) -> Values:
    """Tukey's weight of standardized residuals."""
    import numpy as np

    return np.where(np.abs(z) < TUNING, (1 - (z / TUNING) ** 2) ** 2, 0.0)


def _variance(x: Values, weights: Values, spread: Values) -> Values:
    """Variances of slope, intercept, and their covariance, from the variance of a unit weight."""
    import numpy as np

    total = weights.sum()
    mean = float((weights * x).sum() / total)
    across = float((weights * (x - mean) ** 2).sum())
    return np.stack(
        (spread / across, spread * (1 / total + mean**2 / across), -spread * mean / across), axis=-1
    )
