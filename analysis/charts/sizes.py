"""The charts of object sizes: time, ratio between systems, throughput, and what one key changes.

A row of panels is an operation, a column a number of nodes, a line a system. Sizes stand in even
steps, because three of them differ by a kibibyte; lines stand a little beside each other, so that
no interval hides another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from matplotlib.figure import Figure

from wanlat.analysis import ratios
from wanlat.analysis.bundle import Series
from wanlat.analysis.charts.legend import LegendEntry
from wanlat.analysis.charts.lines import Line, LinePanel, XAxis, YAxis, draw_lines
from wanlat.analysis.charts.panels import Panel
from wanlat.analysis.charts.rows import Words
from wanlat.analysis.charts.style import SeriesStyle, styles
from wanlat.analysis.criterion import StoredEstimate, stored_estimates
from wanlat.analysis.names import count, display_system, row_labels, series_labels, shortened
from wanlat.analysis.placement import (
    LOCAL,
    MEANING,
    PLACEMENTS,
    REMOTE,
    UNKNOWN,
    with_placement,
)
from wanlat.analysis.sizes import FRESH, ONE, READ, WRITE, At, Entry, Sizes, seed_for
from wanlat.analysis.sizes_table import format_size
from wanlat.analysis.statistics import Interval

_MIB = 2**20
_BASES = ("bob", "quorum", "garage", "minio")
"""Of the systems that were measured the first of these is what the others are divided by."""
_PUBLISHED_LOOK = SeriesStyle("#8a8a8a", "", "X")
_BESIDE = 0.07
"""How far lines stand beside each other, in steps between sizes."""


@dataclass(frozen=True)
class _Dot:
    """One mark. `series` None: of the published figures."""

    series: Series | None
    at: At
    y: float
    ci95: Interval | None


@dataclass(frozen=True)
class _Saying:
    """What a chart is of: its title begins so; how it is read; what was the same everywhere."""

    what: str
    reading: str = ""
    fixed: str = ""


def charts_of(sizes: Sizes) -> dict[str, Figure]:
    """The charts by the stems of their files.

    Fresh keys, one key and each combination of further parameters have charts of their own.
    """
    charts: dict[str, Figure] = {}
    for others, keys in dict.fromkeys((e.at.others, e.at.keys) for e in sizes.entries):
        mine = [e for e in sizes.entries if (e.at.others, e.at.keys) == (others, keys)]
        behind = _behind(others) + ("-one-key" if keys == ONE else "")
        said = [*(f"{name} {value}" for name, value in others), *_said(keys)]
        saying = _Saying("", fixed=", ".join(said))
        charts[f"sizes-time{behind}"] = _draw(
            sizes, _times(mine), YAxis("mean time per request, ms"), replace(saying, what="Time")
        )
        if (base := _base(mine)) is not None:
            name = display_system(base.system)
            charts[f"sizes-ratio{behind}"] = _draw(
                sizes,
                [*_ratios(mine, base, sizes.seed), *_published(mine, base)],
                YAxis(f"mean time / {name}'s", at=1.0),
                replace(saying, what="Ratio", reading=_reading(name, mine, base)),
            )
        charts[f"sizes-throughput{behind}"] = _draw(
            sizes,
            _throughputs(mine),
            YAxis("throughput, MiB/s"),
            replace(saying, what="Throughput"),
        )
    return charts | _one_key(sizes)


def _one_key(sizes: Sizes) -> dict[str, Figure]:
    """Times of one key divided by those of fresh ones."""
    charts = {}
    for others in dict.fromkeys(each.at.others for each in sizes.keys):
        dots = [
            _Dot(each.series, each.at, each.of_means.estimate, each.of_means.ci95)
            for each in sizes.keys
            if each.at.others == others
        ]
        saying = _Saying(
            "One key against fresh ones",
            "Above 1: writing, and reading, one key again and again takes longer. ",
            ", ".join(f"{name} {value}" for name, value in others),
        )
        y = YAxis("mean time, one key / fresh", at=1.0)
        charts[f"sizes-keys{_behind(others)}"] = _draw(sizes, dots, y, saying)
    return charts


def _times(entries: Iterable[Entry]) -> list[_Dot]:
    return [_Dot(e.series, e.at, e.latency.mean_ms, e.latency.mean_ci95_ms) for e in entries]


def _throughputs(entries: Iterable[Entry]) -> list[_Dot]:
    dots = []
    for entry in entries:
        ci95, mib = entry.latency.mean_ci95_ms, entry.at.object_bytes / _MIB
        interval = None if ci95 is None else (mib * 1e3 / ci95[1], mib * 1e3 / ci95[0])
        dots.append(_Dot(entry.series, entry.at, entry.rate.bytes_per_s / _MIB, interval))
    return dots


def _base(entries: Sequence[Entry]) -> Series | None:
    """What others are divided by; None where there are no others."""
    series = list(dict.fromkeys(entry.series for entry in entries))
    if len(series) < 2:
        return None
    ranks = {name: rank for rank, name in enumerate(_BASES)}
    return min(series, key=lambda one: ranks.get(one.system, len(ranks)))


def _ratios(entries: Sequence[Entry], base: Series, seed: int) -> list[_Dot]:
    """Every mean but the base's, divided by that of the base in the same place.

    Where the base tells its placement and the other does not, its remote keys are the ones that
    may have cost the other one as much; where it has none of those, its local ones.
    """
    dots = []
    for entry in entries:
        order = (entry.at.placement, REMOTE, LOCAL, UNKNOWN)
        found = [
            each
            for placement in dict.fromkeys(order)
            for each in entries
            if each.series == base and each.at == replace(entry.at, placement=placement)
        ]
        if entry.series == base or not found:
            continue
        seeds = seed_for(seed, "ratio", entry.series, base, entry.at)
        ratio = ratios.of_means(entry.values_ms, found[0].values_ms, seeds)
        dots.append(_Dot(entry.series, entry.at, ratio.estimate, ratio.ci95))
    return dots


def _published(entries: Sequence[Entry], base: Series) -> list[_Dot]:
    """The published MinIO against Bob, of the sizes and nodes that were measured here too."""
    if base.system != "bob":
        return []
    stored = {(e.system, e.nodes, e.operation, e.object_bytes): e for e in stored_estimates()}
    dots = []
    for nodes, operation, size in dict.fromkeys(
        (e.at.nodes, e.at.operation, e.at.object_bytes) for e in entries
    ):
        pair = [stored.get((name, nodes or 0, operation, size)) for name in ("minio", "bob")]
        if pair[0] and pair[1]:
            ratio = ratios.of_estimates(_mean(pair[0]), _mean(pair[1]))
            at = At(nodes, operation, size, FRESH, UNKNOWN)
            dots.append(_Dot(None, at, ratio.estimate, ratio.ci95))
    return dots


def _mean(stored: StoredEstimate) -> ratios.Estimate:
    return stored.mean_ms, stored.mean_ci95_ms


def _reading(name: str, entries: Sequence[Entry], base: Series) -> str:
    placed = {entry.at.placement for entry in entries if entry.series == base}
    remote = " Its remote keys are the measure where it has some. " if REMOTE in placed else " "
    return f"Above 1: {name} is faster.{remote}"


def _draw(sizes: Sizes, dots: Sequence[_Dot], y: YAxis, saying: _Saying) -> Figure:
    present = sorted({dot.at.object_bytes for dot in dots})
    steps = tuple((float(number), format_size(size)) for number, size in enumerate(present))
    x = XAxis("object size", steps, beside=4 * _BESIDE)
    nodes = sorted({dot.at.nodes or 0 for dot in dots})
    cells: list[list[LinePanel | None]] = []
    for operation in (READ, WRITE):
        if not any(dot.at.operation == operation for dot in dots):
            continue
        row: list[LinePanel | None] = []
        for number in nodes:
            mine = [d for d in dots if d.at.operation == operation and (d.at.nodes or 0) == number]
            head = Panel(f"{operation}s", count(number, "node") if number else "")
            row.append(LinePanel(head, _lines(sizes, mine, present)) if mine else None)
        cells.append(row)
    return draw_lines(_words(sizes, dots, saying), cells, x, y)


def _lines(sizes: Sizes, dots: Sequence[_Dot], present: Sequence[int]) -> tuple[Line, ...]:
    looks = styles(sizes.series)
    of_line: dict[tuple[Series | None, str], list[_Dot]] = {}
    for series, placement in product((None, *sizes.series), PLACEMENTS):
        mine = [d for d in dots if d.series == series and d.at.placement == placement]
        if mine:
            of_line[series, placement] = sorted(mine, key=lambda dot: dot.at.object_bytes)
    lines = []
    for number, ((series, placement), mine) in enumerate(of_line.items()):
        beside = _BESIDE * (number - (len(of_line) - 1) / 2)
        lines.append(
            Line(
                _PUBLISHED_LOOK if series is None else looks[series].at(placement),
                tuple(present.index(dot.at.object_bytes) + beside for dot in mine),
                tuple(dot.y for dot in mine),
                tuple(dot.ci95 for dot in mine),
                dashed=series is None,
            )
        )
    return tuple(lines)


def _words(sizes: Sizes, dots: Sequence[_Dot], saying: _Saying) -> Words:
    labels, looks = series_labels(sizes.series), styles(sizes.series)
    drawn = {(dot.series, dot.at.placement) for dot in dots}
    legend = [
        LegendEntry(looks[one].at(placement), with_placement(labels[one], placement))
        for one, placement in product(sizes.series, PLACEMENTS)
        if (one, placement) in drawn
    ]
    is_beside_published = any(dot.series is None for dot in dots)
    if is_beside_published:
        legend.append(LegendEntry(_PUBLISHED_LOOK, "published: MinIO behind nginx"))
    full = shortened([one for one in sizes.series if any(one == series for series, _ in drawn)])
    caption = [
        f"{saying.reading}Marks are of the mean of single requests, none at the same time; bars "
        "are 95 % intervals. Sizes stand in even steps.",
        *(
            [
                "Published: stored estimates of another machine and of old versions, one key "
                "written again and again. Ratios compare across machines, times do not."
            ]
            if is_beside_published
            else []
        ),
        *([MEANING + " Open marks: remote."] if any(p == REMOTE for _, p in drawn) else []),
        *(["In full: " + "; ".join(full) + "."] if full else []),
    ]
    fixed = f", {saying.fixed}" if saying.fixed else ""
    return Words(
        title=f"{saying.what} by object size: {sizes.study} on {sizes.topology}{fixed}",
        subtitle=", ".join(row_labels(sizes.series)[one] for one in sizes.series),
        headers=(),
        x_label="object size",
        caption=tuple(caption),
        legend=tuple(legend),
    )


def _said(keys: str) -> list[str]:
    return ["one key"] if keys == ONE else []


def _behind(others: Sequence[tuple[str, str]]) -> str:
    return "".join(f"-{_plain(name)}-{_plain(value)}" for name, value in others)


def _plain(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._" else "-" for c in text).strip("-")
