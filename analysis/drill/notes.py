"""The sentences that must stand beside a drill's figures, because the figures cannot say them."""

from __future__ import annotations

from collections.abc import Iterator

from wanlat.analysis.drill.failures import wrong_reads
from wanlat.analysis.drill.model import Drill
from wanlat.analysis.names import count, listing
from wanlat.analysis.notes import notes_on as on_the_bundle

_NAMED_AT_MOST = 6
_LATE_MS = 100.0


def notes_on(drill: Drill) -> tuple[str, ...]:
    """What a reader of the figures of `drill` must know, most important first; often nothing.

    How it ended, its outages and its durability are said by `wanlat.analysis.drill.wording`.
    """
    return (
        *_on_what_was_cut(drill),
        *_on_durability(drill),
        *_on_what_was_served(drill),
        *_on_recovery(drill),
        *_on_the_first_phase(drill),
        *_on_faults(drill),
        *_on_deaths(drill),
        *on_the_bundle(drill.bundle, ()),
    )


def _on_what_was_cut(drill: Drill) -> Iterator[str]:
    for phase in drill.phases:
        if phase.begin_s is not None and phase.end_s is not None and not phase.complete:
            yield f"`{phase.name}` was cut short after {phase.end_s - phase.begin_s:.1f} s."
    if drill.bundle.truncated:
        yield "The last line of samples.jsonl is cut short and left out."


def _on_durability(drill: Drill) -> Iterator[str]:
    durability = drill.durability
    if durability.verdict == "unknown":
        yield f"Whether anything was lost is not known: {durability.why}."
    if durability["recovered"]:
        were = "was" if durability["recovered"] == 1 else "were"
        yield (
            f"{count(durability['recovered'], 'write')} of which nobody knew whether it was "
            f"executed {were} found (recovered): that is no error."
        )
    if durability.late:
        yield (
            f"{count(durability.late, 'key')} not found at first by some node, and found when it "
            "was asked again."
        )


def _on_what_was_served(drill: Drill) -> Iterator[str]:
    if wrong := wrong_reads(drill):
        yield (
            f"{count(wrong, 'read')} during the phases got other bytes than were written there: "
            "they count as failures."
        )


def _on_recovery(drill: Drill) -> Iterator[str]:
    early = [outage for outage in drill.outages if outage.before_fault]
    if early:
        names = dict.fromkeys(f"{each.client}/{each.operation}" for each in early)
        yield (
            f"{count(len(early), 'outage')} began before anything was broken "
            f"({listing(list(names), _NAMED_AT_MOST)}): they count for no fault."
        )


def _on_the_first_phase(drill: Drill) -> Iterator[str]:
    first_fault_s = min((fault.acts_from_s for fault in drill.faults), default=None)
    rows = drill.requests[drill.requests["phase"] == "before"]
    if first_fault_s is not None:  # what was in flight when it began is its doing
        rows = rows[~(rows["end_s"] > first_fault_s)]
    for operation, of_it in rows.groupby("operation"):
        failed = int((of_it["outcome"] != "ok").sum())
        if failed:
            yield (
                f"Not everything was well before the fault: {failed} of "
                f"{count(len(of_it), str(operation))} not ok."
            )
    behind = [client.name for client in drill.clients if _falls_behind(drill, client.phases)]
    if behind:
        yield (
            f"Requests waited in line although nothing was broken yet "
            f"({listing(behind, _NAMED_AT_MOST)}): they take longer than `interval` is. Latencies "
            "from when they were due grow with the length of the phase; choose a longer `interval`."
        )
    unknown = [client.name for client in drill.clients if client.limit_ms is None]
    if unknown and drill.faults:
        yield (
            "Too few answers before the fault to say what is normal "
            f"({listing(unknown, _NAMED_AT_MOST)}): only requests that failed count as an outage."
        )


def _falls_behind(drill: Drill, phases: object) -> bool:
    """Whether half of the requests of the first phase were sent at least `interval` too late."""
    if not isinstance(phases, dict) or drill.interval_ms is None:
        return False
    figures = phases["before"]
    due_ms, start_ms = figures.from_due.p50_ms, figures.from_start.p50_ms
    return due_ms is not None and start_ms is not None and due_ms - start_ms > drill.interval_ms


def _on_faults(drill: Drill) -> Iterator[str]:
    open_ones = [fault.label for fault in drill.faults if fault.end_s is None]
    if open_ones:
        yield f"Not healed by the end of the record: {listing(open_ones, _NAMED_AT_MOST)}."
    late = [
        f"{fault.label} by {fault.late_ms:.0f} ms"
        for fault in drill.faults
        if fault.late_ms is not None and fault.late_ms > _LATE_MS
    ]
    if late:
        yield f"Injected later than planned: {listing(late, _NAMED_AT_MOST)}."
    off = [again.subject for again in drill.recalibrations if not again.passed]
    if off:
        yield f"Not what they were before their fault: {listing(off, _NAMED_AT_MOST)}."


def _on_deaths(drill: Drill) -> Iterator[str]:
    if drill.deaths:
        told = [
            f"{mark.subject} at {mark.at_s:.1f} s{f' ({mark.detail})' if mark.detail else ''}"
            for mark in drill.deaths
        ]
        yield f"Ended by itself: {listing(told, _NAMED_AT_MOST)}."
