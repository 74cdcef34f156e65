"""Outages and slow stretches of one client, from its own requests alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from wanlat.analysis.drill.model import Outage, SlowStretch
from wanlat.analysis.drill.normal import Normal

if TYPE_CHECKING:
    import pandas as pd

WINDOW = 7
WINDOW_S = 1.0
"""Answers in a row, and the least time that they take, of which most must be slow for the client to
be served slowly. Single slow ones are the tail that every store has; a few at once, at short
intervals, are a hiccup of the machine."""


class Says(Enum):
    """What one request says about whether its client is served."""

    GOOD = "ok, in time"
    LATE = "ok, but it took longer than the limit"
    BAD = "not ok"
    NOTHING = "never sent: an earlier one was waiting, which says it all"


@dataclass(frozen=True)
class Request:
    """One request of a client, seconds; `end_s` is when it was answered or given up."""

    begin_s: float
    end_s: float
    says: Says
    is_slow: bool


class Injection(NamedTuple):
    """The first fault: its injection was begun, and it was in force for certain; seconds."""

    begun_s: float
    in_force_s: float


def told(requests: pd.DataFrame, normal: Normal) -> list[Request]:
    """What each of a client's requests says, in the order in which they were sent."""
    columns = ("due_s", "start_s", "end_s", "outcome", "sent", "latency_from_start_ms")
    rows = requests.sort_values("due_ns", kind="stable")[list(columns)]
    limit_ms, slow_ms = normal.limit_ms, normal.slow_ms
    found = []
    for due_s, start_s, end_s, outcome, sent, took_ms in rows.itertuples(index=False, name=None):
        if not sent:
            found.append(Request(due_s, due_s, Says.NOTHING, False))
            continue
        if outcome == "ok":
            late = limit_ms is not None and took_ms > limit_ms
            slow = slow_ms is not None and took_ms > slow_ms
            found.append(Request(start_s, end_s, Says.LATE if late else Says.GOOD, slow))
            continue
        # When a request was given up may be unknown (NaN).
        found.append(Request(start_s, start_s if math.isnan(end_s) else end_s, Says.BAD, False))
    return found


def outages_of(
    requests: Sequence[Request],
    *,
    client: str,
    operation: str,
    first_fault: Injection | None,
    limit_ms: float | None,
    record_end_s: float,
) -> tuple[Outage, ...]:
    """Every outage of one client.

    An outage begins when a request is sent that is not ok or takes longer than the limit. It ends
    with the next ok answer, be that of the same request: whoever answers is back. One whose first
    request was in flight, and still in time, when the first fault began, begins with the fault.
    """
    found = []
    for first, last, number in _runs(requests):
        begin_s, before_fault = _begin(first, first_fault, limit_ms)
        found.append(
            Outage(
                client=client,
                operation=operation,
                begin_s=begin_s,
                end_s=record_end_s if last is None else last.end_s,
                ended=last is not None,
                requests=number,
                before_fault=before_fault,
            )
        )
    return tuple(found)


def slow_stretches_of(
    requests: Sequence[Request], *, client: str, operation: str, first_fault: Injection | None
) -> tuple[SlowStretch, ...]:
    """Every stretch since the first fault in which most answers were slower than normal.

    Of WINDOW answers or more in a row, WINDOW_S long or longer, more than half are slow: their
    median is beyond what is normal. A stretch is the union of such windows, from its first slow
    request to the end of its last.
    """
    if first_fault is None:
        return ()
    answers = [
        each
        for each in requests
        if each.says in (Says.GOOD, Says.LATE) and each.end_s > first_fault.begun_s
    ]
    covered = [False] * len(answers)
    for first, last in _windows(answers):
        window = answers[first : last + 1]
        if 2 * sum(each.is_slow for each in window) > len(window):
            covered[first : last + 1] = [True] * len(window)
    found = []
    for first, last in _true_runs(covered):
        slow = [each for each in answers[first : last + 1] if each.is_slow]
        found.append(
            SlowStretch(
                client=client,
                operation=operation,
                begin_s=max(slow[0].begin_s, first_fault.begun_s),
                end_s=max(each.end_s for each in slow),
                ended=last < len(answers) - 1,
                requests=len(slow),
            )
        )
    return tuple(found)


def _windows(answers: Sequence[Request]) -> Iterator[tuple[int, int]]:
    """For each answer the shortest window that begins with it: first and last place."""
    last = 0
    for first, opening in enumerate(answers):
        last = max(last, first + WINDOW - 1)
        while last < len(answers) and answers[last].end_s - opening.begin_s < WINDOW_S:
            last += 1
        if last >= len(answers):
            return
        yield first, last


def _runs(requests: Sequence[Request]) -> Iterator[tuple[Request, Request | None, int]]:
    """First request, the one whose answer ended it (None: none did), and how many it hit."""
    first: Request | None = None
    number = 0
    for each in requests:
        if each.says is Says.BAD or (each.says is Says.NOTHING and first is not None):
            first, number = first or each, number + 1
        elif each.says is Says.LATE:
            yield first or each, each, number + 1
            first, number = None, 0
        elif each.says is Says.GOOD and first is not None:
            yield first, each, number
            first, number = None, 0
    if first is not None:
        yield first, None, number


def _begin(first: Request, fault: Injection | None, limit_ms: float | None) -> tuple[float, bool]:
    """When the outage that `first` opens began, and whether that was before any fault."""
    if fault is None or first.begin_s >= fault.in_force_s:
        return first.begin_s, False
    if first.begin_s < fault.begun_s:
        waited_ms = (fault.begun_s - first.begin_s) * 1000
        was_overdue = limit_ms is not None and waited_ms > limit_ms
        if was_overdue or first.end_s <= fault.begun_s:
            return first.begin_s, True
    # What it waited before the fault was in force is not the fault's, if it survived that.
    since_s = fault.in_force_s if first.end_s > fault.in_force_s else fault.begun_s
    return max(first.begin_s, since_s), False


def _true_runs(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last place of each run of True."""
    begin: int | None = None
    for place, flag in enumerate([*flags, False]):
        if flag and begin is None:
            begin = place
        elif not flag and begin is not None:
            yield begin, place - 1
            begin = None
