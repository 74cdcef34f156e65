"""How long one request takes: the latency of each endpoint, at each placement of its keys."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from wanlat.analysis import statistics
from wanlat.analysis.bundle import Series
from wanlat.analysis.figures.result import Figures, Row, figures_of
from wanlat.analysis.groups import Group, OfGroup, grouped, in_order, ok_ms, seed_of

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.stats.intervals import Interval, Values

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
    shape (ok,), in the order in which they were sent.
    """

    group: Group
    topology: str
    ok: int
    fail: int
    unknown: int
    latency: statistics.Latency | None
    values_ms: Values
    first_byte_median_ms: float | None
    retransmits: int
    new_connections: int
    rtt_ms: float | None = None
    """Between sites, where all of them are equally far apart."""

    @property
    def n(self) -> int:
        """Requests measured, whatever came of them."""
        return self.ok + self.fail + self.unknown

    def to_json(self) -> dict[str, Any]:
        """The entry of summary.json; milliseconds, rounded to the nanosecond."""
        figures = asdict(self.latency) if self.latency else {}
        return {
            "system": self.series.system,
            "version": self.series.version,
            "topology": self.topology,
            "endpoint": self.endpoint,
            "placement": self.placement,
            "n": self.n,
            "ok": self.ok,
            "fail": self.fail,
            "unknown": self.unknown,
            **{name: rounded(figures.get(name)) for name in _FIGURES},
            **{name: _bounds(figures.get(name)) for name in _INTERVALS},
            "outliers": figures.get("outliers", 0),
            "first_byte_median_ms": rounded(self.first_byte_median_ms),
            "retransmits": self.retransmits,
            "new_connections": self.new_connections,
        }


def latency(bundle: Bundle) -> Figures | None:
    """Every endpoint and placement of `bundle`, in the order of tables; arrays: EndpointSummary.

    Of a drill those of the phase before anything was broken. None where nothing was measured, and
    of a run at several RTTs: over all of them together a mean latency is that of no network.
    """
    if bundle.has_rtt_steps:
        return None
    if "endpoints" in bundle.derived:
        known: Figures | None = bundle.derived["endpoints"]
        return known
    groups = grouped(bundle.measured)
    rtt = bundle.measured_rtt
    rtt_ms = rtt.median_ms if rtt is not None and rtt.is_uniform else None
    entries = [
        replace(endpoint_summary(groups[group], group, bundle.topology, bundle.seed), rtt_ms=rtt_ms)
        for group in in_order(groups, bundle)
    ]
    bundle.derived["latencies"] = {entry.group: entry.latency for entry in entries}
    found = figures_of((entry.to_json(), entry) for entry in entries)
    bundle.derived["endpoints"] = found
    return found


def endpoint_summary(rows: pd.DataFrame, group: Group, topology: str, seed: int) -> EndpointSummary:
    """The figures of `rows`, all of one `group`; `seed` is the run's."""
    import numpy as np

    outcomes = rows["outcome"].value_counts()
    values_ms, first_bytes_ms = ok_ms(rows), ok_ms(rows, "first_byte_ns")
    return EndpointSummary(
        group=group,
        topology=topology,
        ok=int(outcomes.get("ok", 0)),
        fail=int(outcomes.get("fail", 0)),
        unknown=int(outcomes.get("unknown", 0)),
        latency=statistics.describe(values_ms, seed_of(seed, group)),
        values_ms=values_ms,
        first_byte_median_ms=float(np.median(first_bytes_ms)) if first_bytes_ms.size else None,
        retransmits=int(rows["retransmits"].fillna(0).sum()),
        new_connections=int(rows["new_connection"].fillna(False).sum()),
    )


def group_of(row: Row) -> Group:
    """What a row's figures are of."""
    series = Series(row["system"], row["version"])
    return Group(series, row["endpoint"], row["placement"])


def rounded(value_ms: float | None) -> float | None:
    """`value_ms` to the nanosecond, which is all that was measured; None for what is no number."""
    if value_ms is None or not math.isfinite(value_ms):
        return None
    return round(value_ms, 6)


def _bounds(interval: Interval | None) -> list[float | None] | None:
    return [rounded(bound) for bound in interval] if interval else None
