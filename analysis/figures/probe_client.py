"""What does a single client wait, alone and beside a load?

It has one request in flight, each due at an instant of its own. docs/how-to/load.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis import statistics
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.groups import grouped, in_order, ok_ms, seed_for, timed
from wanlat.analysis.section import named, short
from wanlat.analysis.stats.over_time import Estimate, percentile
from wanlat.bundle.documents import NOT_SENT
from wanlat.bundle.run import IDLE_PHASE, Run, Series

LOADED_PHASE = "loaded"
MIN_N_FOR_P99 = 100
Values = NDArray[np.float64]
InTime = Mapping[str, tuple[Values, Values]]
"""Of each endpoint: when requests were due, s after the ramp of the load; and latencies, ms."""

_MOST_BINS = 600


def samples_of(bundle: Run, series: Series, zero_ns: int) -> pd.DataFrame:
    """The probe client's samples of `series`, idle and loaded, in the order of time.

    `at_s` is when each was due (before 0: before the load's ramp was over), `felt_ns` lasts from
    then to its answer, as someone who comes at that instant waits. Loaded samples are in every
    figure, as the load's requests are, however late the network was.
    """
    samples = bundle.samples
    is_mine = (samples["system"] == series.system) & (samples["version"] == series.version)
    is_mine &= samples["outcome"] != NOT_SENT
    samples = samples[is_mine & samples["phase"].isin((IDLE_PHASE, LOADED_PHASE))]
    since_ns = samples["due_ns"].fillna(samples["start_ns"])
    samples = samples.assign(
        at_s=((since_ns - zero_ns) / 1e9).astype("Float64"),
        felt_ns=samples["total_ns"] + samples["start_ns"] - since_ns,
        late=samples["late"].fillna(False) & (samples["phase"] == IDLE_PHASE),
    )
    return samples.sort_values("at_s")


def figures(
    samples: pd.DataFrame, part: tuple[float, float], bundle: Run
) -> Iterator[dict[str, Any]]:
    """Each endpoint and placement: idle, and loaded within a part of the load, seconds."""
    inside = samples["at_s"].between(*part, inclusive="left").fillna(False)
    kept = samples[(samples["phase"] == IDLE_PHASE) | inside]
    groups = grouped(kept)
    for group in in_order(groups, bundle):
        of_phases, medians = {}, []
        for phase in (IDLE_PHASE, LOADED_PHASE):
            rows = groups[group][groups[group]["phase"] == phase]
            name = (*group.series, group.endpoint, group.placement, phase)
            of_phases[phase], median = _phase(rows, seed_for(bundle.seed, *name))
            medians.append(median)
        idle, loaded = medians
        times = None
        if idle and loaded and min(idle.value, loaded.value) > 0:
            ratio = statistics.of_estimates(loaded, idle)
            times = Estimate(ratio.estimate, ratio.ci95)
        key = {"endpoint": group.endpoint, "placement": group.placement}
        yield {**key, **of_phases, **named("median_ratio", times)}


def _phase(rows: pd.DataFrame, seed: list[int]) -> tuple[dict[str, Any], Estimate | None]:
    """The probe client's requests to one endpoint in one phase, and their median."""
    ms, sent_ms = ok_ms(rows, "felt_ns"), ok_ms(rows, "total_ns")
    # Requests in the order of time; several are one bin where there are many.
    count = min(max(ms.size, 1), _MOST_BINS)
    bins = np.arange(ms.size) * count // max(ms.size, 1)
    median = percentile(ms, bins, count, 50, seed)
    return {
        **{
            outcome: int((rows["outcome"] == outcome).sum())
            for outcome in ("ok", "fail", "unknown")
        },
        **named("median_ms", median),
        "p99_ms": short(float(np.percentile(ms, 99))) if ms.size >= MIN_N_FOR_P99 else None,
        "max_ms": short(float(ms.max())) if ms.size else None,
        "from_start_median_ms": short(float(np.median(sent_ms))) if ms.size else None,
    }, median


def overrun_ms(samples: pd.DataFrame, interval_ms: float | None) -> float | None:
    """What answers beside the load took on average, if that is longer than the probe's interval."""
    ms = ok_ms(samples[samples["phase"] == LOADED_PHASE])
    is_longer = interval_ms is not None and ms.size and ms.mean() > interval_ms
    return float(ms.mean()) if is_longer else None


def in_time(samples: pd.DataFrame) -> InTime:
    """Requests that succeeded; idle ones began before 0, those beside the ramp are left out."""
    is_idle = samples["phase"] == IDLE_PHASE
    drawn = timed(samples[is_idle | (samples["at_s"] >= 0).fillna(False)])
    return {
        with_placement(group.endpoint, group.placement): (
            rows["at_s"].to_numpy(dtype="float64"),
            ok_ms(rows, "felt_ns"),
        )
        for group, rows in grouped(drawn).items()
    }
