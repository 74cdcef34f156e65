"""The chart of a load: a row of panels for each system, and for each point of a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns  # here alone: it takes a second to import, and few runs are under load
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wanlat.analysis.charts.frame import (
    Words,
    caption,
    dress,
    head,
    log_ticks,
    multiples,
    round_ticks,
)
from wanlat.analysis.charts.style import ALARM, QUIET, SeriesStyle, applied
from wanlat.analysis.endpoints import with_placement
from wanlat.analysis.figures.load import OverTime
from wanlat.analysis.names import EN_DASH, below, digits
from wanlat.analysis.section import Answer, Row, series_of, written

# Of operations: none of them is a system's, and the first two differ in lightness too.
_LOOKS = (("#117755", "o"), ("#b58be0", "s"), ("#5b8fd6", "^"), ("#8a8a8a", "D"))
_FAILED = "failed"
_MOST_STEPS, _MOST_NAMED = 2000, 2
_FEWEST = 1e-4
"""Of requests, that a tail shows."""

Looks = Mapping[str, SeriesStyle]


def draw(answer: Answer) -> Figure:
    """The chart of the section `load`."""
    rows, arrays = answer.figures.rows, answer.figures.arrays
    operations = [name for over_time in arrays for name in (*over_time.per_s, *over_time.probe_ms)]
    looks = {
        name: SeriesStyle(_LOOKS[number % 4][0], "", _LOOKS[number % 4][1])
        for number, name in enumerate(dict.fromkeys(operations))
    }
    if any(over_time.failed_per_s.any() for over_time in arrays):
        looks[_FAILED] = SeriesStyle(ALARM, "", "o")
    workers = dict.fromkeys(f"{row['client']['workers']:g}" for row in rows)
    words = Words(
        _found(rows),
        f"Load · {answer.subject} · {' or '.join(workers)} workers",
        caption=caption(
            answer.figures.series,
            answer.figures.titles,
            (),
            "Left: requests that succeeded; shaded: the steady part, which figures are of. Without "
            "shade there was none, and they are of the whole load. Middle: the probe client's "
            "requests, before 0 alone. Right: the share of requests that took longer (1 % is p99); "
            "dashed: the probe client idle, solid: beside the load, dotted: the load's own.",
        ),
    )
    with applied():
        height_in = 1.9 if len(rows) > 1 else 2.8
        figure, panels = multiples(words, 3 * len(rows), panel_in=height_in, share="col")
        for number, (row, over_time) in enumerate(zip(rows, arrays, strict=True)):
            rates, probe, tails = panels[3 * number : 3 * number + 3]
            point = ", ".join(f"{name} {written(row[name])}" for name in answer.figures.parameters)
            verdict = row["steady"]["verdict"]
            state = verdict if verdict == "steady" else f"steady: {verdict}"
            state = f"{_rate(row):,.0f}/s, {state}"
            limit = "; the client was the limit" if row["client"]["bottleneck"] else ""
            head(rates, answer.figures.labels[series_of(row)], state + limit)
            head(probe, point, f"median / idle: {_probe_text(row, 'median_ratio')}")
            head(tails, "", f"p99 beside it, ms: {_probe_text(row, 'loaded.p99_ms')}")
            _draw_rates(rates, row, over_time, looks)
            _draw_probe(probe, over_time, looks)
            _draw_tails(tails, row, over_time, looks)
        for rates in panels[::3]:  # once all are drawn: they have one scale
            rates.set_ylim(0, None)
        labels = ["seconds after the load's ramp"] * 2 + ["latency, ms"]
        for axes, label in zip(panels[-3:], labels, strict=True):
            axes.set_xlabel(label)
        return dress(figure, words, [(look, name) for name, look in looks.items()])


def _draw_rates(axes: Axes, row: Row, over_time: OverTime, looks: Looks) -> None:
    edges = np.arange(over_time.failed_per_s.size + 1) * over_time.bin_s
    if row["steady"]["verdict"] == "steady":
        axes.axvspan(row["steady"]["begin_s"], row["steady"]["end_s"], color="#efefe6", zorder=0)
    failed = {_FAILED: over_time.failed_per_s} if _FAILED in looks else {}
    for name, per_s in {**over_time.per_s, **failed}.items():
        axes.stairs(per_s, edges, baseline=None, color=looks[name].colour, lw=1.1, zorder=3)
    axes.set_ylabel("operations per second")


def _draw_probe(axes: Axes, over_time: OverTime, looks: Looks) -> None:
    for name, (at_s, ms) in over_time.probe_ms.items():
        colour, marker = looks[name].colour, looks[name].marker
        axes.plot(at_s, ms, marker, color=colour, ms=1.6, mew=0, zorder=3, rasterized=True)
    axes.axvline(0.0, color=QUIET, lw=0.8, zorder=2)
    axes.set_yscale("log")
    axes.set_ylabel("probe client, ms")
    log_ticks(axes.yaxis)
    round_ticks(axes.xaxis)


def _draw_tails(axes: Axes, row: Row, over_time: OverTime, looks: Looks) -> None:
    """How many requests took longer: of the load, of the probe client beside it, and idle."""
    begin_s, end_s = 0.0, np.inf
    if row["steady"]["verdict"] == "steady":
        begin_s, end_s = row["steady"]["begin_s"], row["steady"]["end_s"]
    tails = [(name, ms, 0.8, ":") for name, ms in over_time.latencies_ms.items()]
    for name, (at_s, ms) in over_time.probe_ms.items():
        tails.append((name, ms[(at_s >= begin_s) & (at_s < end_s)], 1.5, "-"))
        tails.append((name, ms[at_s < 0], 1.2, "--"))
    for name, ms, width, line in tails:
        if n := ms.size:
            # Evenly over the logarithm of the share: a picture has no more places.
            steps = np.unique(n - np.geomspace(1, n, _MOST_STEPS).astype(int))
            sns.ecdfplot(
                x=np.sort(ms)[steps],
                weights=np.diff(steps, append=n),  # each for those up to the next
                complementary=True,
                ax=axes,
                color=looks[name].colour,
                lw=width,
                ls=line,
                zorder=3,
            )
    axes.set(xscale="log", yscale="log", ylim=(_FEWEST, 1.3), ylabel="took longer")
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")


def _found(rows: Sequence[Row]) -> str:
    """The finding: what the load does to a single client, else how much was done."""
    probes = [probe["median_ratio"] for row in rows for probe in row["probe_client"]]
    if ratios := [ratio for ratio in probes if ratio is not None]:
        times = dict.fromkeys(digits(end(ratios), 2) for end in (min, max))
        return f"Beside the load a request takes {' to '.join(times)} times as long as alone"
    ends = dict.fromkeys(f"{end(map(_rate, rows)):,.0f}" for end in (min, max))
    return f"Under load {' to '.join(ends)} operations per second"


def _rate(row: Row) -> float:
    return float(sum(operation["operations_per_s"] for operation in row["operations"]))


def _probe_text(row: Row, key: str) -> str:
    """A figure of each endpoint of the probe client; of many the smallest and greatest."""
    values = {
        with_placement(probe["endpoint"], probe["placement"]): value
        for probe in row["probe_client"]
        if (value := below(probe, key)) is not None
    }
    named, between = list(values), ", "
    if len(named) > _MOST_NAMED:
        named, between = sorted(named, key=lambda name: values[name])[:: len(named) - 1], " to "
    return between.join(f"{name} {digits(values[name], 3)}" for name in named) or EN_DASH
