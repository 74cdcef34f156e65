"""What is computed from the latencies of one endpoint, and by which definition.

Only requests that succeeded come here; how many did not is counted elsewhere and never averaged
in. docs/statistics.md says why each definition was chosen and how well the intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

PERCENTILE_DEFINITION = "linear interpolation at (n-1)p (Hyndman and Fan 1996, type 7)"
MEAN_INTERVAL_DEFINITION = (
    "bootstrap, BCa, 9999 resamples, seeded; Student's t beyond 10000 samples"
)
MEDIAN_INTERVAL_DEFINITION = "order statistics, binomial, coverage at least 95 %"

CONFIDENCE = 0.95
RESAMPLES = 9999
MIN_N_FOR_MEAN_INTERVAL = 20
"""With fewer, the bootstrap holds the mean clearly less often than 95 times in 100."""
MAX_N_FOR_BOOTSTRAP = 10_000
"""With more, the mean is normal to far less than the interval's width, and resampling is slow."""
MIN_N_FOR_P99 = 100
"""With fewer, p99 lies between the two greatest samples and says nothing beyond the maximum."""

_RESAMPLED_VALUES_AT_ONCE = 4_000_000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Latency:
    """Statistics of `n` latencies, milliseconds. An interval is None where none can be given."""

    n: int
    mean_ms: float
    median_ms: float
    min_ms: float
    max_ms: float
    p95_ms: float
    p99_ms: float
    mean_ci95_ms: Interval | None
    median_ci95_ms: Interval | None
    outliers: int


def describe(values_ms: Values, seed: int | Sequence[int]) -> Latency | None:
    """Statistics of `values_ms`, shape (n,); None if it is empty.

    `seed` fixes the resamples of the bootstrap: the same values and seed give the same interval.
    """
    import numpy as np

    if values_ms.size == 0:
        return None
    p95, p99 = percentiles(values_ms, (95, 99))
    return Latency(
        n=int(values_ms.size),
        mean_ms=float(np.mean(values_ms)),
        median_ms=float(np.median(values_ms)),
        min_ms=float(np.min(values_ms)),
        max_ms=float(np.max(values_ms)),
        p95_ms=p95,
        p99_ms=p99,
        mean_ci95_ms=mean_interval(values_ms, seed),
        median_ci95_ms=median_interval(values_ms),
        outliers=tukey_outliers(values_ms),
    )


def percentiles(values: Values, percents: Sequence[float]) -> list[float]:
    """Percentiles of `values`, shape (n,) with n >= 1, by PERCENTILE_DEFINITION."""
    import numpy as np

    return [float(p) for p in np.percentile(values, list(percents), method="linear")]


def mean_interval(values: Values, seed: int | Sequence[int]) -> Interval | None:
    """95 % bootstrap interval (BCa; Efron 1987) of the mean of `values`, shape (n,).

    Beyond MAX_N_FOR_BOOTSTRAP values it is Student's interval, with which the bootstrap agrees
    there. None for fewer than MIN_N_FOR_MEAN_INTERVAL values, and for values that are all the
    same: resampling them cannot show an uncertainty, and a width of zero would claim certainty.
    """
    import numpy as np
    from scipy.stats import bootstrap, sem, t

    if values.size < MIN_N_FOR_MEAN_INTERVAL or np.ptp(values) == 0:
        return None
    if values.size > MAX_N_FOR_BOOTSTRAP:
        half = float(sem(values) * t.ppf((1 + CONFIDENCE) / 2, values.size - 1))
        return float(np.mean(values)) - half, float(np.mean(values)) + half
    interval = bootstrap(
        (values,),
        np.mean,
        n_resamples=RESAMPLES,
        # scipy would hold all resamples at once: 800 MB for 10,000 samples.
        batch=max(1, _RESAMPLED_VALUES_AT_ONCE // values.size),
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def median_interval(values: Values) -> Interval | None:
    """95 % interval of the median of `values`, shape (n,), from its order statistics.

    The k-th smallest and the k-th greatest value, with the greatest k whose binomial coverage is
    at least 95 % (Conover, Practical Nonparametric Statistics, 3.2). It assumes nothing about
    the distribution. None below six values, where even the extremes do not cover 95 %.
    """
    import numpy as np
    from scipy.stats import binom

    n = int(values.size)
    # Coverage of the k-th smallest and greatest is 1 - 2 P(B < k), B ~ binomial(n, 1/2); ppf is
    # the greatest k for which P(B < k) stays below 2.5 %.
    rank = int(binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    if rank < 1:
        return None
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[n - rank])


def tukey_outliers(values: Values) -> int:
    """How many of `values`, shape (n,), lie beyond Tukey's fences, 1.5 IQR from the quartiles.

    They are counted so that a reader knows of them. They stay in every figure.
    """
    low, high = tukey_fences(values)
    return int(((values < low) | (values > high)).sum())


def tukey_fences(values: Values) -> Interval:
    """Tukey's inner fences of `values`, shape (n,) with n >= 1 (Exploratory Data Analysis, 2D)."""
    lower, upper = percentiles(values, (25, 75))
    reach = 1.5 * (upper - lower)
    return lower - reach, upper + reach
