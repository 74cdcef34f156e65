"""Ours beside what Garage's benchmark page published in 2021, on the same topologies.

Their figures are data of this room (analysis/published/): a comparison is drawn with them, and
they enter no result of ours.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle, Series
from wanlat.analysis.charts import marks
from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.rows import Cell, Row, Words, frame, mark_round_trips
from wanlat.analysis.charts.style import applied, styles
from wanlat.analysis.charts.wording import (
    EXTREMES_HEADER,
    extremes_cell,
    outcome_cell,
    places_for,
    rtt_sentence,
    subtitle,
)
from wanlat.analysis.names import (
    EN_DASH,
    display_system,
    format_ms,
    row_labels,
    series_labels,
    short_version,
    shortened,
)
from wanlat.analysis.notes import run_note
from wanlat.analysis.placement import with_placement
from wanlat.analysis.summary import EndpointSummary, Summary

FIGURES = Path(__file__).parents[1] / "published" / "garage-endpoint-latency.csv"
YEAR = 2021
PUBLISHED_N = 100


@dataclass(frozen=True)
class PublishedLatency:
    """One bar of theirs, milliseconds, read off a chart to about ±3 ms; None where unreadable."""

    topology: str
    series: Series
    endpoint: str
    mean_ms: float
    min_ms: float | None
    max_ms: float | None


@dataclass(frozen=True)
class _Line:
    """One row of the chart, ours or theirs; `series` is ours, and gives the colour."""

    row: Row
    series: Series
    is_ours: bool
    mean_ms: float | None
    min_ms: float | None
    max_ms: float | None


def published_latencies() -> list[PublishedLatency]:
    """Every figure of the table, in its order."""
    with FIGURES.open(encoding="utf-8", newline="") as file:
        return [
            PublishedLatency(
                topology=line["topology"],
                series=Series(line["system"], line["version"]),
                endpoint=line["endpoint"],
                mean_ms=float(line["mean_ms"]),
                min_ms=float(line["min_ms"]) if line["min_ms"] else None,
                max_ms=float(line["max_ms"]) if line["max_ms"] else None,
            )
            for line in csv.DictReader(file)
        ]


def has_counterpart(bundle: Bundle, summary: Summary) -> bool:
    """Whether they published anything that `summary` measured, on a topology of this name."""
    return bool(_lines(bundle, summary))


def draw(bundle: Bundle, summary: Summary) -> Figure:
    """The chart; only for a bundle that has a counterpart."""
    lines = _lines(bundle, summary)
    looks = styles(summary.series)
    greatest = max(line.max_ms or line.mean_ms or 0.0 for line in lines)
    with applied():
        chart = frame(_words(bundle, summary, lines), [line.row for line in lines], greatest * 1.04)
        if bundle.measured_rtt and bundle.measured_rtt.is_uniform:
            mark_round_trips(chart, bundle.measured_rtt.median_ms)
        for line, centre in zip(lines, chart.centres, strict=True):
            look = looks[line.series]
            if line.mean_ms is None:
                marks.write_on_row(chart.axes, centre, "no request succeeded")
                continue
            marks.draw_bar(chart.axes, line.mean_ms, centre, look, hollow=not line.is_ours)
            figures_ms = (line.min_ms, line.mean_ms, line.max_ms)
            marks.draw_extremes(chart.axes, figures_ms, centre, look)
    return chart.figure


def _lines(bundle: Bundle, summary: Summary) -> list[_Line]:
    """Ours and theirs in turn, for each endpoint that both have of the same system."""
    theirs = {
        (one.series.system, one.endpoint): one
        for one in published_latencies()
        if one.topology == bundle.topology
    }
    common = [e for e in summary.endpoints if (e.series.system, e.endpoint) in theirs]
    labels = row_labels(summary.series)
    lines: list[_Line] = []
    for number, entry in enumerate(common):
        label = with_placement(labels[entry.series], entry.placement)
        lines.append(_our_line(entry, label))
        following = common[number + 1 : number + 2]
        # Two versions of one system stand above the one figure that both are compared with.
        if not any(
            (e.endpoint, e.series.system) == (entry.endpoint, entry.series.system)
            for e in following
        ):
            lines.append(_their_line(theirs[entry.series.system, entry.endpoint], entry.series))
    return lines


def _our_line(entry: EndpointSummary, label: str) -> _Line:
    latency = entry.latency
    if latency is None:
        cells = (Cell(EN_DASH), Cell(EN_DASH), outcome_cell(entry))
        return _Line(Row(entry.endpoint, label, cells), entry.series, True, None, None, None)
    places = places_for(latency.mean_ms)
    cells = (
        Cell(format_ms(latency.mean_ms, places)),
        extremes_cell(latency.min_ms, latency.max_ms, places),
        outcome_cell(entry),
    )
    row = Row(entry.endpoint, label, cells)
    return _Line(row, entry.series, True, latency.mean_ms, latency.min_ms, latency.max_ms)


def _their_line(one: PublishedLatency, ours: Series) -> _Line:
    cells = (
        Cell(f"≈ {format_ms(one.mean_ms, 0)}"),
        extremes_cell(one.min_ms, one.max_ms, 0),
        Cell(f"{PUBLISHED_N} in {YEAR}"),
    )
    row = Row(one.endpoint, f"{display_system(ours.system)}, {YEAR}", cells)
    return _Line(row, ours, False, one.mean_ms, one.min_ms, one.max_ms)


def _words(bundle: Bundle, summary: Summary, lines: list[_Line]) -> Words:
    looks = styles(summary.series)
    drawn = [one for one in summary.series if any(line.series == one for line in lines)]
    labels = series_labels(drawn)
    theirs = {
        one.series.system: one.series
        for one in published_latencies()
        if one.topology == bundle.topology
    }
    legend = [LegendEntry(looks[one], f"{labels[one]}, measured here") for one in drawn]
    compared = {one.system: one for one in reversed(drawn)}
    for one in reversed(compared.values()):
        version = short_version(theirs[one.system].version)
        label = f"{display_system(one.system)} {version}, published {YEAR}"
        legend.append(LegendEntry(looks[one], label, hollow=True))
    caption = [
        "Filled: measured here, mean with smallest and greatest. Outlined: Garage's benchmark "
        f"page, {YEAR}, read off its charts, about ±3 ms. Theirs were other versions on another "
        "machine and another emulator, at a nominal RTT of 100 ms with 20 ms jitter.",
        rtt_sentence(bundle),
    ]
    if full := shortened([*drawn, *(theirs[system] for system in compared)]):
        caption.append(f"In full: {'; '.join(full)}.")
    if note := run_note(bundle):
        caption.append(note)
    return Words(
        title=f"Measured here and published in {YEAR}: {bundle.topology}",
        subtitle=subtitle(bundle),
        headers=("mean ms", EXTREMES_HEADER, "requests"),
        x_label="latency of one request, ms",
        caption=tuple(caption),
        legend=tuple(legend),
    )
