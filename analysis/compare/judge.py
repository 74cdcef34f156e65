"""What is compared, how much worse is worse, and the verdicts.

All changes of one kind are judged together, so that many endpoints do not make one of them an
alarm by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from wanlat.analysis.stats.intervals import Interval, holm

FALSE_ALARMS = 0.005
"""How often the verdicts of one kind may call anything changed where nothing is, all together."""


class Verdict(StrEnum):
    """What became of a quantity or an endpoint; docs/compare.md defines each."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NOT_DECIDED = "not decided"
    NOT_COMPARABLE = "not comparable"
    GONE = "gone"
    NEW = "new"


class Reason(Enum):
    """Why a difference is not decided, as people read it."""

    CHANCE = "It is beyond the threshold, and may be chance."
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


class Quantity(Enum):
    """A figure that both bundles may have.

    `key` and `unit` are for scripts, `title` for sentences, `limit` is the key of its threshold.
    """

    ROUND_TRIPS = ("round_trips", Kind.ROUND_TRIPS, "round trips", "round trips")
    MEAN_ROUND_TRIPS = ("mean_round_trips", Kind.ROUND_TRIPS, "round trips", "mean over all modes")
    GAINED = ("gained_round_trips", Kind.ROUND_TRIPS, "share", "requests that gained round trips")
    CHAIN = ("chain_round_trips", Kind.ROUND_TRIPS, "round trips", "critical path")
    GAINED_CHAIN = ("gained_chain", Kind.ROUND_TRIPS, "share", "requests whose critical path grew")
    LATENCY_AT = ("latency_at_rtt_ms", Kind.LATENCY, "ms", "latency at {at_rtt_ms:g} ms")
    INTERCEPT = ("intercept_ms", Kind.INTERCEPT, "ms", "intercept", "intercept_ms")
    UNEXPLAINED = ("unexplained", Kind.UNEXPLAINED, "share", "requests on no line")
    WAN_BYTES = ("wan_bytes", Kind.BYTES, "bytes", "WAN bytes")
    WAN_PACKETS = ("wan_packets", Kind.BYTES, "packets", "WAN packets")
    MEDIAN = ("median_ms", Kind.LATENCY, "ms", "median")
    MEAN = ("mean_ms", Kind.LATENCY, "ms", "mean")
    OUTLIERS = ("outliers", Kind.OUTLIERS, "share", "outliers")
    FAILURES = ("failures", Kind.FAILURES, "share", "requests that were not ok", "failures")

    def __init__(self, key: str, kind: Kind, unit: str, title: str, limit: str = "") -> None:
        self.key, self.kind, self.unit, self.title = key, kind, unit, title
        self.limit = (
            limit
            or {
                "round trips": "round_trips",
                "share": "share",
                "ms": "latency_ms",
                "bytes": "wan_bytes",
                "packets": "wan_packets",
            }[unit]
        )


SUPPORTS = {
    Quantity.MEAN_ROUND_TRIPS: Quantity.ROUND_TRIPS,
    Quantity.GAINED: Quantity.ROUND_TRIPS,
    Quantity.GAINED_CHAIN: Quantity.CHAIN,
}
"""Figures that say of all requests what another says of most: worth telling where they disagree."""


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
    """The limits of the quantities; docs/compare.md says why these."""

    round_trips: float = 0.25
    share: float = 0.10
    intercept_ms: Limit = Limit(absolute=5.0)
    latency_ms: Limit = Limit(relative=0.10, absolute=5.0)
    wan_bytes: Limit = Limit(relative=0.10, absolute=512.0)
    wan_packets: Limit = Limit(relative=0.10, absolute=2.0)
    failures: float = 0.0

    def of(self, quantity: Quantity, old: float) -> float:
        """The limit of `quantity` where the old figure is `old`, in the quantity's unit."""
        limit: Limit | float = getattr(self, quantity.limit)
        return limit.of(old) if isinstance(limit, Limit) else limit


@dataclass(frozen=True)
class Rules:
    """What the gate looks at, and how strict it is; `wanlat.analysis.compare.compare` says how."""

    thresholds: Thresholds
    gate: Collection[Kind]
    strict: bool = False
    allow_missing: bool = False


@dataclass(frozen=True)
class Difference:
    """New less old. `p`: of one as great or greater, in its direction, had nothing changed."""

    estimate: float
    ci95: Interval
    p: float


@dataclass(frozen=True)
class Change:
    """One quantity of one endpoint, in both bundles.

    `old` and `new` are None where there is no such figure. `difference` is None where there is
    nothing to subtract; `why` then says why. `by_start`: however great, it is no more than two
    starts of one store may differ by.

    What `judge` adds: `p_adjusted` is the difference's probability over all endpoints (Holm 1979),
    `threshold` is absolute, in the quantity's unit. `missing`: it is not comparable, and nothing
    else answers what it would have. `gated`: the gate looks at it; `fails`: it fails the gate.
    """

    quantity: Quantity
    old: float | None
    new: float | None
    difference: Difference | None
    why: str | None = None
    by_start: bool = False
    verdict: Verdict = Verdict.NOT_COMPARABLE
    reason: Reason | None = None
    p_adjusted: float | None = None
    threshold: float | None = None
    missing: bool = False
    gated: bool = False
    fails: bool = False

    @property
    def has_changed(self) -> bool:
        """Whether it is worse or better."""
        return self.verdict in (Verdict.WORSE, Verdict.BETTER)

    @property
    def is_merely_wide(self) -> bool:
        """Whether a share, or what supports another figure, is within its threshold as far as is
        known, and its interval is not: of 40 requests none of which gained, up to 9 % may."""
        supporting = self.quantity.unit == "share" or self.quantity in SUPPORTS
        return self.reason is Reason.WIDE and supporting


def judge(found: Sequence[Sequence[Change]], rules: Rules) -> list[tuple[Change, ...]]:
    """The changes that were found at each endpoint, with verdicts."""
    adjusted: dict[int, float] = {}  # by identity
    for kind in Kind:
        ps = {
            id(change): change.difference.p
            for changes in found
            for change in changes
            if change.quantity.kind is kind and change.difference is not None
        }
        adjusted |= zip(ps, holm(list(ps.values())), strict=True)
    return [
        tuple(
            _judged(change, change.difference, adjusted[id(change)], rules)
            if change.difference is not None
            else _missing(change, changes, rules)
            for change in changes
        )
        for changes in found
    ]


def overall(changes: Sequence[Change]) -> Verdict:
    """The verdict on an endpoint, from those on the quantities that the gate looks at.

    The first of: worse, not comparable, better, not decided, same. What is missing counts only
    where nothing else answers it, and what is merely wide not at all.
    """
    found = {
        change.verdict
        for change in changes
        if change.gated
        and not change.is_merely_wide
        and (change.missing or change.verdict is not Verdict.NOT_COMPARABLE)
    }
    order = (Verdict.WORSE, Verdict.NOT_COMPARABLE, Verdict.BETTER, Verdict.NOT_DECIDED)
    return next((verdict for verdict in order if verdict in found), Verdict.SAME)


def _judged(change: Change, difference: Difference, p_adjusted: float, rules: Rules) -> Change:
    threshold = rules.thresholds.of(change.quantity, change.old or 0.0)
    estimate, (low, high) = difference.estimate, difference.ci95
    verdict, reason = Verdict.NOT_DECIDED, None
    # Of a share all of the interval: a way that few went in OLD may be overlooked there.
    bound = low if estimate > 0 else -high
    surely = p_adjusted < FALSE_ALARMS and (change.quantity.unit != "share" or bound > threshold)
    if threshold == 0 and estimate <= 0 and p_adjusted >= FALSE_ALARMS:
        verdict = Verdict.SAME  # no interval is narrower than nothing
    elif abs(estimate) > threshold and change.by_start:
        reason = Reason.START
    elif abs(estimate) > threshold and surely:
        verdict = Verdict.WORSE if estimate > 0 else Verdict.BETTER
    elif abs(estimate) > threshold:
        reason = Reason.CHANCE
    elif -threshold <= low and high <= threshold:
        verdict = Verdict.SAME
    else:
        reason = Reason.WIDE
    gated = change.quantity.kind in rules.gate
    may_be_worse = rules.strict and verdict is Verdict.NOT_DECIDED and estimate > threshold
    return replace(
        change,
        verdict=verdict,
        reason=reason,
        why=reason and reason.value,
        p_adjusted=p_adjusted,
        threshold=threshold,
        gated=gated,
        fails=gated and (verdict is Verdict.WORSE or may_be_worse),
    )


def _missing(change: Change, siblings: Sequence[Change], rules: Rules) -> Change:
    """`change` where one of the two has no figure.

    It is no loss where something else of its kind could be compared. Of round trips there are two
    answers that share nothing, the slope and the critical path: one is enough, unless it is strict.
    A machine that was too busy for a straight line in one of the runs moved no packet. Of
    everything else, what was missing before may go on being missing.
    """
    kind = change.quantity.kind
    in_neither = change.old is None and change.new is None
    answered = (in_neither or (kind is Kind.ROUND_TRIPS and not rules.strict)) and any(
        each.difference is not None
        for each in siblings
        if each.quantity.kind is kind and each.quantity not in SUPPORTS
    )
    gated = kind in rules.gate
    fails = gated and not answered and not rules.allow_missing
    return replace(change, missing=not answered, gated=gated, fails=fails)
