"""The requests of a drill's phases, one row each, with both of their latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.drill.model import PHASES

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("client", "operation", "endpoint", "node", "target", "key", "phase"),
    *("outcome", "sent", "due_s", "start_s", "end_s", "latency_ms", "latency_from_start_ms"),
    *("error", "status", "due_ns", "start_ns", "end_ns"),
)


def requests_of(samples: pd.DataFrame, origin_ns: int) -> pd.DataFrame:
    """Every request that was due in a phase, in order of due time; columns as `Drill.requests`.

    A request was answered, or given up, `total_ns` after its start, or `elapsed_ns` where it was
    not answered whole. One that was never sent has neither start nor end.
    """
    import numpy as np

    rows = samples[samples["phase"].isin(PHASES) & samples["due_ns"].notna()]
    rows = rows.sort_values(["due_ns", "drill_client", "operation"], kind="stable")
    frame = rows[["operation", "endpoint", "target", "key", "phase", "outcome"]].copy()
    frame["client"] = rows["drill_client"].fillna("")
    frame["operation"] = rows["operation"].fillna("")
    frame["node"] = rows["client"]
    frame["error"], frame["status"] = rows["error"], rows["status"]
    frame["sent"] = rows["start_ns"].notna().astype(bool)
    frame["due_ns"], frame["start_ns"] = rows["due_ns"], rows["start_ns"]
    frame["end_ns"] = rows["start_ns"] + rows["total_ns"].fillna(rows["elapsed_ns"])
    for name in ("due", "start", "end"):
        since_ns = frame[f"{name}_ns"] - origin_ns
        frame[f"{name}_s"] = since_ns.to_numpy(dtype="float64", na_value=np.nan) / 1e9
    for column, begin in (("latency_ms", "due_ns"), ("latency_from_start_ms", "start_ns")):
        took_ns = frame["end_ns"] - frame[begin]
        frame[column] = took_ns.to_numpy(dtype="float64", na_value=np.nan) / 1e6
    return frame[list(COLUMNS)].reset_index(drop=True)
