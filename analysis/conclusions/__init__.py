"""The published conclusions on Bob and MinIO as checks: holds, does not hold, not decided.

Each is computed from a sweep over object sizes, and in the same way from the estimates that were
stored for the published comparison. Behind every verdict is a ratio with its interval. Only ratios
of two systems that were measured together are looked at, never a time of another machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis import ratios
from wanlat.analysis.conclusions.four import the_four
from wanlat.analysis.conclusions.model import (
    BEHIND_NGINX,
    DIRECT,
    PUBLISHED,
    Conclusion,
    Conclusions,
    Time,
)
from wanlat.analysis.criterion import stored_estimates
from wanlat.analysis.sizes import At, Sizes, sizes_of

if TYPE_CHECKING:
    from wanlat.analysis.sweep import Sweep

_BOB = "bob"


def conclusions_of(sweep: Sweep) -> Conclusions | None:
    """The conclusions from `sweep`, beside the published ones; None without Bob and a MinIO."""
    sizes = sizes_of(sweep)
    return None if sizes is None else conclusions_of_sizes(sizes)


def conclusions_of_sizes(sizes: Sizes) -> Conclusions | None:
    """The same of sizes that are at hand."""
    times = {system: _times(sizes, system) for system in (_BOB, BEHIND_NGINX, DIRECT)}
    minios = [system for system in (BEHIND_NGINX, DIRECT) if times[system]]
    if not times[_BOB] or not minios:
        return None
    return Conclusions(
        {
            PUBLISHED: published_conclusions(),
            **{name: the_four(times[_BOB], times[name], sizes.seed) for name in minios},
        }
    )


def published_conclusions() -> tuple[Conclusion, ...]:
    """The documents' conclusions, from the estimates stored with their own measurements."""
    times: dict[str, list[Time]] = {}
    for each in stored_estimates():
        mean, median = (
            (each.mean_ms, each.mean_ci95_ms),
            (each.median_ms, each.median_ci95_ms),
        )
        at = At(each.nodes, each.operation, each.object_bytes, keys="", placement="")
        skew = ratios.of_estimates(mean, median)
        times.setdefault(each.system, []).append(Time(at, mean, median, skew, None))
    return the_four(times["bob"], times["minio"], 0)


def _times(sizes: Sizes, system: str) -> list[Time]:
    return [
        Time(
            at=entry.at,
            mean=(entry.latency.mean_ms, entry.latency.mean_ci95_ms),
            median=(entry.latency.median_ms, entry.latency.median_ci95_ms),
            skew=entry.skew,
            values_ms=entry.values_ms,
        )
        for entry in sizes.entries
        if entry.series.system == system
    ]
