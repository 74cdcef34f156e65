"""The charts of resources: usage per node over time, under latencies; of a matrix against it.

Over time a column is a system, a row a resource; all panels of a row share their heights, so that
systems compare at a glance, and all of a column their time, so that a slow request and what the
nodes were busy with stand above each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.facets import Facet, Marks, Scale, draw_facets, set_y, spans_decades
from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.style import ALARM, SeriesStyle, applied, styles
from wanlat.analysis.figures.resources import NODE, Sampled
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import count, row_labels, series_labels
from wanlat.analysis.report.formats import below
from wanlat.analysis.report.resources import KIB, MIB, number, sampling_note
from wanlat.analysis.report.section import written
from wanlat.analysis.sweep import number_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from wanlat.analysis.bundle import Series
    from wanlat.analysis.report.section import Answer

    Values = NDArray[np.float64]
    Curve = tuple[Values, Values]
    Dots = tuple[Values, Values, NDArray[np.bool_]]

_MOST_DOTS = 6000
_REPEATED = "seed"


@dataclass(frozen=True)
class _Measure:
    """A row of panels: columns of the samples in a unit, or what they grow by in a second.

    One whose every figure is at most `least` is left out.
    """

    head: str
    columns: tuple[str, ...]
    unit: float
    is_rate: bool = False
    least: float = 0.0

    def curve(self, rows: pd.DataFrame) -> Curve:
        """Of a node's rows: instants, ns, and values there."""
        known = rows[rows[list(self.columns)].notna().all(axis=1)]
        t = known["t_ns"].to_numpy("float64")
        value = known[list(self.columns)].sum(axis=1).to_numpy("float64") / self.unit
        if not self.is_rate or t.size < 2:
            return (t[:0], t[:0]) if self.is_rate else (t, value)
        # Samples between two stages lie closer together: their quotients would be noise.
        far = np.concatenate(([True], np.diff(t) > 0.3 * np.median(np.diff(t))))
        t, value = t[far], value[far]
        return t[1:], np.diff(value) / (np.diff(t) / 1e9)


_MEASURES = (
    _Measure("memory of each node, MiB", ("rss_bytes",), MIB),
    _Measure("CPU of each node, % of a core", ("cpu_ns",), 1e7, is_rate=True),
    _Measure("network of each node, in and out, MiB/s", ("rx_bytes", "tx_bytes"), MIB, True),
    _Measure("disk space of each node, MiB", ("space_bytes",), MIB),
    _Measure("written to its disk, MiB/s", ("written_bytes",), MIB, True, least=0.05),
)


def draw(answer: Answer) -> Figure:
    """The chart of one run."""
    figures = answer.figures
    pairs: list[tuple[Row, Sampled]] = list(zip(figures.rows, figures.arrays, strict=True))
    looks, names = styles(figures.series), row_labels(figures.series)
    drawn = [
        (measure, curves)
        for measure in _MEASURES
        if _is_worth_it(curves := [_curves(measure, of) for _, of in pairs], measure.least)
    ]
    dots = [_latencies(of) for _, of in pairs]
    has_dots = any(t.size > 1 for t, _, _ in dots)
    heads = ["latency of each request, ms"] * has_dots + [measure.head for measure, _ in drawn]
    words = _words(answer, dots)
    with applied():
        figure, flat = multiples(
            words,
            len(heads) * len(pairs),
            columns=len(pairs),
            panel_in=1.45,
            share="col",
            share_y="row",
        )
        panels = np.array(flat, dtype=object).reshape(len(heads), len(pairs))
        for (n, at), axes in np.ndenumerate(panels):
            head(axes, names[series_of(pairs[at][0])] if n == 0 else "", heads[n])
            _furnish(axes, pairs[at][1])
        if has_dots:
            _set_heights(panels[0], [took for _, took, _ in dots], may_be_log=True)
            for axes, each, (row, _) in zip(panels[0], dots, pairs, strict=True):
                _draw_dots(axes, each, looks[series_of(row)])
        for row_of_panels, (_, curves) in zip(panels[int(has_dots) :], drawn, strict=True):
            _set_heights(row_of_panels, [values for of in curves for _, (_, values) in of])
            for axes, of, (row, _) in zip(row_of_panels, curves, pairs, strict=True):
                for node, curve in of:
                    _draw_curve(axes, curve, looks[series_of(row)], node == row["target"])
        labels = series_labels(figures.series)
        return dress(figure, words, [(looks[one], labels[one]) for one in figures.series])


def _curves(measure: _Measure, sampled: Sampled) -> list[tuple[str, Curve]]:
    """Of each node, from the first sample on, s."""
    nodes = sampled.rows[sampled.rows["kind"] == NODE]
    found = []
    for name, rows in nodes.groupby("subject", sort=False):
        t_ns, values = measure.curve(rows)
        found.append((str(name), ((t_ns - _origin_ns(sampled)) / 1e9, values)))
    return found


def _is_worth_it(curves: Sequence[Sequence[tuple[str, Curve]]], least: float) -> bool:
    """Whether there is more to see than a dot, and more than nothing."""
    return any(v.size > 1 and float(v.max()) > least for of in curves for _, (_, v) in of)


def _origin_ns(sampled: Sampled) -> float:
    return float(sampled.rows["t_ns"].iloc[0])


def _latencies(sampled: Sampled) -> Dots:
    """When requests began (s), how long they took (ms), whether they were ok; thinned if many."""
    own = sampled.requests.iloc[:: max(1, -(-len(sampled.requests) // _MOST_DOTS))]
    begin_ns = own["begin_ns"].to_numpy("float64")
    took_ms = (own["end_ns"].to_numpy("float64") - begin_ns) / 1e6
    return (begin_ns - _origin_ns(sampled)) / 1e9, took_ms, own["is_ok"].to_numpy(bool)


def _furnish(axes: Axes, sampled: Sampled) -> None:
    origin_ns = _origin_ns(sampled)
    axes.set_xlim(0, (float(sampled.rows["t_ns"].iloc[-1]) - origin_ns) / 1e9 or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 3, 5, 6, 10]))
    for span in sampled.idle:
        begin, end = ((at - origin_ns) / 1e9 for at in span)
        axes.axvspan(begin, end, color="#f0f0f0", linewidth=0, zorder=-1)


def _set_heights(row: Sequence[Axes], of: Sequence[Values], *, may_be_log: bool = False) -> None:
    values = np.concatenate([each for each in of if each.size])
    positive = values[values > 0]
    is_log = may_be_log and spans_decades(positive.tolist())
    top = float(values.max()) or 1.0
    for axes in row:
        set_y(
            axes, positive.min() / 1.3 if is_log else 0.0, top * (1.3 if is_log else 1.08), is_log
        )


def _draw_dots(axes: Axes, dots: Dots, look: SeriesStyle) -> None:
    t, took, is_ok = dots
    for chosen, colour, marker in ((is_ok, look.dark, "."), (~is_ok, ALARM, "x")):
        axes.plot(
            t[chosen],
            took[chosen],
            linestyle="none",
            marker=marker,
            markersize=3,
            color=colour,
            markeredgewidth=0.8 if marker == "x" else 0.0,
            rasterized=True,
            zorder=3,
        )


def _draw_curve(axes: Axes, curve: Curve, look: SeriesStyle, is_target: bool) -> None:
    axes.plot(
        *curve,
        color=look.dark,
        alpha=1.0 if is_target else 0.6,
        linewidth=1.5 if is_target else 0.8,
        linestyle="-" if is_target else (0, (4, 1.2)),
        zorder=4 if is_target else 3,
    )


def _words(answer: Answer, dots: Sequence[Dots]) -> Words:
    rows, arrays = answer.figures.rows, answer.figures.arrays
    labels, target = row_labels(answer.figures.series), rows[0]["target"]
    caption = [
        (f"Thick: {target}, the target node. Dashed: the other nodes. " if target else "")
        + "Grey ground: idle windows. Memory is resident; network is what crossed the node's "
        "interface, in and out together.",
        sampling_note(rows) or "",
    ]
    if any(not is_ok.all() for _, _, is_ok in dots):
        caption.append("Crosses: requests that did not succeed.")
    if any(len(each.requests) > _MOST_DOTS for each in arrays):
        caption.append(f"Of many requests at most {_MOST_DOTS} a system are drawn, evenly thinned.")
    return Words(
        title="While loaded a node takes " + "; ".join(_used(row, labels) for row in rows),
        subtitle=f"Resource usage per node · {answer.of}",
        x_label="seconds after the cluster was ready",
        caption=tuple(caption),
    )


def _used(row: Row, labels: dict[Series, str]) -> str:
    nodes = [each["loaded"] for each in row["nodes"] if each["kind"] == NODE and each["loaded"]]
    cpu = [each["cpu_share"] for each in nodes if each["cpu_share"] is not None]
    cores = f" and {number(mean(cpu), 0.01)} % of a core" if cpu else ""
    return f"{number(row['node_rss_bytes']['loaded'], MIB)} MiB{cores} ({labels[series_of(row)]})"


# -- of a matrix -------------------------------------------------------------------------------

_CHARTS = (
    ("resources-memory", "Resident memory of a loaded node, MiB", "node_rss_bytes.loaded", MIB),
    ("resources-cpu", "CPU time of all nodes, ms a request", "per_request.cpu_ms", 1.0),
    ("resources-sent", "Sent by all nodes, KiB a request", "per_request.sent_bytes", KIB),
)


def charts_of_matrix(answer: Answer) -> dict[str, Figure]:
    """Usage against the number that takes most values; none where nothing has two of them."""
    rows = answer.figures.rows
    values = {
        name: {x for row in rows if (x := number_of(row[name])) is not None}
        for name in answer.figures.parameters
        if name != _REPEATED
        and all(row[name] is None or number_of(row[name]) is not None for row in rows)
    }
    axis = max(values, key=lambda name: len(values[name]), default=None)
    if axis is None:
        return {}
    charts = {}
    for stem, label, key, unit in _CHARTS:
        known = [(row, value / unit) for row in rows if (value := below(row, key)) is not None]
        facets = _facets(answer, known, axis)
        if facets:
            charts[stem] = _draw_matrix(answer, known, facets, (axis, label))
    return charts


def _facets(answer: Answer, known: Sequence[tuple[Row, float]], axis: str) -> list[Facet]:
    """One for each combination of the other parameters of which a line can be drawn."""
    others = [name for name in answer.figures.parameters if name not in (axis, _REPEATED)]

    def beside(row: Row) -> tuple[tuple[str, Any], ...]:
        return tuple((name, row[name]) for name in others if row[name] is not None)

    looks, facets = styles(answer.figures.series), []
    for place in dict.fromkeys(beside(row) for row, _ in known):
        lines = []
        for one in answer.figures.series:
            at: dict[float, list[float]] = {}
            for row, value in known:
                x = number_of(row[axis])
                if (series_of(row), beside(row)) == (one, place) and x is not None:
                    at.setdefault(x, []).append(value)
            if at:
                heights = [mean(at[x]) for x in sorted(at)]
                lines.append(Marks(looks[one], sorted(at), heights, [None] * len(at)))
        if any(len(line.x) > 1 for line in lines):
            head = ", ".join(f"{name} {written(value)}" for name, value in place)
            facets.append(Facet("", head, tuple(lines)))
    return facets


def _draw_matrix(
    answer: Answer,
    known: Sequence[tuple[Row, float]],
    facets: Sequence[Facet],
    named: tuple[str, str],
) -> Figure:
    (axis, label), figures = named, answer.figures
    what, _, unit = label.partition(", ")
    looks, labels = styles(figures.series), series_labels(figures.series)
    most, value = max(known, key=lambda pair: pair[1])
    least = min(value for _, value in known)
    where = ", ".join(
        f"{name} {written(most[name])}" for name in figures.parameters if most[name] is not None
    )
    words = Words(
        title=f"{what}: {number(least)} to {number(value)} {unit}, most with "
        f"{row_labels(figures.series)[series_of(most)]} at {where}",
        subtitle=f"Resource usage · {answer.of} · {count(len(known), 'point')}, each on a cluster "
        "of its own",
        x_label=axis,
        caption=("One mark a point; of points that were repeated, the mean.",),
    )
    ticks = {
        x: written(row[axis])
        for row, _ in sorted(known, key=lambda pair: number_of(pair[0][axis]) or 0.0)
        if (x := number_of(row[axis])) is not None
    }
    legend = [(looks[one], labels[one]) for one in figures.series]
    return draw_facets(words, facets, Scale(ticks, label), legend)
