"""How fast is a store under load, and what does a single client beside the load wait?

Rates and latencies are of requests that succeeded and ended within the steady part of the load;
where none was found, within the whole load after its ramp. A latency counts from when the request
was due, where a rate was requested, else from when it was sent. docs/how-to/load.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wanlat.analysis.endpoints import READ, WRITE, operations
from wanlat.analysis.figures import probe_client
from wanlat.analysis.figures.probe_client import MIN_N_FOR_P99, InTime
from wanlat.analysis.groups import seed_for
from wanlat.analysis.names import cell, change, digits, estimate, series_order, share
from wanlat.analysis.section import (
    ENDPOINT,
    PLACED,
    Column,
    Figures,
    Note,
    Row,
    Section,
    Table,
    figures_of,
    named,
    short,
)
from wanlat.analysis.stats import over_time
from wanlat.analysis.stats.over_time import (
    STEADY_BINS,
    Estimate,
    Steady,
    percentile,
    ratio,
    ratio_of_ratios,
    steady_state,
    summed,
)
from wanlat.bundle import load_records
from wanlat.bundle.beneath import RECORDS
from wanlat.bundle.documents import NOT_SENT, OUTCOMES, Load, Offered
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_table
from wanlat.bundle.run import Run, Series
from wanlat.bundle.samples import outcomes_of

Values = NDArray[np.float64]
Part = tuple[float, float]
"""Of a load, seconds after its ramp: from, until."""


_WIDTHS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_MOST_BINS = 600
_MIN_PER_BIN = 20
"""Requests a bin, on average: with fewer the counts are mostly noise."""
_MOST_DRAWN_BINS = 300
_COLUMNS = (
    *("system", "start_ns", "due_ns", "elapsed_ns", "endpoint", "object_bytes"),
    *("outcome", "error", "phase"),
)


@dataclass(frozen=True)
class OverTime:
    """What charts draw of a load, in bins of `bin_s` from the end of its ramp on.

    `per_s` has the requests of each operation that succeeded a second, `failed_per_s` all others.
    `latencies_ms` are sorted, of the part that figures are of; `probe_ms` has for each endpoint
    when the probe client's requests began (before 0: idle) and their latencies.
    """

    bin_s: float
    per_s: Mapping[str, Values]
    failed_per_s: Values
    latencies_ms: Mapping[str, Values]
    probe_ms: InTime


def load(bundle: Run) -> Figures | None:
    """The figures of every system of `bundle` under load; None where none was, or left no record.

    A row is a system, with lists of its `operations`, of its `failures` by kind, and of the
    `probe_client`'s endpoints, idle and loaded. Raises BundleError where a file is damaged.
    """
    if not bundle.is_load:
        return None
    load, tables = bundle.manifest.load, dict(_recorded(bundle))
    return figures_of(
        _row(bundle, series, tables[series], load.get(series.system) or Load())
        for series in series_order(tables, bundle.systems)
        if not tables[series].empty
    )


def _recorded(bundle: Run) -> Iterator[tuple[Series, pd.DataFrame]]:
    """Rows of load.parquet of each system; then records of a run that was killed, as they are."""
    known = {one.system: one for one in bundle.systems}
    recorded = read_table(bundle.directory, "load")
    if recorded is not None:
        frame, path, _ = recorded
        absent = [f"column {name}" for name in _COLUMNS if name not in frame.columns]
        if absent or not frame["outcome"].isin(OUTCOMES).all():
            raise BundleError(
                f"{path} lacks the {', '.join(absent) or 'outcome of a request'}: something else "
                "than wanlat wrote it, or it is damaged."
            )
        frame["outcome"] = outcomes_of(frame)
        for name, rows in frame.groupby("system", sort=False):
            yield known.get(str(name), Series(str(name), "unknown")), rows
    for path in sorted((bundle.directory / RECORDS).glob("load-*.raw")):
        table = load_records.records_table(load_records.read_records(path))
        name = path.stem.removeprefix("load-")
        frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        yield known.get(name, Series(name, "unknown")), frame


def _requests(frame: pd.DataFrame, load: Load) -> tuple[pd.DataFrame, int, float]:
    """The requests in the order of their begin; when the ramp was over; seconds until the end.

    A request has `at_s`, when its clock stopped, in seconds after the ramp, and `ms` from when it
    was due, or else sent, until then.
    """
    frame = frame.sort_values("start_ns", kind="stable", ignore_index=True)
    start_ns = frame["start_ns"].astype("int64")
    if load.began_ns is not None:
        zero_ns = load.began_ns + round((load.ramp_ms or 0.0) * 1e6)
    else:
        began = start_ns[frame["phase"] != "ramp"]
        zero_ns = int(began.min() if began.size else start_ns.min())
    # Of a killed run: with the last request begun. It may end in its ramp.
    until_ns = max(load.ended_ns or int(start_ns.max()), zero_ns)
    ended_ns = start_ns + frame["elapsed_ns"].astype("int64")
    since_ns = frame["due_ns"].astype("Int64").fillna(start_ns).astype("int64")
    requests = pd.DataFrame(
        {
            "operation": frame["endpoint"],
            "outcome": frame["outcome"],
            "error": frame["error"].astype(object).fillna("no reason recorded"),
            "at_s": (ended_ns - zero_ns) / 1e9,
            "ms": (ended_ns - since_ns) / 1e6,
            "bytes": frame["object_bytes"].fillna(0).astype("float64"),
        }
    )
    return requests, zero_ns, (until_ns - zero_ns) / 1e9


def _row(bundle: Run, series: Series, frame: pd.DataFrame, load: Load) -> tuple[Row, OverTime]:
    requests, zero_ns, until_s = _requests(frame, load)
    not_sent = int((requests["outcome"] == NOT_SENT).sum())
    requests = requests[requests["outcome"] != NOT_SENT]
    ok = requests[requests["outcome"] == "ok"]
    client = load.client
    # Of a run that was killed its study says what was to be offered.
    study = bundle.manifest.study
    offered = load.offered or Offered.model_validate(study and study.load)
    rate, seed = offered.rate, bundle.seed
    bin_s = _bin_width_s(len(ok), until_s)
    steady = _steady(ok, until_s, bin_s, seed_for(seed, *series, "steady"), rate is not None)
    part = (steady.begin_s, steady.end_s) if steady.is_steady else (0.0, until_s)
    samples = probe_client.samples_of(bundle, series, zero_ns)
    # Of the whole load figures are of what was answered after its end, too.
    beside = part if steady.is_steady else (0.0, math.inf)
    # Reads before writes, then by the alphabet.
    does = operations(bundle.manifest, series.system)
    names = sorted(set(requests["operation"]), key=lambda name: (does.get(name) == WRITE, name))
    row = {
        "system": series.system,
        "version": series.version,
        "topology": bundle.topology,
        "status": bundle.status,
        "duration_s": short(until_s),
        "workers": offered.workers,
        "steady": {
            "verdict": steady.verdict,
            "of": "latency" if rate is not None else "rate",
            "begin_s": short(steady.begin_s),
            "end_s": short(steady.end_s),
            "bin_s": bin_s,
            **named("drift", steady.change),
            **named("curvature", steady.curvature),
        },
        "operations": [
            _operation(requests, name, part, bin_s, seed_for(seed, *series, name)) for name in names
        ],
        "failures": _failures(requests),
        "requests": len(requests),
        NOT_SENT: not_sent,
        "late": _late(frame),
        "client": {
            "workers": offered.workers,
            "offered_per_s": short(rate),
            "cpu_share": short(client.cpu_share if client else None),
            "bottleneck": load.bottleneck,
        },
        "probe_client": list(probe_client.figures(samples, beside, bundle)),
        **{name: getattr(load, name) or 0 for name in ("probe_left_out", "left_out")},
        "probe_overrun_ms": probe_client.overrun_ms(samples, load.probe_interval_ms),
        **named(
            "write_over_read",
            _write_over_read(ok, does, part, bin_s, seed_for(seed, *series, "write / read")),
        ),
    }
    counted = ok[ok["at_s"].between(*part, inclusive="left")]
    while until_s / bin_s > _MOST_DRAWN_BINS:
        bin_s *= 2
    over_time = OverTime(
        bin_s=bin_s,
        per_s={name: _per_s(ok[ok["operation"] == name], until_s, bin_s) for name in names},
        failed_per_s=_per_s(requests[requests["outcome"] != "ok"], until_s, bin_s),
        latencies_ms={
            name: np.sort(counted.loc[counted["operation"] == name, "ms"]) for name in names
        },
        probe_ms=probe_client.in_time(samples),
    )
    return row, over_time


def _late(frame: pd.DataFrame) -> int:
    """How many requests the machine made late; a load that was killed did not come to it."""
    return int(frame["late"].eq(True).sum()) if "late" in frame.columns else 0


def _bin_width_s(n: int, until_s: float) -> float:
    """Seconds of a bin for `n` requests: as short as _MOST_BINS and _MIN_PER_BIN allow."""
    per_s = n / max(until_s, 1e-9)
    for width_s in _WIDTHS_S:
        if until_s / width_s <= _MOST_BINS and per_s * width_s >= _MIN_PER_BIN:
            return width_s
    longest_s = max(until_s / STEADY_BINS, _WIDTHS_S[0])
    return max(width_s for width_s in _WIDTHS_S if width_s <= longest_s)


def _steady(
    ok: pd.DataFrame, until_s: float, bin_s: float, seed: list[int], by_latency: bool
) -> Steady:
    """Whether the load came to a steady state: of its rate, or of its latency where a rate was
    requested and so means nothing.
    """
    series = _per_s(ok, until_s, bin_s)
    if by_latency:
        inside = ok[ok["at_s"].between(0, series.size * bin_s, inclusive="left")]
        # Where nothing came in a bin, what took long is counted where it ended.
        ms = inside["ms"].groupby((inside["at_s"] / bin_s).astype(int)).mean()
        series = ms.reindex(range(series.size), fill_value=0.0).to_numpy()
    return steady_state(series, bin_s, seed)


def _per_s(requests: pd.DataFrame, until_s: float, bin_s: float) -> Values:
    """Requests a second in each whole bin of the load."""
    edges = np.arange(max(1, int(until_s / bin_s + 1e-9)) + 1)
    return np.histogram(requests["at_s"] / bin_s, edges)[0] / bin_s


def _operation(
    requests: pd.DataFrame, name: str, part: Part, bin_s: float, seed: list[int]
) -> dict[str, Any]:
    """Of requests of one operation that ended within a part of the load."""
    mine = requests[requests["operation"] == name]
    sizes = mine.loc[mine["outcome"] == "ok", "bytes"].unique()
    mine = mine[mine["at_s"].between(*part, inclusive="left")]
    ok = mine[mine["outcome"] == "ok"]
    length_s, ms, moved = (
        max(part[1] - part[0], 1e-9),
        ok["ms"].to_numpy(),
        float(ok["bytes"].sum()),
    )
    bins, count = _bins(ok["at_s"], part, bin_s)
    widths_s = np.full(count, bin_s)
    widths_s[-1] = length_s - (count - 1) * bin_s
    per_bin = np.bincount(bins, minlength=count).astype(float)
    per_s = ratio(per_bin, widths_s, seed) or Estimate(0.0, None)
    mean_ms = ratio(summed(bins, ms, count), per_bin, seed)

    def at(percent: int) -> Estimate | None:
        return percentile(ms, bins, count, percent, [*seed, 10 * percent])

    return {
        "operation": name,
        "object_bytes": int(sizes[0]) if sizes.size == 1 else None,
        "begin_s": short(part[0]),
        "end_s": short(part[1]),
        **{
            outcome: int((mine["outcome"] == outcome).sum())
            for outcome in ("ok", "fail", "unknown")
        },
        "bytes": round(moved),
        **named("operations_per_s", per_s),
        "bytes_per_s": short(moved / length_s),
        **named("mean_ms", mean_ms),
        **named("p50_ms", at(50)),
        **named("p95_ms", at(95)),
        **named("p99_ms", at(99) if ms.size >= MIN_N_FOR_P99 else None),
        "max_ms": short(float(ms.max())) if ms.size else None,
        "in_flight": None if mean_ms is None else short(per_s.value * mean_ms.value / 1e3),
    }


def _failures(requests: pd.DataFrame) -> list[dict[str, Any]]:
    """Every way in which requests failed, the most frequent first; over ramp, load and what was
    still in flight at its end.
    """
    sent = requests["operation"].value_counts()
    failed = requests[requests["outcome"] != "ok"]
    rows: list[dict[str, Any]] = [
        {
            "operation": operation,
            "outcome": outcome,
            "error": error,
            "count": at_s.size,
            "share": short(at_s.size / int(sent[str(operation)])),
            "first_s": short(float(at_s.min())),
            "last_s": short(float(at_s.max())),
        }
        for (operation, outcome, error), at_s in failed.groupby(["operation", "outcome", "error"])[
            "at_s"
        ]
    ]
    return sorted(rows, key=lambda one: (-one["count"], one["operation"], one["error"]))


def _write_over_read(
    ok: pd.DataFrame, does: Mapping[str, str], part: Part, bin_s: float, seed: list[int]
) -> Estimate | None:
    """Mean latency of writes / that of reads, of the same seconds; None without one of them."""
    inside = ok[ok["at_s"].between(*part, inclusive="left")]

    def sums(operation: str) -> tuple[Values, Values]:
        mine = inside[inside["operation"].map(does) == operation]
        bins, count = _bins(mine["at_s"], part, bin_s)
        return summed(bins, mine["ms"].to_numpy(), count), summed(bins, np.ones(len(mine)), count)

    return ratio_of_ratios(sums(WRITE), sums(READ), seed)


def _bins(at_s: pd.Series[float], part: Part, bin_s: float) -> tuple[NDArray[np.int_], int]:
    """The bin of each instant within a part, and how many there are.

    What is left of a bin at the end belongs to the last one.
    """
    count = max(1, int(max(part[1] - part[0], 1e-9) / bin_s + 1e-9))
    places = ((at_s.to_numpy() - part[0]) / bin_s).astype(int)
    return np.minimum(places, count - 1), count


def _each(key: str) -> Callable[[Figures], Figures | None]:
    """Rows of what every row has a list of under a key, each with the figures of its row."""

    def rows(figures: Figures) -> Figures | None:
        inner_rows = [{**row, **inner} for row in figures.rows for inner in row[key]]
        return (
            Figures(tuple(inner_rows), (None,) * len(inner_rows), figures.parameters)
            if inner_rows
            else None
        )

    return rows


def _table(title: str, key: str, columns: tuple[Column, ...], *notes: Note) -> Table:
    """A table of the lists under `key`, with rows that are trouble where requests failed."""
    return Table(
        title,
        _each(key),
        columns,
        notes,
        is_trouble=lambda row: _failed(row) > 0,
        group=lambda row: (row["system"], row["version"], row.get("point")),
    )


def _failed(row: Row) -> int:
    figures = row.get("loaded", row)
    return int(figures.get("fail", 0) + figures.get("unknown", 0))


_OPERATION = Column("operation", "{operation}", words=True)
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
        Column("drift [95 %]", cell(change, "steady.drift", "steady.drift_ci95")),
        Column("curvature [95 %]", cell(change, "steady.curvature", "steady.curvature_ci95")),
        Column("write / read, mean [95 %]", estimate("write_over_read")),
    ),
    definitions={
        "figures": "of requests that succeeded and ended within begin_s and end_s, seconds after "
        "the ramp; over the steady part where there is one, else over the whole load",
        "ms": "from when a request was due, where a rate was asked for, else from when it was sent",
        "ci95": over_time.DEFINITION,
        "steady": over_time.RULE,
        "in_flight": "operations_per_s x mean_ms (Little)",
        "write_over_read": "mean latency of writes / that of reads, of the same seconds",
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
            "The machine made the network late during requests. Under load they cannot be taken "
            "again, and without them figures would be of the quick ones: they count as all others. "
            "{rows}.",
            lambda row: row.get("late", 0) > 0,
            " ({late:,} of {requests:,})",
        ),
        Note(
            "No steady state was shown, so figures are of the whole load: {rows}.",
            lambda row: row["steady"]["verdict"] != "steady",
        ),
        Note(
            "Drift: from the part's begin to its end; curvature: of its middle to its ends. "
            "Steady: both within ±10 %, intervals and all. Of the rate; of the latency where a "
            "rate was asked for."
        ),
        Note(
            "The run did not complete: {rows}.",
            lambda row: row["status"] != "complete",
            " ({status})",
        ),
        Note(
            "This machine could not send requests, which are in no rate, no latency and no share: "
            "{rows}.",
            lambda row: row.get(NOT_SENT, 0) > 0,
            " ({not_sent:,} besides {requests:,})",
        ),
        Note(
            "Requests that were due were not sent before the end, for no worker was free: {rows}.",
            lambda row: bool(row["left_out"]),
            " ({left_out})",
        ),
        Note(
            "The probe client sent nothing at instants at which too little of its deadline was "
            "left: slow times have fewer samples, and its loaded figures are too good: {rows}.",
            lambda row: bool(row["probe_left_out"]),
            " ({probe_left_out} instants)",
        ),
        Note(
            "Answers beside the load took longer than `probe_interval`, so that latencies from "
            "due say how long the probe client's line grew. Read those from start, or measure "
            "with a longer interval: {rows}.",
            lambda row: row["probe_overrun_ms"] is not None,
            " ({probe_overrun_ms:.0f} ms on average)",
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
                Column("of sent", cell(share, "share")),
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
                ENDPOINT,
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
                "before it included; from start: from when it was sent."
            ),
            PLACED,
        ),
    ),
)
