"""A bundle of kind "drill" made into a `Drill`, however far the drill got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle, Series, read_bundle
from wanlat.analysis.claims import Verdict
from wanlat.analysis.figures.drill.claims import claims_of
from wanlat.analysis.figures.drill.durability import (
    Ledger,
    durability_of,
    read_ledger,
    read_verification,
)
from wanlat.analysis.figures.drill.events import Record, read_events
from wanlat.analysis.figures.drill.model import Drill, Place
from wanlat.analysis.figures.drill.outages import clients_of, recovery_of_all
from wanlat.analysis.figures.drill.requests import by_endpoint, phases_of, quantity, requests_of
from wanlat.analysis.names import count
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import pandas as pd

_ENDED = {"running": "killed", "interrupted": "interrupted", "failed": "failed"}
_WRONG_BYTES = ("checksum mismatch", "length mismatch")
"""How the probe says that the bytes of an answer are not those that were written."""


def read_drill(bundle: Bundle | Path | str) -> Drill:
    """Read the drill in `bundle`; BundleError if it is none or is damaged.

    One that was killed at any moment can be read: what it did not get to is None or empty.
    """
    if not isinstance(bundle, Bundle):
        bundle = read_bundle(bundle)
    if not bundle.is_drill:
        raise BundleError(
            f"{bundle.directory} is no bundle of a drill; `wanlat drill run` makes them."
        )
    if "drill" not in bundle.derived:
        drill = _read(bundle)
        bundle.derived["drill"] = replace(drill, failures=tuple(_failures(drill)))
    found: Drill = bundle.derived["drill"]
    return found


def how_it_ended(drill: Drill) -> str | None:
    """How the drill ended, if it did not end as it should."""
    how = _ENDED.get(drill.status)
    return f"The drill {'failed' if how == 'failed' else f'was {how}'}" if how else None


def _read(bundle: Bundle) -> Drill:
    manifest = bundle.manifest
    spec = manifest.get("drill") or {}
    events = read_events(bundle.directory)
    begins_ns = [e.t_ns for e in events if e.kind == "phase" and e.subject == "before"]
    origin_ns = begins_ns[-1] if begins_ns else _origin_ns(manifest, bundle.samples)
    if origin_ns is None and events:
        origin_ns = events[0].t_ns
    record = Record(events, origin_ns or 0)
    requests = requests_of(bundle.samples, record.origin_ns)
    # Phases are noted by their plan, so they are no instants of which anything is known.
    known_s = [record.s(event) for event in events if event.kind != "phase"]
    known_s += [*requests["due_s"].dropna(), *requests["end_s"].dropna()]
    phases = phases_of(
        requests,
        record.phase_begins,
        {name: quantity(length) for name, length in (spec.get("phases") or {}).items()},
        record_end_s=max(known_s, default=None),
        was_cut_short=bundle.status in ("interrupted", "failed"),
    )
    places = _places(manifest)
    interval_ms, deadline_ms = _ms(spec.get("interval")), _ms(spec.get("deadline"))
    until_s = max((phase.end_s for phase in phases if phase.end_s is not None), default=0.0)
    faults = record.faults
    names = [place.name for place in places]
    clients = clients_of(requests, names, faults, interval_ms=interval_ms, until_s=until_s)
    overall = recovery_of_all(clients)
    ledger = read_ledger(bundle.directory)
    durability = durability_of(
        ledger, read_verification(bundle.directory), _unledgered(requests, ledger)
    )
    stages = record.of("stage")
    errors = requests.loc[requests["operation"] == "read", "error"].fillna("").astype(str)
    return Drill(
        bundle=bundle,
        name=bundle.study,
        description=str(spec.get("description") or ""),
        series=bundle.systems[0] if bundle.systems else Series("", ""),
        topology=bundle.topology,
        status=bundle.status,
        # Of a killed drill an event may name a stage that the manifest does not.
        reached=stages[-1].subject if stages else manifest.get("reached"),
        reason=manifest.get("reason"),
        scale=float(spec.get("scale") or 1.0),
        interval_ms=interval_ms,
        deadline_ms=deadline_ms,
        stated_time_s=manifest.get("stated_time_s"),
        roles={name: tuple(nodes) for name, nodes in (manifest.get("roles") or {}).items()},
        places=places,
        origin_ns=origin_ns,
        end_s=max(known_s, default=None),
        requests=requests,
        phases=phases,
        endpoints=by_endpoint(requests),
        clients=clients,
        faults=faults,
        deaths=record.deaths,
        recalibrations=record.recalibrations,
        longest_outage_s=max((one.longest_outage_s for one in clients), default=0.0),
        recovered=overall.recovered,
        recovery_s=overall.recovery_s,
        recovery_after_heal_s=overall.after_heal_s,
        durability=durability,
        claims=claims_of(manifest.get("claims") or (), requests, phases, places, durability),
        wrong_reads=int(errors.str.startswith(_WRONG_BYTES).sum()),
    )


def _failures(drill: Drill) -> Iterator[str]:
    """Everything that did not hold, a sentence each, the worst first."""
    durability = drill.durability
    if (how := how_it_ended(drill)) is not None:
        yield f"{how}{f': {drill.reason.rstrip(chr(46))}' if drill.reason else ''}."
    if durability.verdict != "pass":
        yield f"Durability is {durability.verdict}: {durability.why}."
    if drill.status == "complete" and drill.requests.empty:
        yield "Not one request is recorded."
    if drill.wrong_reads:
        yield f"{count(drill.wrong_reads, 'read')} answered with other bytes than were written."
    if durability.unledgered:
        yield f"{count(durability.unledgered, 'write')} sent that the ledger does not have."
    for claim in drill.claims:
        if claim.verdict is Verdict.DOES_NOT_HOLD:
            yield f"“{claim.claim}” does not hold: {claim.evidence}."
    if recorded := drill.bundle.manifest.get("failures"):
        yield from recorded
        return
    for again in drill.recalibrations:
        if not again.passed:
            yield f"{again.subject} is not what it was before its fault."


def _origin_ns(manifest: Mapping[str, Any], samples: pd.DataFrame) -> int | None:
    """The begin of `before` where no event says it: as planned; else when its first was due."""
    if isinstance(planned_ns := manifest.get("origin_ns"), int):
        return planned_ns
    due_ns = samples.loc[samples["phase"] == "before", "due_ns"].dropna()
    return int(due_ns.min()) if len(due_ns) else None


def _unledgered(requests: pd.DataFrame, ledger: Ledger | None) -> int:
    """How many writes were sent whose key the ledger does not have."""
    sent = requests[(requests["operation"] == "write") & requests["sent"]]
    keys = sent["key"].dropna()
    return len(keys) if ledger is None else int((~keys.isin(list(ledger.keys))).sum())


def _places(manifest: Mapping[str, Any]) -> tuple[Place, ...]:
    return tuple(
        Place(name, place["node"], place["site"], place["target"])
        for name, place in (manifest.get("clients") or {}).items()
    )


def _ms(value: object) -> float | None:
    length_s = quantity(value)
    return None if length_s is None else length_s * 1000
