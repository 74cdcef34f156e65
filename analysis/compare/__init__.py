"""Two bundles compared: which endpoints changed, and whether any became worse.

docs/how-to/compare.md defines every figure and verdict. `compare` is the way in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from wanlat.analysis.compare import conditions, differences
from wanlat.analysis.compare.judge import (
    Change,
    Kind,
    Limit,
    Rules,
    Thresholds,
    Verdict,
    judge,
    overall,
)
from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.figures.round_trips import round_trips_of
from wanlat.analysis.groups import Group, grouped
from wanlat.analysis.section import Row
from wanlat.bundle.documents import PLACEMENTS, Study, Titles, titles_of
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import Run

__all__ = [
    "Comparison",
    "Kind",
    "Limit",
    "Thresholds",
    "Verdict",
    "compare",
]

_OF_LATENCIES = {Kind.FAILURES, Kind.LATENCY, Kind.OUTLIERS}


@dataclass(frozen=True)
class Comparison:
    """Two bundles, endpoint by endpoint.

    An endpoint is a row as its JSON has it (docs/how-to/compare.md), with its `changes`.
    `at_rtt_ms` is the RTT at which latencies of studies of round trips are compared, None of other
    studies. `differs`: what was not alike and compared nevertheless. `notes` must be read with the
    figures.
    """

    old: Run
    new: Run
    at_rtt_ms: float | None
    rules: Rules
    endpoints: Sequence[Row]
    differs: Sequence[str]
    notes: Sequence[str]

    @property
    def titles(self) -> Titles:
        """What systems are called, in NEW where it has them."""
        return titles_of(self.old.manifest, self.new.manifest)

    @property
    def failing(self) -> list[Row]:
        """The endpoints that fail the gate."""
        return [endpoint for endpoint in self.endpoints if endpoint["fails"]]

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return not self.failing


def compare(
    old: Run,
    new: Run,
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

    Raises BundleError where nothing can be compared, or what was not measured alike.
    """
    of_round_trips = conditions.are_of_round_trips(old, new)
    rules = Rules(thresholds, _gate(gate, of_round_trips), strict, allow_missing)
    pairs = conditions.pair_systems(old, new, renamed or {})
    differs = conditions.what_differs(old, new)
    if differs and not force:
        raise BundleError(
            "The bundles were not measured alike, so that a difference need not be the store's: "
            f"{'; '.join(differs)}. Measure both the same way, or say --force."
        )
    before, after = conditions.clusters_of(old), conditions.clusters_of(new)
    if (len(before) > 1) is not (len(after) > 1):
        one, other = (old, new) if len(before) > 1 else (new, old)
        raise BundleError(
            f"{one.directory} is of several clusters and {other.directory} of one: how much two "
            "starts differ is known of one of them only. Measure both with --replicates."
        )
    if of_round_trips:
        at_rtt_ms = conditions.reference_rtt_ms(before[0], after[0], at_rtt_ms)
    elif at_rtt_ms is not None:
        raise BundleError(
            "at_rtt_ms is of studies of round trips; these bundles have latencies at one RTT each."
        )
    mine, theirs = _measured(before), _measured(after)
    rows = list(_rows(pairs, mine, theirs, old.manifest.study))
    if not any(one and other for one, other in rows):
        raise BundleError(
            f"No endpoint is in both {old.directory} and {new.directory}. Run the same study for "
            "both."
        )

    def changes(one: Group | None, other: Group | None) -> list[Change]:
        if not (one and other):
            return []
        pair = (
            _figures(mine[one], theirs[other], at_rtt_ms, thresholds.round_trips),
            _figures(theirs[other], mine[one], at_rtt_ms, thresholds.round_trips),
        )
        return differences.of_figures(*pair, thresholds)

    changed = [changes(*pair) for pair in rows]
    judge(changed, rules)
    endpoints = [_endpoint(*pair, its, rules) for pair, its in zip(rows, changed, strict=True)]
    notes = list(conditions.what_to_know(old, new))
    if len(before) > 1:
        counts = f"{len(before)} against {len(after)}"
        notes.insert(0, f"Clusters: {counts}. A cluster is one value; intervals are over clusters.")
    return Comparison(old, new, at_rtt_ms, rules, endpoints, differs, notes)


def _gate(gate: Collection[Kind] | None, of_round_trips: bool) -> tuple[Kind, ...]:
    """The kinds the gate looks at, in order. Raises BundleError for what was not measured.

    What a machine is busy with moves latencies and intercepts, but no round trip and no packet: so
    round trips are the default where they were measured.
    """
    usual = [Kind.ROUND_TRIPS if of_round_trips else Kind.LATENCY]
    wanted = {*(usual if gate is None else gate), Kind.FAILURES}
    if not of_round_trips and wanted != set(Kind) and wanted - _OF_LATENCIES:
        raise BundleError(
            f"--gate {','.join(sorted(wanted - _OF_LATENCIES))}: these bundles are of a study that "
            "does not measure it. `wanlat run round-trips` does."
        )
    return tuple(kind for kind in Kind if kind in wanted)


def _measured(clusters_of: Sequence[Run]) -> dict[Group, list[Any]]:
    """What each cluster has of each endpoint: RoundTrips, or in other studies its figures."""
    measured: dict[Group, list[Any]] = {}
    for bundle in clusters_of:
        if bundle.has_rtt_steps:
            for entry in round_trips_of(bundle):
                measured.setdefault(entry.group, []).append(entry)
        else:
            for group, rows in grouped(bundle.measured).items():
                measured.setdefault(group, []).append(differences.of_latencies(rows))
    return measured


def _figures(
    mine: Sequence[Any], theirs: Sequence[Any], at_rtt_ms: float | None, step: float
) -> differences.Figures:
    """The figures of one endpoint: of its only cluster beside the other's, or over clusters."""
    if at_rtt_ms is not None:
        others = mine if len(mine) > 1 else theirs
        mine = [
            differences.of_round_trips(entry, other, at_rtt_ms, step)
            for entry, other in zip(mine, others, strict=False)
        ]
    return differences.over_clusters(mine) if len(mine) > 1 else mine[0]


def _rows(
    pairs: Sequence[conditions.Pair],
    before: Collection[Group],
    after: Collection[Group],
    study: Study | None,
) -> Iterator[tuple[Group | None, Group | None]]:
    """Every endpoint and placement of either, system by system, in the order of tables."""
    for one, other in pairs:
        mine = {group[1:]: group for group in before if group.series == one}
        theirs = {group[1:]: group for group in after if group.series == other}
        names = endpoint_order((name for name, _ in {**mine, **theirs}), study)
        places = [place for place in product(names, PLACEMENTS) if place in {**mine, **theirs}]
        yield from ((mine.get(place), theirs.get(place)) for place in places)


def _endpoint(
    old: Group | None, new: Group | None, changes: Sequence[Change], rules: Rules
) -> dict[str, Any]:
    """One endpoint at one placement; called as in NEW, where that measured it."""
    verdict, fails = overall(changes), any(change.fails for change in changes)
    if new is None:
        verdict, fails = Verdict.GONE, not rules.allow_missing
    elif old is None:
        verdict = Verdict.NEW
    (system, _), endpoint, placement = next(group for group in (new, old) if group)
    return {
        "system": system,
        "old_system": old and old.series.system,
        "old_version": old and old.series.version,
        "new_version": new and new.series.version,
        "endpoint": endpoint,
        "placement": placement,
        "verdict": verdict,
        "fails": fails,
        "changes": changes,
    }
