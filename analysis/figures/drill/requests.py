"""The requests of a drill's phases: one row each, and what came of any selection of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wanlat.analysis.figures.drill.model import (
    OPERATIONS,
    PHASES,
    EndpointFigures,
    Figures,
    Latencies,
    Phase,
)
from wanlat.analysis.stats.intervals import wilson

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    *("client", "operation", "endpoint", "node", "target", "key", "phase"),
    *("outcome", "sent", "due_s", "start_s", "end_s", "latency_ms", "latency_from_start_ms"),
    *("error", "status", "due_ns", "start_ns", "end_ns"),
)
_WORDS = (
    *("client", "drill_client", "operation", "endpoint", "target"),
    *("key", "phase", "outcome", "error"),
)
_QUANTITY = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?) ?(ns|us|ms|s|m|min|h|%)?")
_UNITS: Mapping[str | None, float] = {
    **{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0},
    **{"%": 0.01, None: 1.0},
}


def quantity(value: object) -> float | None:
    """A time or a share in the drill's YAML: of "250ms" 0.25 s, of "90%" 0.9, of 0.9 itself.

    The drill was checked when it was started: whatever cannot be read here is not known.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _UNITS[match[2]] if match else None


def requests_of(samples: pd.DataFrame, origin_ns: int) -> pd.DataFrame:
    """Every request that was due in a phase, in order of due time; columns as `Drill.requests`.

    A request was answered, or given up, `total_ns` after its start, or `elapsed_ns` where it was
    not answered whole. One that was never sent has neither start nor end.
    """
    import numpy as np

    rows = samples[samples["phase"].isin(PHASES) & samples["due_ns"].notna()]
    rows = rows.astype(dict.fromkeys(_WORDS, object))  # compressed as categories, which sort apart
    rows = rows.sort_values(["due_ns", "drill_client", "operation"], kind="stable")
    same = ["endpoint", "target", "key", "phase", "outcome", "error", "status", "due_ns"]
    frame = rows[[*same, "start_ns"]].copy()
    frame["client"] = rows["drill_client"].fillna("")
    frame["operation"] = rows["operation"].fillna("")
    frame["node"] = rows["client"]
    frame["sent"] = rows["start_ns"].notna().astype(bool)
    frame["end_ns"] = rows["start_ns"] + rows["total_ns"].fillna(rows["elapsed_ns"])
    for name in ("due", "start", "end"):
        since_ns = frame[f"{name}_ns"] - origin_ns
        frame[f"{name}_s"] = since_ns.to_numpy(dtype="float64", na_value=np.nan) / 1e9
    for column, begin in (("latency_ms", "due_ns"), ("latency_from_start_ms", "start_ns")):
        took_ns = frame["end_ns"] - frame[begin]
        frame[column] = took_ns.to_numpy(dtype="float64", na_value=np.nan) / 1e6
    return frame[list(_COLUMNS)].reset_index(drop=True)


def figures_of(requests: pd.DataFrame) -> Figures:
    """The figures of all of `requests`, rows as in `Drill.requests`."""
    counts = requests["outcome"].value_counts()
    ok = requests[requests["outcome"] == "ok"]
    due, sent = len(requests), int(requests["sent"].sum())
    from_due = _latencies(ok["latency_ms"])
    return Figures(
        attempted=due,
        ok=len(ok),
        fail=int(counts.get("fail", 0)),
        unknown=int(counts.get("unknown", 0)),
        p50_ms=from_due.p50_ms,
        p99_ms=from_due.p99_ms,
        max_ms=from_due.max_ms,
        sent=sent,
        not_sent=due - sent,
        availability=len(ok) / sent if sent else None,
        availability_ci95=wilson(len(ok), sent) if sent else None,
        from_start=_latencies(ok["latency_from_start_ms"]),
    )


def by_endpoint(requests: pd.DataFrame) -> tuple[EndpointFigures, ...]:
    """One entry a phase and endpoint that has a request, phases in order, then the alphabet."""
    grouped = dict(iter(requests.groupby(["phase", "operation", "endpoint"])))
    return tuple(
        EndpointFigures(phase, str(endpoint), operation, figures_of(rows))
        for phase in PHASES
        for operation in OPERATIONS
        for (at, of, endpoint), rows in grouped.items()
        if (at, of) == (phase, operation)
    )


def phases_of(
    requests: pd.DataFrame,
    begins_s: Mapping[str, float],
    planned_s: Mapping[str, float | None],
    *,
    record_end_s: float | None,
    was_cut_short: bool,
) -> tuple[Phase, ...]:
    """All three of PHASES.

    `begins_s` has the begin of each phase that is recorded, and of "end"; `planned_s` how long each
    was to be; `record_end_s` is the last instant of which anything is known. `was_cut_short` says
    that the drill ended itself before its end: then things went on happening, but no requests.
    """
    found = []
    for name, following in zip(PHASES, (*PHASES[1:], "end"), strict=True):
        rows = requests[requests["phase"] == name]
        begin_s = _begin_s(rows, begins_s.get(name), record_end_s)
        end_s, complete = None, False
        if begin_s is not None and record_end_s is not None:
            planned_end_s = begins_s.get(following, begin_s + (planned_s.get(name) or float("inf")))
            known_s = [*rows["due_s"].dropna(), *rows["end_s"].dropna()] if was_cut_short else []
            last_s = max(known_s, default=record_end_s)
            complete = last_s >= planned_end_s
            end_s = planned_end_s if complete else max(begin_s, last_s)
        reads, writes = (figures_of(rows[rows["operation"] == one]) for one in OPERATIONS)
        found.append(Phase(name, reads, writes, begin_s, end_s, complete))
    return tuple(found)


def _begin_s(
    rows: pd.DataFrame, planned_s: float | None, record_end_s: float | None
) -> float | None:
    """When it began; None if that was planned, but nothing is known of any later instant."""
    if planned_s is None:
        return None if rows.empty else float(rows["due_s"].min())
    was_reached = not rows.empty or (record_end_s is not None and record_end_s >= planned_s)
    return planned_s if was_reached else None


def _latencies(values_ms: pd.Series[float]) -> Latencies:
    import numpy as np

    known_ms = values_ms.dropna().to_numpy(dtype="float64")
    if known_ms.size == 0:
        return Latencies(None, None, None)
    p50_ms, p99_ms = np.percentile(known_ms, (50, 99))
    return Latencies(float(p50_ms), float(p99_ms), float(known_ms.max()))
