"""Two bundles compared: which endpoints changed, and whether any became worse.

docs/compare.md defines every figure and verdict. `compare` is the way in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.compare import conditions, differences
from wanlat.analysis.compare.conditions import NotAlikeError, Pair
from wanlat.analysis.compare.differences import Figure, Figures
from wanlat.analysis.compare.judge import (
    Change,
    Kind,
    Limit,
    Quantity,
    Rules,
    Thresholds,
    Verdict,
    judge,
    overall,
)
from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.round_trips import RoundTrips, round_trips_of
from wanlat.analysis.groups import Group, grouped
from wanlat.analysis.placement import PLACEMENTS
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Comparison",
    "Endpoint",
    "Kind",
    "Limit",
    "NotAlikeError",
    "Quantity",
    "Thresholds",
    "Verdict",
    "compare",
]

DEFAULT_GATE = {True: (Kind.ROUND_TRIPS,), False: (Kind.LATENCY,)}
"""What is looked at unless told otherwise, of studies of round trips and of others.

What a machine is busy with moves latencies and intercepts, but no round trip and no packet.
"""

Modes = tuple[tuple[float, float], ...]
"""Share and round trips of each mode, the greatest share first."""

_OF_LATENCIES = {Kind.FAILURES, Kind.LATENCY, Kind.OUTLIERS}


@dataclass(frozen=True)
class Endpoint:
    """One endpoint at one placement, of one system in both bundles.

    `old` is None where NEW alone measured it (verdict `new`), `new` where OLD alone did (`gone`).
    """

    old: Group | None
    new: Group | None
    changes: tuple[Change, ...]
    verdict: Verdict
    fails: bool
    old_modes: Modes = ()
    new_modes: Modes = ()

    @property
    def group(self) -> Group:
        """What it is called, in NEW where that measured it."""
        group = self.new or self.old
        if group is None:
            raise ValueError("an endpoint of neither run")
        return group

    def change(self, quantity: Quantity) -> Change | None:
        """What became of `quantity`; None where it was not looked at."""
        return next((each for each in self.changes if each.quantity is quantity), None)


@dataclass(frozen=True)
class Comparison:
    """Two bundles, endpoint by endpoint.

    `at_rtt_ms` is the RTT at which latencies of studies of round trips are compared, None of other
    studies. `differs` says what was not alike and compared nevertheless. `notes` must be read with
    the figures.
    """

    old: Bundle
    new: Bundle
    of_round_trips: bool
    at_rtt_ms: float | None
    rules: Rules
    endpoints: tuple[Endpoint, ...]
    differs: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def failing(self) -> list[Endpoint]:
        """The endpoints that fail the gate."""
        return [each for each in self.endpoints if each.fails]

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return not self.failing

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many endpoints have each verdict."""
        found = Counter(each.verdict for each in self.endpoints)
        return {verdict: found[verdict] for verdict in Verdict}


def compare(
    old: Bundle,
    new: Bundle,
    thresholds: Thresholds,
    *,
    gate: Collection[Kind] | None = None,
    renamed: Mapping[str, str] | None = None,
    at_rtt_ms: float | None = None,
    force: bool = False,
    allow_missing: bool = False,
    strict: bool = False,
) -> Comparison:
    """What became of every endpoint of `old` in `new`.

    `gate`: the kinds that may fail it; failures always do, because latencies are only of requests
    that did not. Default: round trips where they were measured, else latency. `renamed`: see
    `conditions.pair_systems`. `at_rtt_ms`: where latencies of studies of round trips are compared.
    `force`: also where the bundles were not measured alike. `allow_missing`: what NEW or OLD has no
    figure of fails nothing. `strict`: what is beyond its threshold fails even where it may be
    chance.

    Raises BundleError where nothing can be compared, and NotAlikeError.
    """
    of_round_trips = conditions.are_of_round_trips(old, new)
    rules = Rules(thresholds, _gate(gate, of_round_trips), strict, allow_missing)
    pairs = conditions.pair_systems(old, new, renamed or {})
    both = [(one.system, other.system) for one, other in pairs if one and other]
    differs = conditions.what_differs(old, new, both)
    if differs and not force:
        raise NotAlikeError(
            "The bundles were not measured alike, so that a difference need not be the store's: "
            f"{'; '.join(differs)}. Measure both the same way, or say --force to compare them "
            "nevertheless."
        )
    if not of_round_trips and at_rtt_ms is not None:
        raise BundleError(
            "--at is of studies of round trips; these bundles have latencies at one RTT each."
        )
    if of_round_trips:
        at_rtt_ms = conditions.reference_rtt_ms(old, new, both, at_rtt_ms)
        endpoints = _by_round_trips(old, new, pairs, at_rtt_ms, rules)
    else:
        endpoints = _by_latency(old, new, pairs, rules)
    if not any(each.old and each.new for each in endpoints):
        apis = [
            conditions.api_of(bundle, name)
            for bundle, name in zip((old, new), both[0], strict=True)
        ]
        raise BundleError(
            f"No endpoint is in both {old.directory} (of {apis[0]}) and {new.directory} (of "
            f"{apis[1]}). Run the same study for both."
        )
    notes = tuple(conditions.what_to_know(old, new, both))
    return Comparison(old, new, of_round_trips, at_rtt_ms, rules, endpoints, differs, notes)


def _gate(gate: Collection[Kind] | None, of_round_trips: bool) -> tuple[Kind, ...]:
    """The kinds the gate looks at, in order. Raises BundleError for what was not measured."""
    wanted = set(DEFAULT_GATE[of_round_trips] if gate is None else gate) | {Kind.FAILURES}
    if not of_round_trips and wanted != set(Kind) and wanted - _OF_LATENCIES:
        unknown = [kind for kind in Kind if kind in wanted - _OF_LATENCIES]
        raise BundleError(
            f"--gate {','.join(unknown)}: these bundles are of a study that does not measure it. "
            "`wanlat run round-trips` does."
        )
    return tuple(kind for kind in Kind if kind in wanted)


def _by_round_trips(
    old: Bundle, new: Bundle, pairs: Sequence[Pair], at_rtt_ms: float, rules: Rules
) -> tuple[Endpoint, ...]:
    before, after = ({one.group: one for one in round_trips_of(bundle)} for bundle in (old, new))

    def found(one: Group, other: Group) -> list[Change]:
        pair, step = (before[one], after[other]), rules.thresholds.round_trips
        figures = [
            differences.of_round_trips(*each, at_rtt_ms, step) for each in (pair, pair[::-1])
        ]
        return differences.of_figures(figures[0], figures[1], rules.thresholds)

    def modes(entries: Mapping[Group, RoundTrips], group: Group | None) -> Modes:
        shown = entries[group].modes if group else ()
        return tuple((mode.share, mode.round_trips) for mode in shown)

    return tuple(
        replace(each, old_modes=modes(before, each.old), new_modes=modes(after, each.new))
        for each in _judged(old, pairs, before, after, found, rules)
    )


def _by_latency(
    old: Bundle, new: Bundle, pairs: Sequence[Pair], rules: Rules
) -> tuple[Endpoint, ...]:
    before, after = grouped(old.measured), grouped(new.measured)

    def figures(bundle: Bundle, rows: pd.DataFrame, group: Group) -> Figures:
        calibration = bundle.calibration
        if calibration is None or calibration.trusts(group.series.system):
            return differences.of_latencies(rows)
        distrusted = Figure(None, why="its calibration failed.")
        return dict.fromkeys((Quantity.MEDIAN, Quantity.MEAN, Quantity.FAILURES), distrusted)

    def found(one: Group, other: Group) -> list[Change]:
        sides = figures(old, before[one], one), figures(new, after[other], other)
        return differences.of_figures(*sides, rules.thresholds)

    return tuple(_judged(old, pairs, before, after, found, rules))


def _judged(
    old: Bundle,
    pairs: Iterable[Pair],
    before: Collection[Group],
    after: Collection[Group],
    found: Callable[[Group, Group], list[Change]],
    rules: Rules,
) -> Iterator[Endpoint]:
    """Every endpoint and placement of either, system by system, in the order of tables."""
    rows: list[tuple[Group | None, Group | None]] = []
    for one, other in pairs:
        mine = {group[1:]: group for group in before if group.series == one}
        theirs = {group[1:]: group for group in after if group.series == other}
        names = (endpoint for endpoint, _ in {**mine, **theirs})
        for name in endpoint_order(names, old.manifest.get("study")):
            for place in ((name, placement) for placement in PLACEMENTS):
                if place in mine or place in theirs:
                    rows.append((mine.get(place), theirs.get(place)))
    each_found = [found(a, b) if a and b else [] for a, b in rows]
    for (old_group, new_group), changes in zip(rows, judge(each_found, rules), strict=True):
        verdict, fails = overall(changes), any(change.fails for change in changes)
        if new_group is None:
            verdict, fails = Verdict.GONE, not rules.allow_missing
        elif old_group is None:
            verdict = Verdict.NEW
        yield Endpoint(old_group, new_group, changes, verdict, fails)
