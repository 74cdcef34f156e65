"""The charts of object sizes: time, ratio between systems, throughput, and what one key changes.

A row of panels is an operation, a column a number of nodes, a line a system. Lines stand a little
beside each other, so that no interval hides another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from wanlat.analysis import ratios
from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.facets import Facet, Interval, Marks, Scale, draw_facets
from wanlat.analysis.charts.frame import Words
from wanlat.analysis.charts.style import SeriesStyle, styles
from wanlat.analysis.figures.published import stored_estimates
from wanlat.analysis.figures.result import Figures, Row, series_of
from wanlat.analysis.figures.sizes import FRESH, ONE, READ, WRITE, one_key, over
from wanlat.analysis.names import count, display_system, row_labels, series_labels
from wanlat.analysis.placement import MEANING, PLACEMENTS, REMOTE, UNKNOWN, with_placement
from wanlat.analysis.report.formats import size

if TYPE_CHECKING:
    from wanlat.analysis.report.section import Answer

_MIB = 2**20
_BESIDE = 1.06
"""By which factor of size lines stand beside each other."""
_PUBLISHED = "published"
"""Stands for the system where a figure is a published one; its version then names the system."""
_PUBLISHED_LOOK = SeriesStyle("#8a8a8a", "", "X")

Dot = tuple[Row, float, Interval | None]
"""Where something was measured, the height there, and its 95 % interval."""


@dataclass(frozen=True)
class _Chart:
    """A finding as title, and the marks that show it; `at` is a height that divides them."""

    title: str
    y_label: str
    dots: Sequence[Dot]
    reading: str = ""
    at: float | None = None


def charts_of(answer: Answer) -> dict[str, Figure]:
    """The charts by the stems of their files.

    Fresh keys, one key and each combination of further parameters have charts of their own.
    """
    charts: dict[str, Figure] = {}
    names = answer.figures.parameters
    for values, figures in _by(answer.figures, *names):
        pairs = list(zip(names, values, strict=True))
        behind = "".join(re.sub(r"[^\w.]+", "-", f"-{name}-{value}") for name, value in pairs)
        said = "".join(f", {name} {value}" for name, value in pairs)
        found: dict[str, tuple[str, _Chart | None]] = {}
        for (keys,), mine in _by(figures, "keys"):
            ends, told = ("-one-key", f"{said}, one key") if keys == ONE else ("", said)
            for kind, make in (("time", _times), ("ratio", _ratios), ("throughput", _rates)):
                found[f"sizes-{kind}{behind}{ends}"] = told, make(mine)
        both = one_key(figures)
        found[f"sizes-keys{behind}"] = said, None if both is None else _keys(both)
        charts |= {
            stem: _draw(answer, told, chart) for stem, (told, chart) in found.items() if chart
        }
    return charts


def _by(figures: Figures, *names: str) -> Iterator[tuple[tuple[str, ...], Figures]]:
    """The figures by what rows have under these names, fresh keys before one."""
    places: dict[tuple[str, ...], list[tuple[Row, Any]]] = {}
    for pair in zip(figures.rows, figures.arrays, strict=True):
        places.setdefault(tuple(str(pair[0][name]) for name in names), []).append(pair)
    for values in sorted(places, key=lambda values: FRESH not in values):
        rows, arrays = zip(*places[values], strict=True)
        yield values, replace(figures, rows=rows, arrays=arrays)


# -- what is found -----------------------------------------------------------------------------


def _times(figures: Figures) -> _Chart:
    """Which system has the shortest mean, and in how many cases."""
    cases = [
        min(mine.rows, key=lambda row: float(row["mean_ms"]))
        for _, mine in _by(figures, "nodes", "operation", "object_bytes")
    ]
    labels, won = row_labels(figures.series), Counter(series_of(row) for row in cases)
    (first, most), *others = won.most_common()
    told = "".join(f", {labels[one]} in {number}" for one, number in others)
    title = f"{labels[first]} has the shortest mean time in {most} of {len(cases)} cases{told}"
    if len(figures.series) == 1:
        low, high = (of(float(row["mean_ms"]) for row in figures.rows) for of in (min, max))
        title = f"A request takes {_short(low)} to {_short(high)} ms"
    dots = [(row, row["mean_ms"], _bounds(row)) for row in figures.rows]
    return _Chart(title, "mean time of a request, ms", dots)


def _rates(figures: Figures) -> _Chart:
    """What one request at a time comes to at most."""
    best = max(figures.rows, key=lambda row: float(row["bytes_per_s"]))
    dots: list[Dot] = []
    for row in figures.rows:
        bounds, mib = _bounds(row), row["object_bytes"] / _MIB
        ends = None if bounds is None else (mib * 1e3 / bounds[1], mib * 1e3 / bounds[0])
        dots.append((row, row["bytes_per_s"] / _MIB, ends))
    title = (
        f"One request in flight comes to {best['bytes_per_s'] / _MIB:.0f} MiB/s at most: "
        f"{row_labels(figures.series)[series_of(best)]}, {best['operation']}s of "
        f"{size(best['object_bytes'])}"
    )
    return _Chart(title, "throughput, MiB/s", dots)


def _ratios(figures: Figures) -> _Chart | None:
    """How long the others take by the first system; None without others."""
    base, *others = figures.series
    dots: list[Dot] = [(row, ratio.estimate, ratio.ci95) for row, ratio in over(figures, base)]
    labels, name = row_labels(figures.series), display_system(base.system)
    said: list[str] = []
    for one in others:
        mine = [y for row, y, _ in dots if series_of(row) == one]
        if mine:
            takes = " takes" * (not said)
            said.append(f"{labels[one]}{takes} {_short(min(mine))} to {_short(max(mine))}")
    if not said:
        return None
    placed = any(row["placement"] == REMOTE for row in figures.rows if series_of(row) == base)
    remote = " Its remote keys are the measure where it has some." if placed else ""
    return _Chart(
        f"{', '.join(said)} times as long as {name}",
        f"mean time / {name}'s",
        [*dots, *_published(figures, base)],
        f"Above 1: {name} is faster.{remote} ",
        at=1.0,
    )


def _published(figures: Figures, base: Series) -> Iterator[Dot]:
    """The published ratios to the same base, of the sizes and nodes that were measured here too."""
    stored = {(e.system, e.nodes, e.operation, e.object_bytes): e for e in stored_estimates()}
    names = dict.fromkeys(name for name, *_ in stored if name != base.system)
    for row in figures.rows:
        place = (row["nodes"] or 0, row["operation"], row["object_bytes"])
        under = stored.get((base.system, *place))
        for name in names if under and series_of(row) == base else ():
            other = stored.get((name, *place))
            if other and under:
                ratio = ratios.of_estimates(
                    (other.mean_ms, other.mean_ci95_ms), (under.mean_ms, under.mean_ci95_ms)
                )
                theirs = {**row, "system": _PUBLISHED, "version": name, "placement": UNKNOWN}
                yield theirs, ratio.estimate, ratio.ci95


def _keys(figures: Figures) -> _Chart:
    """By how much one key differs, and in how many cases that is shown."""
    found = [row["one_over_fresh_means"] for row in figures.rows]
    shown = sum(
        bool(each["ci95"] and not each["ci95"][0] <= 1 <= each["ci95"][1]) for each in found
    )
    low, high = (of(each["ratio"] for each in found) for of in (min, max))
    return _Chart(
        f"One key takes {_short(low)} to {_short(high)} times as long as fresh ones; a difference "
        f"is shown in {shown} of {count(len(found), 'case')}",
        "mean time, one key / fresh",
        [(row, each["ratio"], each["ci95"]) for row, each in zip(figures.rows, found, strict=True)],
        "Above 1: writing, and reading, one key again and again takes longer. ",
        at=1.0,
    )


def _short(value: float) -> str:
    """Two digits, however great."""
    return f"{float(f'{value:.2g}'):g}"


def _bounds(row: Row) -> Interval | None:
    interval = row["mean_ci95_ms"]
    return None if interval is None else (interval[0], interval[1])


# -- drawing -----------------------------------------------------------------------------------


def _draw(answer: Answer, said: str, chart: _Chart) -> Figure:
    series = answer.figures.series
    drawn = dict.fromkeys((series_of(row), row["placement"]) for row, *_ in chart.dots)
    theirs = [one for one, _ in drawn if one.system == _PUBLISHED]
    looks = {**styles(series), **dict.fromkeys(theirs, _PUBLISHED_LOOK)}
    labels = series_labels(series)
    labels |= {one: f"{_PUBLISHED}: {display_system(one.version)}" for one in theirs}
    lines = [line for line in product((*series, *theirs), PLACEMENTS) if line in drawn]
    nodes = sorted({row["nodes"] or 0 for row, *_ in chart.dots})
    facets = []
    for place in product((READ, WRITE), nodes):
        here = [dot for dot in chart.dots if (dot[0]["operation"], dot[0]["nodes"] or 0) == place]
        if here:
            what = count(place[1], "node") if place[1] else ""
            facets.append(Facet(f"{place[0]}s", what, tuple(_marks(here, lines, looks))))
    words = Words(
        title=chart.title,
        subtitle=f"{answer.of}{said} · means of single requests, none at the same time; bars: 95 %",
        x_label="object size",
        caption=(
            f"{chart.reading}Lines stand a little beside each other.",
            *(
                [
                    "Published: stored estimates of another machine and of old versions, one key "
                    "written again and again. Ratios compare across machines, times do not."
                ]
                if theirs
                else []
            ),
            *([MEANING + " Open marks: remote."] if any(p == REMOTE for _, p in lines) else []),
        ),
    )
    ticks = {float(row["object_bytes"]): size(row["object_bytes"]) for row, *_ in chart.dots}
    legend = [(looks[one].at(p), with_placement(labels[one], p)) for one, p in lines]
    scale = Scale(ticks, chart.y_label, at=chart.at)
    return draw_facets(words, facets, scale, legend, columns=max(len(nodes), 2))


def _marks(
    dots: Sequence[Dot],
    lines: Sequence[tuple[Series, str]],
    looks: Mapping[Series, SeriesStyle],
) -> Iterator[Marks]:
    for number, (one, placement) in enumerate(lines):
        mine = [dot for dot in dots if (series_of(dot[0]), dot[0]["placement"]) == (one, placement)]
        mine.sort(key=lambda dot: int(dot[0]["object_bytes"]))
        beside = _BESIDE ** (number - (len(lines) - 1) / 2)
        if mine:
            yield Marks(
                looks[one].at(placement),
                [row["object_bytes"] * beside for row, *_ in mine],
                [y for _, y, _ in mine],
                [ci95 for *_, ci95 in mine],
                dashed=one.system == _PUBLISHED,
            )
