"""What a run knows of an endpoint's round trips beforehand, from its manifest.

The least: what no store that keeps its promise can beat, by where the run put the replicas. And the
promised number, of a store whose protocol takes a known one. Both are only read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.placement import UNKNOWN
from wanlat.analysis.summary import Group


@dataclass(frozen=True)
class Least:
    """The least round trips, and why; both None where the run says nothing of it."""

    round_trips: float | None
    why: str | None


NOTHING_SAID = Least(None, None)


def least_of(bundle: Bundle) -> dict[Group, Least]:
    """The least round trips that the manifest of `bundle` states, by endpoint and placement."""
    return {
        group: Least(_number(entry.get("round_trips")), _text(entry.get("why")))
        for group, entry in _stated(bundle, "least_round_trips")
    }


def promised_of(bundle: Bundle) -> dict[Group, float]:
    """The round trips that a store's protocol takes, where the manifest of `bundle` knows them."""
    return {
        group: number
        for group, entry in _stated(bundle, "promised_round_trips")
        if (number := _number(entry.get("round_trips"))) is not None
    }


def _stated(bundle: Bundle, key: str) -> Iterator[tuple[Group, Mapping[str, Any]]]:
    """Every entry of the list `key` of every system in the manifest, and what it is of."""
    systems = bundle.manifest.get("systems")
    for system in systems if isinstance(systems, list) else ():
        if not isinstance(system, Mapping):
            continue
        series = Series(str(system.get("name")), str(system.get("version")))
        entries = system.get(key)
        for entry in entries if isinstance(entries, list) else ():
            placement = str(entry.get("placement") or UNKNOWN)
            yield Group(series, str(entry.get("endpoint")), placement), entry


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return str(value) if value else None
