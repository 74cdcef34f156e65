"""The usual figures of latency in a study of round trips: of each RTT alone, never of all mixed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.round_trips_block import rows_that_count
from wanlat.analysis.summary import EndpointSummary, endpoint_summary, grouped, in_order
from wanlat.analysis.visits import Visits


@dataclass(frozen=True)
class AtRtt:
    """One endpoint and placement at one requested RTT, over all visits of it that count.

    `measured_rtt_ms` is the median over those visits.
    """

    requested_rtt_ms: float
    measured_rtt_ms: float
    figures: EndpointSummary

    def to_json(self) -> dict[str, Any]:
        """The entry of "round_trips_by_rtt": as one of "endpoints", the RTTs after its names."""
        entry = self.figures.to_json()
        names = ("system", "version", "topology", "endpoint", "placement")
        return {
            **{name: entry.pop(name) for name in names},
            "rtt_ms": self.requested_rtt_ms,
            "measured_rtt_ms": round(self.measured_rtt_ms, 6),
            **entry,
        }


def at_each_rtt(bundle: Bundle, visits: Visits) -> tuple[AtRtt, ...]:
    """Every endpoint and placement at every RTT, in the order of tables and charts."""
    groups = grouped(bundle.measured)
    found = []
    for group in in_order(groups, bundle):
        counting = {visit.number: visit for visit in visits.counting(group.series.system)}
        rows = rows_that_count(groups[group], visits, group.series.system)
        for requested_ms in sorted({visit.requested_rtt_ms for visit in counting.values()}):
            alike = [v for v in counting.values() if v.requested_rtt_ms == requested_ms]
            mine = rows[rows["rtt_step"].isin([visit.number for visit in alike])]
            if mine.empty:
                continue
            measured_ms = median(v.measured_rtt_ms for v in alike if v.measured_rtt_ms is not None)
            figures = endpoint_summary(mine, group, bundle.topology, bundle.seed)
            found.append(AtRtt(requested_ms, measured_ms, figures))
    return tuple(found)
