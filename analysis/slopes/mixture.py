"""A mixture of lines: how likely it makes the latencies, and the likeliest near a guess.

Around each line, latencies follow Student's t with TAIL degrees of freedom, which forgives the long
tail that latencies have; a request on no line may lie anywhere (uniform). The likeliest mixture
is found by expectation and maximization (Peel and McLachlan 2000, for t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

TAIL = 2.0
MIN_SCALE_MS = 0.02
"""No line is finer than this: clocks and schedulers are not."""
MAX_SCALE_RATIO = 4.0
"""A mode is not so many times broader than the finest: it would be scatter, called a mode."""
MIN_UNEXPLAINED = 0.002
_ROUNDS = 40
_ENOUGH = 1e-2
_T_CONSTANT = math.gamma((TAIL + 1) / 2) / (math.sqrt(TAIL * math.pi) * math.gamma(TAIL / 2))


@dataclass(frozen=True)
class Mixture:
    """K lines and the rest.

    `slope`, `intercept_ms`, `scale_ms`, `share`: shape (K,). `belongs`: shape (n, K + 1), how
    likely it is that a request is of each line, and last of none. `log_likelihood` in nats.
    """

    slope: Values
    intercept_ms: Values
    scale_ms: Values
    share: Values
    belongs: Values
    log_likelihood: float

    @property
    def count(self) -> int:
        """How many lines."""
        return int(self.slope.size)

    def bic(self) -> float:
        """Schwarz's criterion; less is better. A line has four parameters with its share."""
        n = self.belongs.shape[0]
        return 4 * self.count * math.log(n) - 2 * self.log_likelihood

    def at(self, rtt_ms: Values) -> Values:
        """Latency of each line at each of `rtt_ms`: shape (..., K)."""
        import numpy as np

        return np.asarray(self.intercept_ms + self.slope * rtt_ms[..., None], dtype=np.float64)


def scatter_density(latency_ms: Values) -> float:
    """Density (1/ms) of requests that are on no line: anywhere between the extremes."""
    import numpy as np

    return 1.0 / max(float(np.ptp(latency_ms)), 100 * MIN_SCALE_MS)


def densities(residual_ms: Values, scale_ms: Values | float) -> Values:
    """Density (1/ms) of Student's t with TAIL degrees of freedom."""
    z2 = (residual_ms / scale_ms) ** 2
    # (1 + z²/ν)^(-(ν+1)/2) with ν = 2, without a slow power.
    base = 1 + z2 / TAIL
    return _T_CONSTANT / (scale_ms * base * base**0.5)


def maximize(
    rtt_ms: Values,
    latency_ms: Values,
    slope: Values,
    intercept_ms: Values,
    scale_ms: Values,
    share: Values,
) -> Mixture:
    """The likeliest mixture that hill-climbing from the given lines finds."""
    import numpy as np

    scatter = scatter_density(latency_ms)
    rest = max(1 - float(share.sum()), MIN_UNEXPLAINED)
    before = -math.inf
    rtt, latency = rtt_ms[:, None], latency_ms[:, None]
    for _ in range(_ROUNDS):
        residuals = latency - intercept_ms - slope * rtt
        each = share * densities(residuals, scale_ms)
        total = each.sum(1) + rest * scatter
        likelihood = float(np.log(total).sum())
        belongs = each / total[:, None]
        if likelihood - before < _ENOUGH:
            break
        before = likelihood
        weights = belongs * (TAIL + 1) / (TAIL + (residuals / scale_ms) ** 2)
        sums = weights.sum(0) + 1e-12
        x_mean, y_mean = (weights * rtt).sum(0) / sums, (weights * latency).sum(0) / sums
        across = rtt - x_mean
        steep = (weights * across**2).sum(0)
        slope = (weights * across * latency).sum(0) / np.maximum(steep, 1e-9)
        intercept_ms = y_mean - slope * x_mean
        left = latency - intercept_ms - slope * rtt
        mass = belongs.sum(0)
        scale_ms = np.sqrt((weights * left**2).sum(0) / (mass + 1e-12))
        scale_ms = np.maximum(scale_ms, MIN_SCALE_MS)
        scale_ms = np.minimum(scale_ms, MAX_SCALE_RATIO * scale_ms.min())
        share = mass / rtt_ms.size
        rest = max(1 - float(share.sum()), MIN_UNEXPLAINED)
    return Mixture(
        slope,
        intercept_ms,
        scale_ms,
        share,
        np.column_stack((belongs, 1 - belongs.sum(1))),
        likelihood,
    )
