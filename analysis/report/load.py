"""The section of a store under load."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wanlat.analysis.figures.load import load
from wanlat.analysis.figures.result import Figures, Row
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.formats import cell, change, digits, estimate, share, size, volume
from wanlat.analysis.report.section import Column, Note, Section, Table
from wanlat.analysis.stats import over_time, steady

if TYPE_CHECKING:
    pass

_MB = 1e6


def _each(key: str) -> Callable[[Figures], Figures | None]:
    """Rows of what every row has a list of under a key, each with the figures of its row."""

    def rows(figures: Figures) -> Figures | None:
        found = [{**row, **inner} for row in figures.rows for inner in row[key]]
        return Figures(tuple(found), (None,) * len(found), figures.parameters) if found else None

    return rows


def _whose(row: Row) -> object:
    return row["system"], row["version"], row.get("point")


def _is_steady(row: Row) -> bool:
    return bool(row["steady"]["verdict"] == "steady")


def _failed(row: Row) -> int:
    return int(row["fail"] + row["unknown"])


def _failed_beside(row: Row) -> int:
    return int(row["loaded"]["fail"] + row["loaded"]["unknown"])


_OPERATION = Column("operation", "{operation}", words=True)

LOAD = Section(
    key="load",
    title="Load",
    figures=load,
    columns=(
        Column("workers", "{client[workers]:d}"),
        Column("rate asked for", lambda row: digits(row["client"]["offered_per_s"]), optional=True),
        Column("client CPU", cell(share, "client.cpu_share")),
        Column("limit", lambda row: "client" if row["client"]["bottleneck"] else "store", True),
        Column("state", "{steady[verdict]}", words=True),
        Column("from s", cell(lambda value: digits(value, 3), "steady.begin_s")),
        Column("until s", cell(lambda value: digits(value, 3), "steady.end_s")),
        Column("change [95 %]", cell(change, "steady.change", "steady.change_ci95")),
        Column("curvature [95 %]", cell(change, "steady.bulge", "steady.bulge_ci95")),
        Column("write / read, mean [95 %]", estimate("write_over_read")),
    ),
    definitions={
        "figures": "of requests that succeeded and ended within begin_s and end_s, seconds after "
        "the ramp; over the steady part where there is one, else over the whole load",
        "ci95": over_time.DEFINITION,
        "steady": steady.RULE,
        "in_flight": "operations_per_s x mean_ms (Little)",
        "write_over_read": "mean latency of PutObject / that of GetObject, of the same seconds",
        "probe_client": "single requests beside the load; more and ratio compare loaded with idle",
        "probe_from_due": "where there is from_start_ms, the probe client's latencies are from "
        "when a request was due to its answer, its wait for an earlier one included; "
        "from_start_ms is from when it was sent",
        "bytes_per_s": "bytes of bodies moved by requests that succeeded, a second",
    },
    notes=(
        Note(
            "The client was the bottleneck, so the store can do more: {rows}.",
            lambda row: bool(row["client"]["bottleneck"]),
            " ({client[bottleneck]})",
        ),
        Note(
            "No steady state was shown, so figures are of the whole load: {rows}.",
            lambda row: not _is_steady(row),
        ),
        Note(
            "Change: from the part's begin to its end; curvature: of its middle to its ends. "
            "Steady: both within ±10 %, intervals and all. Of the rate; of the latency where a "
            "rate was asked for."
        ),
        Note(
            "The run did not complete: {rows}.",
            lambda row: bool(row["status"] != "complete"),
            " ({status})",
        ),
        Note(
            "The generator was killed, and its last record is torn and left out: {rows}.",
            lambda row: bool(row["is_cut"]),
        ),
        Note(
            "Fewer requests are recorded than the generator says that it sent: {rows}.",
            lambda row: bool(row["unrecorded"]),
            " ({unrecorded} fewer)",
        ),
        Note(
            "Requests that were due were not sent before the end, for no worker was free: {rows}.",
            lambda row: bool(row["left_out"]),
            " ({left_out})",
        ),
        Note(
            "At instants at which the probe client still waited for an answer it sent nothing, so "
            "that slow times have fewer samples and its loaded figures are too good: {rows}.",
            lambda row: bool(row["probe_missed"]),
            " ({probe_missed} instants)",
        ),
        Note(
            "Requests of the probe client were not sent, for too little of their deadline was "
            "left; they count as failed and are in no latency, so its loaded figures are too good. "
            "A longer `probe_interval` has fewer of them: {rows}.",
            lambda row: bool(row.get("probe_left_out")),
            " ({probe_left_out} instants)",
        ),
        Note(
            "Answers beside the load took longer than `probe_interval`, so that latencies from "
            "due say how long the probe client's line grew. Read those from start, or measure "
            "with a longer interval: {rows}.",
            lambda row: row["probe_overrun_ms"] is not None,
            " ({probe_overrun_ms:.3g} ms on average)",
        ),
    ),
    charts={"load": "wanlat.analysis.charts.load:draw"},
    is_trouble=lambda row: not _is_steady(row) or bool(row["client"]["bottleneck"]),
    hidden=frozenset({"is_cut", "left_out", "unrecorded", "probe_overrun_ms"}),
    tables=(
        Table(
            "Operations under load",
            _each("operations"),
            (
                _OPERATION,
                Column("object", cell(size, "object_bytes")),
                Column("ok", "{ok}"),
                Column("failed", lambda row: str(_failed(row))),
                Column("moved", cell(volume, "bytes")),
                Column("ops/s [95 %]", estimate("operations_per_s", 4)),
                Column(
                    "MB/s",
                    lambda row: row["object_bytes"] and digits(row["bytes_per_s"] / _MB),
                ),
                Column("in flight", cell(digits, "in_flight")),
            ),
            (
                Note("In flight: mean latency × ops/s (Little's law)."),
                Note("Not one succeeded: {rows}.", lambda row: not row["ok"], " {operation}"),
            ),
            is_trouble=lambda row: _failed(row) > 0,
            group=_whose,
        ),
        Table(
            "Latency under load",
            _each("operations"),
            (
                _OPERATION,
                *(
                    Column(f"{name} ms [95 %]", estimate(f"{name}_ms", 4))
                    for name in ("mean", "p50", "p95", "p99")
                ),
                Column("max ms", cell(digits, "max_ms")),
                Column("from due: mean ms", cell(digits, "from_due_ms.mean"), optional=True),
                Column("p99 ms of those", cell(digits, "from_due_ms.p99"), optional=True),
            ),
            (
                Note(
                    "From due: from when the rate asked for had a request due to its answer, its "
                    "wait for a free worker included: what a user notices.",
                    lambda row: row["from_due_ms"] is not None,
                ),
            ),
            group=_whose,
        ),
        Table(
            "Failures by kind",
            _each("failures"),
            (
                _OPERATION,
                Column("outcome", "{outcome}", words=True),
                Column("error", "{error}", words=True),
                Column("count", "{count}"),
                Column("share", cell(share, "share")),
                Column("first s", cell(digits, "first_s")),
                Column("last s", cell(digits, "last_s")),
            ),
            (
                Note(
                    "Over the whole load and its ramp. They are in no rate and no latency. "
                    "Unknown: nobody can say whether it was executed."
                ),
            ),
            group=_whose,
        ),
        Table(
            "The probe client: one request at a time, idle and beside the load",
            _each("probe_client"),
            (
                Column(
                    "endpoint",
                    lambda row: with_placement(row["endpoint"], row["placement"]),
                    words=True,
                ),
                Column("idle median ms", cell(digits, "idle.median_ms")),
                Column("loaded median ms", cell(digits, "loaded.median_ms")),
                Column("more ms [95 %]", estimate("median_more_ms")),
                Column("times [95 %]", estimate("median_ratio")),
                Column("idle p99 ms", cell(digits, "idle.p99_ms")),
                Column("loaded p99 ms", cell(digits, "loaded.p99_ms")),
                Column(
                    "from start: loaded median ms",
                    cell(digits, "loaded.from_start_ms.median"),
                    optional=True,
                ),
                Column("ok", "{idle[ok]} + {loaded[ok]}"),
                Column("failed", lambda row: str(_failed_beside(row))),
            ),
            (
                Note(
                    "More: loaded less idle median; times: loaded / idle. An interval that holds "
                    "0, or 1, decides nothing. ok: idle + loaded."
                ),
                Note(
                    "From when each request was due to its answer, its wait for the one before it "
                    "included: what a user notices. From start: from when it was sent.",
                    lambda row: "from_start_ms" in row["loaded"],
                ),
                Note(MEANING, lambda row: is_known(row["placement"])),
            ),
            is_trouble=lambda row: _failed_beside(row) > 0,
            group=_whose,
        ),
    ),
)
