"""The quiet user: single requests, one at a time, alone and beside the load."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

from wanlat.analysis import ratios
from wanlat.analysis.bundle import IDLE_PHASE, Bundle, Series
from wanlat.analysis.compare.difference import of_intervals
from wanlat.analysis.load.model import Estimate, Quiet, QuietFigures, Steady
from wanlat.analysis.load.resampling import percentile, ratio, summed
from wanlat.analysis.statistics import MIN_N_FOR_P99, percentiles
from wanlat.analysis.summary import Group, grouped, in_order, ok_ms

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

LOADED_PHASE = "loaded"
_MOST_BINS = 600


_SENT = "from_start_ns"


def quiet_of(
    bundle: Bundle, series: Series, steady: Steady, zero_ns: int, *, from_due: bool = False
) -> tuple[Quiet, ...]:
    """Every endpoint and placement that the quiet user asked for; of `series`.

    Under load, over the steady part where there is one, else over the whole load. `from_due`: from
    when each request was due to its answer, not from when it was sent.
    """
    samples = _felt(bundle.samples) if from_due else bundle.samples
    mine = samples[(samples["system"] == series.system) & (samples["version"] == series.version)]
    idle = grouped(mine[mine["phase"] == IDLE_PHASE])
    loaded = grouped(_within(mine[mine["phase"] == LOADED_PHASE], steady, zero_ns))
    return tuple(
        _quiet(group, idle.get(group), loaded.get(group), bundle.seed)
        for group in in_order({**idle, **loaded}, bundle)
    )


def quiet_course(
    bundle: Bundle, series: Series, zero_ns: int, *, from_due: bool = False
) -> dict[tuple[str, str], tuple[Values, Values]]:
    """Of each endpoint and placement: when its requests began (s after the load's begin), and ms.

    Of those that succeeded; idle ones began before 0, and those beside the ramp are left out.
    `from_due`: they began when they were due.
    """
    samples = _felt(bundle.samples) if from_due else bundle.samples
    mine = samples[
        (samples["system"] == series.system)
        & (samples["version"] == series.version)
        & samples["phase"].isin((IDLE_PHASE, LOADED_PHASE))
        & (samples["outcome"] == "ok")
        & ((samples["phase"] == IDLE_PHASE) | (samples["start_ns"] >= zero_ns).fillna(False))
    ]
    return {
        (group.endpoint, group.placement): (
            (rows["start_ns"] - zero_ns).to_numpy(dtype="float64") / 1e9,
            rows["total_ns"].to_numpy(dtype="float64") / 1e6,
        )
        for group, rows in grouped(mine).items()
    }


def _felt(samples: pd.DataFrame) -> pd.DataFrame:
    """`samples` as one who comes at the instant at which each was due feels them.

    What the store took is then in a column of its own.
    """
    due = samples["due_ns"].notna()
    waited_ns = (samples["start_ns"] - samples["due_ns"]).where(due, 0)
    return samples.assign(
        **{_SENT: samples["total_ns"]},
        total_ns=samples["total_ns"] + waited_ns,
        start_ns=samples["due_ns"].where(due, samples["start_ns"]),
    )


def _within(rows: pd.DataFrame, steady: Steady, zero_ns: int) -> pd.DataFrame:
    at_s = (rows["start_ns"] - zero_ns).to_numpy(dtype="float64", na_value=math.nan) / 1e9
    if not steady.is_steady:
        return rows[at_s >= 0]
    return rows[(at_s >= steady.begin_s) & (at_s < steady.end_s)]


def _quiet(
    group: Group, idle_rows: pd.DataFrame | None, loaded_rows: pd.DataFrame | None, seed: int
) -> Quiet:
    idle = _figures(idle_rows, group, IDLE_PHASE, seed)
    loaded = _figures(loaded_rows, group, LOADED_PHASE, seed)
    return Quiet(
        endpoint=group.endpoint,
        placement=group.placement,
        idle=idle,
        loaded=loaded,
        mean_more_ms=_more(idle.mean_ms, loaded.mean_ms),
        median_more_ms=_more(idle.median_ms, loaded.median_ms),
        mean_ratio=_ratio(idle.mean_ms, loaded.mean_ms),
        median_ratio=_ratio(idle.median_ms, loaded.median_ms),
    )


def _figures(rows: pd.DataFrame | None, group: Group, phase: str, seed: int) -> QuietFigures:
    import numpy as np

    if rows is None:
        return QuietFigures(0, 0, 0, None, None, None, None, None)
    ms = ok_ms(rows.sort_values("start_ns"))
    name = "\0".join((*group.series, group.endpoint, group.placement, phase)).encode()
    mine = [abs(seed), zlib.crc32(name)]
    # Requests in the order of time; several are one bin where there are many.
    count = min(max(ms.size, 1), _MOST_BINS)
    bins = np.arange(ms.size) * count // max(ms.size, 1)
    there = np.bincount(bins, minlength=count).astype(float)
    p95, p99 = percentiles(ms, (95, 99)) if ms.size else (None, None)
    return QuietFigures(
        ok=int(ms.size),
        fail=int((rows["outcome"] == "fail").sum()),
        unknown=int((rows["outcome"] == "unknown").sum()),
        mean_ms=ratio(summed(bins, ms, count), there, mine),
        median_ms=percentile(ms, bins, count, 50, mine),
        p95_ms=p95,
        p99_ms=p99 if ms.size >= MIN_N_FOR_P99 else None,
        max_ms=float(ms.max()) if ms.size else None,
        from_start_ms=_from_start(rows),
    )


def _from_start(rows: pd.DataFrame) -> tuple[float, float, float | None] | None:
    if _SENT not in rows or not (ms := ok_ms(rows, _SENT)).size:
        return None
    median, p99 = percentiles(ms, (50, 99))
    return float(ms.mean()), median, p99 if ms.size >= MIN_N_FOR_P99 else None


def _more(idle: Estimate | None, loaded: Estimate | None) -> Estimate | None:
    if idle is None or loaded is None:
        return None
    if idle.ci95 is None or loaded.ci95 is None:
        return Estimate(loaded.value - idle.value, None)
    found = of_intervals(idle.value, idle.ci95, loaded.value, loaded.ci95)
    return Estimate(found.estimate, found.ci95)


def _ratio(idle: Estimate | None, loaded: Estimate | None) -> Estimate | None:
    if idle is None or loaded is None or min(idle.value, loaded.value) <= 0:
        return None
    found = ratios.of_estimates((loaded.value, loaded.ci95), (idle.value, idle.ci95))
    return Estimate(found.estimate, found.ci95)
