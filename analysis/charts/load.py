"""The charts of a load: its course over time with the quiet user below, and all latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.lettering import LABEL
from wanlat.analysis.charts.panels import Panel, panels
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import ALARM, FAINT, QUIET, TINY_PT, SeriesStyle, applied, mixed
from wanlat.analysis.load.block import LoadBlock
from wanlat.analysis.load.model import Load
from wanlat.analysis.names import series_labels, shortened
from wanlat.analysis.placement import with_placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

_COLOURS = ("#117755", "#b58be0", "#5b8fd6", "#8a8a8a")
"""Of operations: none of them is a system's, and the first two differ in lightness too."""
_MARKERS = ("o", "s", "^", "D", "v", "P")
_PANEL_IN = 1.7
_LABEL_IN = 0.12
_Y_LABEL_IN = 0.52
_STEADY = "#f1f1ea"
_FEW_DOTS = 2000
_FEWEST = 1e-5


def charts_of(block: LoadBlock) -> dict[str, Figure]:
    """The charts by the stems of their files."""
    return {"load": _course(block), "load-latency": _latencies(block)}


def looks_of(names: Sequence[str]) -> dict[str, SeriesStyle]:
    """A look for each of `names`, operations or endpoints."""
    return {
        name: SeriesStyle(_COLOURS[number % len(_COLOURS)], "", _MARKERS[number % len(_MARKERS)])
        for number, name in enumerate(names)
    }


def _course(block: LoadBlock) -> Figure:
    labels = series_labels([load.series for load in block.loads])
    rows = []
    for load in block.loads:
        rows.append([Panel(f"{labels[load.series]}: operations a second", _state(load))])
        if load.course.quiet_ms:
            rows.append([Panel("The quiet user: latency of each of its requests, ms")])
    looks = looks_of(_names(block))
    failed = any(load.course.failed_per_s.any() for load in block.loads)
    legend = [
        *(LegendEntry(look, name) for name, look in looks.items()),
        *([LegendEntry(SeriesStyle(ALARM, "", "o"), "failed")] if failed else []),
    ]
    words = _words(
        block,
        f"Under load: {block.study} on {block.topology}",
        "seconds after the load's ramp",
        legend,
        [
            "Shaded: the steady part, which figures are of. No shade: there was no steady state, "
            "and figures are of the whole load. Before 0 the quiet user is alone.",
        ],
    )
    with applied():
        chart = panels(words, rows, (_LABEL_IN, _PANEL_IN), "")
        axes = iter(chart.axes)
        for load in block.loads:
            begin = min(
                (float(at.min()) for at, _ in load.course.quiet_ms.values() if at.size), default=0.0
            )
            span = (min(begin, 0.0), load.duration_s)
            _draw_rates(_next(axes), load, looks, span)
            if load.course.quiet_ms:
                _draw_quiet(_next(axes), load, looks, span)
    return chart.figure


def _latencies(block: LoadBlock) -> Figure:
    labels = series_labels([load.series for load in block.loads])
    with_quiet = any(load.course.quiet_ms for load in block.loads)
    rows = [
        [
            Panel(f"{labels[load.series]}: the load's requests"),
            *([Panel("The quiet user's")] if with_quiet else []),
        ]
        for load in block.loads
    ]
    looks = looks_of(_names(block))
    legend = [LegendEntry(look, name) for name, look in looks.items()]
    words = _words(
        block,
        f"How long requests take: {block.study} on {block.topology}",
        "ms",
        legend,
        [
            "How many of the requests took longer than so many ms: 1 % on the left axis is p99. "
            "Dashed: the quiet user alone, before the load.",
        ],
    )
    with applied():
        chart = panels(words, rows, (_LABEL_IN, 2.2), "requests that took longer")
        drawn = iter(chart.axes)
        limits = _latency_limits(block)
        for load in block.loads:
            axes = _next(drawn)
            for name, ms in load.course.latencies_ms.items():
                _draw_tail(axes, ms, looks[name].colour)
            _set_tail(axes, limits)
            if not with_quiet:
                continue
            axes = _next(drawn)
            for (endpoint, placement), (at_s, ms) in load.course.quiet_ms.items():
                colour = looks[with_placement(endpoint, placement)].colour
                part = _part(load)
                loaded = (at_s >= part[0]) & (at_s < part[1])
                _draw_tail(axes, np.sort(ms[loaded]), colour)
                _draw_tail(axes, np.sort(ms[at_s < 0]), colour, dashed=True)
            _set_tail(axes, limits)
    return chart.figure


def _draw_rates(
    axes: Axes, load: Load, looks: dict[str, SeriesStyle], span: tuple[float, float]
) -> None:
    course = load.course
    edges = np.arange(course.failed_per_s.size + 1) * course.bin_s
    if load.steady.is_steady:
        axes.axvspan(load.steady.begin_s, load.steady.end_s, color=_STEADY, zorder=0, lw=0)
    for name, per_s in course.per_s.items():
        axes.stairs(per_s, edges, baseline=None, color=looks[name].colour, lw=1.2, zorder=3)
    if course.failed_per_s.any():
        axes.stairs(course.failed_per_s, edges, baseline=None, color=ALARM, lw=1.2, zorder=4)
    _set_time(axes, span, "1/s")
    top = max((float(per_s.max(initial=0)) for per_s in course.per_s.values()), default=1.0)
    axes.set_ylim(0, max(top, float(course.failed_per_s.max(initial=0))) * 1.08 or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _draw_quiet(
    axes: Axes, load: Load, looks: dict[str, SeriesStyle], span: tuple[float, float]
) -> None:
    everything = []
    for (endpoint, placement), (at_s, ms) in load.course.quiet_ms.items():
        look = looks[with_placement(endpoint, placement)]
        everything.append(ms)
        # So many dots that they merge are drawn smaller, never left out.
        size = 3.0 if at_s.size < _FEW_DOTS else 1.6
        axes.plot(
            at_s,
            ms,
            linestyle="none",
            marker=look.marker,
            markersize=size,
            markerfacecolor=mixed(look.colour, "#ffffff", 0.15),
            markeredgewidth=0,
            alpha=0.75,
            zorder=3,
        )
    axes.axvline(0.0, color=QUIET, lw=0.8, zorder=2)
    _set_time(axes, span, "ms")
    values = np.concatenate(everything)
    axes.set_yscale("log")
    axes.set_ylim(max(float(values.min()), 1e-3) / 1.3, float(values.max()) * 1.3)
    _log_ticks(axes, on_y=True)


def _draw_tail(axes: Axes, sorted_ms: Values, colour: str, *, dashed: bool = False) -> None:
    """The share of requests that took longer, down to one request."""
    n = sorted_ms.size
    if n == 0:
        return
    longer = 1 - np.arange(n) / n
    if n > _FEW_DOTS:
        # Evenly over the logarithm of the share: a picture has no more places.
        kept = np.unique(n - np.geomspace(1, n, _FEW_DOTS).astype(int))
        sorted_ms, longer = sorted_ms[kept], longer[kept]
    axes.step(
        sorted_ms,
        longer,
        where="pre",
        color=colour,
        lw=1.3,
        linestyle=(0, (3, 2)) if dashed else "-",
        zorder=3,
    )


def _set_tail(axes: Axes, limits: tuple[float, float, float]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(limits[0] / 1.2, limits[1] * 1.2)
    axes.set_ylim(limits[2], 1.15)
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    axes.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
    _log_ticks(axes, on_y=False)
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=10))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.yaxis.set_minor_locator(NullLocator())


def _latency_limits(block: LoadBlock) -> tuple[float, float, float]:
    """Least and greatest latency, and the least share, of everything that is drawn."""
    arrays = [ms for load in block.loads for ms in load.course.latencies_ms.values() if ms.size]
    arrays += [ms for load in block.loads for _, ms in load.course.quiet_ms.values() if ms.size]
    if not arrays:
        return 0.1, 1.0, 0.1
    least = max(1e-3, min(float(ms.min()) for ms in arrays))
    most = max(ms.size for ms in arrays)
    return least, max(float(ms.max()) for ms in arrays), max(_FEWEST, 0.7 / most)


def _set_time(axes: Axes, span: tuple[float, float], unit: str) -> None:
    axes.set_xlim(*span)
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 3, 5, 6, 10]))
    axes.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_ylabel(unit, fontsize=LABEL.size_pt)
    width_in = axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]
    axes.yaxis.set_label_coords(-_Y_LABEL_IN / width_in, 0.5)


def _log_ticks(axes: Axes, *, on_y: bool) -> None:
    axis = axes.yaxis if on_y else axes.xaxis
    low, high = axes.get_ylim() if on_y else axes.get_xlim()
    decades = np.log10(high / low)
    subs = (1.0,) if decades > 3 else (1.0, 3.0) if decades > 1.5 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def _words(
    block: LoadBlock, title: str, x_label: str, legend: list[LegendEntry], caption: list[str]
) -> Words:
    series = [load.series for load in block.loads]
    full = shortened(series)
    bottlenecks = [load for load in block.loads if load.client.bottleneck]
    names = series_labels(series)
    return Words(
        title=title,
        subtitle="; ".join(_summary(load) for load in block.loads),
        headers=(),
        x_label=x_label,
        caption=(
            *caption,
            *(
                f"{names[load.series]}: the client was the bottleneck: the store can do more."
                for load in bottlenecks
            ),
            *(["In full: " + "; ".join(full) + "."] if full else []),
        ),
        legend=tuple(legend),
    )


def _summary(load: Load) -> str:
    offered = load.client.offered_per_s
    how = "closed loop" if offered is None else f"{offered:g}/s asked for"
    workers = f"{load.client.workers} workers, " if load.client.workers else ""
    return f"{workers}{how}, {load.duration_s:.0f} s, {load.per_s:,.0f} operations/s"


def _state(load: Load) -> str:
    steady = load.steady
    if steady.is_steady:
        return f"steady from {steady.begin_s:.0f} s on"
    return steady.verdict if steady.verdict != "not decided" else "steady or not: not decided"


def _part(load: Load) -> tuple[float, float]:
    if load.steady.is_steady:
        return load.steady.begin_s, load.steady.end_s
    return 0.0, load.duration_s


def _names(block: LoadBlock) -> list[str]:
    """Operations of the load and endpoints of the quiet user: what is the same looks the same."""
    asked = [name for load in block.loads for name in load.course.per_s]
    quiet = [with_placement(*name) for load in block.loads for name in load.course.quiet_ms]
    return list(dict.fromkeys([*asked, *quiet]))


def _next(axes: object) -> Axes:
    found = next(axes)  # type: ignore[call-overload]
    assert isinstance(found, Axes)
    return found
