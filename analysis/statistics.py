"""What is computed from the latencies of one endpoint, and by which definition.

Only requests that succeeded come here; how many did not is counted elsewhere and never averaged
in. docs/statistics.md says why each definition was chosen and how well the intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.stats import intervals
from wanlat.analysis.stats.bootstrap import RESAMPLES, bca_interval_of_mean
from wanlat.analysis.stats.intervals import Z95, Interval

if TYPE_CHECKING:
    from wanlat.analysis.stats.intervals import Values

PERCENTILE_DEFINITION = "linear interpolation at (n-1)p (Hyndman and Fan 1996, type 7)"
MEAN_INTERVAL_DEFINITION = (
    f"bootstrap, BCa, {RESAMPLES} resamples, seeded; its Edgeworth expansion beyond 2000 samples"
)
MEDIAN_INTERVAL_DEFINITION = "order statistics, binomial, coverage at least 95 %"

MIN_N_FOR_MEAN_INTERVAL = 20
"""With fewer, the bootstrap holds the mean clearly less often than 95 times in 100."""
MAX_N_FOR_BOOTSTRAP = 2_000
"""With more, what resampling comes to is computed: faster, and the same within 3 % of the width."""
MIN_N_FOR_P99 = 100
"""With fewer, p99 lies between the two greatest samples and says nothing beyond the maximum."""
MILD_IQR, SEVERE_IQR = 1.5, 3.0
"""Interquartile ranges from the quartiles, beyond which an outlier is mild, and severe."""


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


@dataclass(frozen=True)
class Outliers:
    """How many of `n` values lie how far out. They are counted, and stay in every figure.

    Mild ones lie beyond 1.5 interquartile ranges from the quartiles and within 3, severe ones
    beyond 3 (Tukey 1977, Exploratory Data Analysis, 2D).
    """

    n: int
    low_severe: int
    low_mild: int
    high_mild: int
    high_severe: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.low_severe + self.low_mild + self.high_mild + self.high_severe

    @property
    def share(self) -> float:
        """All of them, as a part of the values (0..1)."""
        return self.total / self.n

    def to_json(self) -> dict[str, int | float]:
        """Counts of each kind, and the share of all."""
        counts = asdict(self)
        del counts["n"]
        return {**counts, "share": round(self.share, 6)}


def describe(values_ms: Values, seed: int | Sequence[int]) -> Latency | None:
    """Statistics of `values_ms`, shape (n,); None if it is empty.

    `seed` fixes the resamples of the bootstrap: the same values and seed give the same interval.
    """
    import numpy as np

    if values_ms.size == 0:
        return None
    ordered = np.sort(values_ms)  # whatever partitions it below is then done in no time
    median, p95, p99 = percentiles(ordered, (50, 95, 99))
    return Latency(
        n=int(values_ms.size),
        mean_ms=float(values_ms.mean()),
        median_ms=median,
        min_ms=float(ordered[0]),
        max_ms=float(ordered[-1]),
        p95_ms=p95,
        p99_ms=p99,
        mean_ci95_ms=mean_interval(values_ms, seed),
        median_ci95_ms=intervals.of_median(ordered),
        outliers=outliers_of(ordered).total,
    )


def percentiles(values: Values, percents: Sequence[float]) -> list[float]:
    """Percentiles of `values`, shape (n,) with n >= 1, by PERCENTILE_DEFINITION."""
    import numpy as np

    return [float(p) for p in np.percentile(values, list(percents), method="linear")]


def mean_interval(values: Values, seed: int | Sequence[int]) -> Interval | None:
    """95 % interval of the mean of `values`, shape (n,): bootstrap, BCa (Efron 1987).

    Of more than MAX_N_FOR_BOOTSTRAP values it is computed, not drawn: the mean's skewness gives
    bias, acceleration and quantiles (Hall 1992, The Bootstrap and Edgeworth Expansion, 3.10). The
    two agree within 3 % of the width. None for fewer than MIN_N_FOR_MEAN_INTERVAL values, and for
    values that are all the same.
    """
    if values.size < MIN_N_FOR_MEAN_INTERVAL or values.min() == values.max():
        return None
    if values.size <= MAX_N_FOR_BOOTSTRAP:
        return bca_interval_of_mean(values, seed)
    mean, error = float(values.mean()), float(values.std()) / math.sqrt(values.size)
    sixth = float(((values - mean) ** 3).sum()) / (6 * (error * values.size) ** 3)
    moved = (sixth + (sixth + z) / (1 - sixth * (sixth + z)) for z in (-Z95, Z95))
    low, high = (mean + error * (z + sixth * (z * z - 1)) for z in moved)
    return low, high


def outliers_of(values: Values) -> Outliers:
    """The outliers among `values`, shape (n,) with n >= 1; quartiles as all percentiles here."""
    lower, upper = percentiles(values, (25, 75))
    mild, severe = MILD_IQR * (upper - lower), SEVERE_IQR * (upper - lower)
    low_severe = int((values < lower - severe).sum())
    high_severe = int((values > upper + severe).sum())
    return Outliers(
        n=int(values.size),
        low_severe=low_severe,
        low_mild=int((values < lower - mild).sum()) - low_severe,
        high_mild=int((values > upper + mild).sum()) - high_severe,
        high_severe=high_severe,
    )
