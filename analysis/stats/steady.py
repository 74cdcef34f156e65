"""Is there a steady state, and where does it begin?

Three steps. What is watched is put into bins of time. The transient at the begin is cut off where
what remains has the smallest standard error (MSER; White 1997, Simulation 69), at most half of it.
What remains is steady if it can be shown to move by less than TOLERANCE: by a line, and by
curvature, whose 95 % intervals must both lie within. That is an equivalence test: noise that hides
a drift makes no steady state, and neither does a load that is too short. docs/load-report.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wanlat.analysis.stats.over_time import Estimate, block_length, regression_errors

Values = NDArray[np.float64]

TOLERANCE = 0.10
"""What moves by less, from the part's begin to its end, is called steady."""
RULE = (
    "the transient is cut off by MSER, at most half of the load; what is left is steady if the "
    "95 % intervals of its linear change and of its curvature lie within 10 % of its mean"
)
MIN_BINS = 30
"""Of fewer nothing is said."""
_MOST_CUT = 0.5
_BATCHES = 120

Verdict = Literal["steady", "no steady state", "not decided"]


@dataclass(frozen=True)
class Steady:
    """Whether there is a steady state, and the part of the series that is in it.

    `begin_s` and `end_s` are seconds after its begin; the part is what was left when the transient
    was cut off, whatever the verdict. `change` is how far it moves from the part's begin to its
    end, `curvature` how far its middle stands out from its ends, both as shares of the mean; None
    where there was too little to fit.
    """

    verdict: Verdict
    begin_s: float
    end_s: float
    bin_s: float
    change: Estimate | None = None
    curvature: Estimate | None = None

    @property
    def is_steady(self) -> bool:
        """Whether the part is one state, so that figures of it are figures of the store."""
        return self.verdict == "steady"


def steady_state(series: Values, bin_s: float, seed: list[int]) -> Steady:
    """The verdict on `series`, shape (bins,), `bin_s` seconds each."""
    end_s = series.size * bin_s
    if series.size < MIN_BINS:
        return Steady("not decided", 0.0, end_s, bin_s)
    cut = transient(series)
    part, begin_s = series[cut:], cut * bin_s
    if not part.mean() > 0:
        return Steady("no steady state", begin_s, end_s, bin_s)
    change, curvature = _movements(part, seed)
    ends = np.array([change.ci95, curvature.ci95])
    verdict: Verdict = "not decided"
    if (ends[:, 0] > TOLERANCE).any() or (ends[:, 1] < -TOLERANCE).any():
        verdict = "no steady state"
    elif (np.abs(ends) <= TOLERANCE).all():
        verdict = "steady"
    return Steady(verdict, begin_s, end_s, bin_s, change, curvature)


def transient(series: Values) -> int:
    """How many bins at the begin of `series` to cut off: MSER, in batches of bins."""
    batch = max(1, series.size // _BATCHES)
    batches = series[: series.size // batch * batch].reshape(-1, batch).mean(axis=1)
    most = int(batches.size * _MOST_CUT)
    left = batches.size - np.arange(most + 1)
    sums = np.cumsum(batches[::-1])[::-1][: most + 1]
    squares = np.cumsum(batches[::-1] ** 2)[::-1][: most + 1]
    return int(np.argmin((squares - sums**2 / left) / left**2)) * batch


def _movements(part: Values, seed: list[int]) -> tuple[Estimate, Estimate]:
    """Linear change and curvature of `part` as shares of its mean."""
    at = (np.arange(part.size) + 0.5) / part.size - 0.5
    shapes = np.stack([np.ones(part.size), at, at**2 - np.mean(at**2)], axis=1)
    inverse = np.linalg.pinv(shapes)
    found = inverse @ part
    residuals = part - shapes @ found
    # From end to end a line moves by its slope; a parabola's middle is off its ends by a quarter.
    contrasts = np.stack([inverse[1], -0.25 * inverse[2]]) / found[0]
    values = contrasts @ part
    errors = regression_errors(residuals, contrasts, block_length(residuals), seed)
    change, curvature = (
        Estimate(float(value), (float(value) - reach, float(value) + reach))
        for value, reach in zip(values, errors, strict=True)
    )
    return change, curvature
