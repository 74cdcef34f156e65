"""How many requests of a selection were answered, and how fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from wanlat.analysis.drill.model import OPERATIONS, PHASES, EndpointFigures, Figures, Latencies
from wanlat.analysis.statistics import percentiles

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.statistics import Values


def figures_of(requests: pd.DataFrame) -> Figures:
    """The figures of all of `requests`, rows as in `Drill.requests`."""
    outcomes = requests["outcome"]
    ok = requests[outcomes == "ok"]
    return Figures(
        attempted=len(requests),
        ok=len(ok),
        fail=int((outcomes == "fail").sum()),
        unknown=int((outcomes == "unknown").sum()),
        not_sent=int((~requests["sent"].astype(bool)).sum()),
        from_due=_latencies(ok["latency_ms"]),
        from_start=_latencies(ok["latency_from_start_ms"]),
    )


def by_endpoint(requests: pd.DataFrame) -> tuple[EndpointFigures, ...]:
    """One entry a phase and endpoint that has a request, phases in order, then the alphabet."""
    found = []
    for phase in PHASES:
        of_phase = requests[requests["phase"] == phase]
        for operation in OPERATIONS:
            of_operation = of_phase[of_phase["operation"] == operation]
            for endpoint, rows in of_operation.groupby("endpoint"):
                figures = figures_of(rows)
                found.append(EndpointFigures(phase, str(endpoint), operation, figures))
    return tuple(found)


def _latencies(values_ms: pd.Series[float]) -> Latencies:
    known_ms = cast("Values", values_ms.dropna().to_numpy(dtype="float64"))
    if known_ms.size == 0:
        return Latencies(None, None, None)
    p50_ms, p99_ms = percentiles(known_ms, (50, 99))
    return Latencies(p50_ms, p99_ms, float(known_ms.max()))
