"""What a drill that came to its end must have left, and did not: without it nothing is passed.

A file may be absent, empty or cut anywhere. Then it is not known what was broken, when, or what
came of it, and a drill that lacks it has neither passed nor held a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from wanlat.analysis.figures.drill.requests import PHASES, Event, quantity
from wanlat.analysis.names import count
from wanlat.bundle import documents
from wanlat.bundle.read import has_table
from wanlat.bundle.run import Run

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("samples", "events", "ledger", "verification")
"""The records of a drill besides its manifest."""
_LAST_STAGE = "done"


def lacking_of(bundle: Run, requests: pd.DataFrame, events: Sequence[Event]) -> list[str]:
    """What a complete drill lacks, a clause each; [] where it lacks nothing, or is not complete."""
    if bundle.status != "complete":
        return []  # which says by itself that it has not passed
    absent = [name for name in TABLES if not has_table(bundle.directory, name)]
    spec = bundle.manifest.drill or documents.Drill()
    lacks = [f"the bundle has no {', '.join(absent)}"] if absent else []
    if bundle.truncated:
        lacks.append("the samples are cut short")
    if "samples" not in absent:
        lacks += _of_requests(spec, bundle.manifest.clients, requests)
    if "events" not in absent:
        lacks += _of_events(spec, events)
    return lacks


def _of_requests(
    spec: documents.Drill, clients: Iterable[str], requests: pd.DataFrame
) -> Iterator[str]:
    """Requests that were due and are not recorded."""
    if requests.empty:
        yield "not one request is recorded"
        return
    interval_s = quantity(spec.interval)
    lengths_s = [quantity(spec.phases.get(name)) for name in PHASES]
    if not interval_s:
        return
    ways = [one for one in spec.operations or ("read", "write") if one != "list"]
    recorded = requests.groupby(["client", "operation", "phase"], observed=False).size()
    for client, way in product(clients, ways):
        for phase, length_s in zip(PHASES, lengths_s, strict=True):
            due = int((length_s or 0.0) / interval_s + 1e-9)
            known = int(recorded.get((client, way, phase), 0))
            if known < due:
                lost = count(due - known, way)
                yield f"{lost} of {client} that were due in `{phase}` are not recorded"


def _of_events(spec: documents.Drill, events: Sequence[Event]) -> Iterator[str]:
    """Phases, faults, and the end, of which there is no event."""
    phases = {event.subject for event in events if event.kind == "phase"}
    if absent := [name for name in (*PHASES, "end") if name not in phases]:
        yield f"the events do not say when {', '.join(absent)} began"
    planned = len(spec.faults)
    injected = sum(event.kind == "inject" for event in events)
    if injected < planned:
        yield f"the events have {injected} of {count(planned, 'fault')}"
    if not any((event.kind, event.subject) == ("stage", _LAST_STAGE) for event in events):
        yield "the events do not reach the end"
