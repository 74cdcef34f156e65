"""The chart of endpoint latency: how long one request takes, endpoint by endpoint.

A bar is the mean with its interval; every sample lies on it as a dot; the extremes are marked
and written out. Lines at multiples of the measured RTT let one read round trips off it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts import marks
from wanlat.analysis.charts.rows import Cell, Row, Words, frame, mark_round_trips
from wanlat.analysis.charts.style import SeriesStyle, applied, styles
from wanlat.analysis.charts.wording import (
    EXTREMES_HEADER,
    extremes_cell,
    legend_of,
    outcome_cell,
    placement_sentences,
    places_for,
    rtt_sentence,
    subtitle,
)
from wanlat.analysis.endpoints import row_names
from wanlat.analysis.names import (
    EN_DASH,
    count,
    display_system,
    format_ms,
    row_labels,
    shortened,
)
from wanlat.analysis.notes import run_note
from wanlat.analysis.placement import with_placement
from wanlat.analysis.summary import EndpointSummary, Group, Summary, grouped, ok_ms

if TYPE_CHECKING:
    from wanlat.analysis.statistics import Values

    Samples = Mapping[Group, Values]

_CUT_BEYOND = 10
"""Lone samples may stretch the axis this many times past the bulk; farther off, they are cut."""
_CUT_AT = 1.25


def draw(bundle: Bundle, summary: Summary) -> Figure:
    """The chart of `summary`, with the samples of `bundle` on it."""
    samples_ms = _samples_ms(bundle)
    limit = axis_limit(summary, samples_ms)
    looks = styles(summary.series)
    with applied():
        chart = frame(_words(bundle, summary, samples_ms, limit), _rows(summary), limit)
        if bundle.measured_rtt and bundle.measured_rtt.is_uniform:
            mark_round_trips(chart, bundle.measured_rtt.median_ms)
        for entry, centre in zip(summary.endpoints, chart.centres, strict=True):
            look = looks[entry.series].at(entry.placement)
            _draw_entry(chart.axes, entry, samples_ms[entry.group], look, centre)
    return chart.figure


def axis_limit(summary: Summary, samples_ms: Samples) -> float:
    """Where the axis ends, milliseconds.

    Past the greatest sample, unless a few samples lie so far off that they would crush all the
    rest; then past everything that is not a lone sample: means, intervals, 95th percentiles.
    """
    greatest = max((float(v.max()) for v in samples_ms.values() if v.size), default=0.0)
    bulk = 0.0
    for latency in (entry.latency for entry in summary.endpoints):
        if latency is not None:
            interval = latency.mean_ci95_ms or (latency.mean_ms, latency.mean_ms)
            bulk = max(bulk, latency.p95_ms, interval[1])
    if greatest <= 0:
        return 1.0
    return greatest * 1.04 if greatest <= _CUT_BEYOND * bulk else bulk * _CUT_AT


def _draw_entry(
    axes: Axes, entry: EndpointSummary, values_ms: Values, look: SeriesStyle, centre: float
) -> None:
    latency = entry.latency
    if latency is None:
        marks.write_on_row(axes, centre, "no request succeeded")
        return
    marks.draw_bar(axes, latency.mean_ms, centre, look)
    marks.draw_strip(axes, values_ms, centre, look)
    below = centre + marks.STATISTICS_BELOW_IN
    marks.draw_extremes(axes, (latency.min_ms, latency.mean_ms, latency.max_ms), below, look)
    if latency.mean_ci95_ms is not None:
        marks.draw_interval(axes, latency.mean_ci95_ms, below)


def _samples_ms(bundle: Bundle) -> Samples:
    return {group: ok_ms(rows) for group, rows in grouped(bundle.measured).items()}


def _rows(summary: Summary) -> list[Row]:
    labels = row_labels(summary.series)
    names = row_names(summary.endpoint_names)
    return [
        Row(names[e.endpoint], with_placement(labels[e.series], e.placement), _cells(e))
        for e in summary.endpoints
    ]


def _cells(entry: EndpointSummary) -> tuple[Cell, ...]:
    latency = entry.latency
    if latency is None:
        return Cell(EN_DASH), Cell(EN_DASH), outcome_cell(entry)
    places = places_for(latency.mean_ms)
    interval = latency.mean_ci95_ms
    bounds = f" [{', '.join(format_ms(b, places) for b in interval)}]" if interval else ""
    return (
        Cell(format_ms(latency.mean_ms, places) + bounds),
        extremes_cell(latency.min_ms, latency.max_ms, places),
        outcome_cell(entry),
    )


def _words(bundle: Bundle, summary: Summary, samples_ms: Samples, limit: float) -> Words:
    return Words(
        title=f"Endpoint latency on {bundle.topology}",
        subtitle=subtitle(bundle),
        headers=("mean [95 %] ms", EXTREMES_HEADER, "requests"),
        x_label="latency of one request, ms",
        caption=_caption(bundle, summary, samples_ms, limit),
        legend=legend_of(summary),
    )


def _caption(
    bundle: Bundle, summary: Summary, samples_ms: Samples, limit: float
) -> tuple[str, ...]:
    counts = [entry.n for entry in summary.endpoints]
    each = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    noun = "sample" if max(counts) == 1 else "samples"
    intervals = any(e.latency and e.latency.mean_ci95_ms for e in summary.endpoints)
    black = ", with its 95 % interval in black" if intervals else " (too few for an interval)"
    lines = [
        f"{each} {noun} a bar, one request in flight. Bar: mean{black}. Dots: every sample. "
        "Thin line: smallest to greatest. Failures are in no bar and no figure.",
        rtt_sentence(bundle),
        *placement_sentences(summary),
    ]
    beyond = sum(int((values_ms > limit).sum()) for values_ms in samples_ms.values())
    if beyond:
        verb = "lies" if beyond == 1 else "lie"
        lines.append(
            f"{count(beyond, 'sample')} {verb} beyond the axis, at the arrows; the greatest is "
            "written beside the bar, and all are in every figure."
        )
    if full := shortened(summary.series):
        lines.append(f"In full: {'; '.join(full)}.")
    if note := run_note(bundle):
        lines.append(note)
    absent = [display_system(o.system) for o in bundle.systems if o not in summary.series]
    if absent:
        lines.append(f"Not one measured sample of {', '.join(absent)}.")
    return tuple(lines)
