"""What happened during a drill: its phases, its faults, what died and what was measured again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wanlat.analysis.drill.model import PHASES, FaultOccurrence, FaultWindow, Mark, Recalibration
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_lines

_NS_PER_S = 1e9


@dataclass(frozen=True)
class Event:
    """One line of the events, on the samples' clock; `detail` as written, `facts` if it is JSON."""

    t_ns: int
    kind: str
    subject: str
    detail: str

    @property
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
    lines, table = directory / "events.jsonl", directory / "events.parquet"
    rows: Sequence[Mapping[str, Any]] = ()
    if lines.is_file():
        rows, _ = read_lines(lines)
    elif table.is_file():
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            rows = pq.read_table(table).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise BundleError(
                f"{table} is damaged: it cannot be read as Parquet ({error}). Run the drill again."
            ) from error
    try:
        events = [
            Event(int(row["t_ns"]), str(row["kind"]), str(row["subject"]), _text(row.get("detail")))
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"The events of {directory} are damaged: one lacks {error}. Run the drill again."
        ) from error
    return sorted(events, key=lambda event: event.t_ns)


def phase_marks(events: Sequence[Event]) -> dict[str, int]:
    """The planned begin of each phase that is told of, and of "end"; ns."""
    known = (*PHASES, "end")
    return {e.subject: e.t_ns for e in events if e.kind == "phase" and e.subject in known}


def stage_reached(events: Sequence[Event]) -> str | None:
    """The last stage that is told of."""
    stages = [event.subject for event in events if event.kind == "stage"]
    return stages[-1] if stages else None


def fault_windows(events: Sequence[Event], origin_ns: int) -> tuple[FaultWindow, ...]:
    """Every fault that was injected, in order of its injection."""
    injected = {e.subject: e for e in reversed(events) if e.kind == "inject"}
    healed = {e.subject: e for e in reversed(events) if e.kind == "heal"}
    windows = []
    for number, (name, event) in enumerate(sorted(injected.items(), key=lambda i: i[1].t_ns), 1):
        facts, end = event.facts, healed.get(name)
        occurrences = [
            FaultOccurrence(_s(occurrence.t_ns, origin_ns), occurrence.facts)
            for occurrence in events
            if occurrence.kind == "occurrence" and occurrence.subject == name
        ]
        # "1 kill n2" is what the fault is called where nothing more is told of it.
        words = name.split(" ", 2)
        windows.append(
            FaultWindow(
                id=facts["id"] if isinstance(facts.get("id"), int) else number,
                kind=str(facts.get("kind") or words[min(1, len(words) - 1)]),
                subject=str(facts.get("subject") or words[-1]),
                detail=str(facts.get("detail") or ""),
                nodes=_names(facts.get("nodes")),
                directions=_names(facts.get("directions")),
                begin_s=_s(event.t_ns, origin_ns),
                end_s=None if end is None else _s(end.t_ns, origin_ns),
                late_ms=_number(facts.get("late_ms")),
                occurrences=tuple(occurrences),
            )
        )
    return tuple(windows)


_TOLD_ELSEWHERE = {"phase", "inject", "heal", "occurrence", "recalibrated", "impairment"}


def other_marks(events: Sequence[Event], origin_ns: int) -> tuple[Mark, ...]:
    """Everything that happened besides phases, faults and links: deaths, starts, stages."""
    return tuple(
        Mark(_s(event.t_ns, origin_ns), event.kind, event.subject, event.detail)
        for event in events
        if event.kind not in _TOLD_ELSEWHERE
    )


def recalibrations(events: Sequence[Event], origin_ns: int) -> tuple[Recalibration, ...]:
    """Every pair that was measured again after a fault on its links was healed."""
    found = []
    for event in events:
        if event.kind == "recalibrated":
            facts = event.facts
            found.append(
                Recalibration(
                    at_s=_s(event.t_ns, origin_ns),
                    subject=event.subject,
                    requested_rtt_ms=_number(facts.get("requested_rtt_ms")),
                    measured_rtt_ms=_measured_ms(facts),
                    verdict=str(facts.get("verdict") or "unmeasured"),
                )
            )
    return tuple(found)


def _measured_ms(facts: Mapping[str, Any]) -> float | None:
    """The median, told alone or among others as calibration.json has them."""
    rtt_ms = facts.get("rtt_ms")
    median_ms = rtt_ms.get("p50") if isinstance(rtt_ms, Mapping) else facts.get("measured_rtt_ms")
    return _number(median_ms)


def _s(t_ns: int, origin_ns: int) -> float:
    return (t_ns - origin_ns) / _NS_PER_S


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value)
    return "" if value is None else str(value)
