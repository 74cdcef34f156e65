"""What is computed from the latencies of one endpoint, and by which definition.

Only requests that succeeded come here; how many did not is counted elsewhere and never averaged
in. docs/statistics.md says why each definition was chosen and how well the intervals hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.stats import intervals
from wanlat.analysis.stats.bootstrap import RESAMPLES, bca_interval_of_mean
from wanlat.analysis.stats.intervals import Interval

if TYPE_CHECKING:
    from wanlat.analysis.stats.intervals import Values

PERCENTILE_DEFINITION = "linear interpolation at (n-1)p (Hyndman and Fan 1996, type 7)"
MEAN_INTERVAL_DEFINITION = (
    f"bootstrap, BCa, {RESAMPLES} resamples, seeded; Student's t beyond 10000 samples"
)
MEDIAN_INTERVAL_DEFINITION = "order statistics, binomial, coverage at least 95 %"

MIN_N_FOR_MEAN_INTERVAL = 20
"""With fewer, the bootstrap holds the mean clearly less often than 95 times in 100."""
MAX_N_FOR_BOOTSTRAP = 10_000
"""With more, the mean is normal to far less than the interval's width, and resampling is slow."""
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
    def mild(self) -> int:
        """Mild ones of both sides."""
        return self.low_mild + self.high_mild

    @property
    def severe(self) -> int:
        """Severe ones of both sides."""
        return self.low_severe + self.high_severe

    @property
    def total(self) -> int:
        """All of them."""
        return self.mild + self.severe

    @property
    def share(self) -> float:
        """All of them, as a part of the values (0..1)."""
        return self.total / self.n

    def to_json(self) -> dict[str, int | float]:
        """Counts of each kind, and the share of all."""
        return {
            "low_severe": self.low_severe,
            "low_mild": self.low_mild,
            "high_mild": self.high_mild,
            "high_severe": self.high_severe,
            "share": round(self.share, 6),
        }


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
        median_ci95_ms=intervals.of_median(values_ms),
        outliers=outliers_of(values_ms).total,
    )


def percentiles(values: Values, percents: Sequence[float]) -> list[float]:
    """Percentiles of `values`, shape (n,) with n >= 1, by PERCENTILE_DEFINITION."""
    import numpy as np

    return [float(p) for p in np.percentile(values, list(percents), method="linear")]


def mean_interval(values: Values, seed: int | Sequence[int]) -> Interval | None:
    """95 % interval of the mean of `values`, shape (n,): bootstrap, BCa, else Student's.

    Beyond MAX_N_FOR_BOOTSTRAP values it is Student's, with which the bootstrap agrees there. None
    for fewer than MIN_N_FOR_MEAN_INTERVAL values, and for values that are all the same.
    """
    if values.size < MIN_N_FOR_MEAN_INTERVAL or values.min() == values.max():
        return None
    if values.size > MAX_N_FOR_BOOTSTRAP:
        return intervals.of_mean(values)
    return bca_interval_of_mean(values, seed)


def outliers_of(values: Values) -> Outliers:
    """The outliers among `values`, shape (n,) with n >= 1; quartiles as all percentiles here."""
    lower, upper = percentiles(values, (25, 75))
    iqr = upper - lower
    mild = (lower - MILD_IQR * iqr, upper + MILD_IQR * iqr)
    severe = (lower - SEVERE_IQR * iqr, upper + SEVERE_IQR * iqr)
    return Outliers(
        n=int(values.size),
        low_severe=int((values < severe[0]).sum()),
        low_mild=int(((values < mild[0]) & (values >= severe[0])).sum()),
        high_mild=int(((values > mild[1]) & (values <= severe[1])).sum()),
        high_severe=int((values > severe[1]).sum()),
    )
