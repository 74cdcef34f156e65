"""The sentences that must stand beside figures of round trips, because the figures cannot say them.

First what makes them less than they seem: why there is no number, where the two answers disagree,
what was left out. What is wrong with every figure stands before what is wrong with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wanlat.analysis.agreement import percent
from wanlat.analysis.bundle import Bundle
from wanlat.analysis.names import count, display_system, format_trips, listing, series_labels
from wanlat.analysis.notes import on_calibration, on_the_run, run_note
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.round_trips_block import RoundTrips
from wanlat.analysis.summary import grouped
from wanlat.analysis.visits import Visit, Visits

_NAMED_AT_MOST = 6
_DISAGREEMENTS_AT_MOST = 12
_DISTURBING = ("loss", "rate", "duplicate", "corrupt")


def notes_on_round_trips(
    bundle: Bundle, visits: Visits, entries: Sequence[RoundTrips]
) -> tuple[str, ...]:
    """What a reader of the figures must know, most important first; often only what they mean."""
    return (
        *on_the_run(bundle),
        *on_calibration(bundle),
        *_on_no_number(entries),
        *on_disagreements(entries),
        *_on_beaten_least(entries),
        *_on_no_chain(entries),
        *_on_visits(bundle, visits),
        *_on_links(bundle),
        *_on_unexplained(entries),
        *_on_failures(entries),
        *_on_placement(entries),
    )


def why_not_all(entries: Sequence[RoundTrips]) -> list[str]:
    """Why rows have no number, one sentence a reason, with the rows it holds for."""
    return _by_reason(entries, lambda entry: entry.why)


def _on_no_number(entries: Sequence[RoundTrips]) -> list[str]:
    return [f"No number of round trips. {said}" for said in why_not_all(entries)]


def _on_no_chain(entries: Sequence[RoundTrips]) -> list[str]:
    return [f"No chain. {said}" for said in _by_reason(entries, lambda entry: entry.why_no_chain)]


def on_disagreements(entries: Sequence[RoundTrips]) -> list[str]:
    """Which rows have two answers, and in what they differ."""
    differing = [entry for entry in entries if entry.agrees is False]
    if not differing:
        return []
    named = zip(names_of(differing, entries), differing, strict=True)
    parts = [f"{name}: {entry.disagreement}" for name, entry in named]
    return [
        f"The two answers disagree in {count(len(differing), 'row')} of {len(entries)}, marked ≠. "
        f"{listing(parts, _DISAGREEMENTS_AT_MOST)}."
    ]


def _on_beaten_least(entries: Sequence[RoundTrips]) -> list[str]:
    """Rows that are faster than what no store with their promise can be: one of both is wrong."""
    below = [entry for entry in entries if is_below_least(entry)]
    if not below:
        return []
    named = zip(names_of(below, entries), below, strict=True)
    parts = [
        f"{name} ({format_trips(entry.round_trips)} against {entry.least_round_trips:g})"
        for name, entry in named
    ]
    return [
        "Fewer round trips than a store can make that keeps the promise assumed for its "
        f"placement: {listing(parts, _NAMED_AT_MOST)}. Either it does not keep it, or the least "
        "is not what was assumed."
    ]


def is_below_least(entry: RoundTrips) -> bool:
    """Whether the whole interval lies below the least round trips."""
    if entry.ci95 is None or entry.least_round_trips is None:
        return False
    return entry.ci95[1] < entry.least_round_trips - 0.1


def _on_visits(bundle: Bundle, visits: Visits) -> list[str]:
    notes = []
    if out := [visit for visit in visits.all if not visit.counts]:
        measured = bundle.measured
        requests = sum(
            int(((measured["system"] == v.system) & (measured["rtt_step"] == v.number)).sum())
            for v in out
        )
        notes.append(
            f"{count(len(out), 'visit')} of {len(visits.all)} left out with "
            f"{count(requests, 'request')}, because calibration failed: "
            f"{listing([_named(bundle, visit) for visit in out], _NAMED_AT_MOST)}."
        )
    if stray := _without_a_visit(bundle, visits):
        how = run_note(bundle)
        when = " of the visit in which the run ended" if how else ""
        notes.append(
            f"{count(stray, 'request')}{when} left out: what RTT the links had is not on record."
        )
    return notes


def _named(bundle: Bundle, visit: Visit) -> str:
    system = f"{display_system(visit.system)} " if len(bundle.systems) > 1 else ""
    reasons = [reason for pair in visit.pairs if not pair.passed for reason in pair.reasons]
    why = f" ({reasons[0].rstrip('.')})" if reasons else ""
    return f"{system}visit {visit.number + 1} at {visit.requested_rtt_ms:g} ms{why}"


def _without_a_visit(bundle: Bundle, visits: Visits) -> int:
    known = {(visit.system, visit.number) for visit in visits.all}
    stray = 0
    for group, rows in grouped(bundle.measured).items():
        numbers = rows["rtt_step"]
        stray += int(numbers.isna().sum())
        stray += sum((group.series.system, int(number)) not in known for number in numbers.dropna())
    return stray


def _on_links(bundle: Bundle) -> list[str]:
    """Impairments that do not forbid the number, and widen it or move the intercept."""
    disturbed = sorted({name for link in _links(bundle) for name in _DISTURBING if link.get(name)})
    if not disturbed:
        return []
    said = {
        "loss": "a lost packet is sent again after a timer, and its request lies on no line",
        "rate": "a rate adds the time to send the bytes, which is in the intercept",
        "duplicate": "a copy costs bytes and packets",
        "corrupt": "a damaged packet is lost",
    }
    return [
        f"The links have {' and '.join(disturbed)}: {'; '.join(said[name] for name in disturbed)}."
    ]


def _links(bundle: Bundle) -> Iterator[Mapping[str, Any]]:
    topology = bundle.manifest.get("topology")
    links = topology.get("links") if isinstance(topology, Mapping) else None
    if not isinstance(links, Mapping):
        return
    pairs = links.get("pairs")
    for link in (links.get("default"), *(pairs if isinstance(pairs, list) else ())):
        if isinstance(link, Mapping):
            yield link


def _on_unexplained(entries: Sequence[RoundTrips]) -> list[str]:
    some = [entry for entry in entries if entry.why is None and entry.unexplained]
    if not some:
        return []
    total = sum(entry.unexplained or 0 for entry in some)
    of = sum(entry.ok for entry in entries if entry.why is None)
    named = zip(names_of(some, entries), some, strict=True)
    parts = [f"{name} {entry.unexplained} of {entry.ok}" for name, entry in named]
    return [
        f"{count(total, 'request')} of {of} on no line ({percent(total / of)}), in no mode and no "
        f"slope: {listing(parts, _NAMED_AT_MOST)}."
    ]


def _on_failures(entries: Sequence[RoundTrips]) -> list[str]:
    troubled = [entry for entry in entries if entry.failed]
    if not troubled:
        return []
    named = zip(names_of(troubled, entries), troubled, strict=True)
    parts = [f"{name} {entry.failed} of {entry.n}" for name, entry in named]
    return [f"Requests that were not ok are in no figure: {listing(parts, _NAMED_AT_MOST)}."]


def _on_placement(entries: Sequence[RoundTrips]) -> list[str]:
    return [MEANING] if any(is_known(entry.placement) for entry in entries) else []


def _by_reason(
    entries: Sequence[RoundTrips], reason_of: Callable[[RoundTrips], str | None]
) -> list[str]:
    """Each reason once, and the rows it holds for where it is not all of them."""
    reasons = dict.fromkeys(reason for entry in entries if (reason := reason_of(entry)))
    said = []
    for reason in reasons:
        rows = [entry for entry in entries if reason_of(entry) == reason]
        systems = {entry.series for entry in rows}
        if len(rows) == len(entries):
            where = ""
        elif rows == [entry for entry in entries if entry.series in systems]:
            labels = series_labels(list(dict.fromkeys(entry.series for entry in entries)))
            where = f" ({', '.join(labels[one] for one in labels if one in systems)})"
        else:
            where = f" ({listing(names_of(rows, entries), _NAMED_AT_MOST)})"
        said.append(f"{reason.rstrip('.')}{where}.")
    return said


def names_of(some: Sequence[RoundTrips], among: Sequence[RoundTrips]) -> list[str]:
    """ "Garage 2.5.0 GetObject" for each of `some`, told apart from all `among`."""
    labels = series_labels(list(dict.fromkeys(entry.series for entry in among)))
    return [
        with_placement(f"{labels[entry.series]} {entry.endpoint}", entry.placement)
        for entry in some
    ]
