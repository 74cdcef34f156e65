"""A bundle of kind "drill" made into a `Drill`, however far the drill got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle, Series, read_bundle
from wanlat.analysis.drill import events as happened
from wanlat.analysis.drill.claims import Measured, claims_of
from wanlat.analysis.drill.clients import Course, clients_of
from wanlat.analysis.drill.durability import durability_of
from wanlat.analysis.drill.figures import by_endpoint
from wanlat.analysis.drill.ledger import Ledger, read_ledger
from wanlat.analysis.drill.model import Drill, Place
from wanlat.analysis.drill.notes import notes_on
from wanlat.analysis.drill.phases import phases_of
from wanlat.analysis.drill.quantities import seconds
from wanlat.analysis.drill.recovery import Recovery, of_all
from wanlat.analysis.drill.requests import requests_of
from wanlat.analysis.drill.verification import read_verification
from wanlat.bundle.errors import BundleError

if TYPE_CHECKING:
    import pandas as pd

_CUT_SHORT = ("interrupted", "failed")


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
    manifest = bundle.manifest
    spec = _mapping(manifest.get("drill"))
    events = happened.read_events(bundle.directory)
    known_origin_ns = _origin_ns(manifest, events, bundle.samples)
    origin_ns = known_origin_ns or 0
    requests = requests_of(bundle.samples, origin_ns)
    record_end_s = _record_end_s(events, requests, origin_ns)
    faults = happened.fault_windows(events, origin_ns)
    phases = phases_of(
        requests,
        {name: (t_ns - origin_ns) / 1e9 for name, t_ns in happened.phase_marks(events).items()},
        {name: seconds(length) for name, length in _mapping(spec.get("phases")).items()},
        record_end_s=record_end_s,
        was_cut_short=bundle.status in _CUT_SHORT,
    )
    places = _places(manifest.get("clients"))
    interval_ms, deadline_ms = _ms(spec.get("interval")), _ms(spec.get("deadline"))
    ends_s = [phase.end_s for phase in phases if phase.end_s is not None]
    course = Course.of(
        faults,
        interval_ms=interval_ms,
        until_s=max(ends_s, default=0.0),
    )
    clients = clients_of(requests, [place.name for place in places], course)
    overall = of_all(
        Recovery(one.recovered, one.recovery_s, one.recovery_after_heal_s) for one in clients
    )
    ledger = read_ledger(bundle.directory)
    rounds = read_verification(bundle.directory)
    durability = durability_of(ledger, rounds, _unledgered(requests, ledger))
    series = _series(bundle)
    measured = Measured(requests, phases, places, durability)
    drill = Drill(
        bundle=bundle,
        name=bundle.study,
        description=str(spec.get("description") or ""),
        series=series,
        topology=bundle.topology,
        status=bundle.status,
        reached=_reached(manifest, events),
        reason=None if manifest.get("reason") is None else str(manifest["reason"]),
        scale=_number(spec.get("scale")) or 1.0,
        interval_ms=interval_ms,
        deadline_ms=deadline_ms,
        stated_time_s=_number(manifest.get("stated_time_s")),
        roles={
            str(name): tuple(str(node) for node in nodes)
            for name, nodes in _mapping(manifest.get("roles")).items()
            if isinstance(nodes, list)
        },
        places=places,
        origin_ns=known_origin_ns,
        end_s=record_end_s,
        requests=requests,
        phases=phases,
        endpoints=by_endpoint(requests),
        clients=clients,
        faults=faults,
        marks=happened.other_marks(events, origin_ns),
        recalibrations=happened.recalibrations(events, origin_ns),
        longest_outage_s=max((one.longest_outage_s for one in clients), default=0.0),
        recovered=overall.recovered,
        recovery_s=overall.recovery_s,
        recovery_after_heal_s=overall.after_heal_s,
        durability=durability,
        claims=claims_of(manifest.get("claims") or (), measured),
        notes=(),
    )
    return replace(drill, notes=notes_on(drill))


def _origin_ns(
    manifest: Mapping[str, Any], events: Sequence[happened.Event], samples: pd.DataFrame
) -> int | None:
    """The planned begin of `before`; else the first thing that is known to have happened."""
    if (begin_ns := happened.phase_marks(events).get("before")) is not None:
        return begin_ns
    if isinstance(planned_ns := manifest.get("origin_ns"), int):
        return planned_ns
    due_ns = samples.loc[samples["phase"] == "before", "due_ns"].dropna()
    if len(due_ns):
        return int(due_ns.min())
    return events[0].t_ns if events else None


def _record_end_s(
    events: Sequence[happened.Event], requests: pd.DataFrame, origin_ns: int
) -> float | None:
    """The last instant of which anything is known. Phases are noted by their plan, so not they."""
    known_s = [(event.t_ns - origin_ns) / 1e9 for event in events if event.kind != "phase"]
    for column in ("due_s", "end_s"):
        known_s += requests[column].dropna().tolist()
    return max(known_s, default=None)


def _unledgered(requests: pd.DataFrame, ledger: Ledger | None) -> int:
    """How many writes were sent whose key the ledger does not have."""
    sent = requests[(requests["operation"] == "write") & requests["sent"]]
    keys = sent["key"].dropna()
    return len(keys) if ledger is None else int((~keys.isin(list(ledger.keys))).sum())


def _places(entries: object) -> tuple[Place, ...]:
    return tuple(
        Place(
            name=str(name),
            node=str(place.get("node", "")),
            site=str(place.get("site", "")),
            target=str(place.get("target") or place.get("node", "")),
        )
        for name, place in _mapping(entries).items()
        if isinstance(place, Mapping)
    )


def _series(bundle: Bundle) -> Series:
    return bundle.systems[0] if bundle.systems else Series("", "")


def _reached(manifest: Mapping[str, Any], events: Sequence[happened.Event]) -> str | None:
    """The last stage: of a killed drill an event may tell of one that the manifest does not."""
    told = happened.stage_reached(events) or manifest.get("reached")
    return None if told is None else str(told)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _ms(value: object) -> float | None:
    length_s = seconds(value)
    return None if length_s is None else length_s * 1000
