"""What happened during a drill: its phases, its faults, what died and what was measured again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_table


class Event(NamedTuple):
    """One line of the events, on the samples' clock; `facts`: the object in its detail, if any."""

    t_ns: int
    kind: str
    subject: str
    detail: str
    facts: Mapping[str, Any]

    def at_s(self, origin_ns: int) -> float:
        """When it was, seconds since `origin_ns`."""
        return (self.t_ns - origin_ns) / 1e9


def read_events(directory: Path) -> list[Event]:
    """Every event in order of time, from events.jsonl (a killed run) or events.parquet; [] if none.

    Raises BundleError for what is damaged.
    """
    found = read_table(directory, "events")
    rows = [] if found is None else found[0].to_dict("records")
    try:
        return sorted((_event(row) for row in rows), key=lambda event: event.t_ns)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"The events of {directory} are damaged: one lacks {error}. Run the drill again."
        ) from error


def happened(events: Sequence[Event], origin_ns: int) -> dict[str, list[dict[str, Any]]]:
    """What summary.json has of events: `faults` as they were injected, in order of time, `deaths`
    of processes that ended by themselves, and `recalibrations` of pairs of nodes that were measured
    again after a fault on their links was healed.

    Of a fault, `end_s` is None where it was not healed before the record ends; `occurrences` are
    the instants of one that strikes again and again (crash loop, flapping).
    """

    def of(kind: str, subject: str | None = None) -> list[Event]:
        return [e for e in events if e.kind == kind and subject in (None, e.subject)]

    words = ("id", "kind", "subject", "detail", "nodes", "directions", "late_ms")
    return {
        "faults": [
            {
                **{key: event.facts.get(key) for key in words},
                "begin_s": event.at_s(origin_ns),
                "end_s": next((e.at_s(origin_ns) for e in of("heal", event.subject)), None),
                "occurrences": [e.at_s(origin_ns) for e in of("occurrence", event.subject)],
            }
            for event in of("inject")
        ],
        "deaths": [
            {"at_s": event.at_s(origin_ns), "node": event.subject, "detail": event.detail}
            for event in of("died")
        ],
        "recalibrations": [
            {"at_s": event.at_s(origin_ns), "subject": event.subject, "verdict": "unmeasured"}
            | dict(event.facts)
            for event in of("recalibrated")
        ],
    }


def _event(row: Mapping[Any, Any]) -> Event:
    detail = row.get("detail")
    facts = detail if isinstance(detail, dict) else {}
    text = detail if isinstance(detail, str) else ""
    if text.startswith("{"):
        facts = json.loads(text)
    return Event(int(row["t_ns"]), str(row["kind"]), str(row["subject"]), text, facts)
