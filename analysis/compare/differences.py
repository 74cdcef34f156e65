"""The difference of two runs in each quantity: how great, within what, and how surprising.

Two runs differ in more than their programs. A store that may go one way or another (a replica here
or a continent away) goes them in shares that each start draws anew: keys, places of replicas, who
leads. The requests of one run do not show how much these shares vary. So what counts is not how
many requests went which way, but which ways there are: see `gain`. Where there are replicates each
cluster is one value, and what a start draws is in Student's interval: see `over_clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chdtrc, stdtr

from wanlat.analysis.compare.judge import QUANTITIES, Change, Thresholds
from wanlat.analysis.figures.round_trips import RoundTrips
from wanlat.analysis.groups import ok_ms
from wanlat.analysis.statistics import outliers_of
from wanlat.analysis.stats.intervals import Interval, of_mean, of_median, students_quantile, wilson
from wanlat.analysis.stats.round_trips import Mode

Values = NDArray[np.float64]
Indexes = NDArray[np.int_]
Truths = NDArray[np.bool_]

MIN_OK = 6
"""Of fewer successful requests no interval of the median holds 95 %
(docs/reference/statistics.md)."""
PRESENT = 0.03
"""A way is one that a run has where at least this share of its requests go it, and two."""
NEARLY_ALL = 0.8
"""So many requests that gained are no draw of shares, whichever ways they went before."""

_GAINED = {"round_trips": "gained_round_trips", "chain_round_trips": "gained_chain"}
_OF_REQUESTS = {"round_trips", "chain_round_trips", "latency_at_rtt_ms", "intercept_ms"}
"""Of these a cluster's value is the mean over its requests: which of several ways is the most
frequent one is a toss, and what they take on average is not."""
_CHANCE = 0.05
_APART_MS = 4.0
"""Two lines nearer to each other than this at some RTT are one there, as far as can be known."""
_MANY = 20
"""Of more ways than these, cuts are made at every twentieth request."""


class Difference(NamedTuple):
    """New less old. `p`: of one as great or greater, in its direction, had nothing changed."""

    estimate: float
    ci95: Interval
    p: float


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


@dataclass(frozen=True)
class Figure:
    """A quantity of one run; what was counted and not estimated has no `ci95`.

    `ways` are those of the requests that it sums up. `why` it is none that can be compared.
    """

    value: float | None
    ci95: Interval | None = None
    ways: Ways | None = None
    freedom: float = math.inf
    why: str | None = None


Figures = Mapping[str, Figure]
"""By the key of their quantity."""


def of_intervals(
    old: float,
    old_ci95: Interval,
    new: float,
    new_ci95: Interval,
    freedom: tuple[float, float] = (math.inf, math.inf),
) -> Difference:
    """From two estimates and their 95 % intervals, which need not be symmetric.

    The method of variance estimates recovery (Zou and Donner 2008, Statistics in Medicine 27); of
    shares with Wilson's intervals it is Newcombe's (1998), of means with Student's it is Welch's
    (1947, Biometrika 34). Of each estimate its degrees of `freedom`; those of the difference are
    Welch's, and so are its bounds and the tail beyond the one on the side of zero.
    """
    estimate = new - old
    below = _recovered(old_ci95[1] - old, new - new_ci95[0], freedom)
    above = _recovered(old - old_ci95[0], new_ci95[1] - new, freedom)
    ci95 = estimate - below[0], estimate + above[0]
    reach, free = below if estimate > 0 else above
    if estimate == 0 or reach <= 0:
        return Difference(estimate, ci95, 0.0 if estimate else 0.5)
    tail = stdtr(free, -students_quantile(free) * abs(estimate) / reach)
    return Difference(estimate, ci95, float(tail))


def _recovered(old: float, new: float, freedom: tuple[float, float]) -> tuple[float, float]:
    """How far the difference reaches where its sides reach so far, and its degrees of freedom."""
    errors = [
        reach / students_quantile(free) for reach, free in zip((old, new), freedom, strict=True)
    ]
    variance = sum(error**2 for error in errors)
    lost = sum(error**4 / free for error, free in zip(errors, freedom, strict=True))
    free = variance**2 / lost if lost else math.inf
    return students_quantile(free) * math.sqrt(variance), free


def step_effect(values: Truths, steps: Indexes) -> float:
    """The design effect of RTT steps: how many of the requests are worth one, at least 1.

    Requests of one step may share what decides their way (who leads, which connection is open).
    The variance between steps over that of all requests, both a request; at most what leaves as
    many independent requests as steps. 1 where it may be chance (5 %, by the chi-squared
    distribution, which the variance between steps of independent requests has).
    """
    _, which = np.unique(steps, return_inverse=True)
    sizes, freedom = np.bincount(which), len(np.unique(which)) - 1
    if not 0 < freedom < values.size - 1 or np.var(values) == 0:
        return 1.0
    off = np.bincount(which, weights=values) / sizes - values.mean()
    ratio = float(sizes @ off**2) / freedom / float(np.var(values, ddof=1))
    return max(1.0, ratio) if chdtrc(freedom, ratio * freedom) < _CHANCE else 1.0


def gain(old: Ways, new: Ways, step: float) -> tuple[Difference, Difference]:
    """The share of the requests that gained more than `step`, at the cut where it is greatest.

    First of all requests, then of those only that no draw of shares explains. At a cut, requests
    that cost no more are fast in OLD, and those that cost more by `step` slow in NEW: so many more
    are slow in NEW gained at this place of the order of costs, whichever they are. Requests on ways
    that both runs have (PRESENT) may have moved between them. So they are counted on one side of
    the cut, fast or slow, in both runs alike: what is left goes a way that OLD did not have, or
    went one that NEW no longer has. Unless NEARLY_ALL requests gained.

    Never more than truly gained: a request of which nothing is known counts as slow in OLD and as
    fast in NEW, so that a mode that was overlooked in one of the runs is no change.
    """
    shared, shared_new = (
        old.has(ways.costs, step) & new.has(ways.costs, step) for ways in (old, new)
    )

    def more(hits: Truths, new_hits: Truths) -> Difference:
        # The greater design effect holds for both: the steps of a run that lacks a way tell nothing
        # of how it varies from step to step.
        effect = max(step_effect(hits, old.steps), step_effect(new_hits, new.steps))
        one, other = _share(hits, effect), _share(new_hits, effect)
        return of_intervals(one[0], one[1], other[0], other[1])

    every = [more(np.zeros_like(shared), np.zeros_like(shared_new))]
    sure = list(every)
    for cut in old.cuts:
        slow, slow_new = (old.costs > cut) | np.isnan(old.costs), new.costs > cut + step
        as_fast = more(slow & ~shared, slow_new & ~shared_new)
        as_slow = more(slow | shared, slow_new | shared_new)
        every.append(more(slow, slow_new))
        sure.append(min(every[-1], max(as_fast, as_slow)))
    most = max(every)
    surest = most if most.estimate >= NEARLY_ALL else max(sure)
    # For all cuts that were tried, on two sides each.
    return most, surest._replace(p=min(1.0, surest.p * 2 * (len(sure) - 1)))


def of_figures(old: Figures, new: Figures, thresholds: Thresholds) -> list[Change]:
    """The change of every quantity of one endpoint and placement that either run has."""
    changes = {}
    for key in {**old, **new}:
        one, other = (side.get(key, Figure(None)) for side in (old, new))
        changes[key] = _change(key, one, other, thresholds)
        if key in _GAINED and changes[key].ci95 and one.ways and other.ways:
            changes[_GAINED[key]] = _gained(_GAINED[key], one.ways, other.ways, thresholds)
    return [changes[key] for key in QUANTITIES if key in changes]


def of_round_trips(entry: RoundTrips, other: RoundTrips, at_rtt_ms: float, step: float) -> Figures:
    """The figures of `entry`, one endpoint and placement of a study of round trips.

    Latencies are those at `at_rtt_ms`; lines that differ by more than `step` round trips, in the
    `other` run or in this one, are different ways.
    """
    points, given = entry.points, entry.given
    known = ~np.isnan(points.chain)
    figures = {
        "wan_bytes": Figure(entry.wan_bytes, entry.wan_bytes_ci95),
        "wan_packets": Figure(entry.wan_packets, entry.wan_packets_ci95),
        "chain_round_trips": Figure(None, why=entry.why_no_chain or "no critical path is known."),
        "failures": Figure(None, why="not one request was measured."),
    }
    if entry.n:
        figures["failures"] = Figure(entry.failed / entry.n, wilson(entry.failed, entry.n))
    if entry.chain_round_trips is not None and known.any():
        ways = Ways(points.chain[known], points.step[known])
        figures["chain_round_trips"] = Figure(entry.chain_round_trips, ways=ways)
    if given is None:
        missing = Figure(None, why=entry.why or "no line was sought.")
        lines = ("round_trips", "latency_at_rtt_ms", "intercept_ms")
        return figures | dict.fromkeys(lines, missing)
    apart = _apart(points.rtt_ms, (*given.modes, *other.modes), step)

    def by_line(slope: float, intercept: float) -> Ways:
        costs = [slope * one.round_trips + intercept * one.intercept_ms for one in given.modes]
        return Ways(np.array([*costs, np.nan])[given.members[apart]], points.step[apart])

    on_none, main = given.members < 0, given.modes[0]
    there = given.at(at_rtt_ms)
    return figures | {
        "round_trips": Figure(main.round_trips, main.ci95, by_line(1, 0)),
        "latency_at_rtt_ms": Figure(there and there[0], there and there[1], by_line(at_rtt_ms, 1)),
        "intercept_ms": Figure(main.intercept_ms, main.intercept_ci95_ms, by_line(0, 1)),
        "unexplained": Figure(*_share(on_none, step_effect(on_none, points.step))),
    }


def of_latencies(rows: pd.DataFrame) -> Figures:
    """The figures of the measured rows (one or more) of one endpoint and placement."""
    ms, n, failed = ok_ms(rows), len(rows), int((rows["outcome"] != "ok").sum())
    failures = {"failures": Figure(failed / n, wilson(failed, n))}
    if ms.size < MIN_OK:
        few = Figure(None, why=f"only {ms.size} requests succeeded, and {MIN_OK} are needed.")
        return {"median_ms": few, "mean_ms": few} | failures
    ways, outliers = Ways(ms, np.zeros(ms.size, np.int_)), outliers_of(ms).total
    return {
        "median_ms": Figure(float(np.median(ms)), of_median(ms), ways, ms.size - 1),
        "mean_ms": Figure(float(ms.mean()), of_mean(ms), ways, ms.size - 1),
        "outliers": Figure(outliers / ms.size, wilson(outliers, ms.size)),
    } | failures


def _share(hits: Truths, effect: float) -> tuple[float, Interval]:
    """The share of requests that are hit, and its interval where so many are worth one."""
    return float(hits.mean()), wilson(float(hits.sum()) / effect, hits.size / effect)


def _apart(rtt_ms: Values, modes: Sequence[Mode], step: float) -> Truths:
    """The requests that certainly lie on one line, shape (n,).

    At RTT 0 all lines may be one, and a request there shows nothing of its round trips: it counts
    where no two lines differ by more than `step`, or are far enough from each other.
    """
    apart = np.ones(rtt_ms.size, dtype=bool)
    for one, other in combinations(modes, 2):
        steeper = one.round_trips - other.round_trips
        if abs(steeper) > step:
            gap_ms = one.intercept_ms - other.intercept_ms + steeper * rtt_ms
            apart &= np.abs(gap_ms) > _APART_MS
    return apart if apart.any() else np.ones_like(apart)


def _change(key: str, old: Figure, new: Figure, thresholds: Thresholds) -> Change:
    one, other = old.value, new.value
    whys = [f"{side}: {figure.why}" for side, figure in (("OLD", old), ("NEW", new)) if figure.why]
    if whys or one is None or other is None:
        return Change(key, one, other, why=" ".join(whys) or None)
    intervals = old.ci95 or (one, one), new.ci95 or (other, other)
    freedom = old.freedom, new.freedom
    difference = of_intervals(one, intervals[0], other, intervals[1], freedom)
    step = thresholds.limit(key, one)
    if old.ways is None or new.ways is None or abs(difference.estimate) <= step:
        return Change(key, one, other, *difference)
    # Of two ways about equally frequent, which is the usual one is a toss. So what sums up requests
    # changed only where requests did, and no more surely.
    ways = (old.ways, new.ways) if other > one else (new.ways, old.ways)
    _, some = gain(*ways, step)
    sure = difference._replace(p=max(difference.p, some.p))
    return Change(key, one, other, *sure, by_start=some.ci95[0] <= thresholds.share)


def _gained(key: str, old: Ways, new: Ways, thresholds: Thresholds) -> Change:
    """The share of the requests that gained round trips; negative: that lost some.

    Worse counts first: that some requests became faster is no comfort to those that did not.
    """
    limit, step = thresholds.share, thresholds.round_trips

    def greater(more: Difference, less: Difference) -> Difference:
        if more.estimate > limit or more.estimate >= less.estimate:
            return more
        return Difference(-less.estimate, (-less.ci95[1], -less.ci95[0]), less.p)

    anyhow, sure = map(greater, gain(old, new, step), gain(new, old, step))
    by_start = abs(sure.estimate) <= limit < abs(anyhow.estimate)
    shown = anyhow if by_start else sure
    return Change(key, 0.0, shown.estimate, *shown, by_start=by_start)


def over_clusters(clusters: Sequence[Figures]) -> Figures:
    """The figures of one endpoint over its clusters: means, with Student's intervals."""
    return {key: _over(key, clusters) for key in dict.fromkeys(k for one in clusters for k in one)}


def _over(key: str, clusters: Sequence[Figures]) -> Figure:
    values = [value for one in clusters if key in one for value in _value(key, one[key])]
    if len(values) < 2:
        return Figure(
            None, why=f"{len(values)} of {len(clusters)} clusters have it; two are needed."
        )
    of_each = np.array(values)
    return Figure(float(of_each.mean()), of_mean(of_each), freedom=len(values) - 1)


def _value(key: str, figure: Figure) -> list[float]:
    """The value of a cluster; nothing where it has no such figure."""
    value = figure.value
    if value is not None and figure.ways is not None and key in _OF_REQUESTS:
        value = float(np.nanmean(figure.ways.costs))
    return [] if value is None or math.isnan(value) else [value]
