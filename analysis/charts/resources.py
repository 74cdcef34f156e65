"""The charts of resources: usage per node over time, under latencies; of a matrix against it.

Over time a column is a system, a row a resource; all panels of a row share their heights, so that
systems compare at a glance, and all of a column their time, so that a slow request and what the
nodes were busy with stand above each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from wanlat.analysis.charts import sweep
from wanlat.analysis.charts.facets import set_y, spans_decades
from wanlat.analysis.charts.frame import Words, dress, head, multiples, round_ticks
from wanlat.analysis.charts.style import ALARM, SeriesStyle, applied, styles
from wanlat.analysis.charts.wording import caption, legend
from wanlat.analysis.figures.resources import KIB, MIB, NODE, Sampled, number, sampling_note
from wanlat.analysis.figures.result import series_of
from wanlat.analysis.names import row_labels

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
