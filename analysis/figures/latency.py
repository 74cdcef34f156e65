"""How long one request takes: the latency of each endpoint, at each placement of its keys."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis import statistics
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.groups import Group, OfGroup, in_order, ok_ms, positions, seed_of
from wanlat.bundle.documents import OUTCOMES

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.stats.intervals import Values

_FIGURES = ("mean_ms", "median_ms", "min_ms", "max_ms", "p95_ms", "p99_ms")
_INTERVALS = ("mean_ci95_ms", "median_ci95_ms")

DEFINITIONS = {
    "n": "requests measured; statistics are over those that succeeded (ok)",
    "percentiles": statistics.PERCENTILE_DEFINITION,
    "mean_ci95_ms": statistics.MEAN_INTERVAL_DEFINITION,
    "median_ci95_ms": statistics.MEDIAN_INTERVAL_DEFINITION,
    "outliers": "beyond Tukey's fences, 1.5 IQR; counted, kept in every figure",
}


@dataclass(frozen=True)
class EndpointSummary(OfGroup):
    """One endpoint of one version of one system, at one placement.

    `n` requests were measured: `ok` succeeded, `fail` were certainly not executed, of `unknown`
    nobody knows. `latency` is over the `ok` ones, None if there are none; `values_ms` are theirs,
    shape (ok,), in the order in which they were sent. `rtt_ms` is that between sites, where all of
    them are equally far apart.
    """

    group: Group
    n: int
    ok: int
    fail: int
    unknown: int
    latency: statistics.Latency | None
    values_ms: Values
    rtt_ms: float | None = None


def latency(bundle: Bundle) -> Figures | None:
    """Every endpoint and placement of `bundle`, in the order of tables; arrays: EndpointSummary.

    Of a drill those of the phase before anything was broken. None where nothing was measured, and
    of a run at several RTTs: over all of them together a mean latency is that of no network.
    """
    if bundle.has_rtt_steps:
        return None
    if "endpoints" not in bundle.derived:
        bundle.derived["endpoints"] = figures_of(_rows(bundle))
    found: Figures | None = bundle.derived["endpoints"]
    return found


def rounded(value_ms: float | None) -> float | None:
    """`value_ms` to the nanosecond, which is all that was measured; None for what is no number."""
    if value_ms is None or not math.isfinite(value_ms):
        return None
    return round(value_ms, 6)


def _rows(bundle: Bundle) -> Iterator[tuple[Row, EndpointSummary]]:
    """The entries of summary.json, milliseconds, each with what is drawn and said of it."""
    import numpy as np

    groups, rtt = positions(bundle.timed), bundle.measured_rtt
    rtt_ms = rtt.median_ms if rtt is not None and rtt.is_uniform else None
    for group in in_order(groups, bundle):
        rows = bundle.timed.iloc[groups[group]]
        outcomes = rows["outcome"].value_counts()
        counts = {name: int(outcomes.get(name, 0)) for name in OUTCOMES}
        values_ms, first_bytes_ms = ok_ms(rows), ok_ms(rows, "first_byte_ns")
        found = statistics.describe(values_ms, seed_of(bundle.seed, group))
        figures = asdict(found) if found else {}
        intervals = {name: figures.get(name) for name in _INTERVALS}
        row: dict[str, Any] = {
            "system": group.series.system,
            "version": group.series.version,
            "topology": bundle.topology,
            "endpoint": group.endpoint,
            "placement": group.placement,
            "n": len(rows),
            **counts,
            **{name: rounded(figures.get(name)) for name in _FIGURES},
            **{key: ci95 and [rounded(bound) for bound in ci95] for key, ci95 in intervals.items()},
            "outliers": figures.get("outliers", 0),
            "first_byte_median_ms": rounded(
                float(np.median(first_bytes_ms)) if first_bytes_ms.size else None
            ),
            "retransmits": int(rows["retransmits"].fillna(0).sum()),
            "new_connections": int(rows["new_connection"].fillna(False).sum()),
        }
        yield (
            row,
            EndpointSummary(
                group, len(rows), **counts, latency=found, values_ms=values_ms, rtt_ms=rtt_ms
            ),
        )
