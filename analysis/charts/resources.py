"""The charts of resources: usage against what a matrix varies, and disk space after a removal."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts import matrix
from wanlat.analysis.charts.frame import Words, caption, dress, head, legend, multiples
from wanlat.analysis.charts.style import QUIET, SeriesStyle, applied, mixed, styles
from wanlat.analysis.figures.reclaim import FREED_ALL, SpaceOverTime
from wanlat.analysis.figures.resources import KIB, MIB
from wanlat.analysis.section import Answer, Figures, Row, series_of, written

_OF_MATRIX = {
    "memory": matrix.Quantity("node_rss_bytes.loaded", "memory of a loaded node", "MiB", MIB),
    "cpu": matrix.Quantity("per_request.cpu_ms", "CPU time of all nodes a request", "ms"),
    "sent": matrix.Quantity("per_request.sent_bytes", "sent by all nodes a request", "KiB", KIB),
}


def charts_of_matrix(answer: Answer) -> dict[str, Figure]:
    """Usage against what a matrix varies."""
    made = [matrix.draw(answer, drawn, f"resources-{stem}") for stem, drawn in _OF_MATRIX.items()]
    return {stem: figure for charts in made for stem, figure in charts.items()}


def draw_reclaim(answer: Answer) -> Figure:
    """The chart of the section `reclaim`."""
    figures, first = answer.figures, answer.figures.rows[0]
    looks, names = styles(figures.series), figures.labels
    words = Words(
        _found_space(figures),
        f"Disk space after objects were removed · {answer.subject} · {first['objects']} objects of "
        f"{first['object_bytes']} bytes, {first['removed']} removed ({first['which']})",
        "minutes after the removal ended",
        caption(
            figures.series,
            figures.titles,
            (),
            "Line: what the directories of all nodes take, less what they took when empty; full is "
            "100. Dotted: what the objects that stay took of that. Gray ground: removing. Hatched: "
            "the part that lies in a trash. One cluster a panel.",
        ),
    )
    with applied():
        figure, panels = multiples(
            words, len(figures.rows), panel_in=2.6, y_label="disk space, % of full"
        )
        for axes, row, space in zip(panels, figures.rows, figures.arrays, strict=True):
            point = "".join(f"{name} {written(row[name])}, " for name in figures.parameters)
            freed = row["freed_at_end"]
            freed_text = "not watched" if freed is None else f"{freed:.0%} of it given back"
            head(axes, names[series_of(row)], point + freed_text.replace("%", " %"))
            _draw_space(axes, row, space, looks[series_of(row)])
        removing_s = max(row["removing_s"] for row in figures.rows)
        panels[0].set_xlim(-removing_s / 60, max(row["watched_s"] for row in figures.rows) / 60)
        panels[0].set_ylim(0, None)
        return dress(figure, words, legend(figures.series, figures.titles))


def _draw_space(axes: Axes, row: Row, space: SpaceOverTime, look: SeriesStyle) -> None:
    percent = 100 / max(space.full_bytes - space.empty_bytes, 1.0)
    inside = slice(max(0, space.t_s.searchsorted(-row["removing_s"], "right") - 1), None)
    t_min = space.t_s[inside] / 60
    shares = percent * (space.space_bytes[inside] - space.empty_bytes)
    trash = percent * space.trash_bytes[inside]
    axes.axvspan(-row["removing_s"] / 60, 0, color="#f0f0f0", linewidth=0, zorder=-1)
    stays = 100 * (1 - row["removed"] / row["objects"])
    axes.axhline(stays, color=QUIET, linewidth=1.0, linestyle=(0, (1, 1.5)), zorder=2)
    if trash.any():
        light = mixed(look.colour, "#ffffff", 0.55)
        area = axes.fill_between(t_min, shares - trash, shares, step="post", zorder=2.5)
        area.set(facecolor=light, edgecolor=look.dark, hatch="////", linewidth=0.0)
    axes.step(t_min, shares, where="post", color=look.dark, linewidth=1.5, zorder=4)


def _found_space(figures: Figures) -> str:
    """The finding: who gave the space back, and within which time."""
    parts = []
    for system in dict.fromkeys(row["system"] for row in figures.rows):
        mine = [row for row in figures.rows if row["system"] == system]
        freed = [row["freed_at_end"] for row in mine if row["freed_at_end"] is not None]
        after_s = [row["freed_most_after_s"] for row in mine]
        if freed and None not in after_s:
            longest = max(1.0, *after_s)
            within = f"{longest:.0f} s" if longest < 120 else f"{longest / 60:.0f} min"
            parts.append(f"{figures.titles[system]} gives {FREED_ALL:.0%} back within {within}")
        elif freed:
            shares = dict.fromkeys(f"{share:.0%}" for share in (min(freed), max(freed)))
            parts.append(f"{figures.titles[system]} gives {' to '.join(shares)} back")
    finding = "Disk space of removed objects: " + ", ".join(parts) if parts else "Disk space"
    return finding.replace("%", " %")
