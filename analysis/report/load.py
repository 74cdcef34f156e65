"""The section of a store under load."""

from __future__ import annotations

from collections.abc import Callable

from wanlat.analysis.figures.load import load
from wanlat.analysis.figures.result import Figures, Row
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.formats import cell, change, digits, estimate, share
from wanlat.analysis.report.section import Column, Note, Section, Table
from wanlat.analysis.stats import over_time, steady


def _each(key: str) -> Callable[[Figures], Figures | None]:
    """Rows of what every row has a list of under a key, each with the figures of its row."""

    def rows(figures: Figures) -> Figures | None:
        found = [{**row, **inner} for row in figures.rows for inner in row[key]]
        return Figures(tuple(found), (None,) * len(found), figures.parameters) if found else None

    return rows


def _table(title: str, key: str, columns: tuple[Column, ...], *notes: Note) -> Table:
    """A table of the lists under `key`, whose rows are trouble where requests failed."""
    return Table(
        title,
        _each(key),
        columns,
        notes,
        is_trouble=lambda row: _failed(row) > 0,
        group=lambda row: (row["system"], row["version"], row.get("point")),
    )


def _failed(row: Row) -> int:
    of = row.get("loaded", row)
    return int(of.get("fail", 0) + of.get("unknown", 0))


_OPERATION = Column("operation", "{operation}", words=True)
_ENDPOINT = Column(
    "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
)
_FAILED = Column("failed", lambda row: str(_failed(row)))

LOAD = Section(
    key="load",
    title="Load",
    figures=load,
    columns=(
        Column("workers", "{client[workers]}"),
        Column("rate asked for", cell(digits, "client.offered_per_s"), optional=True),
        Column("client CPU", cell(share, "client.cpu_share")),
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
        "ms": "from when a request was due, where a rate was asked for, else from when it was sent",
        "ci95": over_time.DEFINITION,
        "steady": steady.RULE,
        "in_flight": "operations_per_s x mean_ms (Little)",
        "write_over_read": "mean latency of PutObject / that of GetObject, of the same seconds",
        "probe_client": "single requests beside the load, from when each was due to its answer; "
        "ratio: loaded over idle; from_start: from when it was sent",
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
            lambda row: row["steady"]["verdict"] != "steady",
        ),
        Note(
            "Change: from the part's begin to its end; curvature: of its middle to its ends. "
            "Steady: both within ±10 %, intervals and all. Of the rate; of the latency where a "
            "rate was asked for."
        ),
        Note(
            "The run did not complete: {rows}.",
            lambda row: row["status"] != "complete",
            " ({status})",
        ),
        Note(
            "Requests that were due were not sent before the end, for no worker was free: {rows}.",
            lambda row: bool(row["left_out"]),
            " ({left_out})",
        ),
        Note(
            "The probe client sent nothing at instants at which it still waited for an answer, or "
            "at which too little of its deadline was left: slow times have fewer samples, and its "
            "loaded figures are too good: {rows}.",
            lambda row: bool(row["probe_missed"] or row["probe_left_out"]),
            " ({probe_missed} and {probe_left_out} instants)",
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
    is_trouble=lambda row: (
        row["steady"]["verdict"] != "steady" or bool(row["client"]["bottleneck"])
    ),
    hidden=frozenset({"left_out", "probe_overrun_ms"}),
    tables=(
        _table(
            "Operations under load",
            "operations",
            (
                _OPERATION,
                Column("ok", "{ok}"),
                _FAILED,
                Column("ops/s [95 %]", estimate("operations_per_s", 4)),
                Column("MB/s", lambda row: digits(row["bytes_per_s"] / 1e6)),
                *(
                    Column(f"{name} ms [95 %]", estimate(f"{name}_ms", 4))
                    for name in ("mean", "p50", "p95", "p99")
                ),
                Column("max ms", cell(digits, "max_ms")),
            ),
            Note(
                "Latencies are from when the rate asked for had a request due to its answer, its "
                "wait for a free worker included: what a user notices.",
                lambda row: row["client"]["offered_per_s"] is not None,
            ),
            Note("Not one succeeded: {rows}.", lambda row: not row["ok"], " {operation}"),
        ),
        _table(
            "Failures by kind",
            "failures",
            (
                _OPERATION,
                Column("outcome", "{outcome}", words=True),
                Column("error", "{error}", words=True),
                Column("count", "{count}"),
                Column("share", cell(share, "share")),
                Column("first s", cell(digits, "first_s")),
                Column("last s", cell(digits, "last_s")),
            ),
            Note(
                "Over the whole load and its ramp. They are in no rate and no latency. "
                "Unknown: nobody can say whether it was executed."
            ),
        ),
        _table(
            "The probe client: one request at a time, idle and beside the load",
            "probe_client",
            (
                _ENDPOINT,
                Column("idle median ms", cell(digits, "idle.median_ms")),
                Column("loaded median ms", cell(digits, "loaded.median_ms")),
                Column("times [95 %]", estimate("median_ratio")),
                Column("idle p99 ms", cell(digits, "idle.p99_ms")),
                Column("loaded p99 ms", cell(digits, "loaded.p99_ms")),
                Column("from start: loaded median ms", cell(digits, "loaded.from_start_median_ms")),
                Column("ok", "{idle[ok]} + {loaded[ok]}"),
                _FAILED,
            ),
            Note(
                "Times: loaded / idle median; an interval that holds 1 decides nothing. ok: idle + "
                "loaded."
            ),
            Note(
                "Latencies are from when each request was due to its answer, its wait for the one "
                "before it included; from start: from when it was sent.",
                lambda row: not row["probe_missed"],
            ),
            Note(MEANING, lambda row: is_known(row["placement"])),
        ),
    ),
)
