"""The charts of growth: medians against objects or nodes, with the curves that fit.

A panel is an endpoint; in it, a system has a colour, and dashes where several curves fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.panels import Panel, panels
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.endpoints import row_names, row_of
from wanlat.analysis.growth.block import GrowthBlock
from wanlat.analysis.growth.fit import REJECTED
from wanlat.analysis.growth.model import AXES, OBJECTS, Axis, Fit, Growth
from wanlat.analysis.names import display_system, row_labels, series_labels, shortened
from wanlat.analysis.placement import MEANING, is_known, with_placement

_PANEL_IN = 1.7
_MOST_COLUMNS = 3
_LABEL_IN = 0.12
_CURVE_POINTS = 100
_LOG_FROM = 8.0
_FAINTEST = 0.2
_SHORT = {
    "grows, shape not decided": "grows",
    "neither shape": "neither",
}


def charts_of(block: GrowthBlock) -> dict[str, Figure]:
    """The charts by the stems of their files; of each combination of further parameters its own."""
    charts: dict[str, Figure] = {}
    for axis in AXES.values():
        along = [each for each in block.growths if each.axis == axis and each.levels]
        for others in dict.fromkeys(tuple(each.others.items()) for each in along):
            mine = [each for each in along if tuple(each.others.items()) == others]
            behind = "".join(f"-{_plain(name)}-{_plain(str(value))}" for name, value in others)
            said = ", ".join(f"{name} {value}" for name, value in others)
            charts[f"growth-{axis.noun}{behind}"] = _draw(block, mine, axis, said)
    return charts


def _draw(block: GrowthBlock, growths: Sequence[Growth], axis: Axis, said: str) -> Figure:
    series = list(dict.fromkeys(each.series for each in growths))
    looks, labels = styles(series), series_labels(series)
    names = row_names(dict.fromkeys(each.endpoint for each in growths))
    rows = list(dict.fromkeys(row_of(each.endpoint) for each in growths))
    short = row_labels(series)
    cells: list[list[Panel | None]] = []
    placed: list[list[Growth]] = []
    for begin in range(0, len(rows), _MOST_COLUMNS):
        cells.append([])
        for row in rows[begin : begin + _MOST_COLUMNS]:
            mine = [each for each in growths if row_of(each.endpoint) == row]
            title = next(names[each.endpoint] for each in mine).replace(" ·\n", " · ")
            verdicts = "; ".join(
                f"{with_placement(short[g.series], g.placement)}: {_verdict(g)}" for g in mine
            )
            cells[-1].append(Panel(title, verdicts))
            placed.append(mine)
    with_placements = any(is_known(each.placement) for each in growths)
    legend = [
        LegendEntry(looks[one].at(placement), with_placement(labels[one], placement))
        for one in series
        for placement in _placements([g for g in growths if g.series == one])
    ]
    full = shortened(series)
    words = Words(
        title=f"The cost of {axis.noun}: {block.study} on {block.topology}"
        + (f", {said}" if said else ""),
        subtitle=", ".join(display_system(one.system) for one in series)
        + "; medians of single requests, bars: 95 % of the run",
        headers=(),
        x_label="objects in the bucket" if axis.parameter == OBJECTS else "nodes of the cluster",
        caption=(
            "A curve is drawn where its shape fits: solid where it is the only one, dashed where "
            "others fit as well. No curve: none fits, there are too few points, or two modes. The "
            "band is its 95 %, runs of the same that differ included.",
            *(
                ["Two modes: requests take one of two times; a mark each, fainter the fewer do."]
                if any(each.splits for each in growths)
                else []
            ),
            *([MEANING + " Open marks: remote."] if with_placements else []),
            *(["In full: " + "; ".join(full) + "."] if full else []),
        ),
        legend=tuple(legend),
    )
    sizes = sorted({level.x for each in growths for level in each.levels})
    with applied():
        chart = panels(words, cells, (_LABEL_IN, _PANEL_IN), "median, ms")
        drawn = [axes for axes in chart.axes if axes is not None]
        for axes, mine in zip(drawn, placed, strict=True):
            _draw_panel(axes, mine, looks, sizes)
    return chart.figure


def _placements(growths: Sequence[Growth]) -> list[str]:
    """Of the legend's entries of a system: a request that has none is drawn as a local one."""
    placements = list(dict.fromkeys(each.placement for each in growths))
    return [each for each in placements if is_known(each)] or placements


def _draw_panel(
    axes: Axes, growths: Sequence[Growth], looks: dict[Any, SeriesStyle], sizes: Sequence[float]
) -> None:
    is_log = len(sizes) > 1 and sizes[-1] / sizes[0] >= _LOG_FROM
    if is_log:
        axes.set_xscale("log")
    for each in growths:
        look = looks[each.series].at(each.placement)
        fitting = _fitting(each)
        for fit in fitting:
            _draw_curve(axes, fit, each, look, dashed=len(fitting) > 1)
        _draw_levels(axes, each, look)
    _set_x(axes, sizes, is_log=is_log)
    _set_y(axes, growths)
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    axes.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)


def _fitting(growth: Growth) -> list[Fit]:
    """The curves that the points allow."""
    if growth.decided is not None:
        return [growth.decided]
    if not growth.fits or growth.verdict == "neither shape":
        return []
    allowed = [fit for fit in growth.fits if fit.chance >= REJECTED]
    if growth.verdict != "not decided":
        allowed = [fit for fit in allowed if fit.shape != "constant"]
    return allowed


def _draw_curve(
    axes: Axes,
    fit: Fit,
    growth: Growth,
    look: SeriesStyle,
    *,
    dashed: bool,
) -> None:
    low, high = growth.levels[0].x, growth.levels[-1].x
    at = np.geomspace(low, high, _CURVE_POINTS)
    curve = np.array([fit.at(float(x)) for x in at])
    curve[curve <= 0] = np.nan  # no latency, however well it fits
    axes.plot(
        at,
        curve,
        color=look.dark,
        lw=1.1,
        linestyle=(0, (3, 2)) if dashed else "-",
        zorder=3,
    )
    if not dashed:
        band = np.array([fit.band(float(x)) for x in at])
        axes.fill_between(
            at, np.maximum(band[:, 0], 0), band[:, 1], color=look.colour, alpha=0.18, lw=0, zorder=2
        )


def _draw_levels(axes: Axes, growth: Growth, look: SeriesStyle) -> None:
    if growth.splits is not None:
        _draw_modes(axes, growth, look)
        return
    face, _ = look.dot
    for level in growth.levels:
        axes.plot(
            (level.x, level.x), level.ci95_ms, color=look.dark, lw=0.9, zorder=3.5, clip_on=False
        )
    axes.plot(
        [level.x for level in growth.levels],
        [level.median_ms for level in growth.levels],
        linestyle="none",
        marker=look.marker,
        markersize=4.4,
        markerfacecolor=face,
        markeredgecolor=look.dark,
        markeredgewidth=0.9,
        zorder=4,
        clip_on=False,
    )


def _draw_modes(axes: Axes, growth: Growth, look: SeriesStyle) -> None:
    """A mark for each mode at each level, fainter the fewer requests are in it."""
    for x, share, ms in _marks(growth):
        axes.plot(
            x,
            ms,
            linestyle="none",
            marker=look.marker,
            markersize=4.4,
            markerfacecolor=look.dark,
            markeredgecolor=look.dark,
            markeredgewidth=0.9,
            alpha=_FAINTEST + (1 - _FAINTEST) * share,
            zorder=4,
            clip_on=False,
        )


def _marks(growth: Growth) -> list[tuple[float, float, float]]:
    """Of two modes: x, share of the requests, and median of each that has any."""
    found = []
    for level, split in zip(growth.levels, growth.splits or (), strict=True):
        for share, ms in ((1 - split.slow, split.fast_ms), (split.slow, split.slow_ms)):
            if ms is not None:
                found.append((level.x, share, ms))
    return found


def _set_x(axes: Axes, sizes: Sequence[float], *, is_log: bool) -> None:
    if is_log:
        margin = (sizes[-1] / sizes[0]) ** 0.06
        axes.set_xlim(sizes[0] / margin, sizes[-1] * margin)
    else:
        room = 0.06 * (sizes[-1] - sizes[0]) or 1.0
        axes.set_xlim(sizes[0] - room, sizes[-1] + room)
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([_count(size) for size in sizes])


def _set_y(axes: Axes, growths: Sequence[Growth]) -> None:
    values = [
        v
        for g in growths
        for one in (() if g.splits else g.levels)
        for v in (one.median_ms, *one.ci95_ms)
    ]
    values += [ms for g in growths if g.splits for _, _, ms in _marks(g)]
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOG_FROM:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.3, high * 1.3)
        decades = np.log10(high / low)
        subs = (1.0,) if decades > 3 else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=20))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        # From zero on: what grows by 3 % must not look as if it doubled.
        axes.set_ylim(0, high * 1.12)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def _verdict(growth: Growth) -> str:
    return _SHORT.get(growth.verdict, growth.verdict)


def _count(size: float) -> str:
    for scale, letter in ((1e6, "M"), (1e3, "k")):
        if size >= scale and size % scale == 0:
            return f"{size / scale:g}{letter}"
    return f"{size:g}"


def _plain(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._" else "-" for c in text).strip("-")
