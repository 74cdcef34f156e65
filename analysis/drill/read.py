"""A bundle of kind "drill" made into a `Drill`, however far the drill got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.bundle import Bundle, Series, read_bundle
from analysis.drill import events as happened
from analysis.drill.claims import Measured, claims_of
from analysis.drill.disturbances import outages_of, slow_stretches_of, told
from analysis.drill.durability import durability_of
from analysis.drill.figures import by_endpoint, figures_of
from analysis.drill.ledger import Ledger, read_ledger
from analysis.drill.model import (
    OPERATIONS,
    PHASES,
    ClientFigures,
    Drill,
    FaultWindow,
    Phase,
    Vantage,
)
from analysis.drill.normal import normal_of
from analysis.drill.notes import notes_on
from analysis.drill.quantities import seconds
from analysis.drill.recovery import Recovery, of_all, recovery_of
from analysis.drill.requests import requests_of
from analysis.drill.verification import read_verification
from analysis.errors import BundleError

if TYPE_CHECKING:
    import pandas as pd


def read_drill(bundle: Bundle | Path | str) -> Drill:
    """Read the drill in `bundle`; BundleError if it is none or is damaged.

    One that was killed at any moment can be read: what it did not get to is None or empty.
    """
    if not isinstance(bundle, Bundle):
        bundle = read_bundle(bundle)
    if not bundle.is_drill:
        raise BundleError(f"{bundle.directory} is no bundle of a drill; `wanlat drill` makes them.")
    manifest = bundle.manifest
    spec = _mapping(manifest.get("drill"))
    events = happened.read_events(bundle.directory)
    origin_ns = _origin_ns(events, bundle.samples)
    requests = requests_of(bundle.samples, origin_ns or 0)
    record_end_s = _record_end_s(events, requests, origin_ns or 0)
    faults = happened.fault_windows(events, origin_ns or 0)
    phases = _phases(events, requests, bundle, origin_ns, record_end_s)
    vantages = _vantages(manifest.get("vantages"))
    clients = _clients(requests, vantages, spec, faults, _measured_until_s(phases, record_end_s))
    overall = of_all(
        Recovery(one.recovered, one.recovery_s, one.recovery_after_heal_s) for one in clients
    )
    ledger = read_ledger(bundle.directory)
    durability = durability_of(
        ledger, read_verification(bundle.directory), _unledgered(requests, ledger)
    )
    system = _system(manifest, bundle)
    measured = Measured(requests, phases, vantages, durability)
    drill = Drill(
        bundle=bundle,
        name=bundle.study,
        description=str(spec.get("description") or ""),
        series=system,
        topology=bundle.topology,
        status=bundle.status,
        reached=_reached(manifest, events),
        reason=None if manifest.get("reason") is None else str(manifest["reason"]),
        scale=_number(spec.get("scale"), 1.0) or 1.0,
        every_ms=_ms(spec.get("every")),
        deadline_ms=_ms(spec.get("deadline")),
        stated_time_s=_number(manifest.get("stated_time_s"), None),
        cast={
            str(name): tuple(str(node) for node in nodes)
            for name, nodes in _mapping(manifest.get("cast")).items()
            if isinstance(nodes, list)
        },
        vantages=vantages,
        origin_ns=origin_ns,
        end_s=record_end_s,
        requests=requests,
        phases=phases,
        endpoints=by_endpoint(requests),
        clients=clients,
        faults=faults,
        marks=happened.other_marks(events, origin_ns or 0),
        recalibrations=happened.recalibrations(events, origin_ns or 0),
        longest_outage_s=max((one.longest_outage_s for one in clients), default=0.0),
        recovered=overall.recovered,
        recovery_s=overall.recovery_s,
        recovery_after_heal_s=overall.after_heal_s,
        durability=durability,
        claims=claims_of(spec.get("claims"), system.system, measured),
        notes=(),
    )
    return replace(drill, notes=notes_on(drill))


def _origin_ns(events: Sequence[happened.Event], samples: pd.DataFrame) -> int | None:
    """The planned begin of `before`; else the first thing that is known to have happened."""
    if (begin_ns := happened.phase_marks(events).get("before")) is not None:
        return begin_ns
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
        known_s += requests[column].dropna().tail(1).tolist()
        known_s += [float(requests[column].max())] if requests[column].notna().any() else []
    return max(known_s, default=None)


def _phases(
    events: Sequence[happened.Event],
    requests: pd.DataFrame,
    bundle: Bundle,
    origin_ns: int | None,
    record_end_s: float | None,
) -> tuple[Phase, ...]:
    marks = happened.phase_marks(events)
    planned_s = {
        name: seconds(length)
        for name, length in _mapping(
            _mapping(bundle.manifest.get("drill")).get("phases")
        ).items()
    }
    found = []
    for name, following in zip(PHASES, (*PHASES[1:], "end"), strict=True):
        rows = requests[requests["phase"] == name]
        begin_s, end_s = None, None
        if name in marks and origin_ns is not None and record_end_s is not None:
            at_s = (marks[name] - origin_ns) / 1e9
            begin_s = at_s if record_end_s >= at_s or len(rows) else None
        elif len(rows):
            begin_s = float(rows["due_s"].min())
        complete = False
        if begin_s is not None and record_end_s is not None:
            if following in marks and origin_ns is not None:
                end_s = (marks[following] - origin_ns) / 1e9
            elif (length_s := planned_s.get(name)) is not None:
                end_s = begin_s + length_s
            last_s = _last_s(rows, record_end_s, bundle.status)
            complete = end_s is not None and last_s >= end_s - 1e-9
            end_s = end_s if complete else max(begin_s, last_s)
        found.append(
            Phase(
                name=name,
                begin_s=begin_s,
                end_s=end_s,
                complete=complete,
                reads=figures_of(rows[rows["operation"] == "read"]),
                writes=figures_of(rows[rows["operation"] == "write"]),
            )
        )
    return tuple(found)


def _last_s(rows: pd.DataFrame, record_end_s: float, status: str) -> float:
    """How far a phase was measured. After an interruption things go on happening, but no requests
    are sent; of a drill that was not cut short the record's end is enough.
    """
    if status in ("complete", "running") or rows.empty:
        return record_end_s
    known_s = [rows["due_s"].max(), rows["end_s"].max()]
    return max(float(value) for value in known_s if value == value)


def _measured_until_s(phases: Sequence[Phase], record_end_s: float | None) -> float:
    """Until when requests were measured: the end of the last phase that was reached."""
    ends_s = [phase.end_s for phase in phases if phase.end_s is not None]
    return max(ends_s, default=record_end_s or 0.0)


def _clients(
    requests: pd.DataFrame,
    vantages: Sequence[Vantage],
    spec: Mapping[str, Any],
    faults: Sequence[FaultWindow],
    until_s: float,
) -> tuple[ClientFigures, ...]:
    """One entry a vantage and operation that has a request; the manifest's order of vantages."""
    first_fault_s = min((fault.begin_s for fault in faults), default=None)
    heals_s = [fault.end_s for fault in faults if fault.end_s is not None]
    last_heal_s = max(heals_s) if faults and len(heals_s) == len(faults) else None
    deadline_s = seconds(spec.get("deadline"))
    names = [vantage.name for vantage in vantages]
    names += sorted(set(requests["vantage"]) - set(names))
    found = []
    for vantage in names:
        for operation in OPERATIONS:
            rows = requests[(requests["vantage"] == vantage) & (requests["operation"] == operation)]
            if rows.empty:
                continue
            normal = normal_of(rows, _ms(spec.get("every")), first_fault_s)
            each = told(rows, normal, deadline_s)
            ends_s = rows["end_s"].dropna()
            outages = outages_of(
                each,
                vantage=vantage,
                operation=operation,
                first_fault_s=first_fault_s,
                limit_ms=normal.limit_ms,
                record_end_s=max([until_s, *ends_s.tail(1), *([ends_s.max()] if len(ends_s) else [])]),
            )
            slow = slow_stretches_of(
                each, vantage=vantage, operation=operation, first_fault_s=first_fault_s
            )
            recovery = recovery_of(
                each, outages, slow, first_fault_s=first_fault_s, last_heal_s=last_heal_s
            )
            found.append(
                ClientFigures(
                    vantage=vantage,
                    operation=operation,
                    phases={
                        phase: figures_of(rows[rows["phase"] == phase]) for phase in PHASES
                    },
                    limit_ms=normal.limit_ms,
                    slow_ms=normal.slow_ms,
                    outages=outages,
                    slow=slow,
                    longest_outage_s=max(
                        (one.duration_s for one in outages if not one.before_fault), default=0.0
                    ),
                    recovered=recovery.recovered,
                    recovery_s=recovery.recovery_s,
                    recovery_after_heal_s=recovery.after_heal_s,
                )
            )
    return tuple(found)


def _unledgered(requests: pd.DataFrame, ledger: Ledger | None) -> int:
    """How many writes were sent whose key the ledger does not have."""
    sent = requests[(requests["operation"] == "write") & requests["sent"].astype(bool)]
    keys = sent["key"].dropna()
    return len(keys) if ledger is None else int((~keys.isin(list(ledger.keys))).sum())


def _vantages(entries: object) -> tuple[Vantage, ...]:
    return tuple(
        Vantage(
            name=str(name),
            at=str(place.get("at", "")),
            site=str(place.get("site", "")),
            ask=str(place.get("ask") or place.get("at", "")),
        )
        for name, place in _mapping(entries).items()
        if isinstance(place, Mapping)
    )


def _system(manifest: Mapping[str, Any], bundle: Bundle) -> Series:
    if bundle.systems:
        return bundle.systems[0]
    entry = _mapping(manifest.get("system"))
    return Series(str(entry.get("name", "")), str(entry.get("version", "")))


def _reached(manifest: Mapping[str, Any], events: Sequence[happened.Event]) -> str | None:
    """The last stage: of a killed drill an event may tell of one that the manifest does not."""
    return happened.stage_reached(events) or (
        None if manifest.get("reached") is None else str(manifest["reached"])
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object, otherwise: float | None) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else otherwise  # type: ignore[arg-type]


def _ms(value: object) -> float | None:
    length_s = seconds(value)
    return None if length_s is None else length_s * 1000
