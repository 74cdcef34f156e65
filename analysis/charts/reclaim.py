"""The chart of disk space after a removal: a panel for each system, on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.panels import Panel, panels
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import FAINT, QUIET, TINY_PT, SeriesStyle, applied, mixed, styles
from wanlat.analysis.names import row_labels, series_labels

if TYPE_CHECKING:
    from wanlat.analysis.reclaim.block import ReclaimBlock
    from wanlat.analysis.reclaim.model import Reclaimed

_A_ROW = 3
_PANEL_IN = 2.1


def draw(block: ReclaimBlock) -> Figure:
    """The chart of a block."""
    systems = block.systems
    series = list(dict.fromkeys(each.series for each in systems))
    looks, names = styles(series), row_labels(series)
    columns = min(_A_ROW, len(systems))
    heads: list[Panel | None] = [Panel(names[each.series], _whose(each)) for each in systems]
    heads += [None] * (-len(heads) % columns)
    cells = [heads[at : at + columns] for at in range(0, len(heads), columns)]
    longest = max(each.watched_s for each in systems) / 60
    top = max(float(_shares(each).max()) for each in systems)
    with applied():
        chart = panels(_words(block), cells, (0.05, _PANEL_IN), "disk space, % of full")
        for axes, each in zip(chart.axes, systems, strict=False):
            if axes is not None:
                _draw(axes, each, looks[each.series], longest, max(top, 100.0))
    return chart.figure


def _shares(each: Reclaimed) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Space less what the empty store took, in percent of what the objects took."""
    return np.asarray(100 * (each.course.space_bytes - each.empty_bytes) / max(each.grown, 1.0))


def _draw(axes: Axes, each: Reclaimed, look: SeriesStyle, longest: float, top: float) -> None:
    t = each.course.t_s / 60
    shares = _shares(each)
    trash = 100 * each.course.trash_bytes / max(each.grown, 1.0)
    settled = t[t <= -each.removing_s / 60]
    before = float(settled[-1]) if settled.size else -each.removing_s / 60
    inside = t >= before
    axes.axvspan(-each.removing_s / 60, 0, color="#f0f0f0", linewidth=0, zorder=-1)
    remain = 100 * (1 - each.removed / each.objects)
    axes.axhline(remain, color=QUIET, linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=2)
    if trash[inside].size and trash[inside].max() > 0:
        axes.fill_between(
            t[inside],
            shares[inside] - trash[inside],
            shares[inside],
            facecolor=mixed(look.colour, "#ffffff", 0.55),
            edgecolor=look.dark,
            hatch="////",
            linewidth=0.0,
            zorder=2.5,
            step="post",
        )
    axes.step(t[inside], shares[inside], where="post", color=look.dark, linewidth=1.5, zorder=4)
    axes.set_xlim(before, longest)
    axes.set_ylim(0, top * 1.08)
    axes.grid(visible=True, color=FAINT, linewidth=0.6, zorder=0)
    axes.tick_params(axis="both", length=2.5, pad=2, labelsize=TINY_PT, labelcolor=QUIET)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


def _whose(each: Reclaimed) -> str:
    freed = each.freed
    said = "not watched" if freed is None else f"{round(100 * freed)} % of it given back"
    where = "".join(f"{name} {value}, " for name, value in each.where)
    return f"{where}{said}"


def _words(block: ReclaimBlock) -> Words:
    systems = block.systems
    first = systems[0]
    series = list(dict.fromkeys(each.series for each in systems))
    looks, labels = styles(series), series_labels(series)
    return Words(
        title="Disk space after objects were removed",
        subtitle=f"{block.title} · {first.objects} objects of {first.object_bytes} bytes, "
        f"{first.removed} removed ({first.which})",
        headers=(),
        x_label="minutes after the removal ended",
        caption=(
            "Line: what the directories of all nodes take, less what they took when empty; full is "
            "100. Dotted: what the objects that stay took of that. Grey ground: removing. Hatched: "
            "the part that lies in MinIO's trash.",
        ),
        legend=tuple(LegendEntry(looks[one], labels[one]) for one in series),
    )
