"""The `drill` block of summary.json. Keys of the issue come first, in its order; docs/bundle.md."""

from __future__ import annotations

import math
from typing import Any

from wanlat.analysis.drill.claims import wilson
from wanlat.analysis.drill.model import (
    OPERATIONS,
    PHASES,
    Claim,
    ClientFigures,
    Drill,
    Durability,
    FaultWindow,
    Figures,
    Latencies,
    Outage,
    Phase,
    Place,
    SlowStretch,
)
from wanlat.analysis.drill.wording import durability_sentence, how_it_ended, outage_sentence


def drill_block(drill: Drill) -> dict[str, Any]:
    """Everything that is derived of `drill`, plain values; no NaN, null for what is not known."""
    return {
        "name": drill.name,
        "system": drill.system,
        "phases": [_phase(phase) for phase in drill.phases],
        # Of a drill that sent nothing, 0 would say that nobody was out.
        "longest_outage_s": None if drill.requests.empty else _s(drill.longest_outage_s),
        "recovery_s": _s(drill.recovery_s),
        "durability": _durability(drill.durability),
        "claims": [_claim(claim) for claim in drill.claims],
        "passed": drill.passed,
        "failures": list(drill.failures),
        "recovered": drill.recovered,
        "recovery_after_heal_s": _s(drill.recovery_after_heal_s),
        "version": drill.series.version,
        "options": _options(drill),
        "topology": drill.topology,
        "description": drill.description,
        "seed": drill.bundle.manifest.get("seed"),
        "scale": drill.scale,
        "interval_ms": drill.interval_ms,
        "deadline_ms": drill.deadline_ms,
        "stated_time_s": drill.stated_time_s,
        "started": drill.bundle.manifest.get("started"),
        "status": drill.status,
        "reason": drill.reason,
        "reached": drill.reached,
        "roles": {name: list(nodes) for name, nodes in drill.roles.items()},
        "clients": [_client(drill, place) for place in drill.places],
        "endpoints": [
            {
                "phase": each.phase,
                "endpoint": each.endpoint,
                "operation": each.operation,
                **_figures(each.figures),
            }
            for each in drill.endpoints
        ],
        "outages": [_outage(outage) for outage in drill.outages],
        "slow": [_slow(one) for client in drill.clients for one in client.slow],
        "faults": [_fault(fault) for fault in drill.faults],
        "deaths": [
            {"at_s": _s(mark.at_s), "node": mark.subject, "detail": mark.detail}
            for mark in drill.deaths
        ],
        "recalibrations": [
            {
                "at_s": _s(again.at_s),
                "subject": again.subject,
                "requested_rtt_ms": again.requested_rtt_ms,
                "measured_rtt_ms": _ms(again.measured_rtt_ms),
                "verdict": again.verdict,
            }
            for again in drill.recalibrations
        ],
    }


def in_words(drill: Drill) -> tuple[str, ...]:
    """How `drill` ended, what came of it, and what a reader of its figures must know."""
    ended = how_it_ended(drill)
    said = [
        *([ended] if ended else []),
        outage_sentence(drill),
        durability_sentence(drill.durability),
    ]
    return (*(f"{sentence}." for sentence in said), *drill.notes)


def _phase(phase: Phase) -> dict[str, Any]:
    return {
        "name": phase.name,
        "reads": _figures(phase.reads),
        "writes": _figures(phase.writes),
        "begin_s": _s(phase.begin_s),
        "end_s": _s(phase.end_s),
        "complete": phase.complete,
    }


def _figures(figures: Figures) -> dict[str, Any]:
    interval = wilson(figures.ok, figures.attempted) if figures.attempted else None
    return {
        "attempted": figures.attempted,
        "ok": figures.ok,
        "fail": figures.fail,
        "unknown": figures.unknown,
        **_latencies(figures.from_due),
        "not_sent": figures.not_sent,
        "availability": _part(figures.availability),
        "availability_ci95": interval and [_part(bound) for bound in interval],
        "from_start": _latencies(figures.from_start),
    }


def _latencies(latencies: Latencies) -> dict[str, float | None]:
    return {
        "p50_ms": _ms(latencies.p50_ms),
        "p99_ms": _ms(latencies.p99_ms),
        "max_ms": _ms(latencies.max_ms),
    }


def _durability(durability: Durability) -> dict[str, Any]:
    counted = ("lost", "recovered", "corrupt", "stale", "resurrected", "unread")
    return {
        "acknowledged": durability.acknowledged,
        **{name: durability[name] for name in counted},
        "verdict": durability.verdict,
        "unexpected": durability["unexpected"],
        "fine": durability["fine"],
        "why": durability.why,
        "invoked": durability.invoked,
        "removed": durability.removed,
        "late": durability.late,
        "unledgered": durability.unledgered,
        "rounds": [
            {
                "round": each.name,
                "present": each.present,
                "complete": each.complete,
                "keys": each.keys,
                "nodes": list(each.nodes),
                "passes": each.passes,
                "late": each.late,
                **each.counts,
            }
            for each in durability.rounds
        ],
        "examples": {
            verdict: [
                {
                    "key": each.key,
                    "round": each.round,
                    "expected": each.expected,
                    "written_through": each.written_through,
                    "answers": dict(each.answers),
                }
                for each in examples
            ]
            for verdict, examples in durability.examples.items()
        },
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "claim": claim.claim,
        "source": claim.source,
        "verdict": claim.verdict,
        "evidence": claim.evidence,
        **{key: claim.spec[key] for key in ("availability", "durability") if key in claim.spec},
    }


def _client(drill: Drill, place: Place) -> dict[str, Any]:
    """A client, its reads and its writes; None where there is no request of the kind."""
    own = {each.operation: each for each in drill.clients if each.client == place.name}
    return {
        "client": place.name,
        "node": place.node,
        "site": place.site,
        "target": place.target,
        **{f"{name}s": _requests(own[name]) if name in own else None for name in OPERATIONS},
    }


def _requests(client: ClientFigures) -> dict[str, Any]:
    return {
        "phases": {name: _figures(client.phases[name]) for name in PHASES},
        "longest_outage_s": _s(client.longest_outage_s),
        "outages": sum(not outage.before_fault for outage in client.outages),
        "recovered": client.recovered,
        "recovery_s": _s(client.recovery_s),
        "recovery_after_heal_s": _s(client.recovery_after_heal_s),
        "limit_ms": _ms(client.limit_ms),
        "slow_ms": _ms(client.slow_ms),
    }


def _options(drill: Drill) -> dict[str, Any]:
    """The system's options in effect, as the manifest has them."""
    entries = drill.bundle.manifest.get("systems")
    first = entries[0] if isinstance(entries, list) and entries else None
    options = first.get("options") if isinstance(first, dict) else None
    return dict(options) if isinstance(options, dict) else {}


def _outage(outage: Outage) -> dict[str, Any]:
    return {
        "client": outage.client,
        "operation": outage.operation,
        "begin_s": _s(outage.begin_s),
        "end_s": _s(outage.end_s),
        "duration_s": _s(outage.duration_s),
        "ended": outage.ended,
        "requests": outage.requests,
        "before_fault": outage.before_fault,
    }


def _slow(stretch: SlowStretch) -> dict[str, Any]:
    return {
        "client": stretch.client,
        "operation": stretch.operation,
        "begin_s": _s(stretch.begin_s),
        "end_s": _s(stretch.end_s),
        "ended": stretch.ended,
        "requests": stretch.requests,
    }


def _fault(fault: FaultWindow) -> dict[str, Any]:
    return {
        "id": fault.id,
        "kind": fault.kind,
        "subject": fault.subject,
        "detail": fault.detail,
        "nodes": list(fault.nodes),
        "directions": list(fault.directions),
        "begin_s": _s(fault.begin_s),
        "end_s": _s(fault.end_s),
        "late_ms": fault.late_ms,
        "occurrences": len(fault.occurrences),
    }


def _ms(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _s(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _part(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
