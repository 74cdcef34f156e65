"""What is normal for a client: what the phase before any fault shows its answers to take.

Everything here is from when a request was really sent. What a backlog adds to the requests that
wait behind a stalled one is the client's, who has one request in flight, and not the store's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.statistics import percentiles

if TYPE_CHECKING:
    import pandas as pd

LEAST_N = 10
"""Answers; of fewer nobody can say what is normal."""
LIMIT_OVER_P95 = 4.0
LEAST_LIMIT_MS = 250.0
"""Shorter waits are a busy machine's: one with 20 processes a core kept requests waiting 120 ms."""
SLOW_OVER_P95 = 1.5
SLOW_AT_LEAST_MS = 10.0
"""Above p95; what is nearer is told apart by no user."""


@dataclass(frozen=True)
class Normal:
    """`limit_ms`: a longer wait is an outage. `slow_ms`: half of the answers are never slower."""

    limit_ms: float | None
    slow_ms: float | None


def normal_of(requests: pd.DataFrame, interval_ms: float | None, before_s: float | None) -> Normal:
    """What is normal for the client of `requests`; `before_s` is when the first fault began.

    From the ok requests of the phase before that were answered before `before_s`. p95 and not
    p99: of the 40 to 80 requests that there are, p99 is hardly more than the greatest, and one
    hiccup would make a stall of seconds look normal.
    """
    healthy = requests[(requests["phase"] == "before") & (requests["outcome"] == "ok")]
    if before_s is not None:
        healthy = healthy[healthy["end_s"] <= before_s]
    took_ms = healthy["latency_from_start_ms"].dropna().to_numpy(dtype="float64")
    if took_ms.size < LEAST_N:
        return Normal(None, None)
    (p95_ms,) = percentiles(took_ms, (95,))
    return Normal(
        limit_ms=max(LIMIT_OVER_P95 * p95_ms, 2 * (interval_ms or 0.0), LEAST_LIMIT_MS),
        slow_ms=max(SLOW_OVER_P95 * p95_ms, p95_ms + SLOW_AT_LEAST_MS),
    )
