"""The charts of resources: usage per node over time, and disk space after a removal.

Of usage a column is a system, a row a resource; all panels of a row share their heights, so that
systems compare at a glance, and all of a column their time, so that a slow request and what the
nodes were busy with stand above each other. Of disk space a panel is a system, on one scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts import sweep
from wanlat.analysis.charts.facets import set_y, spans_decades
from wanlat.analysis.charts.frame import Words, caption, dress, head, legend, multiples, round_ticks
from wanlat.analysis.charts.style import ALARM, QUIET, SeriesStyle, applied, mixed, styles
from wanlat.analysis.figures.reclaim import FREED_ALL, SpaceOverTime
from wanlat.analysis.figures.resources import NODE, Sampled
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import display_system, row_labels
from wanlat.analysis.report.resources import KIB, MIB, number, sampling_note
from wanlat.analysis.report.section import written

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wanlat.analysis.report.section import Answer

    Values = NDArray[np.float64]

_MOST_DOTS = 6000
_REQUESTS = "latency of each request, ms"
# Columns of the samples in a unit, or what they grow by in a second.
_PANELS = {
    "memory of each node, MiB": (["rss_bytes"], MIB, False),
    "CPU of each node, % of a core": (["cpu_ns"], 1e7, True),
    "network of each node, in and out, MiB/s": (["rx_bytes", "tx_bytes"], MIB, True),
    "disk space of each node, MiB": (["space_bytes"], MIB, False),
    "written to its disk, MiB/s": (["written_bytes"], MIB, True),
}
_OF_MATRIX = {
    "memory": sweep.Quantity("node_rss_bytes.loaded", "memory of a loaded node", "MiB", MIB),
    "cpu": sweep.Quantity("per_request.cpu_ms", "CPU time of all nodes a request", "ms"),
    "sent": sweep.Quantity("per_request.sent_bytes", "sent by all nodes a request", "KiB", KIB),
}


class _Curve(NamedTuple):
    """What a panel draws: seconds and values there, and how."""

    t: Values
    values: Values
    how: dict[str, Any]


def charts_of_matrix(answer: Answer) -> dict[str, Figure]:
    """Usage against what a matrix varies."""
    made = [sweep.draw(answer, of, f"resources-{stem}") for stem, of in _OF_MATRIX.items()]
    return {stem: figure for charts in made for stem, figure in charts.items()}


def draw(answer: Answer) -> Figure:
    """The chart of one run."""
    rows, arrays, series = answer.figures.rows, answer.figures.arrays, answer.figures.series
    looks, names, words = styles(series), row_labels(series), _words(answer)
    drawn: dict[str, list[list[_Curve]]] = {}
    for name in (_REQUESTS, *_PANELS):
        curves = [
            list(_curves(name, sampled, row["target"], looks[series_of(row)]))
            for row, sampled in zip(rows, arrays, strict=True)
        ]
        if any(c.values.size > 1 and c.values.any() for of in curves for c in of):
            drawn[name] = curves  # neither one dot nor nothing
    with applied():
        figure, panels = multiples(
            words,
            len(drawn) * len(rows),
            columns=len(rows),
            panel_in=1.45,
            share="col",
            share_y="row",
        )
        for n, (name, curves) in enumerate(drawn.items()):
            at = slice(n * len(rows), (n + 1) * len(rows))
            values = np.concatenate([curve.values for of in curves for curve in of])
            least, top = values[values > 0].min(), 1.1 * values.max()
            is_log = name == _REQUESTS and spans_decades([least, top])
            for axes, row, sampled, of in zip(panels[at], rows, arrays, curves, strict=True):
                head(axes, "" if n else names[series_of(row)], name)
                set_y(axes, least / 1.3 if is_log else 0.0, top, is_log)
                axes.set_xlim(0, max(1.0, float(_seconds(sampled, sampled.rows["t_ns"])[-1])))
                round_ticks(axes.xaxis)
                for begin, end in sampled.idle:
                    span = _seconds(sampled, np.array([begin, end]))
                    axes.axvspan(*span, color="#f0f0f0", linewidth=0, zorder=-1)
                for curve in of:
                    axes.plot(curve.t, curve.values, **curve.how)
        return dress(figure, words, legend(series))


def _seconds(sampled: Sampled, t_ns: Any) -> Values:
    """From the first sample on."""
    return (np.asarray(t_ns, float) - float(sampled.rows["t_ns"].iloc[0])) / 1e9


def _curves(name: str, sampled: Sampled, target: str | None, look: SeriesStyle) -> Iterator[_Curve]:
    """Of each node; or requests as dots, thinned if many, and crosses if they did not succeed."""
    if name == _REQUESTS:
        own = sampled.requests.iloc[:: max(1, -(-len(sampled.requests) // _MOST_DOTS))]
        for is_ok, marker, colour in ((True, ".", look.dark), (False, "x", ALARM)):
            part = own[own["is_ok"].astype(bool) == is_ok]
            took_ms = (part["end_ns"] - part["begin_ns"]).to_numpy("float64") / 1e6
            how = {"marker": marker, "color": colour, "ls": "", "ms": 3, "mew": 0.8 * (not is_ok)}
            yield _Curve(_seconds(sampled, part["begin_ns"]), took_ms, {**how, "rasterized": True})
        return
    columns, unit, is_rate = _PANELS[name]
    nodes = sampled.rows[sampled.rows["kind"] == NODE].dropna(subset=columns)
    for node, of in nodes.groupby("subject", sort=False):
        t, values = (
            _seconds(sampled, of["t_ns"]),
            of[columns].sum(axis=1).to_numpy("float64") / unit,
        )
        if is_rate and t.size > 1:
            # Samples between two stages lie closer together: their quotients would be noise.
            far = np.diff(t, prepend=-np.inf) > 0.3 * np.median(np.diff(t))
            t, values = t[far][1:], np.diff(values[far]) / np.diff(t[far])
        how = {"lw": 1.5, "zorder": 4} if node == target else {"lw": 0.8, "ls": (0, (4, 1.2))}
        yield _Curve(t, values, {**how, "color": look.dark})


def _words(answer: Answer) -> Words:
    rows, target = answer.figures.rows, answer.figures.rows[0]["target"]
    labels, said = row_labels(answer.figures.series), []
    for row in rows:
        nodes = [each["loaded"] for each in row["nodes"] if each["kind"] == NODE and each["loaded"]]
        cpu = [each["cpu_share"] for each in nodes if each["cpu_share"] is not None]
        cores = f" and {number(mean(cpu), 0.01)} % of a core" if cpu else ""
        used = number(row["node_rss_bytes"]["loaded"], MIB)
        said.append(f"{used} MiB{cores} ({labels[series_of(row)]})")
    return Words(
        "While loaded a node takes " + "; ".join(said),
        f"Resource usage per node · {answer.of}",
        "seconds after the cluster was ready",
        caption(
            answer.figures.series,
            (),
            (f"Thick: {target}, the target node. Dashed: the other nodes. " if target else "")
            + "Grey ground: idle windows. Memory is resident; network is what crossed the node's "
            f"interface, in and out together. Dots: requests, at most {_MOST_DOTS} a system; "
            "crosses: those that did not succeed.",
            sampling_note(rows),
        ),
    )


def draw_reclaim(answer: Answer) -> Figure:
    """The chart of the section `reclaim`."""
    figures, first = answer.figures, answer.figures.rows[0]
    looks, names = styles(figures.series), row_labels(figures.series)
    words = Words(
        _found_space(figures.rows),
        f"Disk space after objects were removed · {answer.of} · {first['objects']} objects of "
        f"{first['object_bytes']} bytes, {first['removed']} removed ({first['which']})",
        "minutes after the removal ended",
        caption(
            figures.series,
            (),
            "Line: what the directories of all nodes take, less what they took when empty; full is "
            "100. Dotted: what the objects that stay took of that. Grey ground: removing. Hatched: "
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
            said = "not watched" if freed is None else f"{freed:.0%} of it given back"
            head(axes, names[series_of(row)], point + said.replace("%", " %"))
            _draw_space(axes, row, space, looks[series_of(row)])
        removing_s = max(row["removing_s"] for row in figures.rows)
        panels[0].set_xlim(-removing_s / 60, max(row["watched_s"] for row in figures.rows) / 60)
        panels[0].set_ylim(0, None)
        return dress(figure, words, legend(figures.series))


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


def _found_space(rows: tuple[Row, ...]) -> str:
    """The finding: who gave the space back, and within which time."""
    said = []
    for system in dict.fromkeys(row["system"] for row in rows):
        mine = [row for row in rows if row["system"] == system]
        freed = [row["freed_at_end"] for row in mine if row["freed_at_end"] is not None]
        after_s = [row["freed_most_after_s"] for row in mine]
        if freed and None not in after_s:
            longest = max(1.0, *after_s)
            within = f"{longest:.0f} s" if longest < 120 else f"{longest / 60:.0f} min"
            said.append(f"{display_system(system)} gives {FREED_ALL:.0%} back within {within}")
        elif freed:
            shares = dict.fromkeys(f"{share:.0%}" for share in (min(freed), max(freed)))
            said.append(f"{display_system(system)} gives {' to '.join(shares)} back")
    found = "Disk space of removed objects: " + ", ".join(said) if said else "Disk space"
    return found.replace("%", " %")
