"""When a system was idle, and when it was loaded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.drill.events import Event
from wanlat.analysis.resources.read import reclaim_entry

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle

IDLE, LOADED = "idle", "loaded"
LEAST_IDLE_S = 2.0
"""Usage in idle windows that are shorter in all is not known well enough to be subtracted."""
_SHORTEST_IDLE_NS = 500_000_000
_SOON_NS = 100_000_000
_MOSTLY = 0.5

Span = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A stretch of a run, on the samples' clock: `kind` is IDLE or LOADED."""

    kind: str
    begin_ns: int
    end_ns: int


def of_kind(windows: Iterable[Window], kind: str) -> list[Window]:
    """Those of `windows` that are IDLE, or LOADED."""
    return [window for window in windows if window.kind == kind]


def seconds(windows: Iterable[Window]) -> float:
    """How long they are in all."""
    return sum((window.end_ns - window.begin_ns) / 1e9 for window in windows)


def is_idle_known(windows: Iterable[Window]) -> bool:
    """Whether it was idle for long enough to know what it uses of its own accord."""
    return seconds(of_kind(windows, IDLE)) >= LEAST_IDLE_S


def loaded_spans(bundle: Bundle, system: str, requests: pd.DataFrame) -> list[Span]:
    """When `system` was loaded: from its first request that counts to the last one's end.

    In a study of disk space that is given back: while it was filled, and while it removed.
    """
    reclaimed = reclaim_entry(bundle.directory, system)
    if reclaimed is not None:
        spans = (reclaimed.get("filled_ns"), reclaimed.get("removed_ns"))
        return [(int(span[0]), int(span[1])) for span in spans if span]
    if requests.empty:
        return []
    return [(int(requests["begin_ns"].min()), int(requests["end_ns"].max()))]


def windows_of(
    system: str, rows: pd.DataFrame, loaded: Sequence[Span], events: Iterable[Event]
) -> tuple[Window, ...]:
    """The windows of one system, in order of time, as far as there are `rows` of resources.

    In a study of round trips it is loaded RTT step by RTT step, and idle before each; else it is
    loaded in the spans of `loaded`.
    """
    if rows.empty:
        return ()
    samples = sorted(set(rows["t_ns"]))
    own = [event for event in events if event.subject == system]
    found = [
        *(Window(IDLE, *span) for span in _before_load(own, samples[0])),
        *(Window(IDLE, *span) for span in _of_steps(own, "idle", "calibrate")),
        *(Window(LOADED, *span) for span in (_of_steps(own, "warmup", "end") or loaded)),
    ]
    snapped = [each for window in found if (each := _snapped(window, samples)) is not None]
    cut = [
        Window(each.kind, max(each.begin_ns, samples[0]), min(each.end_ns, samples[-1]))
        for each in snapped
    ]
    return tuple(sorted((w for w in cut if w.end_ns > w.begin_ns), key=lambda w: w.begin_ns))


def _snapped(window: Window, samples: Sequence[int]) -> Window | None:
    """From the first sample in `window` to the last one in it, or soon after it.

    Between two samples nobody knows when a counter grew. A study samples right after its first
    request and right after its last one. Where samples are too far apart, a loaded window stays as
    it is; but of an idle one nothing is known then (None): what came after it was more.
    """
    begin = bisect_left(samples, window.begin_ns)
    end = bisect_right(samples, window.end_ns + _SOON_NS) - 1
    least_ns = (window.end_ns - window.begin_ns) * _MOSTLY
    if begin >= end or samples[end] - samples[begin] < least_ns:
        return window if window.kind == LOADED else None
    return Window(window.kind, samples[begin], samples[end])


def _before_load(events: Sequence[Event], first_ns: int) -> list[Span]:
    loaded_ns = next((event.t_ns for event in events if event.kind == "loaded"), first_ns)
    return [(first_ns, loaded_ns)] if loaded_ns - first_ns >= _SHORTEST_IDLE_NS else []


def _of_steps(events: Sequence[Event], first: str, last: str) -> list[Span]:
    """From one stage of an RTT step to another, of every step that came so far."""
    found: list[Span] = []
    begun_ns: int | None = None
    for event in events:
        what = event.facts.get("what") if event.kind == "rtt step" else None
        if what == first:
            begun_ns = event.t_ns
        elif what == last and begun_ns is not None:
            found.append((begun_ns, event.t_ns))
            begun_ns = None
    return found
