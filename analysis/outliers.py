"""Outliers by Tukey's rule, told apart as Criterion does: mild and severe, low and high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.statistics import percentiles

if TYPE_CHECKING:
    from wanlat.analysis.statistics import Values

MILD_IQR = 1.5
SEVERE_IQR = 3.0


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
    def share(self) -> float:
        """All of them, as a part of the values (0..1)."""
        return (self.mild + self.severe) / self.n

    def to_json(self) -> dict[str, int | float]:
        """Counts of each kind, and the share of all."""
        return {
            "low_severe": self.low_severe,
            "low_mild": self.low_mild,
            "high_mild": self.high_mild,
            "high_severe": self.high_severe,
            "share": round(self.share, 6),
        }


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
