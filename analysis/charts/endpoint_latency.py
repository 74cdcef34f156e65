"""The chart of endpoint latency: how long one request takes.

Requests of one endpoint may take one of several times, a round trip or more apart: each such mode
has a bar to its median, as high as its share of the requests, and its requests as dots on it. Lines
at multiples of the measured RTT let one read round trips off it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.frame import (
    Words,
    caption,
    dress,
    error_sentences,
    legend,
    round_ticks,
    rtt_sentence,
    spread,
    subtitle,
)
from wanlat.analysis.charts.rows import BAR, Row, draw_bar, row_chart, rule, write
from wanlat.analysis.charts.style import ALARM, INK, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.endpoints import is_known, row_of
from wanlat.analysis.figures.latency import EndpointSummary
from wanlat.analysis.names import EN_DASH, count, format_ms, listing
from wanlat.analysis.section import Answer
from wanlat.analysis.stats.modes import Clump, clumps
from wanlat.analysis.summary import run_note
from wanlat.bundle.run import Run, Series

MODES_APART = 0.12
"""Width of the kernel that modes are found with, in RTTs: those of whole round trips stay apart,
and the jitter of the shipped studies (a tenth of the RTT each way) makes none of one."""
RATIOS_APART = 0.35
"""The same where no one RTT is known, of the logarithm: what differs by less than three times is
one mode."""
_BULK, _STRETCH = 0.95, 1.5
"""The axis ends past this part of every endpoint's requests, if the rest would stretch it by more
than half as much again."""
_MOST_DOTS, _DOTS_AS_SHAPES = 5000, 2000
"""Of a row, picked evenly where there are more; in an SVG, which of so many is larger than a
picture of them."""
_DOT_AREA = {"s": 7.0, "D": 6.0, "o": 9.0, "^": 11.0}
"""Of the same nominal size a triangle looks smaller than a square."""
_HEADERS = ("median [95 %] ms", f"min {EN_DASH} max ms", "requests")

Modes = Sequence[Clump]


def charts_of(answer: Answer) -> Mapping[str, Figure]:
    """The charts of a run of single requests; none of a network that was not as requested."""
    bundle = answer.source
    if not isinstance(bundle, Run) or bundle.is_drill or bundle.is_load:
        return {}
    return {"endpoint-latency": draw(answer, bundle)} if bundle.is_trusted else {}


def draw(answer: Answer, bundle: Run) -> Figure:
    """The chart of the section of latencies, of a run."""
    entries: Sequence[EndpointSummary] = answer.figures.arrays
    series, rtt_ms = answer.figures.series, entries[0].rtt_ms
    looks, labels = styles(series), answer.figures.labels
    modes, limit = [modes_of(entry) for entry in entries], axis_limit(entries)
    placed = {(entry.series, entry.placement) for entry in entries}
    beyond = sum(int((entry.values_ms > limit).sum()) for entry in entries)
    several = any(len(its) > 1 for its in modes)
    n = sorted({entry.values_ms.size for entry in entries})
    words = Words(
        finding(entries, modes, rtt_ms, labels) or f"Endpoint latency on {bundle.topology}",
        f"{answer.subject}: {subtitle(bundle)}",
        "latency of one request, ms",
        caption(
            series,
            bundle.titles,
            placed,
            f"{' to '.join(map(str, dict.fromkeys((n[0], n[-1]))))} samples a row, one request in "
            "flight, one cluster a system. Bars: "
            + ("a mode each, to its median and as high as its share" if several else "medians")
            + f". Dots: samples, at most {_MOST_DOTS} a row. Failures and late ones are in none.",
            rtt_sentence(bundle, lines=rtt_ms is None),
            *error_sentences(bundle),
            f"{count(beyond, 'sample')} beyond the axis, named at its end." if beyond else None,
            run_note(bundle),
        ),
    )
    rows = [
        Row(
            entry.endpoint, labels[entry.series], entry.placement, _cells(entry), entry.ok < entry.n
        )
        for entry in entries
    ]
    with applied():
        figure, axes, centres = row_chart(words, rows, _HEADERS)
        axes.set_xlim(0, limit)
        round_ticks(axes.xaxis, 8)
        if rtt_ms:
            rule(axes, rtt_ms)
        for entry, its, centre in zip(entries, modes, centres, strict=True):
            _draw(axes, entry, its, centre, looks[entry.series].at(entry.placement))
        return dress(figure, words, legend(series, bundle.titles, placed))


def axis_limit(entries: Sequence[EndpointSummary]) -> float:
    """Where the axis ends, milliseconds: past the greatest request, unless few lie far off."""
    values = [entry.values_ms for entry in entries if entry.values_ms.size]
    greatest = max((float(ms.max()) for ms in values), default=1.0)
    bulk = max((float(np.quantile(ms, _BULK, method="lower")) for ms in values), default=1.0)
    return 1.04 * (greatest if greatest <= _STRETCH * bulk else 1.1 * bulk) or 1.0


def modes_of(entry: EndpointSummary) -> Modes:
    """The modes of the requests of `entry`, by RTTs, or by ratios where no one RTT is known."""
    values_ms = entry.values_ms
    if not values_ms.size:
        return ()
    if entry.rtt_ms is not None:
        return clumps(values_ms, MODES_APART * entry.rtt_ms)
    modes = clumps(np.log(np.maximum(values_ms, 1e-6)), RATIOS_APART)
    return [Clump(float(np.median(values_ms[m.member])), m.share, m.member) for m in modes]


def finding(
    entries: Sequence[EndpointSummary],
    modes: Sequence[Modes],
    rtt_ms: float | None,
    labels: Mapping[Series, str],
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
    measured.sort(key=lambda pair: -pair[1][0])
    same = {f"{ms / rtt_ms:.1f}" for _, its in measured for ms in its} if rtt_ms else set()
    if len(same) == len(labels) == 1 and len(measured) > 1:
        (trips,), (label,) = same, labels.values()
        return f"Every endpoint takes {trips} RTT{'s' * (trips != '1.0')} on {label}"
    row = row_of(measured[0][0].endpoint)
    slowest = [pair for pair in measured if pair[0].endpoint in row]
    unit = " RTTs" if rtt_ms else " ms"
    parts: list[str] = []
    for entry, medians_ms in slowest:
        texts = [f"{ms / rtt_ms:.1f}" if rtt_ms else format_ms(ms) for ms in medians_ms]
        times = " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
        where = f" ({entry.placement})" if is_known(entry.placement) else ""
        parts.append(f"{times}{'' if parts else unit} on {labels[entry.series]}{where}")
    name = " · ".join(dict.fromkeys(entry.endpoint for entry, _ in slowest))
    return f"{name} takes {listing(parts, 4).replace(';', ',')}"


def _cells(entry: EndpointSummary) -> tuple[str, ...]:
    counts = (entry.fail, "fail"), (entry.unknown, "unknown"), (entry.not_sent, "not sent")
    bad = [f"{n} {kind}" for n, kind in counts if n]
    outcome = " · ".join([f"{entry.ok} ok", *bad])
    if entry.latency is None:
        return EN_DASH, EN_DASH, outcome
    ms = entry.latency
    places = 2 if ms.median_ms < 10 else 1 if ms.median_ms < 1000 else 0
    values_ms = (ms.median_ms, ms.min_ms, ms.max_ms, *(ms.median_ci95_ms or ()))
    median, least, most, *bounds = (format_ms(value, places) for value in values_ms)
    interval = f" [{', '.join(bounds)}]" if bounds else ""
    return f"{median}{interval}", f"{least} {EN_DASH} {most}", outcome


def _draw(
    axes: Axes, entry: EndpointSummary, modes: Modes, centre: float, look: SeriesStyle
) -> None:
    """A bar for each mode, as high as its share, with its requests on it."""
    values_ms, limit, top = entry.values_ms, axes.get_xlim()[1], centre - BAR / 2
    if not modes:
        write(axes, "no request succeeded", (0, centre), 5, color=ALARM)
    for mode in modes:
        height = BAR * mode.share
        draw_bar(axes, mode.median, top + height / 2, height, look)
        axes.plot([mode.median] * 2, [top, top + height], color=INK, linewidth=2.0, zorder=5)
        mine = values_ms[mode.member][:: math.ceil(values_ms.size / _MOST_DOTS)]
        y = top + height / 2 + 0.8 * height * spread(mine.size)
        face, edge = look.dot
        crowding = min(2.5, max(0.35, math.sqrt(100 / values_ms.size)))
        axes.scatter(
            mine[mine <= limit],
            y[mine <= limit],
            s=_DOT_AREA.get(look.marker, 11.0) * crowding,
            marker=look.marker,
            color=face,
            edgecolors=edge,
            linewidths=0.6 if look.is_remote else 0.2,
            alpha=0.85,
            zorder=3,
            clip_on=False,
            rasterized=values_ms.size > _DOTS_AS_SHAPES,
        )
        top += height
    if (beyond := values_ms[values_ms > limit]).size:
        several = f"{beyond.size} requests to " if beyond.size > 1 else ""
        text = f"{several}{format_ms(float(beyond.max()), 0)} ms »"
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8}
        how: dict[str, Any] = {"ha": "right", "fontsize": TINY_PT, "bbox": ground}
        write(axes, text, (1, centre), -2, color=look.dark, **how)
