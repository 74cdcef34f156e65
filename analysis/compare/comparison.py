"""The comparison of two bundles, from their samples to the sentences of the gate."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.compare.conditions import api_of, what_differs, what_to_know
from wanlat.analysis.compare.finding import Finding, absent
from wanlat.analysis.compare.judge import Rules, judge, overall
from wanlat.analysis.compare.model import (
    FAILURES,
    MEAN,
    MEDIAN,
    Change,
    Compared,
    Comparison,
    Kind,
    ModeShare,
    Side,
    Verdict,
)
from wanlat.analysis.compare.pairs import pair_systems, series_of
from wanlat.analysis.compare.reference import reference_rtt_ms
from wanlat.analysis.compare.sentences import failure_sentence
from wanlat.analysis.compare.thresholds import Thresholds
from wanlat.analysis.endpoints import endpoint_order
from wanlat.analysis.placement import PLACEMENTS
from wanlat.analysis.summary import grouped
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    from wanlat.analysis.round_trips_block import RoundTrips

DEFAULT_GATE = {True: (Kind.ROUND_TRIPS,), False: (Kind.LATENCY,)}
"""What is looked at unless told otherwise, of studies of round trips and of others.

What a machine is busy with moves latencies and own times, but no round trip and no chain.
"""

_NAMED_AT_MOST = 6


class Place(NamedTuple):
    """What is compared with its like: an endpoint at a placement."""

    endpoint: str
    placement: str


class NotAlikeError(BundleError):
    """The bundles were not measured alike, so that a difference may not be the store's."""


def compare(
    old: Bundle,
    new: Bundle,
    thresholds: Thresholds,
    *,
    gate: Collection[Kind] | None = None,
    renamed: Mapping[str, str] | None = None,
    at_rtt_ms: float | None = None,
    anyway: bool = False,
    allow_missing: bool = False,
    strict: bool = False,
) -> Comparison:
    """What became of every endpoint of `old` in `new`.

    `gate`: the kinds that may fail it; failures always do, because latencies are only of requests
    that did not. Default: round trips where they were measured, else latency. `renamed`: see
    `pair_systems`. `at_rtt_ms`: where latencies of studies of round trips are compared. `anyway`:
    also where the bundles were not measured alike. `allow_missing`: what NEW or OLD has no figure
    of fails nothing. `strict`: what is beyond its threshold fails even where it may be chance.

    Raises BundleError where nothing can be compared, and NotAlikeError.
    """
    of_round_trips = _are_of_round_trips(old, new)
    kinds = _gate(gate, of_round_trips)
    pairs = pair_systems(old, new, renamed or {})
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    names = [(one.system, other.system) for one, other in both]
    differs = what_differs(old, new, names)
    if differs and not anyway:
        raise NotAlikeError(
            "The bundles were not measured alike, so that a difference need not be the store's: "
            f"{'; '.join(differs)}. Measure both the same way, or say --force to compare them "
            "nevertheless."
        )
    rules = Rules(thresholds, kinds, strict, allow_missing)
    if of_round_trips:
        at_rtt_ms = reference_rtt_ms(old, new, names, at_rtt_ms)
        endpoints = _by_round_trips(old, new, pairs, at_rtt_ms, rules)
    elif at_rtt_ms is not None:
        raise BundleError(
            "--at is of studies of round trips; these bundles have latencies at one RTT each."
        )
    else:
        endpoints = _by_latency(old, new, pairs, rules)
    _require_something_common(old, new, both, endpoints)
    return Comparison(
        old=_side(old),
        new=_side(new),
        of_round_trips=of_round_trips,
        at_rtt_ms=at_rtt_ms,
        gate=kinds,
        strict=strict,
        allow_missing=allow_missing,
        thresholds=thresholds,
        endpoints=endpoints,
        differs=differs,
        notes=(*what_to_know(old, new, names), *_on_calibration(old, new, both)),
        failures=tuple(failure_sentence(each, at_rtt_ms) for each in endpoints if each.fails),
    )


def _are_of_round_trips(old: Bundle, new: Bundle) -> bool:
    """Whether both are. Raises BundleError where one is and one is not, or one is of a drill."""
    from wanlat.analysis.visits import is_of_round_trips

    for bundle in (old, new):
        if bundle.is_drill:
            raise BundleError(
                f"{bundle.directory} is of a drill, and only studies are compared. "
                "`wanlat drill matrix` puts drills side by side."
            )
    kinds = [is_of_round_trips(bundle) for bundle in (old, new)]
    if kinds[0] is not kinds[1]:
        one, other = (old, new) if kinds[0] else (new, old)
        raise BundleError(
            f"{one.directory} is of a study of round trips and {other.directory} is not: they have "
            "no figure in common. Run the same study for both."
        )
    return kinds[0]


def _gate(gate: Collection[Kind] | None, of_round_trips: bool) -> tuple[Kind, ...]:
    """The kinds the gate looks at, in order. Raises BundleError for what was not measured."""
    wanted = set(DEFAULT_GATE[of_round_trips] if gate is None else gate) | {Kind.FAILURES}
    if gate is not None and not of_round_trips and set(gate) != set(Kind):
        known = {Kind.FAILURES, Kind.LATENCY, Kind.OUTLIERS}
        if unknown := [kind for kind in Kind if kind in wanted - known]:
            raise BundleError(
                f"--gate {','.join(unknown)}: these bundles are of a study that does not measure "
                "it. `wanlat run round-trips` does."
            )
    return tuple(kind for kind in Kind if kind in wanted)


def _by_round_trips(
    old: Bundle,
    new: Bundle,
    pairs: Iterable[tuple[Series | None, Series | None]],
    at_rtt_ms: float,
    rules: Rules,
) -> tuple[Compared, ...]:
    from wanlat.analysis.compare.of_round_trips import findings
    from wanlat.analysis.round_trips_block import round_trips_of

    before, after = (
        {(entry.series, Place(entry.endpoint, entry.placement)): entry for entry in entries}
        for entries in (round_trips_of(old), round_trips_of(new))
    )
    rows = _rows(pairs, before, after, old)
    found = [
        findings(before[one, place], after[other, place], at_rtt_ms, rules.thresholds)
        if one is not None and other is not None
        else []
        for one, other, place in rows
    ]
    return tuple(
        _compared(
            row,
            changes,
            rules,
            _modes(before.get((row[0], row[2])) if row[0] else None),
            _modes(after.get((row[1], row[2])) if row[1] else None),
        )
        for row, changes in zip(rows, judge(found, rules), strict=True)
    )


def _by_latency(
    old: Bundle,
    new: Bundle,
    pairs: Iterable[tuple[Series | None, Series | None]],
    rules: Rules,
) -> tuple[Compared, ...]:
    from wanlat.analysis.compare.of_latencies import findings

    before, after = (
        {(group.series, Place(group.endpoint, group.placement)): rows for group, rows in of.items()}
        for of in (grouped(old.measured), grouped(new.measured))
    )
    rows = _rows(pairs, before, after, old)
    found: list[list[Finding]] = []
    for one, other, place in rows:
        if one is None or other is None:
            found.append([])
        elif distrusted := _distrusted(old, new, one, other):
            found.append(
                [absent(each, None, None, distrusted) for each in (MEDIAN, MEAN, FAILURES)]
            )
        else:
            seed = _seed_of(old, new, one, other, place)
            found.append(findings(before[one, place], after[other, place], seed))
    return tuple(
        _compared(row, changes, rules)
        for row, changes in zip(rows, judge(found, rules), strict=True)
    )


_Row = tuple[Series | None, Series | None, Place]


def _rows(
    pairs: Iterable[tuple[Series | None, Series | None]],
    before: Collection[tuple[Series, Place]],
    after: Collection[tuple[Series, Place]],
    old: Bundle,
) -> list[_Row]:
    """Every endpoint and placement of either, system by system, in the order of tables."""
    rows: list[_Row] = []
    for one, other in pairs:
        mine = {place for series, place in before if series == one}
        theirs = {place for series, place in after if series == other}
        names = endpoint_order(
            (place.endpoint for place in mine | theirs), old.manifest.get("study")
        )
        rows += [
            (one if place in mine else None, other if place in theirs else None, place)
            for place in (Place(name, where) for name in names for where in PLACEMENTS)
            if place in mine | theirs
        ]
    return rows


def _compared(
    row: _Row,
    changes: tuple[Change, ...],
    rules: Rules,
    old_modes: tuple[ModeShare, ...] = (),
    new_modes: tuple[ModeShare, ...] = (),
) -> Compared:
    one, other, place = row
    if other is None:
        verdict, fails = Verdict.GONE, not rules.allow_missing
    elif one is None:
        verdict, fails = Verdict.NEW, False
    else:
        verdict, fails = overall(changes), any(change.fails for change in changes)
    return Compared(
        old=one,
        new=other,
        endpoint=place.endpoint,
        placement=place.placement,
        changes=changes,
        verdict=verdict,
        fails=fails,
        old_modes=old_modes,
        new_modes=new_modes,
    )


def _modes(entry: RoundTrips | None) -> tuple[ModeShare, ...]:
    if entry is None:
        return ()
    return tuple(ModeShare(mode.share, mode.round_trips) for mode in entry.modes)


def _distrusted(old: Bundle, new: Bundle, one: Series, other: Series) -> list[str | None]:
    """Why the network of either was not the one that was asked for; [] if it was."""
    whys = [
        "its calibration failed."
        if bundle.calibration is not None and not bundle.calibration.trusts(series.system)
        else None
        for bundle, series in ((old, one), (new, other))
    ]
    return whys if any(whys) else []


def _on_calibration(
    old: Bundle, new: Bundle, both: Sequence[tuple[Series, Series]]
) -> Iterable[str]:
    for side, bundle, position in (("OLD", old, 0), ("NEW", new, 1)):
        calibration = bundle.calibration
        if calibration is None:
            yield f"{side} stored no calibration: what RTT its network really had is not known."
        elif not all(calibration.trusts(pair[position].system) for pair in both):
            yield f"{side}: calibration failed, so the network was not what was asked for."


def _require_something_common(
    old: Bundle,
    new: Bundle,
    both: Sequence[tuple[Series, Series]],
    endpoints: Iterable[Compared],
) -> None:
    if any(each.old is not None and each.new is not None for each in endpoints):
        return
    apis = [
        api_of(bundle, both[0][position].system) or "an unknown API"
        for position, bundle in enumerate((old, new))
    ]
    raise BundleError(
        f"No endpoint is in both {old.directory} (of {apis[0]}) and {new.directory} (of "
        f"{apis[1]}). Run the same study for both."
    )


def _seed_of(old: Bundle, new: Bundle, one: Series, other: Series, place: Place) -> list[int]:
    """A seed of the pair's own: the same two bundles give the same intervals."""
    name = "\0".join((*one, *other, *place)).encode()
    return [abs(old.seed), abs(new.seed), zlib.crc32(name)]


def _side(bundle: Bundle) -> Side:
    started = bundle.manifest.get("started")
    return Side(
        directory=bundle.directory,
        study=bundle.study,
        topology=bundle.topology,
        started=str(started) if started else None,
        status=bundle.status,
        series=tuple(series_of(bundle).values()),
    )
