"""The chart of endpoint latency: how long one request takes, endpoint by endpoint.

Requests of one endpoint may take one of several times, a round trip or more apart: each such mode
has a bar to its median, as high as its share of the requests, and its requests as dots on it. Lines
at multiples of the measured RTT let one read round trips off it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.charts.frame import Words, dress
from wanlat.analysis.charts.rows import (
    BAR,
    MOST_DOTS,
    Row,
    draw_bar,
    draw_strip,
    row_chart,
    write_beyond,
    write_on_row,
)
from wanlat.analysis.charts.style import INK, SeriesStyle, applied, styles
from wanlat.analysis.charts.wording import looks_of, placement_sentences, rtt_sentence, subtitle
from wanlat.analysis.endpoints import row_names, row_of
from wanlat.analysis.figures.latency import EndpointSummary
from wanlat.analysis.names import (
    EN_DASH,
    count,
    display_system,
    format_ms,
    listing,
    row_labels,
    shortened,
)
from wanlat.analysis.notes import is_trusted, run_note
from wanlat.analysis.placement import is_known, with_placement
from wanlat.analysis.stats.clumps import Clump, clumps

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer

MODES_APART = 0.12
"""Width of the kernel that modes are found with, in RTTs: those of whole round trips stay apart,
and the jitter of the shipped studies (a tenth of the RTT each way) makes none of one."""
RATIOS_APART = 0.35
"""The same where no one RTT is known, of the logarithm: what differs by less than three times is
one mode."""
_BULK = 0.95
"""The axis ends past this part of every endpoint's requests, if the rest would stretch it by more
than half as much again."""
_STRETCH = 1.5
_HEADERS = ("median [95 %] ms", f"min {EN_DASH} max ms", "requests")


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of a run of single requests; none of a network that was not as asked for."""
    bundle = answer.source
    assert isinstance(bundle, Bundle)
    if bundle.is_drill or bundle.is_load or not is_trusted(bundle):
        return {}
    return {"endpoint-latency": draw(bundle, answer.figures.arrays)}


def draw(bundle: Bundle, entries: Sequence[EndpointSummary]) -> Figure:
    """The chart of `entries`, measured in the run of `bundle`."""
    rtt = bundle.measured_rtt
    rtt_ms = rtt.median_ms if rtt is not None and rtt.is_uniform else None
    series = list(dict.fromkeys(entry.series for entry in entries))
    looks, limit = styles(series), axis_limit(entries)
    modes = [modes_of(entry) for entry in entries]
    with applied():
        chart = row_chart(rows_of(entries, _cells), _HEADERS, limit, rtt_ms)
        for entry, its, centre in zip(entries, modes, chart.centres, strict=True):
            _draw(chart.axes, entry, its, centre, looks[entry.series].at(entry.placement))
        groups = [entry.group for entry in entries]
        words = _words(bundle, entries, modes, rtt_ms, limit)
        return dress(chart.figure, words, looks_of(series, groups))


def axis_limit(entries: Sequence[EndpointSummary]) -> float:
    """Where the axis ends, milliseconds: past the greatest request, unless few lie far off."""
    values = [entry.values_ms for entry in entries if entry.values_ms.size]
    greatest = max((float(each.max()) for each in values), default=1.0)
    bulk = max((float(np.quantile(each, _BULK, method="lower")) for each in values), default=1.0)
    return 1.04 * (greatest if greatest <= _STRETCH * bulk else 1.1 * bulk)


def modes_of(entry: EndpointSummary) -> tuple[Clump, ...]:
    """The modes of the requests of `entry`, by RTTs, or by ratios where no one RTT is known."""
    values_ms = entry.values_ms
    if not values_ms.size:
        return ()
    if entry.rtt_ms is not None:
        return clumps(values_ms, MODES_APART * entry.rtt_ms)
    found = clumps(np.log(np.maximum(values_ms, 1e-6)), RATIOS_APART)
    return tuple(replace(each, median=float(np.median(values_ms[each.member]))) for each in found)


def rows_of(
    entries: Sequence[EndpointSummary], cells: Callable[[EndpointSummary], tuple[str, ...]]
) -> list[Row]:
    """A row for each of `entries`; without labels where an endpoint's name says it all."""
    names = row_names(entry.endpoint for entry in entries)
    labels = row_labels(list(dict.fromkeys(entry.series for entry in entries)))
    rows = [row_of(entry.endpoint) for entry in entries]
    alone = len(set(rows)) == len(rows) and not any(is_known(e.placement) for e in entries)
    return [
        Row(
            group=names[entry.endpoint].replace("\n", " "),
            label="" if alone else with_placement(labels[entry.series], entry.placement),
            cells=cells(entry),
            alarming=entry.ok < entry.n,
        )
        for entry in entries
    ]


def _draw(
    axes: Axes,
    entry: EndpointSummary,
    modes: Sequence[Clump],
    centre: float,
    look: SeriesStyle,
) -> None:
    """A bar for each mode, as high as its share, with its requests on it."""
    if not modes:
        write_on_row(axes, centre, "no request succeeded")
        return
    top, values_ms = centre - BAR / 2, entry.values_ms
    for mode in modes:
        height = BAR * mode.share
        middle = top + height / 2
        draw_bar(axes, mode.median, middle, look, height=height)
        draw_strip(axes, values_ms[mode.member], (middle, height), look, values_ms.size)
        axes.plot([mode.median] * 2, [top, top + height], color=INK, linewidth=2.0, zorder=5)
        top += height
    if (beyond := values_ms[values_ms > axes.get_xlim()[1]]).size:
        several = f"{beyond.size} requests to " if beyond.size > 1 else ""
        write_beyond(axes, centre, f"{several}{format_ms(float(beyond.max()), 0)} ms", look)


def _cells(entry: EndpointSummary) -> tuple[str, ...]:
    bad = [f"{n} {kind}" for n, kind in ((entry.fail, "fail"), (entry.unknown, "unknown")) if n]
    outcome = " · ".join([f"{entry.ok} ok", *bad])
    latency = entry.latency
    if latency is None:
        return EN_DASH, EN_DASH, outcome
    places = 2 if latency.median_ms < 10 else 1 if latency.median_ms < 100 else 0
    bounds = [format_ms(bound, places) for bound in latency.median_ci95_ms or ()]
    interval = f" [{', '.join(bounds)}]" if bounds else ""
    ends = (format_ms(latency.min_ms, places), format_ms(latency.max_ms, places))
    return f"{format_ms(latency.median_ms, places)}{interval}", f" {EN_DASH} ".join(ends), outcome


def _words(
    bundle: Bundle,
    entries: Sequence[EndpointSummary],
    modes: Sequence[Sequence[Clump]],
    rtt_ms: float | None,
    limit: float,
) -> Words:
    counts = [entry.n for entry in entries]
    each = str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    several = any(len(its) > 1 for its in modes)
    bars = (
        "A bar for each mode of an endpoint's requests, to its median and as high as its share."
        if several
        else "Bar: median."
    )
    most = max(entry.values_ms.size for entry in entries)
    dots = "every sample" if most <= MOST_DOTS else f"samples, at most {MOST_DOTS} a row"
    caption = [
        f"{each} {'sample' if max(counts) == 1 else 'samples'} a row, one request in flight, one "
        f"cluster a system. {bars} Dots: {dots}. Failures are in no bar and no figure.",
        rtt_sentence(bundle, lines=rtt_ms is None),
        *placement_sentences([entry.group for entry in entries]),
    ]
    if beyond := sum(int((entry.values_ms > limit).sum()) for entry in entries):
        caption.append(
            f"{count(beyond, 'sample')} beyond the axis, named at its end, and in every figure."
        )
    series = list(dict.fromkeys(entry.series for entry in entries))
    if full := shortened(series):
        caption.append(f"In full: {'; '.join(full)}.")
    if note := run_note(bundle):
        caption.append(note)
    if absent := [display_system(one.system) for one in bundle.systems if one not in series]:
        caption.append(f"Not one measured sample of {', '.join(absent)}.")
    return Words(
        title=found(entries, modes, rtt_ms) or f"Endpoint latency on {bundle.topology}",
        subtitle=f"{bundle.study} on {bundle.topology}: {subtitle(bundle)}",
        caption=tuple(caption),
    )


def found(
    entries: Sequence[EndpointSummary], modes: Sequence[Sequence[Clump]], rtt_ms: float | None
) -> str | None:
    """The finding: what the endpoint that takes longest takes, of each system its commonest mode.

    "PutObject takes 9.5 or 5.6 RTTs on MinIO, 2.0, 3.1 or 4.5 on Garage"; none is named where all
    endpoints of one system take the same. None of nothing at all.
    """
    measured = [
        (entry, [mode.median for mode in sorted(its, key=lambda mode: -mode.share)])
        for entry, its in zip(entries, modes, strict=True)
        if its
    ]
    if not measured:
        return None
    measured.sort(key=lambda each: -each[1][0])
    row = row_of(measured[0][0].endpoint)
    of_row = [each for each in measured if each[0].endpoint in row]
    labels = row_labels(list(dict.fromkeys(entry.series for entry, _ in measured)))
    same = {f"{ms / rtt_ms:.1f}" for _, its in measured for ms in its} if rtt_ms else set()
    if len(same) == len(labels) == 1 and len(measured) > 1:
        (trips,), (label,) = same, labels.values()
        return f"Every endpoint takes {trips} RTT{'s' * (trips != '1.0')} on {label}"
    said = []
    for number, (entry, medians_ms) in enumerate(of_row):
        texts = [f"{ms / rtt_ms:.1f}" if rtt_ms else format_ms(ms) for ms in medians_ms]
        times = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
        unit = f" {'RTTs' if rtt_ms else 'ms'}" if number == 0 else ""
        where = f" ({entry.placement})" if is_known(entry.placement) else ""
        said.append(f"{times}{unit} on {labels[entry.series]}{where}")
    name = " · ".join(dict.fromkeys(entry.endpoint for entry, _ in of_row))
    return f"{name} takes {listing(said, 4).replace(';', ',')}"
