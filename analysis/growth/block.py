"""The block "growth" of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.growth.fit import ASSUMED, CONSTANT_WITHIN, REJECTED
from wanlat.analysis.growth.model import Fit, Growth
from wanlat.analysis.growth.modes import Split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wanlat.analysis.grid import Grid

DEFINITIONS = {
    "median_ms": "of the requests that succeeded at one point; ci95 by order statistics",
    "logarithmic": "base_ms + slope_ms x log(x / least x): per tenfold of objects, per doubling of "
    "nodes",
    "linear": "base_ms + slope_ms x (x - least x): per 1,000 objects, per node",
    "chance": "of points as far off the best such curve, were the curve right; a curve below "
    f"{REJECTED:g} is rejected",
    "verdict": "the shape that is left where growth is shown and the other is rejected; constant: "
    f"no growth shown, and none of more than {100 * CONSTANT_WITHIN:g} % possible; two modes: "
    "requests take one of two times, and medians jump between them",
    "modes": "at each of the levels: the share of requests in the slower of two, and the median of "
    "each of them",
    "noise": "how much the medians of two runs of the same differ: from repeated points, else "
    f"{100 * ASSUMED:g} % or what the points' distance from the best curves asks for",
    "forecast": "95 % interval of the next run at that x, over all shapes that are not rejected",
}


@dataclass(frozen=True)
class GrowthBlock:
    """Everything that grows in a sweep (`wanlat.analysis.blocks`)."""

    study: str
    topology: str
    growths: tuple[Growth, ...]

    def to_json(self) -> dict[str, Any]:
        """Its entry of summary.json."""
        return {"definitions": DEFINITIONS, "endpoints": [_json(each) for each in self.growths]}

    def grids(self) -> Sequence[Grid]:
        """Verdicts and costs; then the medians that they rest on."""
        from wanlat.analysis.growth.table import grids_of

        return grids_of(self)

    def charts(self) -> Mapping[str, Figure]:
        """Medians against what grows, with the curves that fit."""
        from wanlat.analysis.charts.growth import charts_of

        return charts_of(self)


def _json(growth: Growth) -> dict[str, Any]:
    forecast = growth.forecast
    return {
        "system": growth.series.system,
        "version": growth.series.version,
        "topology": growth.topology,
        "endpoint": growth.endpoint,
        "placement": growth.placement,
        "parameter": growth.axis.parameter,
        **({"others": dict(growth.others)} if growth.others else {}),
        "verdict": growth.verdict,
        "why": growth.why,
        **({"modes": [_split(each) for each in growth.splits]} if growth.splits else {}),
        "change": _round(growth.change),
        "change_ci95": _rounded(growth.change_ci95),
        "noise": {"share": _round(growth.noise.share), "from_repeated_runs": growth.noise.runs},
        "levels": [
            {
                "x": level.x,
                "point": level.point,
                "ok": level.n,
                "failed": level.failed,
                "median_ms": _round(level.median_ms),
                "ci95_ms": _rounded(level.ci95_ms),
            }
            for level in growth.levels
        ],
        "fits": [_fit(fit) for fit in growth.fits],
        "forecast": None
        if forecast is None
        else {
            "x": forecast.x,
            "ci95_ms": _rounded(forecast.ci95_ms),
            "shapes": list(forecast.shapes),
        },
    }


def _split(split: Split) -> dict[str, Any]:
    return {
        "slow": _round(split.slow),
        "fast_ms": _round(split.fast_ms),
        "slow_ms": _round(split.slow_ms),
    }


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "shape": fit.shape,
        "base_ms": _round(fit.base_ms),
        "slope_ms": _round(fit.slope_ms),
        "slope_ci95_ms": _rounded(fit.slope_ci95_ms),
        "per": fit.axis.unit(fit.shape) or None,
        "chance": _round(fit.chance),
    }


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.9g}")


def _rounded(interval: tuple[float, float] | None) -> list[float | None] | None:
    return None if interval is None else [_round(bound) for bound in interval]
