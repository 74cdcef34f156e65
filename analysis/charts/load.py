"""The chart of a load: a row of panels for each system, and for each point of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import seaborn as sns  # here alone: it takes a second to import, and few runs are under load
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts.frame import Words, dress, head, multiples
from wanlat.analysis.charts.lettering import LABEL
from wanlat.analysis.charts.style import ALARM, QUIET, SeriesStyle, applied
from wanlat.analysis.figures.load import OverTime
from wanlat.analysis.figures.load_requests import Values
from wanlat.analysis.figures.result import Row, series_of
from wanlat.analysis.names import row_labels, shortened
from wanlat.analysis.placement import with_placement
from wanlat.analysis.report.section import written

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer

_COLOURS = ("#117755", "#b58be0", "#5b8fd6", "#8a8a8a")
"""Of operations: none of them is a system's, and the first two differ in lightness too."""
_MARKERS = ("o", "s", "^", "D", "v", "P")
_FAILED = "failed"
_STEADY = "#efefe6"
_DASHED = (0, (3, 2))
_MOST_STEPS = 2000
_FEWEST = 1e-4
"""Of requests, that a tail shows."""


def draw(answer: Answer) -> Figure:
    """The chart of the section `load`."""
    figures = answer.figures
    looks = _looks(figures.arrays)
    with_probe = any(each.probe_ms for each in figures.arrays)
    columns = 3 if with_probe else 2
    names, words = row_labels(figures.series), _words(answer)
    with applied():
        figure, panels = multiples(
            words,
            columns * len(figures.rows),
            columns=columns,
            panel_in=1.9 if len(figures.rows) > 1 else 2.8,
            share="col",
        )
        for number, (row, over_time) in enumerate(zip(figures.rows, figures.arrays, strict=True)):
            rates, *probe, tails = panels[columns * number : columns * (number + 1)]
            point = ", ".join(f"{name} {written(row[name])}" for name in figures.parameters)
            head(rates, names[series_of(row)], _rate_and_state(row))
            _draw_rates(rates, row, over_time, looks)
            if probe:
                head(probe[0], point, _times_longer(row))
                _draw_probe(probe[0], over_time, looks)
            head(tails, "" if probe else point, _tail(row))
            _draw_tails(tails, row, over_time, looks)
        labels = ["seconds after the load's ramp"] * (columns - 1) + ["latency, ms"]
        for axes, label in zip(panels[-columns:], labels, strict=True):
            axes.set_xlabel(label, fontsize=LABEL.size_pt)
        return dress(figure, words, [(look, name) for name, look in looks.items()])


def _looks(arrays: Sequence[OverTime]) -> dict[str, SeriesStyle]:
    """A look for each operation of the load and endpoint of the probe client."""
    names = [name for each in arrays for name in (*each.per_s, *each.probe_ms)]
    looks = {
        name: SeriesStyle(_COLOURS[number % len(_COLOURS)], "", _MARKERS[number % len(_MARKERS)])
        for number, name in enumerate(dict.fromkeys(names))
    }
    failed = any(each.failed_per_s.any() for each in arrays)
    return looks | ({_FAILED: SeriesStyle(ALARM, "", "o")} if failed else {})


def _draw_rates(axes: Axes, row: Row, over_time: OverTime, looks: dict[str, SeriesStyle]) -> None:
    edges = np.arange(over_time.failed_per_s.size + 1) * over_time.bin_s
    if row["steady"]["verdict"] == "steady":
        axes.axvspan(row["steady"]["begin_s"], row["steady"]["end_s"], color=_STEADY, zorder=0)
    rates = dict(over_time.per_s)
    if over_time.failed_per_s.any():
        rates[_FAILED] = over_time.failed_per_s
    for name, per_s in rates.items():
        axes.stairs(per_s, edges, baseline=None, color=looks[name].colour, lw=1.1, zorder=3)
    axes.set_ylabel("operations per second", fontsize=LABEL.size_pt)
    axes.set_ylim(0, None)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 3, 5, 6, 10]))


def _draw_probe(axes: Axes, over_time: OverTime, looks: dict[str, SeriesStyle]) -> None:
    for name, (at_s, ms) in over_time.probe_ms.items():
        axes.plot(
            at_s,
            ms,
            linestyle="none",
            marker=looks[name].marker,
            markersize=1.6,
            markerfacecolor=looks[name].colour,
            markeredgewidth=0,
            zorder=3,
            rasterized=at_s.size > _MOST_STEPS,
        )
    axes.axvline(0.0, color=QUIET, lw=0.8, zorder=2)
    axes.set_yscale("log")
    axes.set_ylabel("probe client, ms", fontsize=LABEL.size_pt)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 3, 5, 6, 10]))
    _plain(axes.yaxis)


def _draw_tails(axes: Axes, row: Row, over_time: OverTime, looks: dict[str, SeriesStyle]) -> None:
    """How many requests took longer: of the load, of the probe client beside it, and idle."""
    steady = row["steady"]
    part = (0.0, np.inf)
    if steady["verdict"] == "steady":
        part = (steady["begin_s"], steady["end_s"])
    for name, ms in over_time.latencies_ms.items():
        _draw_tail(axes, ms, looks[name].colour, 0.8, ":")
    for name, (at_s, ms) in over_time.probe_ms.items():
        loaded = (at_s >= part[0]) & (at_s < part[1])
        _draw_tail(axes, np.sort(ms[loaded]), looks[name].colour, 1.5, "-")
        _draw_tail(axes, np.sort(ms[at_s < 0]), looks[name].colour, 1.2, _DASHED)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(_FEWEST, 1.3)
    axes.set_ylabel("took longer", fontsize=LABEL.size_pt)
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=10))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.yaxis.set_minor_locator(NullLocator())
    _plain(axes.xaxis)


def _draw_tail(axes: Axes, sorted_ms: Values, colour: str, width: float, line: Any) -> None:
    """The share of requests that took longer, down to one request."""
    n = sorted_ms.size
    if n == 0:
        return
    places = np.arange(n)
    if n > _MOST_STEPS:
        # Evenly over the logarithm of the share: a picture has no more places.
        places = np.unique(n - np.geomspace(1, n, _MOST_STEPS).astype(int))
    sns.ecdfplot(
        x=sorted_ms[places],
        weights=np.diff(places, append=n),  # each for those up to the next
        complementary=True,
        ax=axes,
        color=colour,
        lw=width,
        linestyle=line,
        zorder=3,
    )


def _plain(axis: Axis) -> None:
    """Ticks of a logarithmic axis as numbers: 1, 10, 100."""
    axis.set_major_locator(LogLocator(base=10, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def _words(answer: Answer) -> Words:
    rows = answer.figures.rows
    workers = dict.fromkeys(row["client"]["workers"] for row in rows)
    rates = dict.fromkeys(row["client"]["offered_per_s"] for row in rows)
    how = ["closed loop" if rate is None else f"{rate:g}/s asked for" for rate in rates]
    full = shortened(answer.figures.series)
    return Words(
        title=_found(rows),
        subtitle=f"Load · {answer.of} · {' or '.join(map(str, workers))} workers, "
        f"{' or '.join(how)}",
        x_label="",
        caption=(
            "Left: requests that succeeded; shaded: the steady part, which figures are of. Without "
            "shade there was none, and they are of the whole load. Middle: the probe client's "
            "requests, before 0 alone. Right: the share of requests that took longer (1 % on the "
            "left axis is p99); dashed: the probe client idle, solid: beside the load, dotted: the "
            "load's own.",
            *([f"In full: {'; '.join(full)}."] if full else []),
        ),
    )


def _found(rows: Sequence[Row]) -> str:
    """The finding: what the load does to a single client, else how much was done."""
    ratios = [probe["median_ratio"] for row in rows for probe in row["probe_client"]]
    known = [ratio for ratio in ratios if ratio is not None]
    if known:
        low, high = (f"{value:.2g}" for value in (min(known), max(known)))
        times = low if low == high else f"{low} to {high}"
        return f"Beside the load a request takes {times} times as long as alone"
    rates = [sum(each["operations_per_s"] for each in row["operations"]) for row in rows]
    low, high = (f"{value:,.0f}" for value in (min(rates), max(rates)))
    return f"Under load {low if low == high else f'{low} to {high}'} operations per second"


def _rate_and_state(row: Row) -> str:
    total = sum(each["operations_per_s"] for each in row["operations"])
    steady = row["steady"]
    state = (
        "steady or not: not decided" if steady["verdict"] == "not decided" else steady["verdict"]
    )
    if steady["verdict"] == "steady":
        state = f"steady from {steady['begin_s']:.0f} s on"
    limit = "; the client was the limit" if row["client"]["bottleneck"] else ""
    return f"{total:,.0f}/s, {state}{limit}"


def _times_longer(row: Row) -> str:
    found = [
        f"{with_placement(each['endpoint'], each['placement'])} × {each['median_ratio']:.2g}"
        for each in row["probe_client"]
        if each["median_ratio"] is not None
    ]
    return f"median: {', '.join(found)}" if found else ""


def _tail(row: Row) -> str:
    found = [each["loaded"]["p99_ms"] for each in row["probe_client"]]
    known = [f"{p99_ms:.3g}" for p99_ms in found if p99_ms is not None]
    return f"p99 beside the load: {', '.join(known)} ms" if known else ""
