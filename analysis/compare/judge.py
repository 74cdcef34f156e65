"""What is compared, how much worse is worse, and the verdicts; docs/how-to/compare.md defines
each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from wanlat.analysis.stats.intervals import Interval, holm

FALSE_ALARMS = 0.005
"""How often the verdicts of one kind may call anything changed where nothing is, all together."""


class Verdict(StrEnum):
    """What became of a quantity or an endpoint. An endpoint's is the first that a quantity has."""

    WORSE = "worse"
    NOT_COMPARABLE = "not comparable"
    BETTER = "better"
    NOT_DECIDED = "not decided"
    SAME = "same"
    GONE = "gone"
    NEW = "new"


class Reason(StrEnum):
    """Why a difference is not decided, as people read it."""

    CHANCE = "It is beyond the threshold, and may be chance: more samples decide it."
    START = "Requests moved between ways that both runs have, as from one start to another."
    WIDE = "The interval reaches beyond the threshold."


class Kind(StrEnum):
    """What a gate can look at. A quantity is of one kind."""

    ROUND_TRIPS = "round-trips"
    FAILURES = "failures"
    LATENCY = "latency"
    INTERCEPT = "intercept"
    BYTES = "bytes"
    OUTLIERS = "outliers"
    UNEXPLAINED = "unexplained"


class Quantity(NamedTuple):
    """A figure that both bundles may have; `limit` is the key of its threshold."""

    kind: Kind
    unit: str
    limit: str
    title: str


QUANTITIES = {
    "round_trips": Quantity(Kind.ROUND_TRIPS, "round trips", "round_trips", "round trips"),
    "gained_round_trips": Quantity(Kind.ROUND_TRIPS, "share", "share", "gained round trips"),
    "chain_round_trips": Quantity(Kind.ROUND_TRIPS, "round trips", "round_trips", "critical path"),
    "gained_chain": Quantity(Kind.ROUND_TRIPS, "share", "share", "critical path grew"),
    "latency_at_rtt_ms": Quantity(Kind.LATENCY, "ms", "latency_ms", "latency at {at_rtt_ms:g} ms"),
    "intercept_ms": Quantity(Kind.INTERCEPT, "ms", "intercept_ms", "intercept"),
    "unexplained": Quantity(Kind.UNEXPLAINED, "share", "share", "unexplained"),
    "wan_bytes": Quantity(Kind.BYTES, "bytes", "wan_bytes", "WAN bytes"),
    "wan_packets": Quantity(Kind.BYTES, "packets", "wan_packets", "WAN packets"),
    "median_ms": Quantity(Kind.LATENCY, "ms", "latency_ms", "median"),
    "mean_ms": Quantity(Kind.LATENCY, "ms", "latency_ms", "mean"),
    "outliers": Quantity(Kind.OUTLIERS, "share", "share", "outliers"),
    "failures": Quantity(Kind.FAILURES, "share", "failures", "not ok"),
}
"""By their keys in JSON, in the order in which they are shown."""


@dataclass(frozen=True)
class Limit:
    """The greater of a part of the old figure (0.1: 10 %) and an amount in the figure's unit.

    Both, because 10 % of 1.3 ms is less than one machine differs from itself between two runs, and
    5 ms alone would call nothing worse at 2 ms and everything at 2 s.
    """

    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class Thresholds:
    """The limits of the quantities."""

    round_trips: float = 0.25
    share: float = 0.10
    intercept_ms: Limit = Limit(absolute=5.0)
    latency_ms: Limit = Limit(relative=0.10, absolute=5.0)
    wan_bytes: Limit = Limit(relative=0.10, absolute=512.0)
    wan_packets: Limit = Limit(relative=0.10, absolute=2.0)
    failures: float = 0.0

    def limit(self, quantity: str, old: float) -> float:
        """The limit of `quantity` where the old figure is `old`, in the quantity's unit."""
        limit: Limit | float = getattr(self, QUANTITIES[quantity].limit)
        if isinstance(limit, Limit):
            return max(limit.relative * abs(old), limit.absolute)
        return limit


@dataclass(frozen=True)
class Rules:
    """What the gate looks at, and how strict it is; as of `wanlat.analysis.compare.compare`."""

    thresholds: Thresholds
    gate: Collection[Kind]
    strict: bool = False
    allow_missing: bool = False


@dataclass
class Change:
    """One quantity of one endpoint in both bundles, as its JSON has it (docs/how-to/compare.md).

    `difference`, `ci95` and `p` are None where there is nothing to subtract; `why` then has the
    reason. `by_start`: however great, it is no more than two starts of one store may differ by.
    `judge` fills in what follows that.
    """

    quantity: str
    old: float | None
    new: float | None
    difference: float | None = None
    ci95: Interval | None = None
    p: float | None = None
    why: str | None = None
    by_start: bool = False
    p_adjusted: float | None = None
    threshold: float | None = None
    verdict: Verdict = Verdict.NOT_COMPARABLE
    missing: bool = False
    gated: bool = False
    fails: bool = False

    @property
    def definition(self) -> Quantity:
        """Kind, unit and title of its quantity."""
        return QUANTITIES[self.quantity]

    @property
    def has_changed(self) -> bool:
        """Whether it is worse or better."""
        return self.verdict in (Verdict.WORSE, Verdict.BETTER)

    @property
    def counts(self) -> bool:
        """Whether the verdict on its endpoint looks at it.

        Not where something else answers what is missing, nor where a share's interval is merely
        wide: of 40 requests none of which gained, up to 9 % may.
        """
        is_wide = self.why == Reason.WIDE and self.definition.unit == "share"
        is_answered = self.verdict is Verdict.NOT_COMPARABLE and not self.missing
        return self.gated and not is_wide and not is_answered


def judge(endpoints: Sequence[Sequence[Change]], rules: Rules) -> None:
    """Give the changes of all endpoints their verdicts, corrected for all of one kind (Holm)."""
    for kind in Kind:
        alike = [
            change
            for changes in endpoints
            for change in changes
            if change.definition.kind is kind and change.ci95
        ]
        for change, p in zip(alike, holm([similar.p or 0.0 for similar in alike]), strict=True):
            change.p_adjusted = p
    for changes in endpoints:
        for change in changes:
            change.gated = change.definition.kind in rules.gate
            if change.difference is None or change.ci95 is None:
                _judge_missing(change, changes, rules)
            else:
                _judge(change, change.difference, change.ci95, rules)


def overall(changes: Sequence[Change]) -> Verdict:
    """The verdict on an endpoint."""
    verdicts = {change.verdict for change in changes if change.counts}
    return next((verdict for verdict in Verdict if verdict in verdicts), Verdict.SAME)


def _judge(change: Change, estimate: float, ci95: Interval, rules: Rules) -> None:
    low, high = ci95
    threshold = rules.thresholds.limit(change.quantity, change.old or 0.0)
    is_likely, beyond = (change.p_adjusted or 0.0) >= FALSE_ALARMS, abs(estimate) > threshold
    # Of a share all of the interval: a way that few went in OLD may be overlooked there.
    surely = change.definition.unit != "share" or (low if estimate > 0 else -high) > threshold
    verdict, reason = Verdict.NOT_DECIDED, None
    if threshold == 0 and estimate <= 0 and is_likely:
        verdict = Verdict.SAME  # no interval is narrower than nothing
    elif beyond and change.by_start:
        reason = Reason.START
    elif beyond and (is_likely or not surely):
        reason = Reason.CHANCE
    elif beyond:
        verdict = Verdict.WORSE if estimate > 0 else Verdict.BETTER
    elif -threshold <= low and high <= threshold:
        verdict = Verdict.SAME
    else:
        reason = Reason.WIDE
    may_be_worse = rules.strict and verdict is Verdict.NOT_DECIDED and estimate > threshold
    change.threshold, change.verdict, change.why = threshold, verdict, reason
    change.fails = change.gated and (verdict is Verdict.WORSE or may_be_worse)


def _judge_missing(change: Change, siblings: Sequence[Change], rules: Rules) -> None:
    """Of `change` one of the two has no figure.

    It is no loss where something else of its kind could be compared. Of round trips there are two
    answers that share nothing, the slope and the critical path: one is enough, unless it is strict.
    A machine that was too busy for a straight line in one of the runs moved no packet. Of
    everything else, what was missing before may go on being missing.
    """
    kind, in_neither = change.definition.kind, change.old is None and change.new is None
    may_be_answered = in_neither or (kind is Kind.ROUND_TRIPS and not rules.strict)
    others = [sibling for sibling in siblings if sibling.definition.kind is kind and sibling.ci95]
    change.missing = not (may_be_answered and others)
    change.fails = change.gated and change.missing and not rules.allow_missing
