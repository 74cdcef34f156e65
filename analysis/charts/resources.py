"""The chart of resources: usage per node over time, under the latencies of requests.

A column is a system, a row a resource; all panels of a row share their axis, so that systems
compare at a glance, and all of a column their time, so that a slow request and what the nodes were
busy with stand above each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.panels import Panel, panels
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle, applied, styles
from wanlat.analysis.charts.wording import subtitle
from wanlat.analysis.names import row_labels, series_labels
from wanlat.analysis.notes import run_note
from wanlat.analysis.resources.tables import MIB, sampling_notes
from wanlat.analysis.resources.windows import IDLE

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from wanlat.analysis.resources.block import ResourcesBlock, SystemResources

    Values = NDArray[np.float64]
    Curve = tuple[Values, Values]

_PANEL_IN = 1.05
_MOST_DOTS = 6000
_LOG_FROM = 8.0
_DECADES = 100.0
"""Of fewer than two decades twos and fives are written too."""


@dataclass(frozen=True)
class _Row:
    """One row of panels: what it shows, and how a curve is made of a node's rows."""

    head: str
    curve: Callable[[pd.DataFrame], Curve]
    least: float = 0.0
    """A row whose every figure is below is left out."""


def draw(block: ResourcesBlock) -> Figure:
    """The chart of one bundle."""
    systems = block.systems
    colours = styles([each.series for each in systems])
    curves = {row.head: [_curves(each, row) for each in systems] for row in _ROWS}
    rows = [row for row in _ROWS if any(_is_worth_it(each, row) for each in curves[row.head])]
    dots = [_latencies(block, each) for each in systems]
    has_dots = any(t.size for t, _, _ in dots)
    heads = [*(["latency of each request, ms"] if has_dots else []), *(row.head for row in rows)]
    names = row_labels([each.series for each in systems])
    cells = [
        [Panel(names[each.series] if number == 0 else "", head) for each in systems]
        for number, head in enumerate(heads)
    ]
    with applied():
        chart = panels(_words(block, dots), cells, (0.05, _PANEL_IN), "")
        axes = np.array(chart.axes, dtype=object).reshape(len(heads), len(systems))
        for place, each in enumerate(systems):
            for panel in axes[:, place]:
                _furnish(panel, each, _longest(systems))
            if has_dots:
                _draw_dots(axes[0, place], dots[place], colours[each.series])
        for number, row in enumerate(rows, start=int(has_dots)):
            _share(axes[number], [c for of in curves[row.head] for _, c in of])
            for place, each in enumerate(systems):
                for subject, curve in curves[row.head][place]:
                    _draw_curve(axes[number, place], curve, colours[each.series], subject, block)
        if has_dots:
            _share_dots(axes[0], dots)
    return chart.figure


def _curves(system: SystemResources, row: _Row) -> list[tuple[str, Curve]]:
    nodes = system.rows[system.rows["kind"] == "node"]
    origin_ns = float(system.rows["t_ns"].iloc[0])
    found = []
    for name, rows in nodes.groupby("subject", sort=False):
        t_ns, values = row.curve(rows)
        found.append((str(name), ((t_ns - origin_ns) / 1e9, values)))
    return found


def _at_instants(column: str, unit: float) -> Callable[[pd.DataFrame], Curve]:
    def curve(rows: pd.DataFrame) -> Curve:
        known = rows[rows[column].notna()]
        return known["t_ns"].to_numpy("float64"), known[column].to_numpy("float64") / unit

    return curve


def _per_second(columns: Sequence[str], unit: float) -> Callable[[pd.DataFrame], Curve]:
    def curve(rows: pd.DataFrame) -> Curve:
        known = rows[rows[list(columns)].notna().all(axis=1)]
        t = known["t_ns"].to_numpy("float64")
        value = known[list(columns)].sum(axis=1).to_numpy("float64") / unit
        if t.size < 2:
            return np.zeros(0), np.zeros(0)
        # Samples between two stages lie closer together: their quotients would be noise.
        far = np.concatenate(([True], np.diff(t) > 0.3 * np.median(np.diff(t))))
        t, value = t[far], value[far]
        return t[1:], np.diff(value) / (np.diff(t) / 1e9)

    return curve


_ROWS = (
    _Row("memory of each node, MiB", _at_instants("rss_bytes", MIB)),
    _Row("CPU of each node, % of a core", _per_second(["cpu_ns"], 1e7)),
    _Row("network of each node, in and out, MiB/s", _per_second(["rx_bytes", "tx_bytes"], MIB)),
    _Row("disk space of each node, MiB", _at_instants("space_bytes", MIB)),
    _Row("written to its disk, MiB/s", _per_second(["written_bytes"], MIB), least=0.05),
)


def _is_worth_it(curves: Sequence[tuple[str, Curve]], row: _Row) -> bool:
    return any(values.size and float(values.max()) > row.least for _, (_, values) in curves)


def _latencies(block: ResourcesBlock, system: SystemResources) -> tuple[Values, Values, Values]:
    """When requests began (s), how long they took (ms), whether they were ok; thinned if many."""
    requests = block.requests
    own = requests[requests["system"] == system.series.system]
    step = max(1, -(-len(own) // _MOST_DOTS))
    own = own.iloc[::step]
    begin = own["begin_ns"].to_numpy("float64")
    took = own["end_ns"].to_numpy("float64") - begin
    origin_ns = float(system.rows["t_ns"].iloc[0])
    return (begin - origin_ns) / 1e9, took / 1e6, np.asarray(own["outcome"] == "ok", "float64")


def _longest(systems: Sequence[SystemResources]) -> float:
    return max(
        float(each.rows["t_ns"].iloc[-1] - each.rows["t_ns"].iloc[0]) / 1e9 for each in systems
    )


def _furnish(axes: Axes, system: SystemResources, longest_s: float) -> None:
    axes.set_xlim(0, longest_s or 1.0)
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 3, 5, 6, 10]))
    axes.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
    origin_ns = float(system.rows["t_ns"].iloc[0])
    for window in system.windows:
        if window.kind == IDLE:
            begin, end = ((at - origin_ns) / 1e9 for at in (window.begin_ns, window.end_ns))
            axes.axvspan(begin, end, color="#f0f0f0", linewidth=0, zorder=-1)


def _share(row: Sequence[Axes], curves: Sequence[Curve]) -> None:
    tops = [float(values.max()) for _, values in curves if values.size]
    top = max(tops, default=1.0) or 1.0
    for axes in row:
        axes.set_ylim(0, top * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))


def _share_dots(row: Sequence[Axes], dots: Sequence[tuple[Values, Values, Values]]) -> None:
    values = np.concatenate([took for _, took, _ in dots])
    positive = values[values > 0]
    if positive.size and positive.max() / positive.min() > _LOG_FROM:
        subs = (1.0,) if positive.max() / positive.min() > _DECADES else (1.0, 2.0, 5.0)
        for axes in row:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(base=10, subs=subs, numticks=6))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_ylim(positive.min() / 1.3, positive.max() * 1.3)
    else:
        for axes in row:
            axes.set_ylim(0, (float(values.max()) if values.size else 1.0) * 1.08)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))


def _draw_dots(axes: Axes, dots: tuple[Values, Values, Values], style: SeriesStyle) -> None:
    t, took, is_ok = dots
    for ok, colour, marker in ((1.0, style.dark, "."), (0.0, "#a3001b", "x")):
        chosen = is_ok == ok
        axes.plot(
            t[chosen],
            took[chosen],
            linestyle="none",
            marker=marker,
            markersize=2.6 if ok else 3.4,
            color=colour,
            markeredgewidth=0.0 if ok else 0.8,
            rasterized=True,
            zorder=3,
        )


def _draw_curve(
    axes: Axes, curve: Curve, style: SeriesStyle, node: str, block: ResourcesBlock
) -> None:
    is_target = node == _target_node(block.bundle.manifest)
    axes.plot(
        *curve,
        color=style.dark,
        alpha=1.0 if is_target else 0.6,
        linewidth=1.5 if is_target else 0.8,
        linestyle="-" if is_target else (0, (4, 1.2)),
        zorder=4 if is_target else 3,
    )


def _target_node(manifest: Mapping[str, object]) -> str | None:
    target = manifest.get("target")
    return str(target.get("node")) if isinstance(target, Mapping) else None


def _words(block: ResourcesBlock, dots: Sequence[tuple[Values, Values, Values]]) -> Words:
    bundle, systems = block.bundle, block.systems
    labels = series_labels([each.series for each in systems])
    colours = styles([each.series for each in systems])
    target = _target_node(bundle.manifest)
    caption = [
        f"Thick: {target}, the target node. Dashed: the other nodes. Grey ground: idle windows. "
        "Memory is resident; network is what crossed the node's interface, in and out together.",
        " ".join(sampling_notes(block.sampling)),
    ]
    if any(not is_ok.all() for _, _, is_ok in dots if is_ok.size):
        caption.append("Crosses: requests that did not succeed.")
    if len(block.requests) > _MOST_DOTS * len(systems):
        caption.append(f"Of many requests at most {_MOST_DOTS} a system are drawn, evenly thinned.")
    if note := run_note(bundle):
        caption.append(note)
    return Words(
        title=f"Resource usage per node on {bundle.topology}",
        subtitle=subtitle(bundle),
        headers=(),
        x_label="seconds after the cluster was ready",
        caption=tuple(caption),
        legend=tuple(LegendEntry(colours[each.series], labels[each.series]) for each in systems),
    )
