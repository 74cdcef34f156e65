"""How fast is a store under load, and what does a single client beside the load wait?

Rates and latencies are of requests that succeeded and ended within the steady part of the load;
where none was found, within the whole load after its ramp. docs/load-report.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.figures import probe_client
from wanlat.analysis.figures.load_requests import (
    Flags,
    Requests,
    Values,
    recorded,
    requests_of,
    within,
)
from wanlat.analysis.figures.probe_client import MIN_N_FOR_P99, InTime, mean_median_p99
from wanlat.analysis.figures.result import Figures, Row, figures_of, named, short
from wanlat.analysis.groups import seed_for
from wanlat.analysis.stats.over_time import Estimate, percentile, ratio, ratio_of_ratios, summed
from wanlat.analysis.stats.steady import MIN_BINS, Steady, steady_state

READ, WRITE = "GetObject", "PutObject"

_WIDTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_MOST_BINS = 600
_MIN_PER_BIN = 20
"""Requests a bin, on average: with fewer the counts are mostly noise."""
_MOST_DRAWN_BINS = 300
_LATE = ("probe_late", "probe_left_out")


@dataclass(frozen=True)
class OverTime:
    """What charts draw of a load, in bins of `bin_s` from the end of its ramp on.

    `per_s` has the requests of each operation that succeeded a second, `failed_per_s` all others.
    `latencies_ms` are sorted, of the part that figures are of; `probe_ms` has for each endpoint
    when the probe client's requests began (before 0: idle) and their latencies.
    """

    bin_s: float
    per_s: Mapping[str, Values]
    failed_per_s: Values
    latencies_ms: Mapping[str, Values]
    probe_ms: InTime


def load(bundle: Bundle) -> Figures | None:
    """The figures of every system of `bundle` under load; None where none was, or left no record.

    A row is a system, with lists of its `operations`, of its `failures` by kind, and of the
    `probe_client`'s endpoints, idle and loaded. Raises BundleError where a file is damaged.
    """
    return figures_of(_rows(bundle)) if bundle.is_load else None


def _rows(bundle: Bundle) -> Iterator[tuple[Row, OverTime]]:
    for series, said, frame, is_cut in recorded(bundle):
        requests, zero_ns = requests_of(series, frame, said)
        yield _row(bundle, requests, zero_ns, said, is_cut=is_cut)


def _row(
    bundle: Bundle, requests: Requests, zero_ns: int, said: Mapping[str, Any], *, is_cut: bool
) -> tuple[Row, OverTime]:
    series, client = requests.series, said.get("client") or {}
    # Of a run that was killed its study says what was to be offered.
    offered = said.get("offered") or bundle.manifest["study"]["load"]
    rate, from_due = offered.get("rate"), said.get("probe_from") == "due"
    steady = _steady(requests, bundle.seed, by_latency=rate is not None)
    part = (steady.begin_s, steady.end_s) if steady.is_steady else (0.0, requests.until_s)
    samples = probe_client.samples_of(bundle, series, from_due=from_due)
    # Of the whole load figures are of what was answered after its end, too.
    beside = part if steady.is_steady else (0.0, math.inf)
    probe = list(probe_client.figures(samples, beside, zero_ns, bundle))
    row = {
        "system": series.system,
        "version": series.version,
        "topology": bundle.topology,
        "status": bundle.status,
        "duration_s": short(requests.until_s),
        "steady": {
            "verdict": steady.verdict,
            "of": "latency" if rate is not None else "rate",
            "begin_s": short(steady.begin_s),
            "end_s": short(steady.end_s),
            "bin_s": steady.bin_s,
            **named("change", steady.change),
            **named("bulge", steady.curvature),
        },
        "operations": [
            _operation(requests, name, part, steady, bundle.seed) for name in requests.operations
        ],
        "failures": _failures(requests),
        "client": {
            "workers": offered.get("workers"),
            "offered_per_s": short(rate),
            "achieved_per_s": short(said.get("achieved_per_s")),
            **{
                name: short(client.get(name))
                for name in ("cpu_share", "busiest_thread_share", "verify_share", "waited_share")
            },
            "threads": client.get("threads"),
            "bottleneck": said.get("bottleneck"),
        },
        "probe_client": probe,
        "probe_missed": said.get("probe_missed") or 0,
        **({name: said.get(name) or 0 for name in _LATE} if from_due else {}),
        **named("write_over_read", _write_over_read(requests, part, steady, bundle.seed)),
        "is_cut": is_cut,
        "left_out": said.get("left_out") or 0,
        "unrecorded": (said.get("done") or requests.outcome.size) - requests.outcome.size,
        "probe_overrun_ms": probe_client.overrun_ms(probe, said.get("probe_interval_ms")),
    }
    over_time = _over_time(requests, part, steady.bin_s, probe_client.in_time(samples, zero_ns))
    return row, over_time


# --- the load ----------------------------------------------------------------------------------


def _steady(requests: Requests, seed: int, *, by_latency: bool) -> Steady:
    """Whether the load came to a steady state: of its rate, or of its latency where a rate was
    asked for and so says nothing.
    """
    bin_s = _bin_width_s(requests)
    count = int(requests.until_s / bin_s + 1e-9)
    place = np.floor(requests.ended_s[requests.is_ok] / bin_s)
    inside = (place >= 0) & (place < count)
    bins = place[inside].astype(int)
    per_bin = np.bincount(bins, minlength=count).astype(float)
    series = per_bin / bin_s
    if by_latency:
        since_s = np.where(np.isnan(requests.due_s), requests.began_s, requests.due_s)
        lasted_s = (requests.ended_s - since_s)[requests.is_ok][inside]
        # Where nothing came in a bin, what took long is counted where it ended.
        sums = summed(bins, lasted_s, count)
        series = np.divide(sums, per_bin, out=np.zeros(count), where=per_bin > 0)
    return steady_state(series, bin_s, seed_for(seed, *requests.series, "steady"))


def _bin_width_s(requests: Requests) -> float:
    """Seconds of a bin: as short as _MOST_BINS and _MIN_PER_BIN allow."""
    per_s = float(requests.is_ok.sum()) / max(requests.until_s, 1e-9)
    for width_s in _WIDTHS_S:
        if requests.until_s / width_s <= _MOST_BINS and per_s * width_s >= _MIN_PER_BIN:
            return width_s
    longest_s = max(requests.until_s / MIN_BINS, _WIDTHS_S[0])
    return next((w for w in reversed(_WIDTHS_S) if w <= longest_s), _WIDTHS_S[0])


def _operation(
    requests: Requests, name: str, part: tuple[float, float], steady: Steady, seed: int
) -> dict[str, Any]:
    sizes = np.unique(requests.bytes[(requests.operation == name) & requests.is_ok])
    whole = _figures(requests, name, (0.0, requests.until_s), steady.bin_s, seed)
    return {
        "operation": name,
        "object_bytes": int(sizes[0]) if sizes.size == 1 else None,
        "is_steady": steady.is_steady,
        **(_figures(requests, name, part, steady.bin_s, seed) if steady.is_steady else whole),
        "whole": whole,
    }


def _figures(
    requests: Requests, name: str, part: tuple[float, float], bin_s: float, seed: int
) -> dict[str, Any]:
    """Of requests of one operation that ended within a part of the load, seconds."""
    begin_s, end_s = part
    length_s = max(end_s - begin_s, 1e-9)
    mine = (requests.operation == name) & within(requests.ended_s, part)
    ok = mine & requests.is_ok
    bins, count = _bins(requests.ended_s[ok], part, bin_s)
    ms = requests.lasted_ms[ok]
    widths_s = np.full(count, bin_s)
    widths_s[-1] = length_s - (count - 1) * bin_s
    per_bin = np.bincount(bins, minlength=count).astype(float)
    own_seed = seed_for(seed, *requests.series, name)
    per_s = ratio(per_bin, widths_s, own_seed) or Estimate(0.0, None)
    mean_ms = ratio(summed(bins, ms, count), per_bin, own_seed)
    due_ms = 1e3 * (requests.ended_s - requests.due_s)[ok]
    moved = float(requests.bytes[ok].sum())

    def at(percent: float) -> Estimate | None:
        return percentile(ms, bins, count, percent, [*own_seed, round(10 * percent)])

    return {
        "begin_s": short(begin_s),
        "end_s": short(end_s),
        "ok": int(ms.size),
        "fail": int((mine & (requests.outcome == "fail")).sum()),
        "unknown": int((mine & (requests.outcome == "unknown")).sum()),
        "bytes": round(moved),
        **named("operations_per_s", per_s),
        "bytes_per_s": short(moved / length_s),
        **named("mean_ms", mean_ms),
        **named("p50_ms", at(50)),
        **named("p95_ms", at(95)),
        **named("p99_ms", at(99) if ms.size >= MIN_N_FOR_P99 else None),
        "max_ms": short(float(ms.max())) if ms.size else None,
        "in_flight": None if mean_ms is None else short(per_s.value * mean_ms.value / 1e3),
        "from_due_ms": mean_median_p99(due_ms[~np.isnan(due_ms)], "p50"),
    }


def _failures(requests: Requests) -> list[dict[str, Any]]:
    """Every way in which requests failed, the most frequent first; over ramp, load and what was
    still in flight at its end.
    """
    frame = pd.DataFrame(
        {
            "operation": requests.operation,
            "outcome": requests.outcome,
            "error": requests.error,
            "at_s": requests.ended_s,
        }
    )
    sent = Counter(requests.operation)
    found = [
        {
            "operation": operation,
            "outcome": outcome,
            "error": error or "no reason recorded",
            "count": at_s.size,
            "share": short(at_s.size / sent[operation]),
            "first_s": short(float(at_s.min())),
            "last_s": short(float(at_s.max())),
        }
        for (operation, outcome, error), at_s in frame[~requests.is_ok].groupby(
            ["operation", "outcome", "error"]
        )["at_s"]
    ]
    return sorted(found, key=lambda one: (-one["count"], one["operation"], one["error"]))


def _write_over_read(
    requests: Requests, part: tuple[float, float], steady: Steady, seed: int
) -> Estimate | None:
    """Mean latency of writes / that of reads, of the same seconds; None without one of them."""

    def sums(name: str) -> tuple[Values, Values]:
        inside = within(requests.ended_s, part)
        mine = requests.is_ok & inside & (requests.operation == name)
        bins, count = _bins(requests.ended_s[mine], part, steady.bin_s)
        there = summed(bins, np.ones(bins.size), count)
        return summed(bins, requests.lasted_ms[mine], count), there

    return ratio_of_ratios(
        sums(WRITE), sums(READ), seed_for(seed, *requests.series, "write / read")
    )


def _over_time(
    requests: Requests, part: tuple[float, float], bin_s: float, probe_ms: InTime
) -> OverTime:
    while requests.until_s / bin_s > _MOST_DRAWN_BINS:
        bin_s *= 2
    count = max(1, int(requests.until_s / bin_s + 1e-9))
    inside = within(requests.ended_s, (0.0, count * bin_s))

    def per_s(which: Flags) -> Values:
        places = (requests.ended_s[which & inside] / bin_s).astype(int)
        return np.bincount(places, minlength=count).astype(float) / bin_s

    ok, of = requests.is_ok, {name: requests.operation == name for name in requests.operations}
    counted = ok & within(requests.ended_s, part)
    return OverTime(
        bin_s=bin_s,
        per_s={name: per_s(ok & mine) for name, mine in of.items()},
        failed_per_s=per_s(~ok),
        latencies_ms={n: np.sort(requests.lasted_ms[counted & mine]) for n, mine in of.items()},
        probe_ms=probe_ms,
    )


def _bins(at_s: Values, part: tuple[float, float], bin_s: float) -> tuple[NDArray[np.int_], int]:
    """The bin of each instant within a part, and how many there are.

    What is left of a bin at the end belongs to the last one.
    """
    count = max(1, int(max(part[1] - part[0], 1e-9) / bin_s + 1e-9))
    return np.minimum(((at_s - part[0]) / bin_s).astype(int), count - 1), count
