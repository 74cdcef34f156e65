"""The difference of two runs in each quantity: how great, within what, and how surprising.

Two runs differ in more than their programs. A store that may go one way or another (a replica here
or a continent away) goes them in shares that each start draws anew: keys, places of replicas, who
leads. The requests of one run cannot tell how much these shares vary. So what counts is not how
many requests went which way, but which ways there are: see `gain`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, ndtr, stdtr

from wanlat.analysis.compare.judge import Change, Difference, Quantity, Thresholds
from wanlat.analysis.figures.round_trips import RoundTrips
from wanlat.analysis.groups import ok_ms
from wanlat.analysis.statistics import outliers_of
from wanlat.analysis.stats.intervals import (
    Z95,
    Interval,
    of_mean,
    of_median,
    students_quantile,
    wilson,
)
from wanlat.analysis.stats.round_trips import Mode

if TYPE_CHECKING:
    import pandas as pd

Values = NDArray[np.float64]
Indexes = NDArray[np.int_]
Truths = NDArray[np.bool_]
Hits = tuple[float, float]
"""How many, out of how many, as if of independent requests."""

MIN_OK = 6
"""Of fewer successful requests no interval of the median holds 95 % (docs/statistics.md)."""
PRESENT = 0.03
"""A way is one that a run has where at least this share of its requests go it, and two: fewer are
stray requests."""
NEARLY_ALL = 0.8
"""So many requests that gained are no draw of shares, whichever ways they went before."""

_GAINED = {
    Quantity.ROUND_TRIPS: Quantity.GAINED,
    Quantity.CHAIN: Quantity.GAINED_CHAIN,
}
_CHANCE = 0.05
_APART_MS = 4.0
"""Two lines nearer to each other than this at some RTT are one there, as far as can be told."""
_MANY = 20
"""Of more ways than these, cuts are made at every twentieth request."""


def of_intervals(
    old: float, old_ci95: Interval, new: float, new_ci95: Interval, freedom: float = math.inf
) -> Difference:
    """From two estimates and their 95 % intervals, which need not be symmetric.

    The method of variance estimates recovery (Zou and Donner 2008, Statistics in Medicine 27). The
    tail beyond the interval is that of Student's distribution with so many degrees of `freedom`, as
    wide as the bound on the side of zero says.
    """
    estimate = new - old
    low = estimate - math.hypot(new - new_ci95[0], old_ci95[1] - old)
    high = estimate + math.hypot(new_ci95[1] - new, old - old_ci95[0])
    reach = estimate - low if estimate > 0 else high - estimate
    if estimate == 0 or reach <= 0:
        return Difference(estimate, (low, high), 0.0 if estimate else 0.5)
    known = math.isfinite(freedom)
    deviations = (students_quantile(freedom) if known else Z95) * abs(estimate) / reach
    tail = stdtr(freedom, -deviations) if known else ndtr(-deviations)
    return Difference(estimate, (low, high), float(tail))


def of_shares(old_hits: float, old_n: float, new_hits: float, new_n: float) -> Difference:
    """Of two shares, hits out of n each (n > 0; need not be whole: see `step_effect`).

    The interval is Newcombe's (1998, Statistics in Medicine 17, method 10), of Wilson's two; the
    probability Fisher's exact one of the counts, rounded so that it is not too small.
    """
    old, new = old_hits / old_n, new_hits / new_n
    ci95 = of_intervals(old, wilson(old_hits, old_n), new, wilson(new_hits, new_n)).ci95
    if new == old:
        return Difference(0.0, ci95, 0.5)
    (less, less_n), (more, more_n) = sorted([(old, math.floor(old_n)), (new, math.floor(new_n))])
    less_hits, more_hits = math.ceil(less * less_n), math.floor(more * more_n)
    hits = less_hits + more_hits
    as_many = np.arange(more_hits, min(hits, more_n) + 1)
    logs = _log_choose(more_n, as_many) + _log_choose(less_n, hits - as_many)
    p = float(np.exp(logs - _log_choose(less_n + more_n, hits)).sum())
    return Difference(new - old, ci95, min(1.0, p))


def _log_choose(n: int, k: Any) -> Any:
    return -np.log(n + 1) - betaln(n - k + 1, k + 1)


@dataclass(frozen=True)
class Ways:
    """Which way each request of a run went, shape (n,), n > 0, and the RTT step of each.

    A way is what it costs: round trips, or milliseconds; NaN where it is not known.
    """

    costs: Values
    steps: Indexes

    def has(self, costs: Values, reach: float) -> Truths:
        """Whether the run has a way within `reach` of each of `costs`, shape (k,)."""
        known = np.sort(self.costs[~np.isnan(self.costs)])
        first = np.searchsorted(known, costs - reach, side="left")
        last = np.searchsorted(known, costs + reach, side="right")
        return np.isfinite(costs) & (last - first >= max(2, PRESENT * self.costs.size))

    @property
    def cuts(self) -> Values:
        """Costs up to which a request counts as fast, ascending."""
        costs = np.unique(self.costs[~np.isnan(self.costs)])
        return costs if costs.size <= _MANY else np.quantile(costs, np.arange(1, _MANY) / _MANY)


def step_effect(values: Values | Truths, steps: Indexes) -> float:
    """The design effect of RTT steps: how many of the requests are worth one, at least 1.

    Requests of one step may share what decides their way (who leads, which connection is open).
    The variance between steps over that of all requests, both a request; at most what leaves as
    many independent requests as steps. 1 where it may be chance (5 %, by the chi-squared
    distribution, which the variance between steps of independent requests has).
    """
    _, which = np.unique(steps, return_inverse=True)
    sizes = np.bincount(which)
    if sizes.size < 2 or values.size <= sizes.size:
        return 1.0
    spread = float(((values - values.mean()) ** 2).sum()) / (values.size - 1)
    if spread <= 0:
        return 1.0
    means = np.bincount(which, weights=values) / sizes
    freedom = sizes.size - 1
    ratio = float((sizes * (means - values.mean()) ** 2).sum()) / freedom / spread
    return max(1.0, ratio) if chdtrc(freedom, ratio * freedom) < _CHANCE else 1.0


@dataclass(frozen=True)
class Gain:
    """The share of the requests that cost more in NEW than in OLD, by more than a step.

    `any` counts all of them, `sure` those that no draw of shares explains. The probability of
    `sure` is for all cuts that were tried.
    """

    any: Difference
    sure: Difference


def gain(old: Ways, new: Ways, step: float) -> Gain:
    """The share of the requests that gained more than `step`, at the cut where it is greatest.

    At a cut, requests that cost no more are fast in OLD, and those that cost more by `step` slow in
    NEW: so many more are slow in NEW gained at this place of the order of costs, whichever they
    are. Requests on ways that both runs have (PRESENT) may have moved between them. So they are
    counted on one side of the cut, fast or slow, in both runs alike: what is left goes a way that
    OLD did not have, or went one that NEW no longer has. Unless NEARLY_ALL requests gained.

    Never more than truly gained: a request of which nothing is known counts as slow in OLD and as
    fast in NEW, so that a mode that was overlooked in one of the runs is no change.
    """
    old_shared, new_shared = (
        old.has(each.costs, step) & new.has(each.costs, step) for each in (old, new)
    )
    nothing = of_shares(0.0, old.costs.size, 0.0, new.costs.size)
    every, sure, tried = [nothing], [nothing], 0
    for cut in old.cuts:
        before, after = (old.costs > cut) | np.isnan(old.costs), new.costs > cut + step
        anyhow, as_fast, as_slow = (
            _of_hits(hits, (old.steps, new.steps))
            for hits in (
                (before, after),
                (before & ~old_shared, after & ~new_shared),
                (before | old_shared, after | new_shared),
            )
        )
        every.append(anyhow)
        sure.append(min(anyhow, max(as_fast, as_slow, key=_size), key=_size))
        tried += 1 if sure[-1] is anyhow else 2
    most, surest = max(every, key=_size), max(sure, key=_size)
    if most.estimate >= NEARLY_ALL:
        surest = most
    return Gain(most, replace(surest, p=min(1.0, surest.p * max(1, tried))))


def _of_hits(hits: tuple[Truths, Truths], steps: tuple[Indexes, Indexes]) -> Difference:
    """Of the shares of requests that are hit, in OLD and in NEW, shapes (n,) and (m,).

    The greater design effect holds for both: the steps of a run that lacks a way tell nothing of
    how it varies from step to step.
    """
    effect = max(step_effect(*each) for each in zip(hits, steps, strict=True))
    (old_hits, old_n), (new_hits, new_n) = ((hit.sum() / effect, hit.size / effect) for hit in hits)
    return of_shares(old_hits, old_n, new_hits, new_n)


def _size(difference: Difference) -> float:
    return difference.estimate


@dataclass(frozen=True)
class Figure:
    """A quantity of one run.

    An estimate has a `ci95`; a share has `hits`, out of how many; what has neither was counted, and
    its difference is exact. `ways` are those of the requests that it sums up. `why` it is none that
    can be compared.
    """

    value: float | None
    ci95: Interval | None = None
    hits: Hits = (0.0, 0.0)
    freedom: float = math.inf
    ways: Ways | None = None
    why: str | None = None


Figures = Mapping[Quantity, Figure]


def of_figures(old: Figures, new: Figures, thresholds: Thresholds) -> list[Change]:
    """The change of every quantity of one endpoint and placement that either run has."""
    changes = {}
    for quantity in (each for each in Quantity if each in old or each in new):
        one, other = (side.get(quantity, Figure(None)) for side in (old, new))
        changes[quantity] = _of_figure(quantity, one, other, thresholds)
        if quantity in _GAINED and changes[quantity].difference and one.ways and other.ways:
            gained = _GAINED[quantity]
            changes[gained] = _of_gain(gained, one.ways, other.ways, thresholds)
    return [changes[quantity] for quantity in Quantity if quantity in changes]


def of_round_trips(entry: RoundTrips, other: RoundTrips, at_rtt_ms: float, step: float) -> Figures:
    """The figures of `entry`, one endpoint and placement of a study of round trips.

    Latencies are those at `at_rtt_ms`; lines that differ by more than `step` round trips, in the
    `other` run or in this one, are different ways.
    """
    figures = {
        Quantity.FAILURES: _share(entry.failed, entry.n),
        Quantity.WAN_BYTES: _cost(entry.wan_bytes, entry.wan_bytes_ci95),
        Quantity.WAN_PACKETS: _cost(entry.wan_packets, entry.wan_packets_ci95),
        Quantity.CHAIN: _chain(entry),
    }
    given = entry.given
    if given is None:
        missing = Figure(None, why=entry.why or "no line was sought.")
        lines = (Quantity.ROUND_TRIPS, Quantity.MEAN_ROUND_TRIPS, Quantity.LATENCY_AT)
        return figures | dict.fromkeys((*lines, Quantity.INTERCEPT), missing)
    apart = _apart(entry, (*given.modes, *other.modes), step)
    members, steps = given.members[apart], entry.points.step[apart]

    def ways(slope: float, intercept: float) -> Ways:
        """What each request costs, by the line it lies on."""
        modes = given.modes
        costs = [slope * mode.round_trips + intercept * mode.intercept_ms for mode in modes]
        return Ways(np.array([*costs, np.nan])[members], steps)

    trips, (there_ms, there_ci95) = ways(1, 0), given.at(at_rtt_ms) or (None, None)
    lying = ~np.isnan(trips.costs)
    wider = math.sqrt(step_effect(trips.costs[lying], trips.steps[lying]))
    mean, on_none = given.mean_round_trips, given.members < 0
    effect = step_effect(on_none, entry.points.step)
    return figures | {
        Quantity.ROUND_TRIPS: Figure(given.round_trips, given.ci95, ways=trips),
        Quantity.MEAN_ROUND_TRIPS: Figure(mean, _wider(mean, given.mean_ci95, wider), ways=trips),
        Quantity.LATENCY_AT: Figure(there_ms, there_ci95, ways=ways(at_rtt_ms, 1)),
        Quantity.INTERCEPT: Figure(given.intercept_ms, given.intercept_ci95_ms, ways=ways(0, 1)),
        Quantity.UNEXPLAINED: _share(on_none.sum() / effect, on_none.size / effect),
    }


def of_latencies(rows: pd.DataFrame) -> Figures:
    """The figures of the measured rows (one or more) of one endpoint and placement."""
    failures = _share(int((rows["outcome"] != "ok").sum()), len(rows))
    ok = ok_ms(rows)
    if ok.size < MIN_OK:
        why = f"only {ok.size} requests succeeded, and {MIN_OK} are needed."
        few = {
            quantity: Figure(float(of(ok)) if ok.size else None, why=why)
            for quantity, of in ((Quantity.MEDIAN, np.median), (Quantity.MEAN, np.mean))
        }
        return {**few, Quantity.FAILURES: failures}
    one_way = Ways(ok, np.zeros(ok.size, np.int_))
    figures = ((Quantity.MEDIAN, np.median, of_median), (Quantity.MEAN, np.mean, of_mean))
    return {
        **{
            quantity: Figure(float(of(ok)), interval(ok), freedom=ok.size - 1, ways=one_way)
            for quantity, of, interval in figures
        },
        Quantity.OUTLIERS: _share(outliers_of(ok).total, ok.size),
        Quantity.FAILURES: failures,
    }


def _share(hits: float, n: float) -> Figure:
    if not n:
        return Figure(None, why="not one request was measured.")
    return Figure(hits / n, hits=(hits, n))


def _cost(value: float | None, ci95: Interval | None) -> Figure:
    """What a request costs on the WAN."""
    return Figure(value, ci95, why=None if ci95 else "it is not known, or not within what.")


def _chain(entry: RoundTrips) -> Figure:
    """The critical path that most requests have."""
    known = ~np.isnan(entry.points.chain)
    if entry.chain_round_trips is None or not known.any():
        return Figure(None, why=entry.why_no_chain or "no critical path is known.")
    ways = Ways(entry.points.chain[known], entry.points.step[known])
    return Figure(entry.chain_round_trips, ways=ways)


def _apart(entry: RoundTrips, modes: Sequence[Mode], step: float) -> Truths:
    """The requests of which can be told which line they lie on, shape (n,).

    At RTT 0 all lines may be one, and a request there says nothing of its round trips: it counts
    where no two lines differ by more than `step`, or are far enough from each other.
    """
    rtt_ms = entry.points.rtt_ms
    apart = np.ones(rtt_ms.size, dtype=bool)
    for one, other in combinations(modes, 2):
        steeper = one.round_trips - other.round_trips
        if abs(steeper) > step:
            gap_ms = one.intercept_ms - other.intercept_ms + steeper * rtt_ms
            apart &= np.abs(gap_ms) > _APART_MS
    return apart if apart.any() else np.ones_like(apart)


def _wider(value: float | None, ci95: Interval | None, factor: float) -> Interval | None:
    if value is None or ci95 is None:
        return None
    return value - factor * (value - ci95[0]), value + factor * (ci95[1] - value)


def _of_figure(quantity: Quantity, old: Figure, new: Figure, thresholds: Thresholds) -> Change:
    one, other = old.value, new.value
    whys = [f"{side}: {each.why}" for side, each in (("OLD", old), ("NEW", new)) if each.why]
    if whys or one is None or other is None:
        return Change(quantity, one, other, None, " ".join(whys))
    if old.hits[1] and new.hits[1]:
        difference = of_shares(*old.hits, *new.hits)
    else:
        intervals = old.ci95 or (one, one), new.ci95 or (other, other)
        freedom = min(old.freedom, new.freedom)
        difference = of_intervals(one, intervals[0], other, intervals[1], freedom)
    step = thresholds.of(quantity, one)
    if old.ways is None or new.ways is None or abs(difference.estimate) <= step:
        return Change(quantity, one, other, difference)
    # Of two ways about equally frequent, which is the usual one is a toss, and a mean follows their
    # shares. So what sums up requests changed only where requests did, and no more surely.
    some = (gain(old.ways, new.ways, step) if other > one else gain(new.ways, old.ways, step)).sure
    sure = replace(difference, p=max(difference.p, some.p))
    return Change(quantity, one, other, sure, by_start=some.ci95[0] <= thresholds.share)


def _of_gain(quantity: Quantity, old: Ways, new: Ways, thresholds: Thresholds) -> Change:
    """The share of the requests that gained round trips; negative: that lost some.

    Worse counts first: that some requests became faster is no comfort to those that did not.
    """
    limit, step = thresholds.share, thresholds.round_trips
    gained, lost = gain(old, new, step), gain(new, old, step)

    def told(more: Difference, less: Difference) -> Difference:
        if more.estimate > limit or more.estimate >= less.estimate:
            return more
        return Difference(-less.estimate, (-less.ci95[1], -less.ci95[0]), less.p)

    sure, anyhow = told(gained.sure, lost.sure), told(gained.any, lost.any)
    by_start = abs(sure.estimate) <= limit < abs(anyhow.estimate)
    shown = anyhow if by_start else sure
    return Change(quantity, 0.0, shown.estimate, shown, by_start=by_start)
