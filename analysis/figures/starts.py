"""How a cluster became ready: when its processes were started, listened, and met each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wanlat.analysis.figures.drill.requests import Event
from wanlat.analysis.names import EN_DASH

_WORDS = {"process started": "processes started", "listening": "listening"}


class Met(NamedTuple):
    """A step of one system's start, in seconds since its first process was started.

    ``first_s`` and ``last_s``: when the first node and the last one met it.
    """

    system: str
    step: str
    first_s: float
    last_s: float

    def __str__(self) -> str:
        """Return it as the report has it: "stream 1.2 s", "health 2.4–2.5 s"."""
        first, last = f"{self.first_s:.1f}", f"{self.last_s:.1f}"
        span = first if first == last else f"{first}{EN_DASH}{last}"
        return f"{self.step} {span} s"


def starts_of(events: Sequence[Event]) -> list[Met]:
    """Return each step of each system's first start, in the order in which they were first met.

    Events of a run that ended before a system was ready are those that there are.
    """
    times: dict[tuple[str, str], list[int]] = {}
    began: dict[str, int] = {}
    ready: set[str] = set()
    for event in events:
        if event.kind == "ready" and event.subject in began:
            ready.add(event.subject)
            times[event.subject, "ready"] = [event.t_ns]
            continue
        system = str(event.facts.get("system", ""))
        if not system or system in ready:
            continue
        if event.kind == "process started":
            began.setdefault(system, event.t_ns)
        step = event.facts.get("step") if event.kind == "readiness step" else _WORDS.get(event.kind)
        if step is not None and system in began:
            times.setdefault((system, str(step)), []).append(event.t_ns)
    return [
        Met(system, step, (min(met) - began[system]) / 1e9, (max(met) - began[system]) / 1e9)
        for (system, step), met in times.items()
    ]
