"""The charts of a sweep of loads: deployments side by side, and beside the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.lettering import ASIDE, wrapped
from wanlat.analysis.charts.load import looks_of
from wanlat.analysis.charts.panels import Panel, PanelChart, panels
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.load.model import Estimate
from wanlat.analysis.load.of_sweep import MEAN, RATE, WITHIN, Against
from wanlat.analysis.load.published import DEPLOYMENTS
from wanlat.analysis.load.sweep_block import LoadSweepBlock
from wanlat.analysis.names import count, display_system, shortened
from wanlat.analysis.placement import with_placement

_ROW_IN = 0.26
_MARGIN_IN = 0.18
_BAR = 0.34
_PUBLISHED = SeriesStyle("#ffffff", "", "D")

_Dot = tuple[float, tuple[float, float] | None]


def charts_of(block: LoadSweepBlock) -> dict[str, Figure]:
    """The charts by the stems of their files."""
    charts = {"load": _deployments(block)}
    if any(each.ours is not None and each.theirs is not None for each in block.against):
        charts["load-published"] = _against(block)
    return charts


def _deployments(block: LoadSweepBlock) -> Figure:
    """Rate, mean latency, and the quiet user's median, a row for each deployment."""
    names = [f"{_system(each.load.series.system)} {each.name}" for each in block.deployments]
    names = names if len(set(names)) == len(names) else [each.point for each in block.deployments]
    operations = dict.fromkeys(
        one.operation for each in block.deployments for one in each.load.operations
    )
    endpoints = dict.fromkeys(
        with_placement(one.endpoint, one.placement)
        for each in block.deployments
        for one in each.load.quiet
    )
    looks = looks_of(list(dict.fromkeys([*operations, *endpoints])))
    rates: list[list[tuple[str, _Dot]]] = []
    means: list[list[tuple[str, _Dot]]] = []
    quiet: list[list[tuple[str, _Dot]]] = []
    idle: list[list[tuple[str, _Dot]]] = []
    for each in block.deployments:
        rates.append([(o.operation, _dot(o.figures.per_s)) for o in each.load.operations])
        means.append(
            [
                (o.operation, _dot(o.figures.mean_ms))
                for o in each.load.operations
                if o.figures.mean_ms is not None
            ]
        )
        these = [(with_placement(q.endpoint, q.placement), q) for q in each.load.quiet]
        quiet.append([(n, _dot(q.loaded.median_ms)) for n, q in these if q.loaded.median_ms])
        idle.append([(n, _dot(q.idle.median_ms)) for n, q in these if q.idle.median_ms])
    cells: list[Panel | None] = [
        Panel("Operations a second"),
        Panel("Mean latency, ms"),
        *([Panel("Quiet user's median, ms")] if any(quiet) else []),
    ]
    not_steady = [
        name
        for name, each in zip(names, block.deployments, strict=True)
        if not each.load.steady.is_steady
    ]
    bottlenecks = [
        name
        for name, each in zip(names, block.deployments, strict=True)
        if each.load.client.bottleneck
    ]
    full = shortened(list(dict.fromkeys(each.load.series for each in block.deployments)))
    words = Words(
        title=f"Under load: {block.study} on {block.topology}",
        subtitle="bars: 95 % intervals; of the steady part where there is one",
        headers=(),
        x_label="",
        caption=(
            *(["Open marks: the quiet user alone, before the load."] if any(idle) else []),
            *([f"No steady state shown: {'; '.join(not_steady)}."] if not_steady else []),
            *([f"The client was the bottleneck: {'; '.join(bottlenecks)}."] if bottlenecks else []),
            *(["In full: " + "; ".join(full) + "."] if full else []),
        ),
        legend=tuple(LegendEntry(look, name) for name, look in looks.items()),
    )
    height_in = _ROW_IN * max(3, len(names)) * 1.6
    with applied():
        # The first column holds the names: an empty panel, as wide as the others.
        chart = panels(words, [[Panel(" "), *cells]], (0.05, height_in), "")
        _write_names(chart, names)
        _draw_rows(_axes(chart, 1), rates, looks, len(names), is_log=False)
        _draw_rows(_axes(chart, 2), means, looks, len(names), is_log=True)
        if any(quiet):
            axes = _axes(chart, 3)
            _draw_rows(axes, quiet, looks, len(names), is_log=True)
            _draw_rows(axes, idle, looks, len(names), is_log=True, hollow=True)
    return chart.figure


def _against(block: LoadSweepBlock) -> Figure:
    """Ratios to one node of one drive, ours with intervals and theirs."""
    rows = [each for each in block.against if each.ours is not None or each.theirs is not None]
    groups = [
        (RATE, "Operations a second / one drive's"),
        (MEAN, "Mean latency / one drive's"),
        (WITHIN, "Mean write / mean read"),
    ]
    names = list(dict.fromkeys((each.system, each.deployment, each.what) for each in rows))
    looks = _looks(dict.fromkeys(each.system for each in rows))
    words = Words(
        title=f"Beside the published mixed load: {block.study}",
        subtitle="each deployment / one node of one drive of the same source; bars: 95 % intervals",
        headers=(),
        x_label="",
        caption=(
            "Open diamonds: published (16 workers, 512 kB, ten minutes, another machine and "
            "version). Ratios only: a machine's speed cancels out, its number of disks does not.",
        ),
        legend=(
            *(LegendEntry(looks[system], f"{_system(system)}, ours") for system in looks),
            LegendEntry(_PUBLISHED, "published", hollow=True),
        ),
    )
    labels = [_row_name(name) for name in names]
    with applied():
        chart = panels(
            words,
            [[Panel(" "), *(Panel(title) for _, title in groups)]],
            (0.05, _ROW_IN * max(4, len(names))),
            "",
        )
        _write_names(chart, labels)
        for number, (of, _) in enumerate(groups, start=1):
            axes = _axes(chart, number)
            mine = [(names.index((e.system, e.deployment, e.what)), e) for e in rows if e.of == of]
            _draw_ratios(axes, mine, looks, len(names))
    return chart.figure


def _draw_rows(
    axes: Axes,
    rows: Sequence[Sequence[tuple[str, _Dot]]],
    looks: dict[str, SeriesStyle],
    count: int,
    *,
    is_log: bool,
    hollow: bool = False,
) -> None:
    names = list(looks)
    for number, row in enumerate(rows):
        for name, dot in row:
            shift = (names.index(name) - (len(names) - 1) / 2) * _BAR / max(1, len(names) - 1)
            _draw_dot(axes, number + shift, dot, looks[name], hollow=hollow)
    values = [bound for row in rows for _, (value, ci) in row for bound in (value, *(ci or ()))]
    _set_rows(axes, count, values, is_log=is_log)


def _draw_ratios(
    axes: Axes, rows: Sequence[tuple[int, Against]], looks: dict[str, SeriesStyle], count: int
) -> None:
    values = [1.0]
    axes.axvline(1.0, color=QUIET, lw=0.9, zorder=1)
    for number, each in rows:
        if each.theirs is not None:
            _draw_dot(axes, number + _BAR / 2, (each.theirs, None), _PUBLISHED, hollow=True)
            values.append(each.theirs)
        if each.ours is not None:
            dot = (each.ours.estimate, each.ours.ci95)
            _draw_dot(axes, number - _BAR / 2, dot, looks[each.system])
            values += [each.ours.estimate, *(each.ours.ci95 or ())]
    _set_rows(axes, count, values, is_log=True)


def _draw_dot(axes: Axes, y: float, dot: _Dot, look: SeriesStyle, *, hollow: bool = False) -> None:
    value, ci95 = dot
    colour = QUIET if look is _PUBLISHED else look.dark
    common: Any = {"zorder": 4, "clip_on": False}
    if ci95 is not None:
        axes.plot(ci95, (y, y), color=colour, lw=1.2, zorder=3, solid_capstyle="butt")
    axes.plot(
        [value],
        [y],
        linestyle="none",
        marker=look.marker,
        markersize=5,
        markerfacecolor="white" if hollow else look.colour,
        markeredgecolor=colour,
        markeredgewidth=1.0,
        **common,
    )


def _set_rows(axes: Axes, count: int, values: Sequence[float], *, is_log: bool) -> None:
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks([])
    axes.tick_params(axis="x", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    axes.grid(visible=True, axis="x", color=FAINT, linewidth=0.6, zorder=0)
    for edge in np.arange(count - 1) + 0.5:
        axes.axhline(edge, color=FAINT, lw=0.6, zorder=0)
    positive = [value for value in values if value > 0]
    if not is_log:
        axes.set_xlim(0, max(positive, default=1.0) * 1.08)
        return
    low, high = axes.get_xlim() if axes.get_xscale() == "log" else (np.inf, 0.0)
    low = min(low, min(positive, default=1.0) / 1.25)
    high = max(high, max(positive, default=1.0) * 1.25)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    decades = np.log10(high / low)
    subs: tuple[float, ...] = (
        (1.0,) if decades > 3 else (1.0, 3.0) if decades > 1.2 else (1.0, 2.0, 5.0)
    )
    if decades < 0.5:
        subs = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _write_names(chart: PanelChart, names: Sequence[str]) -> None:
    axes = _axes(chart, 0)
    axes.set_axis_off()
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    room_in = axes.get_position().x1 * chart.figure.get_figwidth() - _MARGIN_IN
    for number, name in enumerate(names):
        text = "\n".join(wrapped(name, room_in, ASIDE))
        axes.text(1.0, number, text, fontsize=ASIDE.size_pt, ha="right", va="center")


def _axes(chart: PanelChart, number: int) -> Axes:
    axes = chart.axes[number]
    assert axes is not None
    return axes


def _dot(estimate: Estimate | None) -> _Dot:
    assert estimate is not None
    return estimate.value, estimate.ci95


def _system(name: str) -> str:
    return display_system(name)


def _row_name(name: tuple[str, str, str]) -> str:
    system, deployment, what = name
    if deployment in DEPLOYMENTS:
        _, nodes, drives = DEPLOYMENTS[deployment]
        deployment = f"{count(nodes, 'node')} of {count(drives, 'drive')}"
    plural = what if "/" in what else f"{what}s"
    return f"{_system(system)} {deployment.replace('-', ' ')}: {plural}"


def _looks(systems: Iterable[str]) -> dict[str, SeriesStyle]:
    return {one.system: look for one, look in styles([Series(s, "") for s in systems]).items()}
