"""The growth that a sweep shows: medians of its points by what grows, and their fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.growth.fit import judge, noise_of, unjudged
from wanlat.analysis.growth.model import AXES, OBJECTS, Axis, Growth, Level
from wanlat.analysis.growth.modes import Split, splits_of
from wanlat.analysis.notes import is_trusted
from wanlat.analysis.placement import PLACEMENTS
from wanlat.analysis.statistics import median_interval
from wanlat.analysis.summary import Group, grouped, ok_ms
from wanlat.analysis.sweep import Point, Sweep, number_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.bundle import Series

SEED = "seed"
"""A swept seed repeats points: the same values, another run."""
A_MILLION = 1_000_000.0
_ENOUGH = {"ListObjectsPage": 1000.0}
"""Objects from which on an endpoint does all its work: a page of fewer is a shorter page."""
_Z95 = 1.959963984540054

_Key = tuple[Group, tuple[tuple[str, str], ...]]
_Measured = tuple[Level, "NDArray[np.float64]"]
"""A level, and the latencies that it is the median of, ms."""


def growths_of(sweep: Sweep) -> tuple[Growth, ...]:
    """Each endpoint and placement of each system by what grows in `sweep`; none where nothing does.

    Objects in a bucket, and nodes. Studies of object sizes have tables of their own. Points whose
    network was not as asked for are left out, as are those of loads and of round trips.
    """
    if sweep.varies("object_size"):
        return ()
    points = [point for point in sweep.complete if _counts(point)]
    return tuple(
        growth
        for name, axis in AXES.items()
        if sweep.varies(name)
        for growth in _along(sweep, points, axis)
    )


def _counts(point: Point) -> bool:
    bundle = point.bundle
    if bundle is None or not is_trusted(bundle):
        return False
    study = bundle.manifest.get("study")
    other = study if isinstance(study, dict) else {}
    return not any(other.get(kind) for kind in ("load", "reclaim", "round_trips"))


def _along(sweep: Sweep, points: Sequence[Point], axis: Axis) -> Iterator[Growth]:
    others = [
        parameter.name
        for parameter in sweep.parameters
        if parameter.name not in (axis.parameter, SEED) and sweep.varies(parameter.name)
    ]
    levels: dict[_Key, list[_Measured]] = {}
    for point in points:
        x = number_of(point.value(axis.parameter))
        assert point.bundle is not None
        if x is None or x <= 0:
            continue
        values = tuple((name, str(point.value(name))) for name in others)
        for group, rows in grouped(point.bundle.measured).items():
            enough = _ENOUGH.get(group.endpoint, 0.0) if axis.parameter == OBJECTS else 0.0
            if x < enough:
                continue
            levels.setdefault((group, values), [])
            ms = ok_ms(rows)
            level = _level(point, x, ms, failed=len(rows) - int(ms.size))
            if level is not None:
                levels[group, values].append((level, ms))
    for series, values in dict.fromkeys((key[0].series, key[1]) for key in _ordered(levels, sweep)):
        keys = [k for k in _ordered(levels, sweep) if (k[0].series, k[1]) == (series, values)]
        splits: dict[_Key, tuple[Split, ...] | None] = {}
        for key in keys:
            levels[key].sort(key=lambda measured: (measured[0].x, measured[0].point))
            splits[key] = splits_of([ms for _, ms in levels[key]])
        of = {key: tuple(level for level, _ in levels[key]) for key in keys}
        # Modes that swap places would make runs seem to differ, and hide what grows beside them.
        noise = noise_of([of[key] for key in keys if splits[key] is None], axis)
        for key in keys:
            mine, two = of[key], splits[key]
            to = A_MILLION if axis.parameter == OBJECTS else None
            judged = judge(mine, axis, noise, to) if two is None else unjudged(two, axis)
            yield Growth(
                series=series,
                topology=sweep.topology,
                endpoint=key[0].endpoint,
                placement=key[0].placement,
                axis=axis,
                others=dict(values),
                levels=mine,
                fits=judged.fits,
                verdict=judged.verdict,
                change=judged.change,
                change_ci95=judged.change_ci95,
                noise=noise,
                forecast=judged.forecast,
                why=judged.why,
                splits=two,
            )


def _level(point: Point, x: float, ms: NDArray[np.float64], *, failed: int) -> Level | None:
    """None where too few requests succeeded for an interval of their median."""
    import numpy as np

    interval = median_interval(ms)
    if interval is None:
        return None
    return Level(
        x=x,
        point=point.name,
        n=int(ms.size),
        failed=failed,
        median_ms=float(np.median(ms)),
        ci95_ms=interval,
        spread_ms=(interval[1] - interval[0]) / 2 / _Z95,
    )


def _ordered(levels: dict[_Key, list[_Measured]], sweep: Sweep) -> list[_Key]:
    """By what else is swept, system, endpoint, placement."""
    systems = list(dict.fromkeys(point.system for point in sweep.points))
    endpoints = endpoint_order(
        (key[0].endpoint for key in levels), dict(sweep.manifest).get("study")
    )

    def place(key: _Key) -> tuple[object, ...]:
        group: Group = key[0]
        series: Series = group.series
        known = series.system in systems
        return (
            key[1],
            systems.index(series.system) if known else len(systems),
            series.version,
            endpoints.index(group.endpoint),
            PLACEMENTS.index(group.placement),
        )

    return sorted(levels, key=place)
