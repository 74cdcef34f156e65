"""How each client fared: what was normal, its outages and slow stretches, and its recovery.

All of it from the requests of one client and operation alone, one in flight at a time, and from
when they were really sent: what a backlog adds to the requests that wait behind a stalled one is
the client's, and not the store's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from wanlat.analysis.figures.drill.model import (
    OPERATIONS,
    PHASES,
    ClientFigures,
    Disturbance,
    FaultWindow,
)
from wanlat.analysis.figures.drill.requests import figures_of

if TYPE_CHECKING:
    import pandas as pd

LEAST_N = 10
"""Answers; of fewer nobody can say what is normal."""
LIMIT_OVER_P95 = 4.0
LEAST_LIMIT_MS = 250.0
"""Shorter waits are a busy machine's: one with 20 processes a core kept requests waiting 120 ms."""
SLOW_OVER_P95 = 1.5
SLOW_AT_LEAST_MS = 10.0
"""Above p95; what is nearer is distinguished by no user."""
WINDOW = 7
WINDOW_S = 1.0
"""Answers in a row, and the least time that they take, of which most must be slow for the client to
be served slowly. Single slow ones are the tail that every store has; a few at once, at short
intervals, are a hiccup of the machine."""
LEAST_GOOD = 3
"""Answers in time, after the last disturbance, without which nobody can say that it was over."""


class Status(Enum):
    """What one request says about whether its client is served."""

    GOOD = "ok, in time"
    LATE = "ok, but it took longer than the limit"
    BAD = "not ok"
    NOT_SENT = "never sent: an earlier one was waiting, which says it all"


@dataclass(frozen=True)
class Request:
    """One request of a client, seconds; `end_s` is when it was answered or given up."""

    begin_s: float
    end_s: float
    status: Status
    is_slow: bool


class Injection(NamedTuple):
    """The first fault: its injection was begun, and it was in force for certain; seconds."""

    begun_s: float
    in_force_s: float


@dataclass(frozen=True)
class Recovery:
    """`recovered` None: nothing was injected, nothing measured since, or it cannot be known.

    `recovery_s` is from the first injection to the end of the last disturbance, 0 if there was
    none, and `after_heal_s` from the last heal, never negative.
    """

    recovered: bool | None
    recovery_s: float | None = None
    after_heal_s: float | None = None


def clients_of(
    requests: pd.DataFrame,
    names: Sequence[str],
    faults: Sequence[FaultWindow],
    *,
    interval_ms: float | None,
    until_s: float,
) -> tuple[ClientFigures, ...]:
    """One entry a client and operation that has a request, in the order of `names`.

    Requests were measured until `until_s`.
    """
    every = [*names, *sorted(set(requests["client"]) - set(names))]
    grouped = dict(iter(requests.groupby(["client", "operation"])))
    found = []
    for whose in ((name, operation) for name in every for operation in OPERATIONS):
        if whose in grouped:
            found.append(_client(grouped[whose], whose, faults, interval_ms, until_s))
    return tuple(found)


def recovery_of_all(clients: Iterable[ClientFigures]) -> Recovery:
    """That of the client that took longest; not recovered if one was not; unknown if one is."""
    every = list(clients)
    if any(one.recovered is False for one in every):
        return Recovery(False)
    if not every or any(one.recovered is None for one in every):
        return Recovery(None)
    after_heal_s = [one.recovery_after_heal_s for one in every]
    known_s = [one_s for one_s in after_heal_s if one_s is not None]
    return Recovery(True, max(one.recovery_s or 0.0 for one in every), max(known_s, default=None))


def _client(
    rows: pd.DataFrame,
    whose: tuple[str, str],
    faults: Sequence[FaultWindow],
    interval_ms: float | None,
    until_s: float,
) -> ClientFigures:
    first = None
    if faults:
        begun_s = min(fault.acts_from_s for fault in faults)
        first = Injection(begun_s, min(fault.begin_s for fault in faults))
    heals_s = [fault.end_s for fault in faults if fault.end_s is not None]
    last_heal_s = max(heals_s) if faults and len(heals_s) == len(faults) else None
    limit_ms, slow_ms = normal_of(rows, interval_ms, first and first.begun_s)
    requests = classified(rows, limit_ms, slow_ms)
    end_s = max([until_s, *(each.end_s for each in requests)])
    outages = outages_of(requests, whose, first, limit_ms=limit_ms, record_end_s=end_s)
    slow = slow_stretches_of(requests, whose, first)
    recovery = recovery_of(requests, (*outages, *slow), first, last_heal_s)
    counted_s = [outage.duration_s for outage in outages if not outage.before_fault]
    return ClientFigures(
        *whose,
        phases={phase: figures_of(rows[rows["phase"] == phase]) for phase in PHASES},
        longest_outage_s=max(counted_s, default=0.0),
        outages=outages,
        slow=slow,
        recovered=recovery.recovered,
        recovery_s=recovery.recovery_s,
        recovery_after_heal_s=recovery.after_heal_s,
        limit_ms=limit_ms,
        slow_ms=slow_ms,
    )


def normal_of(
    requests: pd.DataFrame, interval_ms: float | None, before_s: float | None
) -> tuple[float | None, float | None]:
    """The limit of an outage and that of a slow answer, ms; None of both where nobody can say.

    From the ok requests of the phase before that were answered before `before_s`, when the first
    fault began. p95 and not p99: of the 40 to 80 requests that there are, p99 is hardly more than
    the greatest, and one hiccup would make a stall of seconds look normal.
    """
    import numpy as np

    healthy = requests[(requests["phase"] == "before") & (requests["outcome"] == "ok")]
    if before_s is not None:
        healthy = healthy[healthy["end_s"] <= before_s]
    took_ms = healthy["latency_from_start_ms"].dropna().to_numpy(dtype="float64")
    if took_ms.size < LEAST_N:
        return None, None
    p95_ms = float(np.percentile(took_ms, 95))
    limit_ms = max(LIMIT_OVER_P95 * p95_ms, 2 * (interval_ms or 0.0), LEAST_LIMIT_MS)
    return limit_ms, max(SLOW_OVER_P95 * p95_ms, p95_ms + SLOW_AT_LEAST_MS)


def classified(
    requests: pd.DataFrame, limit_ms: float | None, slow_ms: float | None
) -> list[Request]:
    """What each of a client's requests says, in the order in which they were sent."""
    columns = ("due_s", "start_s", "end_s", "outcome", "sent", "latency_from_start_ms")
    rows = requests.sort_values("due_ns", kind="stable")[list(columns)]
    found = []
    for due_s, start_s, end_s, outcome, sent, took_ms in rows.itertuples(index=False, name=None):
        if not sent:
            found.append(Request(due_s, due_s, Status.NOT_SENT, False))
        elif outcome == "ok":
            late = limit_ms is not None and took_ms > limit_ms
            slow = slow_ms is not None and took_ms > slow_ms
            found.append(Request(start_s, end_s, Status.LATE if late else Status.GOOD, slow))
        else:
            # When a request was given up may be unknown (NaN).
            given_up_s = start_s if math.isnan(end_s) else end_s
            found.append(Request(start_s, given_up_s, Status.BAD, False))
    return found


def outages_of(
    requests: Sequence[Request],
    whose: tuple[str, str],
    first_fault: Injection | None,
    *,
    limit_ms: float | None,
    record_end_s: float,
) -> tuple[Disturbance, ...]:
    """Every outage of one client and operation.

    An outage begins when a request is sent that is not ok or takes longer than the limit. It ends
    with the next ok answer, be that of the same request: whoever answers is back. One whose first
    request was in flight, and still in time, when the first fault began, begins with the fault.
    """
    found = []
    for first, last, number in _bad_runs(requests):
        begin_s, before_fault = _begin(first, first_fault, limit_ms)
        end_s = record_end_s if last is None else last.end_s
        found.append(
            Disturbance(
                *whose, begin_s, end_s, end_s - begin_s, last is not None, number, before_fault
            )
        )
    return tuple(found)


def slow_stretches_of(
    requests: Sequence[Request], whose: tuple[str, str], first_fault: Injection | None
) -> tuple[Disturbance, ...]:
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
        if each.status in (Status.GOOD, Status.LATE) and each.end_s > first_fault.begun_s
    ]
    covered = [False] * len(answers)
    for first, last in _windows(answers):
        window = answers[first : last + 1]
        if 2 * sum(each.is_slow for each in window) > len(window):
            covered[first : last + 1] = [True] * len(window)
    found = []
    for is_covered, run in groupby(enumerate(answers), key=lambda each: covered[each[0]]):
        if is_covered:
            places, within = zip(*run, strict=True)
            slow = [each for each in within if each.is_slow]
            begin_s = max(slow[0].begin_s, first_fault.begun_s)
            end_s = max(each.end_s for each in slow)
            ended = places[-1] < len(answers) - 1
            found.append(
                Disturbance(*whose, begin_s, end_s, end_s - begin_s, ended, len(slow), False)
            )
    return tuple(found)


def recovery_of(
    requests: Sequence[Request],
    disturbances: Sequence[Disturbance],
    first_fault: Injection | None,
    last_heal_s: float | None,
) -> Recovery:
    """The recovery of one client, from when the first fault was in force.

    `last_heal_s` is None while something is broken still. Where an outage that no fault explains
    was going on as the first one began, what became of it is no fault's either: unknown.
    """
    if first_fault is None:
        return Recovery(None)
    begun_s, in_force_s = first_fault
    measured = any(e.end_s > begun_s and e.status is not Status.NOT_SENT for e in requests)
    if not measured or any(each.before_fault and each.end_s > begun_s for each in disturbances):
        return Recovery(None)
    disturbed = [each for each in disturbances if not each.before_fault]
    end_s = max((each.end_s for each in disturbed), default=in_force_s)
    good = sum(each.status is Status.GOOD and each.end_s >= end_s for each in requests)
    if disturbed and (good < LEAST_GOOD or not all(each.ended for each in disturbed)):
        return Recovery(False)
    recovery_s = max(0.0, end_s - in_force_s)
    after_heal_s = None if last_heal_s is None else max(0.0, in_force_s + recovery_s - last_heal_s)
    return Recovery(True, recovery_s, after_heal_s)


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


def _bad_runs(requests: Sequence[Request]) -> Iterator[tuple[Request, Request | None, int]]:
    """First request, the one whose answer ended it (None: none did), and how many it hit."""
    first: Request | None = None
    number = 0
    for each in requests:
        if each.status is Status.BAD or (each.status is Status.NOT_SENT and first is not None):
            first, number = first or each, number + 1
        elif each.status is Status.LATE:
            yield first or each, each, number + 1
            first, number = None, 0
        elif each.status is Status.GOOD and first is not None:
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
