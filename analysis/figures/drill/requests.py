"""What a drill recorded: its requests, one row each, its phases, and what happened meanwhile."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from wanlat.analysis.stats.intervals import wilson
from wanlat.bundle.documents import NOT_SENT, Affected
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_table

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("before", "during", "after")
OPERATIONS = ("read", "write", "list")
"""The last is in few drills, and in no figure of others."""

_MICRO = ("\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s")
_UNITS: Mapping[str | None, float] = {
    **{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0},
    **dict.fromkeys(_MICRO, 1e-6),
    **{"%": 0.01, None: 1.0},
}
_QUANTITY = re.compile(f"([0-9.]+(?:[eE][+-]?[0-9]+)?) ?({'|'.join(filter(None, _UNITS))})?")


def quantity(value: object) -> float | None:
    """A time or a share in the drill's YAML: of "250ms" 0.25 s, of "90%" 0.9, of 0.9 itself.

    The drill was checked when it was started: whatever cannot be read here is not known.
    """
    match = None if value is None else _QUANTITY.fullmatch(str(value).strip())
    return float(match[1]) * _UNITS[match[2]] if match else None


def requests_of(samples: pd.DataFrame, origin_ns: int) -> pd.DataFrame:
    """Every request that was due in a phase, in order of due time; columns as `Drill.requests`.

    A request was answered, or given up, `total_ns` after its start, or `elapsed_ns` where it was
    not answered whole. One that expired, or was not sent, has neither start nor end (NaN).
    """
    import numpy as np
    import pandas as pd

    def plain(values: pd.Series[Any], unit_ns: float) -> Any:
        return values.to_numpy(dtype="float64", na_value=np.nan) / unit_ns

    rows = samples[samples["phase"].isin(PHASES) & samples["due_ns"].notna()]
    was_sent = rows["start_ns"].notna() & (rows["outcome"] != NOT_SENT)
    words = ["drill_client", "operation", "endpoint", "key", "phase", "outcome", "error"]
    frame = rows[words].astype(object).rename(columns={"drill_client": "client"})
    frame["phase"] = pd.Categorical(frame["phase"], PHASES, ordered=True)
    frame["sent"] = was_sent.to_numpy(dtype=bool)
    frame["late"] = rows["late"].fillna(False).to_numpy(dtype=bool)
    due_ns, start_ns = rows["due_ns"], rows["start_ns"].where(was_sent)
    end_ns = start_ns + rows["total_ns"].fillna(rows["elapsed_ns"])
    for name, at_ns in (("due", due_ns), ("start", start_ns), ("end", end_ns)):
        frame[f"{name}_s"] = plain(at_ns - origin_ns, 1e9)
    frame["latency_ms"] = plain(end_ns - due_ns, 1e6)
    frame["from_start_ms"] = plain(end_ns - start_ns, 1e6)
    return frame.sort_values(["due_s", "client", "operation"], kind="stable", ignore_index=True)


def figures_of(requests: pd.DataFrame) -> dict[str, Any]:
    """The figures of `requests`, rows as in `Drill.requests`, as summary.json has them.

    `attempted` counts every request that was due. `expired` of them were never sent, because
    earlier ones were still waiting; they are among `fail`. `not_sent` could not be sent by this
    machine, which is no matter of the store's: `availability` is ok ÷ (`attempted` − `not_sent`), 0
    to 1, with Wilson's 95 % interval, None of both where nothing is left. Latencies are of the
    ok ones (NaN: none) that the machine did not make `late`, from when they were due, and in
    `from_start` from when they were sent.
    """
    counts = requests["outcome"].value_counts()
    ok = requests[requests["outcome"] == "ok"]
    timed = ok[~ok["late"]]
    due, sent = len(requests), int(requests["sent"].sum())
    not_sent = int(counts.get(NOT_SENT, 0))
    counted = due - not_sent
    return {
        "attempted": due,
        **{outcome: int(counts.get(outcome, 0)) for outcome in ("ok", "fail", "unknown")},
        **_latencies(timed["latency_ms"]),
        "sent": sent,
        "expired": counted - sent,
        NOT_SENT: not_sent,
        "availability": len(ok) / counted if counted else None,
        "availability_ci95": wilson(len(ok), counted) if counted else None,
        "from_start": _latencies(timed["from_start_ms"]),
    }


def by_endpoint(requests: pd.DataFrame) -> list[dict[str, Any]]:
    """The figures of each phase, operation and endpoint that has a request."""
    names = ["phase", "operation", "endpoint"]
    grouped = requests.groupby(names, observed=True)
    return [dict(zip(names, key, strict=True)) | figures_of(rows) for key, rows in grouped]


def phases_of(
    requests: pd.DataFrame,
    begins_s: Mapping[str, float],
    planned_s: Mapping[str, float | None],
    known_until_s: float | None,
    *,
    was_cut_short: bool,
) -> list[dict[str, Any]]:
    """All three of PHASES: `[begin_s, end_s)`, by when requests were due.

    `begins_s` has the begin of each phase that is recorded, and of "end"; `planned_s` how long each
    was to be; nothing is known of any time after `known_until_s`. `was_cut_short` means that the
    drill ended itself before its end: then things went on happening, but no requests. `begin_s` is
    None where the drill did not get that far; `end_s` of a phase that is not `complete` is the end
    of the record.
    """
    known_s = -math.inf if known_until_s is None else known_until_s
    faults = []
    for name, following in pairwise((*PHASES, "end")):
        rows = requests[requests["phase"] == name]
        begin_s = begins_s.get(name, None if rows.empty else float(rows["due_s"].min()))
        if begin_s is None or (rows.empty and known_s < begin_s):
            begin_s, end_s, complete = None, None, False
        else:
            planned_end_s = begins_s.get(following, begin_s + (planned_s.get(name) or math.inf))
            last_s = known_s
            if was_cut_short and not rows.empty:
                last_s = float(rows[["due_s", "end_s"]].max().max())
            complete = last_s >= planned_end_s
            end_s = planned_end_s if complete else max(begin_s, last_s)
        operations = [
            one for one in OPERATIONS if one != "list" or one in set(requests["operation"])
        ]
        both = {f"{one}s": figures_of(rows[rows["operation"] == one]) for one in operations}
        span = {"begin_s": begin_s, "end_s": end_s, "complete": complete}
        faults.append({"name": name, **both, **span})
    return faults


def _latencies(values_ms: pd.Series[float]) -> dict[str, float | None]:
    p50_ms, p99_ms, max_ms = values_ms.quantile([0.5, 0.99, 1.0])
    return {"p50_ms": float(p50_ms), "p99_ms": float(p99_ms), "max_ms": float(max_ms)}


class Event(NamedTuple):
    """One line of the events, on the samples' clock; `facts`: the object in its detail, if any."""

    t_ns: int
    kind: str
    subject: str
    detail: str
    facts: Mapping[str, Any]

    def at_s(self, origin_ns: int) -> float:
        """When it was, seconds since `origin_ns`."""
        return (self.t_ns - origin_ns) / 1e9


def read_events(directory: Path) -> list[Event]:
    """Every event in order of time, from events.jsonl (a killed run) or events.parquet; [] if none.

    Raises BundleError for what is damaged.
    """
    table = read_table(directory, "events")
    rows = [] if table is None else table[0].to_dict("records")
    try:
        return sorted((_event(row) for row in rows), key=lambda event: event.t_ns)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"The events of {directory} are damaged: one lacks {error}. Run the drill again."
        ) from error


def happened(events: Sequence[Event], origin_ns: int) -> dict[str, list[dict[str, Any]]]:
    """What summary.json has of events: `faults` as they were injected, in order of time, `deaths`
    of processes that ended by themselves, and `recalibrations` of pairs of nodes that were measured
    again after a fault on their links was healed.

    Of a fault, `end_s` is None where it was not healed before the record ends; `occurrences` are
    the instants of one that strikes again and again (crash loop, flapping); `affects` is None where
    that was not recorded.
    """

    def matching(kind: str, subject: str | None = None) -> list[Event]:
        return [e for e in events if e.kind == kind and subject in (None, e.subject)]

    words = ("id", "kind", "subject", "detail", "nodes", "directions", "late_ms")
    return {
        "faults": [
            {
                **{key: event.facts.get(key) for key in words},
                "affects": _affected(event),
                "begin_s": event.at_s(origin_ns),
                "end_s": next((e.at_s(origin_ns) for e in matching("heal", event.subject)), None),
                "occurrences": [e.at_s(origin_ns) for e in matching("occurrence", event.subject)],
            }
            for event in matching("inject")
        ],
        "deaths": [
            {"at_s": event.at_s(origin_ns), "node": event.subject, "detail": event.detail}
            for event in matching("died")
        ],
        "recalibrations": [
            {"at_s": event.at_s(origin_ns), "subject": event.subject, "verdict": "unmeasured"}
            | dict(event.facts)
            for event in matching("recalibrated")
        ],
    }


def _affected(event: Event) -> Affected | None:
    recorded = event.facts.get("affects")
    return next((known for known in get_args(Affected) if known == recorded), None)


def _event(row: Mapping[Any, Any]) -> Event:
    detail = row.get("detail")
    facts = detail if isinstance(detail, dict) else {}
    text = detail if isinstance(detail, str) else ""
    if text.startswith("{"):
        facts = json.loads(text)
    return Event(int(row["t_ns"]), str(row["kind"]), str(row["subject"]), text, facts)
