"""What does a single client wait, alone and beside a load?

It has one request in flight, each due at an instant of its own. docs/load-report.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from wanlat.analysis import ratios
from wanlat.analysis.bundle import IDLE_PHASE, Bundle, Series
from wanlat.analysis.figures.load_requests import Values, within
from wanlat.analysis.figures.result import named, short
from wanlat.analysis.groups import grouped, in_order, ok_ms, seed_for
from wanlat.analysis.placement import with_placement
from wanlat.analysis.stats.over_time import Estimate, percentile, ratio, summed

LOADED_PHASE = "loaded"
MIN_N_FOR_P99 = 100
InTime = Mapping[str, tuple[Values, Values]]
"""Of each endpoint: when requests were due, s after the ramp of the load; and latencies, ms."""

_MOST_BINS = 600
_SENT_NS = "from_start_ns"


def samples_of(bundle: Bundle, series: Series, *, from_due: bool) -> pd.DataFrame:
    """The probe client's samples of `series`, idle and loaded.

    `from_due`: as someone who comes at the instant at which each was due waits for its answer.
    What the store took is then in a column of its own.
    """
    samples = bundle.samples
    samples = samples[
        (samples["system"] == series.system)
        & (samples["version"] == series.version)
        & samples["phase"].isin((IDLE_PHASE, LOADED_PHASE))
    ]
    if not from_due:
        return samples
    was_due = samples["due_ns"].notna()
    waited_ns = (samples["start_ns"] - samples["due_ns"]).where(was_due, 0)
    return samples.assign(
        **{_SENT_NS: samples["total_ns"]},
        total_ns=samples["total_ns"] + waited_ns,
        start_ns=samples["due_ns"].where(was_due, samples["start_ns"]),
    )


def figures(
    samples: pd.DataFrame, part: tuple[float, float], zero_ns: int, bundle: Bundle
) -> Iterator[dict[str, Any]]:
    """Each endpoint and placement: idle, and loaded within a part of the load, seconds."""
    beside = within(_after_s(samples, zero_ns), part)
    idle = grouped(samples[samples["phase"] == IDLE_PHASE])
    loaded = grouped(samples[(samples["phase"] == LOADED_PHASE) & beside])
    for group in in_order({**idle, **loaded}, bundle):
        name = (*group.series, group.endpoint, group.placement)
        before, idle_figures = _phase(idle.get(group), seed_for(bundle.seed, *name, IDLE_PHASE))
        after, loaded_figures = _phase(
            loaded.get(group), seed_for(bundle.seed, *name, LOADED_PHASE)
        )
        yield {
            "endpoint": group.endpoint,
            "placement": group.placement,
            "idle": idle_figures,
            "loaded": loaded_figures,
            **named("mean_more_ms", _more(before[0], after[0])),
            **named("median_more_ms", _more(before[1], after[1])),
            **named("mean_ratio", _times(before[0], after[0])),
            **named("median_ratio", _times(before[1], after[1])),
        }


def _phase(
    rows: pd.DataFrame | None, seed: list[int]
) -> tuple[tuple[Estimate | None, Estimate | None], dict[str, Any]]:
    """Mean and median of the probe client's requests in one phase, and all their figures."""
    ms = ok_ms(rows.sort_values("start_ns")) if rows is not None else np.empty(0)
    outcomes = list(rows["outcome"]) if rows is not None else []
    # Requests in the order of time; several are one bin where there are many.
    count = min(max(ms.size, 1), _MOST_BINS)
    bins = np.arange(ms.size) * count // max(ms.size, 1)
    there = np.bincount(bins, minlength=count).astype(float)
    mean = ratio(summed(bins, ms, count), there, seed)
    median = percentile(ms, bins, count, 50, seed)
    return (mean, median), {
        "ok": int(ms.size),
        "fail": outcomes.count("fail"),
        "unknown": outcomes.count("unknown"),
        **named("mean_ms", mean),
        **named("median_ms", median),
        "p95_ms": short(float(np.percentile(ms, 95))) if ms.size else None,
        "p99_ms": short(float(np.percentile(ms, 99))) if ms.size >= MIN_N_FOR_P99 else None,
        "max_ms": short(float(ms.max())) if ms.size else None,
        **({"from_start_ms": sent} if (sent := _sent(rows)) is not None else {}),
    }


def overrun_ms(probe: Sequence[Mapping[str, Any]], interval_ms: float | None) -> float | None:
    """What answers beside the load took on average, if that is longer than the probe's interval."""
    loaded = [each["loaded"] for each in probe if "from_start_ms" in each["loaded"]]
    n = sum(each["ok"] for each in loaded)
    if interval_ms is None or not n:
        return None
    mean_ms = sum(each["ok"] * each["from_start_ms"]["mean"] for each in loaded) / n
    return float(mean_ms) if mean_ms > interval_ms else None


def _sent(rows: pd.DataFrame | None) -> dict[str, float | None] | None:
    """Latencies from when requests were sent, where all others are from when they were due."""
    if rows is None or _SENT_NS not in rows:
        return None
    return mean_median_p99(ok_ms(rows, _SENT_NS), "median", MIN_N_FOR_P99)


def _more(idle: Estimate | None, loaded: Estimate | None) -> Estimate | None:
    """How much longer it is under load: loaded less idle.

    The method of variance estimates recovery (Zou and Donner 2008, Statistics in Medicine 27).
    """
    if idle is None or loaded is None:
        return None
    more = loaded.value - idle.value
    if idle.ci95 is None or loaded.ci95 is None:
        return Estimate(more, None)
    below = math.hypot(loaded.value - loaded.ci95[0], idle.ci95[1] - idle.value)
    above = math.hypot(loaded.ci95[1] - loaded.value, idle.value - idle.ci95[0])
    return Estimate(more, (more - below, more + above))


def _times(idle: Estimate | None, loaded: Estimate | None) -> Estimate | None:
    """Loaded / idle."""
    if idle is None or loaded is None or min(idle.value, loaded.value) <= 0:
        return None
    found = ratios.of_estimates(loaded, idle)
    return Estimate(found.estimate, found.ci95)


def in_time(samples: pd.DataFrame, zero_ns: int) -> InTime:
    """Requests that succeeded; idle ones began before 0, those beside the ramp are left out."""
    at_s = _after_s(samples, zero_ns)
    drawn = samples[(samples["outcome"] == "ok") & ((samples["phase"] == IDLE_PHASE) | (at_s >= 0))]
    return {
        with_placement(group.endpoint, group.placement): (
            _after_s(rows, zero_ns),
            rows["total_ns"].to_numpy(dtype="float64") / 1e6,
        )
        for group, rows in grouped(drawn).items()
    }


def mean_median_p99(
    ms: Values, median: str, least_for_p99: int = 1
) -> dict[str, float | None] | None:
    """Mean, median (by that name) and p99 of latencies, shape (n,); None for n = 0."""
    if not ms.size:
        return None
    p50, p99 = (float(value) for value in np.percentile(ms, (50, 99)))
    kept = p99 if ms.size >= least_for_p99 else None
    return {"mean": short(float(ms.mean())), median: short(p50), "p99": short(kept)}


def _after_s(samples: pd.DataFrame, zero_ns: int) -> Values:
    """When each was sent, or was due; NaN of what never was sent."""
    relative = samples["start_ns"] - zero_ns
    return np.asarray(relative.to_numpy(dtype="float64", na_value=np.nan) / 1e9)
