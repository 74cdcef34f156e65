"""When a system was at rest, and when it was asked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from wanlat.analysis.drill.events import Event
from wanlat.analysis.resources.model import ASKED, REST, Window

if TYPE_CHECKING:
    import pandas as pd

Span = tuple[int, int]

_SOON_NS = 100_000_000
_MOSTLY = 0.5

_LEAST_REST_NS = 500_000_000
"""Shorter ones, of a cluster that was asked at once, say nothing."""


def windows_of(
    system: str, rows: pd.DataFrame, asked: Sequence[Span], events: Iterable[Event]
) -> tuple[Window, ...]:
    """The windows of one system, in order of time, as far as there are `rows` of resources.

    `asked` are the spans in which it was sent what counts. In a study of round trips it is asked
    visit by visit, and rests before each.
    """
    if rows.empty:
        return ()
    first_ns, last_ns = int(rows["t_ns"].iloc[0]), int(rows["t_ns"].iloc[-1])
    own = [event for event in events if event.subject == system]
    found = [
        *(Window(REST, *span) for span in _before_it_is_asked(own, first_ns)),
        *(Window(REST, *span) for span in _of_visits(own, "idle", "calibrate")),
        *(Window(ASKED, *span) for span in (_of_visits(own, "warmup", "end") or asked)),
    ]
    looks = sorted(set(rows["t_ns"]))
    seen = (_snapped(window, looks) for window in found)
    cut = [Window(w.kind, max(w.begin_ns, first_ns), min(w.end_ns, last_ns)) for w in seen if w]
    return tuple(sorted((w for w in cut if w.end_ns > w.begin_ns), key=lambda w: w.begin_ns))


def _snapped(window: Window, looks: Sequence[int]) -> Window | None:
    """From the first look in `window` to the last one in it, or soon after it.

    Between two looks nobody knows when a counter grew. A study looks right after its first request
    and right after its last one. Where looks are too far apart, what it was asked for is in the
    window as it is; but of a rest nothing is known then (None): what came after it was more.
    """
    begin = bisect_left(looks, window.begin_ns)
    end = bisect_right(looks, window.end_ns + _SOON_NS) - 1
    if begin >= end or looks[end] - looks[begin] < window.seconds * 1e9 * _MOSTLY:
        return window if window.kind == ASKED else None
    return Window(window.kind, looks[begin], looks[end])


def _before_it_is_asked(events: Sequence[Event], first_ns: int) -> list[Span]:
    asked_ns = next((event.t_ns for event in events if event.kind == "asked"), first_ns)
    return [(first_ns, asked_ns)] if asked_ns - first_ns >= _LEAST_REST_NS else []


def _of_visits(events: Sequence[Event], first: str, last: str) -> list[Span]:
    """From one thing that begins in a visit to another, of every visit that came so far."""
    found: list[Span] = []
    begun_ns: int | None = None
    for event in events:
        what = event.facts.get("what") if event.kind == "visit" else None
        if what == first:
            begun_ns = event.t_ns
        elif what == last and begun_ns is not None:
            found.append((begun_ns, event.t_ns))
            begun_ns = None
    return found
