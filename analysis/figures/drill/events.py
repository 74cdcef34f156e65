"""What happened during a drill: its phases, its faults, what died and what was measured again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wanlat.analysis.figures.drill.model import PHASES, Death, FaultWindow, Recalibration
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_table


@dataclass(frozen=True)
class Event:
    """One line of the events, on the samples' clock; `detail` as written."""

    t_ns: int
    kind: str
    subject: str
    detail: str

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The object in `detail`; empty where it is plain text."""
        try:
            value = json.loads(self.detail)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


def read_events(directory: Path) -> list[Event]:
    """Every event in order of time, from events.jsonl (a killed run) or events.parquet; [] if none.

    Raises BundleError for what is damaged.
    """
    found = read_table(directory, "events")
    if found is None or found[0].empty:
        return []
    try:
        rows = found[0].fillna({"detail": ""})[["t_ns", "kind", "subject", "detail"]]
        events = [
            Event(int(t_ns), str(kind), str(subject), _text(detail))
            for t_ns, kind, subject, detail in rows.itertuples(index=False, name=None)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"The events of {directory} are damaged: one lacks {error}. Run the drill again."
        ) from error
    return sorted(events, key=lambda event: event.t_ns)


@dataclass(frozen=True)
class Record:
    """The events of a drill, with instants in seconds since its origin."""

    events: Sequence[Event]
    origin_ns: int

    def s(self, event: Event) -> float:
        """When `event` was."""
        return (event.t_ns - self.origin_ns) / 1e9

    def of(self, kind: str) -> list[Event]:
        """The events of a kind, in order of time."""
        return [event for event in self.events if event.kind == kind]

    @property
    def phase_begins(self) -> dict[str, float]:
        """The planned begin of each phase that is recorded, and of "end"."""
        known = (*PHASES, "end")
        return {e.subject: self.s(e) for e in self.of("phase") if e.subject in known}

    @property
    def faults(self) -> tuple[FaultWindow, ...]:
        """Every fault that was injected, in order of its injection."""
        injected = {e.subject: e for e in reversed(self.of("inject"))}
        healed = {e.subject: e for e in reversed(self.of("heal"))}
        occurrences = self.of("occurrence")
        windows: list[FaultWindow] = []
        for event in sorted(injected.values(), key=lambda event: event.t_ns):
            facts, end = event.facts, healed.get(event.subject)
            # "1 kill n2" is what the fault is called where nothing more is said of it.
            words = event.subject.split(" ", 2)
            number = facts.get("id")
            windows.append(
                FaultWindow(
                    id=number if isinstance(number, int) else len(windows) + 1,
                    kind=str(facts.get("kind") or words[min(1, len(words) - 1)]),
                    subject=str(facts.get("subject") or words[-1]),
                    detail=str(facts.get("detail") or ""),
                    nodes=tuple(map(str, facts.get("nodes") or ())),
                    directions=tuple(map(str, facts.get("directions") or ())),
                    begin_s=self.s(event),
                    end_s=None if end is None else self.s(end),
                    late_ms=_number(facts.get("late_ms")),
                    occurrences=tuple(
                        self.s(each) for each in occurrences if each.subject == event.subject
                    ),
                )
            )
        return tuple(windows)

    @property
    def deaths(self) -> tuple[Death, ...]:
        """Every process that ended by itself."""
        return tuple(Death(self.s(e), e.subject, e.detail) for e in self.of("died"))

    @property
    def recalibrations(self) -> tuple[Recalibration, ...]:
        """Every pair that was measured again after a fault on its links was healed."""
        return tuple(
            Recalibration(
                at_s=self.s(event),
                subject=event.subject,
                requested_rtt_ms=_number(event.facts.get("requested_rtt_ms")),
                measured_rtt_ms=_median_ms(event.facts),
                verdict=str(event.facts.get("verdict") or "unmeasured"),
            )
            for event in self.of("recalibrated")
        )


def _median_ms(facts: Mapping[str, Any]) -> float | None:
    """The median, alone or among others as calibration.json has them."""
    rtt_ms = facts.get("rtt_ms")
    return _number(rtt_ms.get("p50") if isinstance(rtt_ms, dict) else facts.get("measured_rtt_ms"))


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, Mapping) else str(value)
