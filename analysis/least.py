"""The least round trips of an endpoint: what no store that keeps its promise can beat.

The run works it out, from where it put the replicas, and writes it to the manifest; here it is
only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.bundle import Bundle, Series
from analysis.placement import UNKNOWN
from analysis.summary import Group


@dataclass(frozen=True)
class Least:
    """The least round trips, and why; both None where the run says nothing of it."""

    round_trips: float | None
    why: str | None


NOTHING_SAID = Least(None, None)


def least_of(bundle: Bundle) -> dict[Group, Least]:
    """The least round trips that the manifest of `bundle` states, by endpoint and placement."""
    systems = bundle.manifest.get("systems")
    stated: dict[Group, Least] = {}
    for system in systems if isinstance(systems, list) else ():
        if not isinstance(system, Mapping):
            continue
        series = Series(str(system.get("name")), str(system.get("version")))
        entries = system.get("least_round_trips")
        for entry in entries if isinstance(entries, list) else ():
            placement = str(entry.get("placement") or UNKNOWN)
            group = Group(series, str(entry.get("endpoint")), placement)
            stated[group] = Least(_number(entry.get("round_trips")), _text(entry.get("why")))
    return stated


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return str(value) if value else None
