"""What a report says of the cost of growth: latency against how many objects or nodes there are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wanlat.analysis.bundle import Series
from wanlat.analysis.growth.modes import Split
from wanlat.analysis.statistics import Interval

Shape = Literal["constant", "logarithmic", "linear"]
Verdict = Literal[
    "constant",
    "logarithmic",
    "linear",
    "grows, shape not decided",
    "falls",
    "two modes",
    "neither shape",
    "not decided",
    "too few points",
]

OBJECTS, NODES = "prefill.objects", "nodes"


@dataclass(frozen=True)
class Axis:
    """What grows. `fold` is what counts as one step of a logarithm, `step` of a line."""

    parameter: str
    noun: str
    fold: float
    fold_name: str
    step: float
    step_name: str

    def along(self, shape: Shape, x: float, least: float) -> float:
        """Steps from `least` to `x`, as `shape` counts them."""
        if shape == "constant":
            return 0.0
        if shape == "linear":
            return (x - least) / self.step
        return math.log(x / least) / math.log(self.fold)

    def unit(self, shape: Shape) -> str:
        """What a slope is per; "" of a constant."""
        return {"constant": "", "linear": self.step_name, "logarithmic": self.fold_name}[shape]


AXES: Mapping[str, Axis] = {
    OBJECTS: Axis(OBJECTS, "objects", 10.0, "tenfold", 1000.0, "1,000 objects"),
    NODES: Axis(NODES, "nodes", 2.0, "doubling", 1.0, "node"),
}


@dataclass(frozen=True)
class Level:
    """Median latency of the requests that succeeded at one point of the sweep.

    `x` is the number of objects in a bucket, or of nodes. `spread_ms` is the median's standard
    error within the run, which knows nothing of how runs differ.
    """

    x: float
    point: str
    n: int
    failed: int
    median_ms: float
    ci95_ms: Interval
    spread_ms: float


@dataclass(frozen=True)
class Noise:
    """How much the median of a run differs from that of another run of the same: a share of it.

    `runs` are the degrees of freedom it was estimated with from repeated points; None: there
    were none, and `share` is what is assumed.
    """

    share: float
    runs: int | None


@dataclass(frozen=True)
class Fit:
    """median = `base_ms` + `slope_ms` x (steps from the least x, as `axis` counts them).

    `chance` is how often noise alone leaves points as far off the best such curve. `errors_ms`
    are the standard errors of base and slope and their covariance; `reach` is how many standard
    errors make a 95 % interval.
    """

    shape: Shape
    axis: Axis
    least: float
    base_ms: float
    slope_ms: float
    slope_ci95_ms: Interval | None
    chance: float
    errors_ms: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reach: float = 1.96

    def at(self, x: float) -> float:
        """The curve at `x`, ms."""
        return self.base_ms + self.slope_ms * self.axis.along(self.shape, x, self.least)

    def error_at(self, x: float) -> float:
        """The standard error of the curve at `x`, ms."""
        steps = self.axis.along(self.shape, x, self.least)
        base, slope, both = self.errors_ms
        return math.sqrt(max(base**2 + (steps * slope) ** 2 + 2 * steps * both, 0.0))

    def band(self, x: float) -> Interval:
        """The 95 % interval of the curve at `x`, ms."""
        reach = self.reach * self.error_at(x)
        return self.at(x) - reach, self.at(x) + reach


@dataclass(frozen=True)
class Forecast:
    """The median at `x`, which was not measured: the 95 % interval of every shape that fits.

    An interval of the next run of that size, if one of `shapes` goes on that far.
    """

    x: float
    ci95_ms: Interval
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Growth:
    """The cost of growth of one endpoint (and placement) of one system.

    `others` are the values of what else was swept. `change` is by how much the median differs
    from the least x to the greatest, as a share of that at the least, with its interval over all
    shapes that grow. `why` says in a sentence what the verdict rests on. `splits` are the two
    modes at each of `levels`, where there are two and medians jump between them.
    """

    series: Series
    topology: str
    endpoint: str
    placement: str
    axis: Axis
    others: Mapping[str, Any]
    levels: tuple[Level, ...]
    fits: tuple[Fit, ...]
    verdict: Verdict
    change: float | None
    change_ci95: Interval | None
    noise: Noise
    forecast: Forecast | None
    why: str
    splits: tuple[Split, ...] | None = None

    def fit(self, shape: Shape) -> Fit | None:
        """The curve of this shape; None where too few points are there for one."""
        return next((each for each in self.fits if each.shape == shape), None)

    @property
    def decided(self) -> Fit | None:
        """The curve that the verdict names; None where it names none."""
        return next((each for each in self.fits if each.shape == self.verdict), None)
