"""What a comparison says: quantities, what became of each, and whether the gate lets it pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from wanlat.analysis.bundle import Series

if TYPE_CHECKING:
    from pathlib import Path

    from wanlat.analysis.compare.thresholds import Thresholds

Interval = tuple[float, float]


class Verdict(StrEnum):
    """What became of a quantity; docs/compare.md defines each."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NOT_DECIDED = "not decided"
    NOT_COMPARABLE = "not comparable"
    GONE = "gone"
    NEW = "new"


class Kind(StrEnum):
    """What a gate can look at. A quantity is of one kind."""

    ROUND_TRIPS = "round-trips"
    FAILURES = "failures"
    LATENCY = "latency"
    INTERCEPT = "intercept"
    BYTES = "bytes"
    OUTLIERS = "outliers"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Quantity:
    """A figure that both bundles may have. `key` and `unit` are for scripts, `title` for people."""

    key: str
    kind: Kind
    unit: str
    title: str


ROUND_TRIPS = Quantity("round_trips", Kind.ROUND_TRIPS, "round trips", "round trips")
MEAN_ROUND_TRIPS = Quantity(
    "mean_round_trips", Kind.ROUND_TRIPS, "round trips", "mean round trips over all modes"
)
MODES = Quantity(
    "gained_round_trips", Kind.ROUND_TRIPS, "share", "requests that gained round trips"
)
CHAIN = Quantity("chain_round_trips", Kind.ROUND_TRIPS, "round trips", "chain of packets")
CHAINS = Quantity("gained_chain", Kind.ROUND_TRIPS, "share", "requests whose chain grew")
INTERCEPT = Quantity("intercept_ms", Kind.INTERCEPT, "ms", "own time")
LATENCY_AT = Quantity("latency_at_rtt_ms", Kind.LATENCY, "ms", "latency at equal RTT")
MEDIAN = Quantity("median_ms", Kind.LATENCY, "ms", "median")
MEAN = Quantity("mean_ms", Kind.LATENCY, "ms", "mean")
WAN_BYTES = Quantity("wan_bytes", Kind.BYTES, "bytes", "WAN bytes")
WAN_PACKETS = Quantity("wan_packets", Kind.BYTES, "packets", "WAN packets")
FAILURES = Quantity("failures", Kind.FAILURES, "share", "requests that were not ok")
OUTLIERS = Quantity("outliers", Kind.OUTLIERS, "share", "outliers")
UNEXPLAINED = Quantity("unexplained", Kind.UNEXPLAINED, "share", "requests on no line")

SUPPORTS = {MEAN_ROUND_TRIPS: ROUND_TRIPS, MODES: ROUND_TRIPS, CHAINS: CHAIN}
"""Figures that say of all requests what another says of most: worth telling where they disagree."""


@dataclass(frozen=True)
class Change:
    """One quantity of one endpoint, in both bundles.

    `old` and `new` are None where there is no such figure. `difference` is new less old, `ci95`
    its interval, `p` the probability of a difference so great or greater in its direction where
    nothing changed, `p_adjusted` the same over all endpoints (Holm 1979). All are None where there
    is nothing to subtract; `why` then says why. `threshold` is absolute, in the quantity's unit.
    `missing`: it is not comparable, and nothing else answers what it would have. `gated`: the gate
    looks at it; `fails`: it is why the gate does not let NEW pass.
    """

    quantity: Quantity
    old: float | None
    new: float | None
    difference: float | None
    ci95: Interval | None
    p: float | None
    p_adjusted: float | None
    threshold: float | None
    verdict: Verdict
    missing: bool
    gated: bool
    fails: bool
    why: str | None

    @property
    def beyond(self) -> bool:
        """Whether the estimate is beyond the threshold, to the worse."""
        if self.difference is None or self.threshold is None:
            return False
        return self.difference > self.threshold


@dataclass(frozen=True)
class ModeShare:
    """A share (0..1) of the requests, and what they cost."""

    share: float
    round_trips: float


@dataclass(frozen=True)
class Compared:
    """One endpoint at one placement, of one system in both bundles.

    `old` is None where NEW alone measured it (verdict `new`), `new` where OLD alone did (`gone`).
    """

    old: Series | None
    new: Series | None
    endpoint: str
    placement: str
    changes: tuple[Change, ...]
    verdict: Verdict
    fails: bool
    old_modes: tuple[ModeShare, ...] = ()
    new_modes: tuple[ModeShare, ...] = ()

    def change(self, quantity: Quantity) -> Change | None:
        """What became of `quantity`; None where it was not looked at."""
        return next((each for each in self.changes if each.quantity is quantity), None)


@dataclass(frozen=True)
class Side:
    """One of the two bundles."""

    directory: Path
    study: str
    topology: str
    started: str | None
    status: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Comparison:
    """Two bundles, endpoint by endpoint.

    `at_rtt_ms` is the RTT at which latencies of studies of round trips are compared, None of other
    studies. `differs` says what was not alike and compared nevertheless. `notes` must be read with
    the figures. `failures`: why the gate does not let NEW pass, a sentence each.
    """

    old: Side
    new: Side
    of_round_trips: bool
    at_rtt_ms: float | None
    gate: tuple[Kind, ...]
    strict: bool
    allow_missing: bool
    thresholds: Thresholds
    endpoints: tuple[Compared, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether the gate lets NEW pass."""
        return not self.failures

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many endpoints have each verdict."""
        return Counter(each.verdict for each in self.endpoints)
