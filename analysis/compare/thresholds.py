"""How much worse is worse: one limit a quantity, with the way it is written."""

from __future__ import annotations

from dataclasses import dataclass

from wanlat.analysis.compare.model import (
    CHAIN,
    CHAINS,
    FAILURES,
    INTERCEPT,
    LATENCY_AT,
    MEAN,
    MEAN_ROUND_TRIPS,
    MEDIAN,
    MODES,
    OUTLIERS,
    ROUND_TRIPS,
    UNEXPLAINED,
    WAN_BYTES,
    WAN_PACKETS,
    Quantity,
)

FALSE_ALARMS = 0.005
"""How often the verdicts of one kind may call anything changed where nothing is, all together."""


@dataclass(frozen=True)
class Limit:
    """The greater of a part of the old figure (0.1: 10 %) and an amount in the figure's unit.

    Both, because 10 % of 1.3 ms is less than one machine differs from itself between two runs, and
    5 ms alone would call nothing worse at 2 ms and everything at 2 s.
    """

    relative: float = 0.0
    absolute: float = 0.0

    def of(self, old: float) -> float:
        """The limit where the old figure is `old`, in its unit."""
        return max(self.relative * abs(old), self.absolute)


@dataclass(frozen=True)
class Thresholds:
    """The limits of each quantity; docs/compare.md says why these."""

    round_trips: float = 0.25
    share: float = 0.10
    intercept_ms: Limit = Limit(absolute=5.0)
    latency_ms: Limit = Limit(relative=0.10, absolute=5.0)
    wan_bytes: Limit = Limit(relative=0.10, absolute=512.0)
    wan_packets: Limit = Limit(relative=0.10, absolute=2.0)
    failures: float = 0.0

    def of(self, quantity: Quantity, old: float) -> float:
        """The limit of `quantity` where the old figure is `old`, in the quantity's unit."""
        return {
            ROUND_TRIPS.key: Limit(absolute=self.round_trips),
            MEAN_ROUND_TRIPS.key: Limit(absolute=self.round_trips),
            CHAIN.key: Limit(absolute=self.round_trips),
            MODES.key: Limit(absolute=self.share),
            CHAINS.key: Limit(absolute=self.share),
            OUTLIERS.key: Limit(absolute=self.share),
            UNEXPLAINED.key: Limit(absolute=self.share),
            FAILURES.key: Limit(absolute=self.failures),
            INTERCEPT.key: self.intercept_ms,
            LATENCY_AT.key: self.latency_ms,
            MEDIAN.key: self.latency_ms,
            MEAN.key: self.latency_ms,
            WAN_BYTES.key: self.wan_bytes,
            WAN_PACKETS.key: self.wan_packets,
        }[quantity.key].of(old)
