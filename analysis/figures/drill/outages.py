"""How each client fared: what was normal, its outages and slow stretches, and its recovery.

All of it from the requests of one client and operation alone, of which several may be on their way,
and from when they were really sent: what a backlog adds to the requests that wait behind stalled
ones is the client's, and not the store's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wanlat.analysis.figures.drill.requests import PHASES, figures_of
from wanlat.bundle.documents import NOT_SENT

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

LEAST_N = 10
"""Answers; of fewer it is not known what is normal."""
LIMIT_OVER_P95 = 4.0
LEAST_LIMIT_MS = 250.0
"""Shorter waits are a busy machine's: one with 20 processes a core kept requests waiting 120 ms."""
SLOW_OVER_P95 = 1.5
SLOW_AT_LEAST_MS = 10.0
"""Above p95; what is nearer is distinguished by no user."""
WINDOW, WINDOW_S = 7, 1.0
"""Answers in a row, and the least time that they take, of which most must be slow for the client to
be served slowly. Single slow ones are the tail that every store has; a few at once, at short
intervals, are a hiccup of the machine."""
LEAST_GOOD = 3
"""Answers in time, after the last disturbance, without which it is not known to be over."""

GOOD, LATE, BAD, EXPIRED = "good", "late", "bad", "expired"
"""The status of a request: ok in time; ok, but it took longer than the limit; not ok;
never sent, because earlier ones were waiting, which is as bad. Of one that this machine could not
send nothing follows: it is left out."""
ANSWERED = (GOOD, LATE)
RECOVERY = ("recovered", "recovery_s", "recovery_after_heal_s")
"""What `recovery_of` gives, as summary.json has it."""
NOT_KNOWN, NOT_BACK = (None, None, None), (False, None, None)

Recovery = tuple[bool | None, float | None, float | None]
Injection = tuple[float, float]
"""The first fault: its injection started, and it was in force for certain; seconds."""


def client_of(
    rows: pd.DataFrame, faults: Sequence[Row], interval_ms: float | None, until_s: float
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """The figures of one client's reads, or its writes, its outages and its slow stretches.

    Of `rows`, as in `Drill.requests`, which were sent until `until_s`; docs/reference/statistics.md
    has what each figure is.
    """
    first = last_heal_s = None
    if faults:
        # Of a kill, `begin_s` is when the end of the process was seen.
        started_s = [
            fault["begin_s"] - max(fault["late_ms"] or 0.0, 0.0) / 1000 for fault in faults
        ]
        first = min(started_s), min(fault["begin_s"] for fault in faults)
        if all(fault["end_s"] is not None for fault in faults):
            last_heal_s = max(fault["end_s"] for fault in faults)
    of_store = rows[rows["outcome"] != NOT_SENT]
    limit_ms, slow_ms = normal_of(of_store, interval_ms, first and first[0])
    requests = classified(of_store, limit_ms, slow_ms)
    outages = list(outages_of(requests, first, limit_ms, max(until_s, requests["end_s"].max())))
    slow = [] if first is None else list(slow_stretches_of(requests, first[0]))
    counted_s = [outage["duration_s"] for outage in outages if not outage["before_fault"]]
    recovery = recovery_of(requests, [*outages, *slow], first, last_heal_s)
    figures = {
        "phases": {phase: figures_of(rows[rows["phase"] == phase]) for phase in PHASES},
        "longest_outage_s": max(counted_s, default=0.0),
        "outages": len(counted_s),
        **dict(zip(RECOVERY, recovery, strict=True)),
        "limit_ms": limit_ms,
        "slow_ms": slow_ms,
    }
    return figures, outages, slow


def recovery_of_all(clients: Sequence[Row]) -> Recovery:
    """That of the client that took longest; not recovered if one was not; unknown if one is."""
    recoveries = [tuple(client[key] for key in RECOVERY) for client in clients]
    if NOT_BACK in recoveries:
        return NOT_BACK
    return NOT_KNOWN if NOT_KNOWN in recoveries else max(recoveries, default=NOT_KNOWN)


def normal_of(
    requests: pd.DataFrame, interval_ms: float | None, before_s: float | None
) -> tuple[float | None, float | None]:
    """The limit of an outage and that of a slow answer, ms; both None where they are not known.

    From the ok requests of the phase before that were answered before `before_s`, when the first
    fault began; of those that were sent while another was on its way, none: one hiccup hits all of
    them. p95 and not p99: of the 40 to 80 requests that there are, p99 is hardly more than
    the greatest, and one hiccup would make a stall of seconds look normal.
    """
    healthy = requests[(requests["phase"] == "before") & (requests["outcome"] == "ok")]
    healthy = healthy[~healthy["late"]]
    if before_s is not None:
        healthy = healthy[healthy["end_s"] <= before_s]
    took_ms = _one_after_another(healthy)["from_start_ms"].dropna()
    if len(took_ms) < LEAST_N:
        return None, None
    p95_ms = float(took_ms.quantile(0.95))
    limit_ms = max(LIMIT_OVER_P95 * p95_ms, 2 * (interval_ms or 0.0), LEAST_LIMIT_MS)
    return limit_ms, max(SLOW_OVER_P95 * p95_ms, p95_ms + SLOW_AT_LEAST_MS)


def _one_after_another(requests: pd.DataFrame) -> pd.DataFrame:
    """Those that a client would have sent that has one request on its way at a time."""
    import numpy as np

    chosen, free_s = np.zeros(len(requests), dtype=bool), -math.inf
    for place, (begin_s, end_s) in enumerate(
        zip(requests["start_s"], requests["end_s"], strict=True)
    ):
        chosen[place] = begin_s >= free_s
        free_s = end_s if chosen[place] else free_s
    return requests[chosen]


def classified(
    requests: pd.DataFrame, limit_ms: float | None, slow_ms: float | None
) -> pd.DataFrame:
    """The status of each of a client's requests: `status`, `is_slow`, `begin_s` and `end_s`.

    One that expired begins and ends when it was due; `end_s` is when it was answered or
    given up, or `begin_s` where that is unknown. An answer that the machine made late took no time
    that counts: it is in time, and not slow.
    """
    import numpy as np
    import pandas as pd

    sent, took_ms = requests["sent"], requests["from_start_ms"]
    ok = sent & (requests["outcome"] == "ok")
    took_ms = took_ms.mask(requests["late"])
    late = ok & (took_ms > (math.inf if limit_ms is None else limit_ms))
    begin_s = requests["start_s"].where(sent, requests["due_s"])
    return pd.DataFrame(
        {
            "begin_s": begin_s,
            "end_s": requests["end_s"].fillna(begin_s),
            "status": np.select([~sent, late, ok], [EXPIRED, LATE, GOOD], BAD),
            "is_slow": ok & (took_ms > (math.inf if slow_ms is None else slow_ms)),
        }
    )


def outages_of(
    requests: pd.DataFrame, first: Injection | None, limit_ms: float | None, record_end_s: float
) -> Iterator[dict[str, Any]]:
    """Every outage of one client and operation, with its requests as `classified` has them.

    An outage begins when a request is sent that is not ok or takes longer than the limit. It ends
    with the first ok answer to what was sent since, be that the same request: whoever answers is
    back. All that are sent until then belong to it. Where the first request was in flight, and
    still in time, when the first fault began, it begins with the fault; one that began before any
    fault is no fault's work (`before_fault`). One that was not over by the end of the record (not
    `ended`) lasted at least that long.
    """
    import numpy as np

    sent = requests[requests["status"] != EXPIRED].sort_values("begin_s", kind="stable")
    answers_s = sent["end_s"].where(sent["status"].isin(ANSWERED), math.inf)
    next_s = answers_s[::-1].cummin()[::-1]  # of this request, or of one that was sent later
    back_s = -math.inf
    for place in np.flatnonzero(sent["status"].isin((BAD, LATE))):
        opening = sent.iloc[place]
        if opening["begin_s"] < back_s:
            continue
        back_s = float(next_s.iloc[place])
        ended = back_s < math.inf
        within = (requests["begin_s"] >= opening["begin_s"]) & (requests["begin_s"] < back_s)
        begin_s, early = _begin(opening["begin_s"], opening["end_s"], first, limit_ms)
        end_s = back_s if ended else record_end_s
        number = (requests["status"][within] != GOOD).sum()
        yield _disturbance(begin_s, end_s, ended, number, before_fault=early)


def slow_stretches_of(requests: pd.DataFrame, started_s: float) -> Iterator[dict[str, Any]]:
    """Every stretch since the first fault, at `started_s`, in which most answers were slow.

    Of WINDOW answers or more in a row, WINDOW_S long or longer, more than half are slow: their
    median is beyond what is normal. A stretch is the union of such windows, from its first slow
    request to the end of its last.
    """
    import numpy as np

    answers = requests[requests["status"].isin(ANSWERED) & (requests["end_s"] > started_s)]
    slow = np.concatenate([[0], answers["is_slow"].cumsum()])
    first = np.arange(len(answers))
    late_enough = np.searchsorted(answers["end_s"].cummax(), answers["begin_s"] + WINDOW_S)
    after = np.maximum(first + WINDOW, late_enough + 1)  # the shortest window from each answer on
    first, after = first[after < len(slow)], after[after < len(slow)]
    mostly = 2 * (slow[after] - slow[first]) > after - first
    covered = np.zeros(len(answers), dtype=bool)
    for begin, end in zip(first[mostly], after[mostly], strict=True):
        covered[begin:end] = True
    stretch = (~covered).cumsum()
    for _, rows in answers[covered].groupby(stretch[covered]):
        among = rows[rows["is_slow"]]
        begin_s = max(among["begin_s"].iloc[0], started_s)
        ended = rows.index[-1] != answers.index[-1]
        yield _disturbance(begin_s, among["end_s"].max(), ended, len(among), before_fault=False)


def recovery_of(
    requests: pd.DataFrame,
    disturbances: Sequence[Row],
    first: Injection | None,
    last_heal_s: float | None,
) -> Recovery:
    """The recovery of one client: `recovery_s` from when the first fault was in force.

    `recovered` is None where nothing was injected, nothing measured since, or where an outage that
    no fault explains was going on as the first one began; False where it was not back by the end of
    the record. `recovery_s` is 0 where nothing disturbed it; `recovery_after_heal_s`, from the last
    heal and never negative, is None while something is broken still (`last_heal_s` None).
    """
    if first is None:
        return NOT_KNOWN
    started_s, in_force_s = first
    measured = requests[(requests["end_s"] > started_s) & (requests["status"] != EXPIRED)]
    early = [disturbance for disturbance in disturbances if disturbance["before_fault"]]
    if measured.empty or any(disturbance["end_s"] > started_s for disturbance in early):
        return NOT_KNOWN
    disturbed = [disturbance for disturbance in disturbances if not disturbance["before_fault"]]
    end_s = max([in_force_s, *(disturbance["end_s"] for disturbance in disturbed)])
    good = ((requests["status"] == GOOD) & (requests["end_s"] >= end_s)).sum()
    if disturbed and (
        good < LEAST_GOOD or not all(disturbance["ended"] for disturbance in disturbed)
    ):
        return NOT_BACK
    return True, end_s - in_force_s, None if last_heal_s is None else max(0.0, end_s - last_heal_s)


def _disturbance(
    begin_s: float, end_s: float, ended: bool, requests: int, *, before_fault: bool
) -> dict[str, Any]:
    return {
        "begin_s": float(begin_s),
        "end_s": float(end_s),
        "duration_s": float(end_s - begin_s),
        "ended": bool(ended),
        "requests": int(requests),
        "before_fault": before_fault,
    }


def _begin(
    begin_s: float, end_s: float, fault: Injection | None, limit_ms: float | None
) -> tuple[float, bool]:
    """When the outage that a request opens began, and whether that was before any fault."""
    if fault is None or begin_s >= fault[1]:
        return begin_s, False
    started_s, in_force_s = fault
    was_overdue = limit_ms is not None and (started_s - begin_s) * 1000 > limit_ms
    if begin_s < started_s and (was_overdue or end_s <= started_s):
        return begin_s, True
    # What it waited before the fault was in force is not the fault's, if it survived that.
    return max(begin_s, in_force_s if end_s > in_force_s else started_s), False
