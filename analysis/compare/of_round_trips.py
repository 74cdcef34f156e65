"""What studies of round trips are compared in, for one endpoint and placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from wanlat.analysis.compare.difference import Difference, of_draws, of_intervals, of_shares
from wanlat.analysis.compare.distribution import (
    Distribution,
    Gained,
    gained,
    gained_at,
    of_means,
    visit_effect,
)
from wanlat.analysis.compare.finding import Finding, absent, known
from wanlat.analysis.compare.model import (
    CHAIN,
    CHAINS,
    FAILURES,
    INTERCEPT,
    LATENCY_AT,
    MEAN_ROUND_TRIPS,
    MODES,
    ROUND_TRIPS,
    UNEXPLAINED,
    WAN_BYTES,
    WAN_PACKETS,
    Quantity,
)

if TYPE_CHECKING:
    from wanlat.analysis.compare.thresholds import Thresholds
    from wanlat.analysis.round_trips import Estimate, Interval, Mode
    from wanlat.analysis.round_trips_block import RoundTrips

_Pair = tuple[Distribution, Distribution]

_APART_MS = 4.0
"""Two lines nearer to each other than this at some RTT are one there, as far as can be told."""
_NO_CHAIN = "no chain of packets is known."
_NO_COST = "what a request costs on the WAN is not known, or not within what."


def findings(
    old: RoundTrips, new: RoundTrips, at_rtt_ms: float, thresholds: Thresholds
) -> list[Finding]:
    """Every quantity of one endpoint and placement; latencies are compared at `at_rtt_ms`."""
    return [
        *_of_lines(old, new, at_rtt_ms, thresholds),
        *_of_chains(old, new, thresholds),
        _failures(old, new),
        *_of_cost(old, new),
    ]


def _of_lines(
    old: RoundTrips, new: RoundTrips, at_rtt_ms: float, thresholds: Thresholds
) -> list[Finding]:
    """What the regression says."""
    before, after = old.given, new.given
    if before is None or after is None:
        whys = [_why(each) for each in (old, new)]
        at = [None if one is None else one.at(at_rtt_ms) for one in (before, after)]
        figures: list[tuple[Quantity, float | None, float | None]] = [
            (ROUND_TRIPS, old.round_trips, new.round_trips),
            (
                MEAN_ROUND_TRIPS,
                before.mean_round_trips if before else None,
                after.mean_round_trips if after else None,
            ),
            (LATENCY_AT, at[0][0] if at[0] else None, at[1][0] if at[1] else None),
            (INTERCEPT, old.intercept_ms, new.intercept_ms),
        ]
        return [absent(quantity, one, other, whys) for quantity, one, other in figures]
    modes, step = (*before.modes, *after.modes), thresholds.round_trips
    ways = _ways(before, old, modes, step), _ways(after, new, modes, step)
    one, other = before.main, after.main
    flip = _Flip.between(one.round_trips, other.round_trips, ways, thresholds, "mode")
    some = gained(ways[0], ways[1], thresholds.round_trips)
    slopes = before.draws[:, 0], after.draws[:, 0]
    intercepts = before.draws[:, 1], after.draws[:, 1]
    there = [each.intercept_ms + each.round_trips * at_rtt_ms for each in (one, other)]
    drawn = [c + m * at_rtt_ms for m, c in zip(slopes, intercepts, strict=True)]
    return [
        flip.applied(
            ROUND_TRIPS,
            one.round_trips,
            other.round_trips,
            of_draws(one.round_trips, other.round_trips, slopes[0], slopes[1]),
        ),
        _mean(before, after, ways, some.difference, thresholds),
        _gained(MODES, some),
        flip.applied(
            LATENCY_AT, there[0], there[1], of_draws(there[0], there[1], drawn[0], drawn[1])
        ),
        flip.applied(
            INTERCEPT,
            one.intercept_ms,
            other.intercept_ms,
            of_draws(one.intercept_ms, other.intercept_ms, intercepts[0], intercepts[1]),
        ),
        _share(UNEXPLAINED, _unexplained(before, old), _unexplained(after, new)),
    ]


@dataclass(frozen=True)
class _Flip:
    """Whether it may be chance that what most requests do is another thing in NEW.

    Of two ways about equally frequent, which is the usual one is a toss. So figures of the usual
    way changed only where enough requests left the one for the other, and no more surely than
    that: `p` of their share. Both without effect where the usual way is the same.
    """

    p: float = 0.0
    doubt: str | None = None

    @classmethod
    def between(
        cls, old: float, new: float, ways: _Pair, thresholds: Thresholds, what: str
    ) -> _Flip:
        if abs(new - old) <= thresholds.round_trips:
            return cls()
        # Seen from where more round trips are, be that NEW or OLD.
        first, second = ways if new > old else (ways[1], ways[0])
        moved = gained_at(first, second, min(old, new), thresholds.round_trips).difference
        if moved.estimate > thresholds.share:
            return cls(moved.p)
        return cls(
            moved.p,
            f"Two {what}s are about equally frequent, and which of them is the usual one is "
            f"chance: no more than {100 * max(moved.estimate, 0):.0f} % of the requests changed.",
        )

    def applied(
        self, quantity: Quantity, old: float, new: float, difference: Difference
    ) -> Finding:
        sure = replace(difference, p=max(difference.p, self.p))
        return known(quantity, old, new, sure, doubt=self.doubt)


def _ways(estimate: Estimate, of: RoundTrips, modes: Sequence[Mode], step: float) -> Distribution:
    """The round trips of each request, where lines can be told apart; NaN: on no line.

    `modes` are those of both bundles. At RTT 0 all lines may be one, and a request there says
    nothing of its round trips: it counts where no two lines differ by more than `step`, or are far
    enough from each other.
    """
    import numpy as np

    rtt_ms = of.points.rtt_ms
    apart = np.ones(rtt_ms.size, dtype=bool)
    for one, other in combinations(modes, 2):
        steeper = one.round_trips - other.round_trips
        if abs(steeper) > step:
            gap_ms = one.intercept_ms - other.intercept_ms + steeper * rtt_ms
            apart &= np.abs(gap_ms) > _APART_MS
    counted = apart if apart.any() else np.ones_like(apart)
    slopes = np.array([*(mode.round_trips for mode in estimate.modes), np.nan])  # -1: on no line
    return Distribution(slopes[estimate.members[counted]], of.points.visit[counted])


def _mean(
    before: Estimate, after: Estimate, ways: _Pair, some: Difference, thresholds: Thresholds
) -> Finding:
    old, new = before.mean_round_trips, after.mean_round_trips
    if old is None or new is None or before.mean_ci95 is None or after.mean_ci95 is None:
        return absent(MEAN_ROUND_TRIPS, old, new, ("no mean is known", "no mean is known"))
    intervals = [
        _widened(mean, interval, _effect(way))
        for mean, interval, way in zip(
            (old, new), (before.mean_ci95, after.mean_ci95), ways, strict=True
        )
    ]
    difference = of_intervals(old, intervals[0], new, intervals[1])
    least = _least_difference(ways, worse=new > old)
    doubt = None
    if abs(new - old) > thresholds.round_trips and least.estimate <= thresholds.round_trips:
        doubt = "Requests on no line, of which no mean can tell, may make up for it."
    # A mean changes no more surely than that any request changed in its direction.
    changed = some.p if (some.estimate > 0) == (new > old) and some.estimate != 0 else 0.5
    sure = replace(difference, p=max(difference.p, least.p, changed))
    return known(MEAN_ROUND_TRIPS, old, new, sure, doubt)


def _effect(way: Distribution) -> float:
    """How many of the requests that lie on a line are worth one."""
    import numpy as np

    on_a_line = ~np.isnan(way.round_trips)
    return visit_effect(way.round_trips[on_a_line], way.visit[on_a_line])


def _least_difference(ways: _Pair, *, worse: bool) -> Difference:
    """How little the mean may have changed, upwards: from that of the fewer to that of the more.

    With requests on no line taken for the slowest on the one side and the fastest on the other. A
    mode of few requests that was overlooked in one of the runs is then no change.
    """
    levels = ways[0].levels + ways[1].levels
    fewer, more = ways if worse else (ways[1], ways[0])
    return of_means(
        (fewer.filled(max(levels)), fewer.visit), (more.filled(min(levels)), more.visit)
    )


def _widened(estimate: float, interval: Interval, inflation: float) -> Interval:
    """The interval where so many requests are worth one."""
    factor = inflation**0.5
    return (
        estimate - factor * (estimate - interval[0]),
        estimate + factor * (interval[1] - estimate),
    )


def _of_chains(old: RoundTrips, new: RoundTrips, thresholds: Thresholds) -> list[Finding]:
    """What the packets say. A chain is counted, not estimated, so its interval has no width."""
    before, after = _chains(old), _chains(new)
    one, other = old.chain_round_trips, new.chain_round_trips
    if before is None or after is None or one is None or other is None:
        whys = [
            None if each.chain_round_trips is not None else each.why_no_chain or _NO_CHAIN
            for each in (old, new)
        ]
        return [absent(CHAIN, one, other, whys)]
    flip = _Flip.between(one, other, (before, after), thresholds, "chain")
    length = other - one
    exact = Difference(length, (length, length), 0.5 if length == 0 else 0.0)
    return [
        flip.applied(CHAIN, one, other, exact),
        _gained(CHAINS, gained(before, after, thresholds.round_trips)),
    ]


def _chains(of: RoundTrips) -> Distribution | None:
    """The chain of each request of which one is known."""
    import numpy as np

    counted = ~np.isnan(of.points.chain)
    if not counted.any():
        return None
    return Distribution(of.points.chain[counted], of.points.visit[counted])


def _gained(quantity: Quantity, seen: Gained) -> Finding:
    return known(quantity, 0.0, seen.difference.estimate, seen.difference)


def _failures(old: RoundTrips, new: RoundTrips) -> Finding:
    return _share(FAILURES, (old.failed, old.n), (new.failed, new.n))


def _unexplained(estimate: Estimate, of: RoundTrips) -> tuple[float, float]:
    """How many requests are on no line, out of how many, counted as independent ones."""
    on_none = (estimate.members < 0).astype("float64")
    inflation = visit_effect(on_none, of.points.visit)
    return float(on_none.sum()) / inflation, on_none.size / inflation


def _share(quantity: Quantity, old: tuple[float, float], new: tuple[float, float]) -> Finding:
    if not old[1] or not new[1]:
        shares = [hits / n if n else None for hits, n in (old, new)]
        whys = [None if n else "not one request was measured." for _, n in (old, new)]
        return absent(quantity, shares[0], shares[1], whys)
    return known(quantity, old[0] / old[1], new[0] / new[1], of_shares(*old, *new))


def _of_cost(old: RoundTrips, new: RoundTrips) -> list[Finding]:
    return [
        _cost(WAN_BYTES, (old.wan_bytes, old.wan_bytes_ci95), (new.wan_bytes, new.wan_bytes_ci95)),
        _cost(
            WAN_PACKETS,
            (old.wan_packets, old.wan_packets_ci95),
            (new.wan_packets, new.wan_packets_ci95),
        ),
    ]


def _cost(
    quantity: Quantity,
    old: tuple[float | None, Interval | None],
    new: tuple[float | None, Interval | None],
) -> Finding:
    (before, before_ci), (after, after_ci) = old, new
    if before is None or after is None or before_ci is None or after_ci is None:
        whys = [None if interval is not None else _NO_COST for _, interval in (old, new)]
        return absent(quantity, before, after, whys)
    return known(quantity, before, after, of_intervals(before, before_ci, after, after_ci))


def _why(of: RoundTrips) -> str | None:
    """Why there is no number."""
    if of.given is not None:
        return None
    return of.why or "no line was sought."
