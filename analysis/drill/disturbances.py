"""Outages and slow stretches of one client, from its own requests alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from analysis.drill.model import Outage, SlowStretch
from analysis.drill.normal import Normal

if TYPE_CHECKING:
    import pandas as pd

WINDOW = 7
"""Answers in a row of which most must be slow for the client to be served slowly: single ones are
the tail that every store has."""


class Says(Enum):
    """What one request says about whether its client is served."""

    GOOD = "ok, in time"
    LATE = "ok, but it took longer than the limit"
    BAD = "not ok"
    NOTHING = "never sent, or sent with too little time left: another request's fault"


@dataclass(frozen=True)
class Request:
    """One request of a client, seconds; `end_s` is when it was answered or given up."""

    begin_s: float
    end_s: float
    says: Says
    is_slow: bool


def told(requests: pd.DataFrame, normal: Normal, deadline_s: float | None) -> list[Request]:
    """What each of a client's requests says, in the order in which they were sent.

    A request that timed out although it had less time than is normal says nothing: it was sent
    late, behind one that did not come back, and its deadline counts from when it was due.
    """
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
        hurried = _was_hurried(start_s - due_s, took_ms, limit_ms, deadline_s)
        # When a request was given up may be unknown (NaN).
        gone_s = start_s if math.isnan(end_s) else end_s
        found.append(Request(start_s, gone_s, Says.NOTHING if hurried else Says.BAD, False))
    return found


def _was_hurried(
    waited_s: float, took_ms: float, limit_ms: float | None, deadline_s: float | None
) -> bool:
    """Whether its time ran out in less than an answer may take, because it was sent late."""
    if deadline_s is None or limit_ms is None or waited_s < 0.1 * deadline_s:
        return False
    return waited_s + took_ms / 1000 >= 0.99 * deadline_s and took_ms < limit_ms


def outages_of(
    requests: Sequence[Request],
    *,
    vantage: str,
    operation: str,
    first_fault_s: float | None,
    limit_ms: float | None,
    record_end_s: float,
) -> tuple[Outage, ...]:
    """Every outage of one client.

    An outage begins when a request is sent that is not ok or takes longer than the limit. It ends
    with the next ok answer, be that of the same request: whoever answers is back. One whose first
    request was in flight, and still in time, when the first fault began, begins with the fault.
    """
    return tuple(
        Outage(
            vantage=vantage,
            operation=operation,
            begin_s=_begin(first, first_fault_s, limit_ms)[0],
            end_s=record_end_s if last is None else last.end_s,
            ended=last is not None,
            requests=number,
            before_fault=_begin(first, first_fault_s, limit_ms)[1],
        )
        for first, last, number in _runs(requests)
    )


def slow_stretches_of(
    requests: Sequence[Request], *, vantage: str, operation: str, first_fault_s: float | None
) -> tuple[SlowStretch, ...]:
    """Every stretch since the first fault in which most answers were slower than normal.

    Of WINDOW answers in a row more than half are slow: their median is beyond what is normal. A
    stretch is the union of such windows, from its first slow request to the end of its last.
    """
    if first_fault_s is None:
        return ()
    answers = [
        each
        for each in requests
        if each.says in (Says.GOOD, Says.LATE) and each.end_s > first_fault_s
    ]
    covered = [False] * len(answers)
    for first in range(len(answers) - WINDOW + 1):
        window = answers[first : first + WINDOW]
        if sum(each.is_slow for each in window) > WINDOW // 2:
            covered[first : first + WINDOW] = [True] * WINDOW
    found = []
    for first, last in _true_runs(covered):
        slow = [each for each in answers[first : last + 1] if each.is_slow]
        found.append(
            SlowStretch(
                vantage=vantage,
                operation=operation,
                begin_s=max(slow[0].begin_s, first_fault_s),
                end_s=max(each.end_s for each in slow),
                ended=last < len(answers) - 1,
                requests=len(slow),
            )
        )
    return tuple(found)


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


def _begin(
    first: Request, first_fault_s: float | None, limit_ms: float | None
) -> tuple[float, bool]:
    """When the outage that `first` opens began, and whether that was before any fault."""
    if first_fault_s is None or first.begin_s >= first_fault_s:
        return first.begin_s, False
    waited_ms = (first_fault_s - first.begin_s) * 1000
    was_in_flight = first.end_s > first_fault_s
    if was_in_flight and (limit_ms is None or waited_ms <= limit_ms):
        return first_fault_s, False
    return first.begin_s, True


def _true_runs(flags: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last place of each run of True."""
    begin: int | None = None
    for place, flag in enumerate([*flags, False]):
        if flag and begin is None:
            begin = place
        elif not flag and begin is not None:
            yield begin, place - 1
            begin = None
