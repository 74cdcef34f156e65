"""The chart of disk space after a removal: a panel for each system, on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.style import QUIET, SeriesStyle, applied, mixed, styles
from wanlat.analysis.figures.reclaim import FREED_ALL, SpaceOverTime
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import display_system, row_labels, series_labels
from wanlat.analysis.report.section import written

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer


def draw(answer: Answer) -> Figure:
    """The chart of the section `reclaim`."""
    figures = answer.figures
    looks, names = styles(figures.series), row_labels(figures.series)
    words = _words(answer)
    with applied():
        figure, panels = multiples(
            words, len(figures.rows), panel_in=2.6, y_label="disk space, % of full"
        )
        for axes, row, space in zip(panels, figures.rows, figures.arrays, strict=True):
            point = "".join(f"{name} {written(row[name])}, " for name in figures.parameters)
            freed = row["freed_at_end"]
            said = "not watched" if freed is None else f"{_percent(freed)} of it given back"
            head(axes, names[series_of(row)], point + said)
            _draw(axes, row, space, looks[series_of(row)])
        longest_min = max(row["watched_s"] for row in figures.rows) / 60
        panels[0].set_xlim(min(_begin_min(row, s) for row, s in _pairs(answer)), longest_min)
        panels[0].set_ylim(0, None)
        labels = series_labels(figures.series)
        return dress(figure, words, [(looks[one], labels[one]) for one in figures.series])


def _pairs(answer: Answer) -> list[tuple[Row, SpaceOverTime]]:
    return list(zip(answer.figures.rows, answer.figures.arrays, strict=True))


def _begin_min(row: Row, space: SpaceOverTime) -> float:
    """Where a panel begins: at the last sample before the removal."""
    before = space.t_s[space.t_s <= -row["removing_s"]]
    return float(before[-1] if before.size else -row["removing_s"]) / 60


def _draw(axes: Axes, row: Row, space: SpaceOverTime, look: SeriesStyle) -> None:
    grown = max(space.full_bytes - space.empty_bytes, 1.0)
    inside = space.t_s / 60 >= _begin_min(row, space)
    t_min = space.t_s[inside] / 60
    shares = 100 * (space.space_bytes[inside] - space.empty_bytes) / grown
    trash = 100 * space.trash_bytes[inside] / grown
    axes.axvspan(-row["removing_s"] / 60, 0, color="#f0f0f0", linewidth=0, zorder=-1)
    stays = 100 * (1 - row["removed"] / row["objects"])
    axes.axhline(stays, color=QUIET, linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=2)
    if np.any(trash > 0):
        axes.fill_between(
            t_min,
            shares - trash,
            shares,
            facecolor=mixed(look.colour, "#ffffff", 0.55),
            edgecolor=look.dark,
            hatch="////",
            linewidth=0.0,
            zorder=2.5,
            step="post",
        )
    axes.step(t_min, shares, where="post", color=look.dark, linewidth=1.5, zorder=4)


def _words(answer: Answer) -> Words:
    first = answer.figures.rows[0]
    return Words(
        title=_found(answer),
        subtitle=f"Disk space after objects were removed · {answer.of} · {first['objects']} "
        f"objects of {first['object_bytes']} bytes, {first['removed']} removed ({first['which']})",
        x_label="minutes after the removal ended",
        caption=(
            "Line: what the directories of all nodes take, less what they took when empty; full is "
            "100. Dotted: what the objects that stay took of that. Grey ground: removing. Hatched: "
            "the part that lies in MinIO's trash. One cluster a panel.",
        ),
    )


def _found(answer: Answer) -> str:
    """The finding: who gave the space back, and within which time."""
    by_system: dict[str, list[Row]] = {}
    for row in answer.figures.rows:
        by_system.setdefault(display_system(row["system"]), []).append(row)
    said = []
    for name, rows in by_system.items():
        shares = [row["freed_at_end"] for row in rows if row["freed_at_end"] is not None]
        after_s = [row["freed_most_after_s"] for row in rows]
        if not shares:
            continue
        if None not in after_s:
            said.append(f"{name} gives {_percent(FREED_ALL)} back within {_duration(max(after_s))}")
        else:
            low, high = min(shares), max(shares)
            alike = _percent(low) == _percent(high)
            share = _percent(low) if alike else f"{_percent(low)} to {_percent(high)}"
            said.append(f"{name} gives {share} back")
    return "Disk space of removed objects: " + ", ".join(said) if said else "Disk space"


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"


def _duration(seconds: float) -> str:
    return f"{max(seconds, 1):.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
