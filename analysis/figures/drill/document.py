"""A drill as the block `drill` of summary.json: plain values, no NaN, null for what is unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from wanlat.analysis.figures.drill.model import OPERATIONS, Drill, Place

KEYS = (
    *("name", "system", "phases", "longest_outage_s", "recovery_s", "durability", "claims"),
    *("passed", "failures", "recovered", "recovery_after_heal_s", "version", "options"),
    *("topology", "description", "seed", "scale", "interval_ms", "deadline_ms", "stated_time_s"),
    *("started", "status", "reason", "reached", "roles", "clients", "endpoints", "outages", "slow"),
    *("faults", "deaths", "recalibrations"),
)
"""In the order of docs/bundle.md."""


def drill_document(drill: Drill) -> dict[str, Any]:
    """Everything that is derived of `drill`."""
    manifest = drill.bundle.manifest
    systems = manifest.get("systems") or [{}]
    made = {
        # Of a drill that sent nothing, 0 would say that nobody was out.
        "longest_outage_s": None if drill.requests.empty else drill.longest_outage_s,
        "version": drill.series.version,
        "options": systems[0].get("options") or {},
        "seed": manifest.get("seed"),
        "started": manifest.get("started"),
        "clients": [_client(drill, place) for place in drill.places],
        "slow": [one for client in drill.clients for one in client.slow],
    }
    return {key: document(made[key] if key in made else getattr(drill, key)) for key in KEYS}


def document(value: Any) -> Any:
    """Any part of a drill as JSON has it: times to the nanosecond, shares to six digits."""
    if is_dataclass(value):
        found: dict[str, Any] = {}
        for each in fields(value):
            how, inner = each.metadata.get("json", "value"), getattr(value, each.name)
            if how == "flat":
                found |= document(inner)
            elif how is not None:
                found[each.name] = len(inner) if how == "count" else document(inner)
        return found
    if isinstance(value, Mapping):
        return {str(key): document(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [document(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def _client(drill: Drill, place: Place) -> dict[str, Any]:
    """A client, its reads and its writes; None where there is no request of the kind."""
    own = {
        each.operation: document(each)
        | {"outages": sum(not outage.before_fault for outage in each.outages)}
        for each in drill.clients
        if each.client == place.name
    }
    found: dict[str, Any] = {"client": place.name}
    found |= {key: getattr(place, key) for key in ("node", "site", "target")}
    for name in OPERATIONS:
        figures = own.get(name)
        found[f"{name}s"] = figures and {
            key: value for key, value in figures.items() if key not in ("client", "operation")
        }
    return found
