"""How long one request takes: the latency of each endpoint, at each placement of its keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from wanlat.analysis import statistics
from wanlat.analysis.endpoints import MEANING, is_known, row_of
from wanlat.analysis.groups import Group, OfGroup, in_order, ok_ms, positions, seed_of, timed
from wanlat.analysis.names import EN_DASH, format_ms, listing, series_labels
from wanlat.analysis.section import (
    ENDPOINT,
    Answer,
    Column,
    Figures,
    Note,
    Row,
    Section,
    figures_of,
    rests_on,
    series_of,
)
from wanlat.analysis.statistics import MIN_N_FOR_MEAN_INTERVAL, MIN_N_FOR_P99
from wanlat.analysis.stats.intervals import Values, holm
from wanlat.analysis.stats.lateness import difference
from wanlat.bundle.documents import NOT_SENT, OUTCOMES, Titles
from wanlat.bundle.matrix import Matrix
from wanlat.bundle.run import Run, is_late

_DIFFERS_BELOW = 0.01
_FIGURES = ("mean_ms", "median_ms", "min_ms", "max_ms", "p95_ms", "p99_ms")
_INTERVALS = ("mean_ci95_ms", "median_ci95_ms")

DEFINITIONS = {
    "n": "requests sent in the measuring phase; in tables those that figures rest on",
    "latencies": "of the requests that succeeded (ok) and for which the network was not late",
    "late": "ok requests in no latency: the network was late in their first round trip",
    "held_up_ms": "most by which lateness behind that can have lengthened the mean",
    "p_late_differ": "that late requests are as the others, in outcome and duration (Holm)",
    "percentiles": statistics.PERCENTILE_DEFINITION,
    "mean_ci95_ms": statistics.MEAN_INTERVAL_DEFINITION,
    "median_ci95_ms": statistics.MEDIAN_INTERVAL_DEFINITION,
    "outliers": "beyond Tukey's fences, 1.5 IQR; counted, kept in every figure",
}


@dataclass(frozen=True)
class EndpointSummary(OfGroup):
    """One endpoint of one version of one system, at one placement.

    `n` requests were sent: `ok` succeeded, `fail` were certainly not executed, the result of
    `unknown` is not known; `not_sent` more could not be sent by this machine. `latency` is over the
    ok ones for which the network was not late, None if there are none; `values_ms` are theirs, in
    the order in which they were sent. `rtt_ms` is that between sites, where all of them are equally
    far apart.
    """

    group: Group
    n: int
    ok: int
    fail: int
    unknown: int
    not_sent: int
    latency: statistics.Latency | None
    values_ms: Values
    rtt_ms: float | None = None
    is_biased: bool = False
    """Whether requests that are left out because the network was late differ from the others."""


def latency(bundle: Run) -> Figures | None:
    """Every endpoint and placement of `bundle`, in the order of tables; arrays: EndpointSummary.

    Of a drill those of the phase before anything was broken. None where nothing was measured, and
    of a run at several RTTs: over all of them together a mean latency is that of no network.
    """
    if bundle.has_rtt_steps:
        return None
    if "endpoints" not in bundle.derived:
        bundle.derived["endpoints"] = _judged(figures_of(_rows(bundle)))
    figures: Figures | None = bundle.derived["endpoints"]
    return figures


def held_up_of(rows: pd.DataFrame) -> Values:
    """The most by which a late network can have lengthened each of `rows`, milliseconds."""
    return rows["held_up_ns"].fillna(0).to_numpy(dtype="float64") / 1e6


def _difference(rows: pd.DataFrame) -> float | None:
    """The p-value of requests of a late network being as the others are; None: too few."""
    rows = rows[rows["outcome"] != NOT_SENT]
    took_ms = rows["total_ns"].fillna(0).to_numpy(dtype="float64") / 1e6
    is_ok = (rows["outcome"] == OUTCOMES[0]).to_numpy(bool)
    return difference(is_late(rows).to_numpy(bool), is_ok, took_ms, held_up_of(rows))


def _judged(figures: Figures | None) -> Figures | None:
    """Figures that show whether lateness was a matter of chance, of all endpoints together."""
    if figures is None:
        return None
    known = [row["p_late_differ"] for row in figures.rows if row["p_late_differ"] is not None]
    adjusted = iter(holm(known))
    ps = [None if row["p_late_differ"] is None else next(adjusted) for row in figures.rows]
    return replace(
        figures,
        rows=tuple(
            {**row, "p_late_differ": rounded(p)} for row, p in zip(figures.rows, ps, strict=True)
        ),
        arrays=tuple(
            replace(entry, is_biased=p is not None and p < _DIFFERS_BELOW)
            for entry, p in zip(figures.arrays, ps, strict=True)
        ),
    )


def rounded(value_ms: float | None) -> float | None:
    """`value_ms` to the nanosecond, which is all that was measured; None for what is no number."""
    if value_ms is None or not math.isfinite(value_ms):
        return None
    return round(value_ms, 6)


def _rows(bundle: Run) -> Iterator[tuple[Row, EndpointSummary]]:
    """The entries of summary.json, milliseconds, each with what is drawn of it."""
    groups, rtt = positions(bundle.timed), bundle.measured_rtt
    rtt_ms = rtt.median_ms if rtt is not None and rtt.is_uniform else None
    for group in in_order(groups, bundle):
        rows = bundle.timed.iloc[groups[group]]
        outcomes = rows["outcome"].value_counts()
        counts = {name: int(outcomes.get(name, 0)) for name in OUTCOMES}
        n = len(rows) - counts[NOT_SENT]
        values_ms, first_bytes_ms = ok_ms(rows), ok_ms(rows, "first_byte_ns")
        held_up_ms = held_up_of(timed(rows))
        described = statistics.describe(values_ms, seed_of(bundle.seed, group), held_up_ms)
        figures = asdict(described) if described else {}
        intervals = {name: figures.get(name) for name in _INTERVALS}
        row: dict[str, Any] = {
            **group.row,
            "topology": bundle.topology,
            "n": n,
            **counts,
            **{name: rounded(figures.get(name)) for name in _FIGURES},
            **{key: ci95 and [rounded(bound) for bound in ci95] for key, ci95 in intervals.items()},
            "outliers": figures.get("outliers", 0),
            "late": counts["ok"] - values_ms.size,
            "held_up_ms": rounded(float(held_up_ms.mean())) if values_ms.size else None,
            "p_late_differ": _difference(rows),
            "first_byte_median_ms": rounded(
                float(np.median(first_bytes_ms)) if first_bytes_ms.size else None
            ),
            "retransmits": int(rows["retransmits"].fillna(0).sum()),
            "new_connections": int(rows["new_connection"].fillna(False).sum()),
        }
        yield (
            row,
            EndpointSummary(
                group,
                n,
                counts["ok"],
                counts["fail"],
                counts["unknown"],
                counts[NOT_SENT],
                latency=described,
                values_ms=values_ms,
                rtt_ms=rtt_ms,
            ),
        )


def ms(key: str) -> Column:
    """A column of milliseconds: "p99_ms" below "p99 ms"."""
    return Column(key.replace("_", " "), lambda row: format_ms(row[key]))


def mean_cell(row: Row) -> str:
    """The mean with its interval, with a dash in the brackets where there is none."""
    if row["mean_ms"] is None:
        return EN_DASH
    bounds = [format_ms(bound) for bound in row["mean_ci95_ms"] or ()]
    return f"{format_ms(row['mean_ms'])} [{EN_DASH.join(bounds) or EN_DASH}]"


def _lone_placements(rows: Sequence[Row], titles: Titles) -> str | None:
    """Of which systems all keys were of one placement."""
    pairs = dict.fromkeys((series_of(row), str(row["placement"])) for row in rows)
    listed = [series for series, _ in pairs]
    labels = series_labels(listed, titles)
    lone = [f"{labels[one]} {placement}" for one, placement in pairs if listed.count(one) == 1]
    if not lone:
        return None
    return (
        "Every key was of one placement, so that nothing is known of the other: "
        f"{listing(lone, 6)}."
    )


def _is_spoilt(row: Row) -> bool:
    return bool(row["fail"] or row["unknown"])


def _is_biased(row: Row) -> bool:
    """Whether requests that were left out because the network was late differ from the others."""
    p = row["p_late_differ"]
    return p is not None and p < _DIFFERS_BELOW


def _may_be_longer(row: Row) -> bool:
    """Whether lateness within requests may have moved the mean by more than its interval."""
    if not row["held_up_ms"] or row["mean_ci95_ms"] is None:
        return False
    return bool(row["held_up_ms"] > (row["mean_ci95_ms"][1] - row["mean_ms"]) / 2)


def _is_placed(row: Row) -> bool:
    return is_known(row["placement"])


LATENCY = Section(
    key="endpoints",
    title="Latency of single requests",
    flat=True,
    figures=latency,
    columns=(
        ENDPOINT,
        Column("n", lambda row: str(rests_on(row))),
        Column("ok/fail/unknown", "{ok}/{fail}/{unknown}"),
        Column("mean [95 %] ms", mean_cell),
        *(ms(f"{name}_ms") for name in ("median", "min", "max", "p95", "p99")),
    ),
    definitions=DEFINITIONS,
    notes=(
        Note(
            "Failures are in no mean and no percentile: {rows}.",
            _is_spoilt,
            detail=" {fail} fail, {unknown} unknown of {n}",
        ),
        Note(
            "This machine could not send requests, which are in no figure: {rows}.",
            lambda row: row.get(NOT_SENT, 0) > 0,
            detail=" {not_sent}",
        ),
        Note(
            "The machine was late when requests were slow, or failed, more often than at other "
            "times: the store's own work may have made it late, and latencies without those "
            "requests are not decided: {rows}.",
            _is_biased,
            detail=" ({late} of {ok} left out)",
        ),
        Note(
            "The network was late behind the first round trip of requests, which may have "
            "lengthened their mean by so much at most; intervals reach down that far: {rows}.",
            _may_be_longer,
            detail=" {held_up_ms:.2g} ms",
        ),
        Note(f"{MEANING} No figure is over both: it would be that of no request.", _is_placed),
        Note(_lone_placements, _is_placed),
        Note(
            f"p99 rests on fewer than {MIN_N_FOR_P99} successful requests, so it says hardly more "
            "than the maximum: {rows}.",
            lambda row: 0 < row["ok"] - row["late"] < MIN_N_FOR_P99,
        ),
        Note(
            f"No interval of the mean from fewer than {MIN_N_FOR_MEAN_INTERVAL} successful "
            "requests: {rows}.",
            lambda row: 0 < row["ok"] - row["late"] < MIN_N_FOR_MEAN_INTERVAL,
        ),
        Note(
            "Segments that TCP sent again: {total} ({rows}).",
            lambda row: row["retransmits"] > 0,
            total="retransmits",
        ),
        Note(
            "Outliers by Tukey's fences, kept in every figure: {total}.",
            lambda row: row["outliers"] > 0,
            total="outliers",
        ),
    ),
    charts="wanlat.analysis.charts.matrix:charts_of",
    is_trouble=lambda row: _is_spoilt(row) or _is_biased(row),
    group=lambda row: row_of(row["endpoint"]),
)

_OF_DRILL = replace(LATENCY, title="Before the faults, latency of single requests", notes=())


def latency_of(source: Run | Matrix) -> Answer | None:
    """The section of a run or a matrix; of a drill, of what it sent before its first fault."""
    return (_OF_DRILL if source.manifest.kind == "drill" else LATENCY).answer(source)
