"""The section of single requests' latency, of a run and of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from wanlat.analysis.endpoints import row_of
from wanlat.analysis.figures.latency import DEFINITIONS, latency
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import EN_DASH, format_ms, listing, series_labels
from wanlat.analysis.placement import MEANING, is_known, with_placement
from wanlat.analysis.report.section import Answer, Column, Note, Section
from wanlat.analysis.statistics import MIN_N_FOR_MEAN_INTERVAL, MIN_N_FOR_P99

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle


def ms(key: str) -> Column:
    """A column of milliseconds: "p99_ms" below "p99 ms"."""
    return Column(key.replace("_", " "), lambda row: format_ms(row[key]))


def mean_cell(row: Row) -> str:
    """The mean with its interval, in whose brackets is a dash where there is none."""
    if row["mean_ms"] is None:
        return EN_DASH
    bounds = [format_ms(bound) for bound in row["mean_ci95_ms"] or ()]
    return f"{format_ms(row['mean_ms'])} [{EN_DASH.join(bounds) or EN_DASH}]"


def _lone_placements(rows: Sequence[Row]) -> str | None:
    """Of which systems all keys were of one placement."""
    pairs = dict.fromkeys((series_of(row), str(row["placement"])) for row in rows)
    of = [series for series, _ in pairs]
    labels = series_labels(of)
    lone = [f"{labels[one]} {placement}" for one, placement in pairs if of.count(one) == 1]
    if not lone:
        return None
    return (
        "Every key was of one placement, so that nothing is known of the other: "
        f"{listing(lone, 6)}."
    )


def _is_spoilt(row: Row) -> bool:
    return bool(row["fail"] or row["unknown"])


def _is_placed(row: Row) -> bool:
    return is_known(row["placement"])


LATENCY = Section(
    key="endpoints",
    title="Latency of single requests",
    flat=True,
    figures=latency,
    columns=(
        Column(
            "endpoint", lambda row: with_placement(row["endpoint"], row["placement"]), words=True
        ),
        Column("n", "{n}"),
        Column("ok/fail/unknown", "{ok}/{fail}/{unknown}"),
        Column("mean [95 %] ms", mean_cell),
        *(ms(f"{name}_ms") for name in ("median", "min", "max", "p95", "p99")),
    ),
    definitions=DEFINITIONS,
    notes=(
        Note(
            "Failures are in no mean and no percentile: {rows}.",
            _is_spoilt,
            each=" {fail} fail, {unknown} unknown of {n}",
        ),
        Note(f"{MEANING} No figure is over both: it would be that of no request.", _is_placed),
        Note(_lone_placements, _is_placed),
        Note(
            f"p99 rests on fewer than {MIN_N_FOR_P99} successful requests, so it says hardly more "
            "than the maximum: {rows}.",
            lambda row: 0 < row["ok"] < MIN_N_FOR_P99,
        ),
        Note(
            f"No interval of the mean from fewer than {MIN_N_FOR_MEAN_INTERVAL} successful "
            "requests: {rows}.",
            lambda row: 0 < row["ok"] < MIN_N_FOR_MEAN_INTERVAL,
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
    charts="wanlat.analysis.charts.sweep:charts_of",
    is_trouble=_is_spoilt,
    group=lambda row: row_of(row["endpoint"]),
)

_OF_DRILL = replace(LATENCY, title="Before the faults, latency of single requests", notes=())


def latency_of(bundle: Bundle) -> Answer | None:
    """The section of a run; of a drill, of what it sent before its first fault."""
    return (_OF_DRILL if bundle.is_drill else LATENCY).of_bundle(bundle)
