"""The timeline of a drill: every request, what was broken meanwhile, and what came back when.

A panel for each client's reads, writes and lists, one below another on one axis of time: a
mark a request at the instant it was due, as high as it took from then on. Below each panel a strip
shows which share of the requests sent in each short stretch was ok; above all of them stand the
faults, each on a line of its own and named beside it, where no line crosses its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator

from wanlat.analysis.charts import style
from wanlat.analysis.charts.frame import (
    WIDTH_IN,
    Words,
    dress,
    lateness_sentence,
    rtt_sentence,
    sheet,
)
from wanlat.analysis.charts.style import (
    ALARM,
    ALARMING,
    BODY_PT,
    FAINT,
    INK,
    QUIET,
    SHARES,
    SHARES_KEY,
    SHARES_NORM,
    SMALL_PT,
    TINY_PT,
    UNSENT_COLOUR,
    VERDICT,
    scale_of,
)
from wanlat.analysis.claims import due_of
from wanlat.analysis.figures.drill.read import Drill, Row, fault_label
from wanlat.analysis.names import count, shortened
from wanlat.analysis.report import drill as words
from wanlat.bundle.documents import NOT_SENT, Affected

# They differ in lightness and for every kind of colour-blindness; outcomes differ in shape as well.
OPERATION_COLOURS = {"read": "#004488", "write": "#b8741a", "list": "#3a8a8a"}
UNKNOWN_COLOUR, BACK_COLOUR, SLOW_COLOUR = "#6b3fa0", "#117755", "#9a9a9a"
AS_SHAPES = 2000
"""Up to so many requests each is an element of an SVG; more of them are a picture in it."""

# Light enough for marks to be seen on; None: an older bundle, which does not record it.
FAULT_COLOURS: Mapping[Affected | None, str] = {
    **{"links": "#c9d9ef", "processes": "#efcac4", "disks": "#ece0b4"},
    **{None: "#dcdcdc"},
}

_LINES_UP_TO = 0.76
"""Of a panel's height: above are the outages, with names that no line shall cross."""
_LANE_IN, _PANEL_IN, _STRIP_IN, _TIME_IN = 0.2, 1.15, 0.13, 0.02
_AROUND_IN = 0.42
"""What the words around a panel take: its client's name, the shares below its strip."""
_LONGEST_NAME = 36
_MOST_BINS, _DUE_A_BIN = 120, 2


@dataclass(frozen=True)
class Picture:
    """What a drill's panels have in common; instants are seconds since `during` began, `zero_s`.

    `phases` that were reached, with `begin` and `end`; `edges` of the strips' bins, from end to end
    of the axis of time; `limits_s`, the least latency, and the deadline or what took longest;
    `faults`: name, begin, end, colour and row; `marks`, of deaths and of the return to normal:
    name, instant, colour and marker.
    """

    drill: Drill
    zero_s: float
    phases: Sequence[Row]
    edges: Any
    limits_s: tuple[float, float]
    faults: Sequence[tuple[str, float, float, str, Row]]
    marks: Sequence[tuple[str, float, str, str]]

    def draw_instants(self, axes: Axes, up_to: float) -> None:
        """Lines where phases begin and where all was normal again, to a part of the height."""
        dashed: dict[str, Any] = {"linestyle": (0, (4, 2.5)), "linewidth": 0.9, "zorder": 1}
        for phase in self.phases[1:]:
            axes.axvline(phase["begin"], 0, up_to, color=QUIET, **dashed)
        for _, at, colour, _ in self.marks:
            if colour == BACK_COLOUR:
                axes.axvline(at, 0, up_to, color=colour, linewidth=1.1, linestyle=":")

    def label_phases(self, axes: Axes, texts: Sequence[str], size_pt: float, colour: str) -> None:
        """Write below or above `axes`, in the middle of each phase."""
        middles = [(phase["begin"] + phase["end"]) / 2 for phase in self.phases]
        axes.set_xticks(middles, texts, fontsize=size_pt, color=colour)
        axes.tick_params(axis="x", length=0, pad=2)


def picture_of(drill: Drill) -> Picture:
    """What the panels of `drill` have in common."""
    zero_s = float(drill["phases"][1]["begin_s"] or 0.0)
    phases = [
        {**phase, "begin": phase["begin_s"] - zero_s, "end": phase["end_s"] - zero_s}
        for phase in drill["phases"]
        if phase["begin_s"] is not None
    ]
    begin, end = phases[0]["begin"], max(phases[-1]["end"], phases[0]["begin"] + 1e-3)
    took_s = drill.requests["latency_ms"].pipe(lambda ms: ms[ms > 0]) / 1000
    high_s = max(took_s.max() if len(took_s) else 0.1, (drill["deadline_ms"] or 0.0) / 1000)
    low_s = min(took_s.min() / 2 if len(took_s) else 1e-3, high_s / 10)
    faults = []
    for fault in drill["faults"]:
        until = min(end, (fault["end_s"] or math.inf) - zero_s)
        colour = FAULT_COLOURS[fault["affects"]]
        faults.append((fault_label(fault), fault["begin_s"] - zero_s, until, colour, fault))
    marks = [
        (f"{death['node']} died", death["at_s"] - zero_s, ALARM, "X") for death in drill["deaths"]
    ]
    if back_s := drill["recovery_s"]:
        at = min(fault[1] for fault in faults) + back_s
        marks.append((f"back to normal, {words.seconds(back_s)}", at, BACK_COLOUR, "^"))
    elif drill["recovered"] is False:
        marks.append(("not back to normal", end, ALARM, "X"))
    marks = [mark for mark in marks if mark[1] <= end]
    edges = bin_edges(begin, end, (drill["interval_ms"] or 0.0) / 1000)
    return Picture(drill, zero_s, phases, edges, (low_s, high_s), faults, marks)


def draw(drill: Drill) -> Figure:
    """The timeline of `drill`, however far it got."""
    with style.applied():
        if drill.requests.empty:
            return _dressed(Figure(figsize=(WIDTH_IN, 0.1)), drill, [], [])
        picture = picture_of(drill)
        lanes = max(len(picture.faults) + len(picture.marks), 1)
        heights = [_LANE_IN * lanes, *[_PANEL_IN, _STRIP_IN] * len(drill.clients), _TIME_IN]
        height = sum(heights) + _AROUND_IN * len(drill.clients) + 0.6
        figure = sheet(WIDTH_IN, height)
        engine: Any = figure.get_layout_engine()
        engine.set(h_pad=0.02, hspace=0.0, w_pad=0.02)
        grid = figure.subplots(len(heights), 1, height_ratios=heights)
        for axes in grid:
            axes.set_xlim(picture.edges[0], picture.edges[-1])
            axes.patch.set_visible(False)
        _draw_lanes(grid[0], picture)
        for number, (client, operation, figures) in enumerate(drill.clients):
            panel, strip = grid[1 + 2 * number : 3 + 2 * number]
            panel.set_label(f"{client['client']}/{operation}")
            if not number or drill.clients[number - 1][0] is not client:
                where = f"{client['client']}: on {client['node']}, target {client['target']}"
                panel.set_title(where, loc="left", fontsize=BODY_PT)
            rows = drill.rows(client["client"], operation)
            _draw_panel(panel, picture, rows, figures["limit_ms"])
            _draw_strip(strip, picture, rows, figures["phases"])
        grid[-1].set_yticks([])
        grid[-1].spines["left"].set_visible(False)
        reached = drill["phases"][1]["begin_s"] is not None
        since = "the phase `during` began" if reached else "the drill began to measure"
        grid[-1].set_xlabel(f"seconds since {since}", fontsize=SMALL_PT)
        figure.align_ylabels(grid[1::2])
        _dressed(figure, drill, _keys(drill, grid), [*_caption(picture)])
        _shade(figure, picture, grid)
    return figure


def bin_edges(begin: float, end: float, interval: float) -> Any:
    """Edges of bins of a round width with a few requests in each; 0 is one, the ends are cut."""
    most = min(_MOST_BINS, (end - begin) / (_DUE_A_BIN * interval) if interval else math.inf)
    locator = MaxNLocator(max(1, int(most)), steps=[1, 2, 5, 10])
    return np.unique(np.clip([0.0, *locator.tick_values(begin, end)], begin, end))


def shares_by_bin(due: Any, outcomes: Any, edges: Any) -> Any:
    """Share that was ok of what was due in each bin, shape (n,).

    NaN where this machine sent none of it, -1 where nothing was due.
    """
    ok, tried, every = (
        np.histogram(due.to_numpy()[which], edges)[0]
        for which in (outcomes == "ok", outcomes != NOT_SENT, ...)
    )
    with np.errstate(invalid="ignore"):
        return np.where(every > 0, ok / tried, -1.0)


def _draw_lanes(axes: Axes, picture: Picture) -> None:
    """What was broken, and what came of it: a line each, its name to the left of the plot."""
    axes.set_label("lanes")
    names = [name for name, *_ in picture.faults] + [name for name, *_ in picture.marks]
    names = names or ["nothing was injected"]
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [_short(name) for name in names], fontsize=SMALL_PT)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.spines[:].set_visible(False)
    axes.xaxis.tick_top()
    picture.label_phases(axes, [phase["name"] for phase in picture.phases], BODY_PT, INK)
    picture.draw_instants(axes, 1.0)
    end: dict[str, Any] = {"markersize": 6, "clip_on": False}
    for y, (_, begin, until, colour, fault) in enumerate(picture.faults):
        axes.barh(y, max(until - begin, 0.0), 0.66, left=begin, color=colour, ec=INK, lw=0.7)
        struck = [at_s - picture.zero_s for at_s in fault["occurrences"]]
        axes.vlines(struck, y - 0.33, y + 0.33, color=INK, linewidth=1.2)
        if fault["end_s"] is None:  # it has no end that anybody saw, so the bar is given none
            axes.plot([until], [y], marker=">", color=INK, **end)
    for y, (_, at, colour, marker) in enumerate(picture.marks, start=len(picture.faults)):
        axes.plot([at], [y], marker=marker, color=colour, **end)
        axes.get_yticklabels()[y].set_color(colour)


def _draw_panel(axes: Axes, picture: Picture, rows: Any, limit_ms: float | None) -> None:
    """One client's reads, writes or lists: the requests, and above them the outages."""
    drill, (low_s, high_s) = picture.drill, picture.limits_s
    operation = rows["operation"].iloc[0]
    deadline_s = (drill["deadline_ms"] or high_s * 1000) / 1000
    axes.set_yscale("log")
    axes.set_ylim(low_s, low_s * (high_s * 1.15 / low_s) ** (1 / _LINES_UP_TO))
    ticks_s = [s for s in LogLocator(numticks=20).tick_values(low_s, high_s) if low_s < s <= high_s]
    axes.set_yticks(ticks_s, [EngFormatter("s")(s) for s in ticks_s])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks([])
    axes.tick_params(axis="y", length=2.5, labelsize=TINY_PT, labelcolor=QUIET, color=QUIET)
    colour = OPERATION_COLOURS[operation]
    axes.set_ylabel(f"{operation}s", color=colour, fontweight="bold", fontsize=SMALL_PT)
    axes.hlines(ticks_s, *axes.get_xlim(), color=FAINT, linewidth=0.5, zorder=0)
    for at_s, dashes in ((deadline_s, "-"), ((limit_ms or 0.0) / 1000, ":")):
        if low_s < at_s <= high_s:
            axes.axhline(at_s, color=QUIET, linestyle=dashes, linewidth=0.8, zorder=1)
    picture.draw_instants(axes, _LINES_UP_TO)
    # One that has no latency waited until its deadline was over.
    took_s = (rows["latency_ms"] / 1000).clip(lower=low_s).fillna(high_s)
    took_s = took_s.where(rows["sent"], deadline_s)
    crowding = min(1.6, max(0.3, math.sqrt(160 / len(rows))))
    looks: dict[str, dict[str, Any]] = {
        "not sent": {"marker": 3, "s": 26, "color": QUIET, "lw": 0.7},
        "expired": {"marker": 2, "s": 26, "color": QUIET, "lw": 0.7},
        f"{operation}s ok": {"marker": "o", "s": 11 * crowding, "color": colour, "lw": 0},
        "unknown": {"marker": "D", "s": 15 * crowding, "fc": "white", "ec": UNKNOWN_COLOUR},
        "fail": {"marker": "x", "s": 16 * crowding, "color": ALARM, "lw": 0.9},
    }
    for zorder, (kind, look) in enumerate(looks.items(), start=2):
        chosen = kinds_of(rows) == kind
        if chosen.any():
            look |= {"zorder": zorder, "label": kind, "gid": kind, "clip_on": False}
            dots = axes.scatter(rows["due_s"][chosen] - picture.zero_s, took_s[chosen], **look)
            dots.set_rasterized(len(drill.requests) > AS_SHAPES)
    for name, key, colour in (("slow", "slow", SLOW_COLOUR), ("outage", "outages", INK)):
        for outage in drill[key]:
            if (outage["client"], operation) == (rows["client"].iloc[0], outage["operation"]):
                _draw_outage(axes, picture, outage, name, colour)


def _draw_outage(axes: Axes, picture: Picture, outage: Row, name: str, colour: str) -> None:
    """A bar above the latencies; the longest outage of all is named."""
    ends = axes.get_xlim()
    begin, end = np.clip(np.array([outage["begin_s"], outage["end_s"]]) - picture.zero_s, *ends)
    bar: dict[str, Any] = {"color": colour, "transform": axes.get_xaxis_transform()}
    axes.plot([begin, end], [0.83] * 2, label=name, lw=2.4, solid_capstyle="butt", **bar)
    if not outage["ended"]:
        axes.plot([end], [0.83], marker=">", markersize=5, clip_on=False, **bar)
    if outage == picture.drill.longest_outage:
        middle = np.clip((begin + end) / 2, *np.quantile(ends, [0.12, 0.88]))
        text = f"longest outage, {words.length_of(outage)}"
        axes.text(middle, 0.88, text, fontsize=SMALL_PT, ha="center", va="bottom", **bar)


def _draw_strip(axes: Axes, picture: Picture, rows: Any, phases: Row) -> None:
    """The share that was ok of what was due in each bin, and below it that of each phase."""
    axes.set_yticks([])
    axes.spines[:].set(visible=True, color=QUIET, linewidth=0.5)
    due = rows["due_s"] - picture.zero_s
    shares = shares_by_bin(due, rows["outcome"], picture.edges)
    axes.pcolormesh(picture.edges, [0, 1], [shares], cmap=SHARES, norm=SHARES_NORM)
    texts = []
    for figures in (phases[phase["name"]] for phase in picture.phases):
        text = f"{words.percent(figures['availability'])} of {due_of(figures)} ok"
        text += f"\n{figures['expired']} expired" if figures["expired"] else ""
        text += f"\n{figures['not_sent']} not sent" if figures["not_sent"] else ""
        texts.append(text if figures["attempted"] else "")
    picture.label_phases(axes, texts, TINY_PT, QUIET)


def _shade(figure: Figure, picture: Picture, grid: Sequence[Axes]) -> None:
    """Shade what was broken, from its line down through all panels."""
    top, bottom = grid[0].get_position(), grid[-1].get_position()
    ground = figure.add_axes((top.x0, bottom.y0, top.width, top.y1 - bottom.y0), label="ground")
    ground.set(xlim=grid[0].get_xlim(), xticks=[], yticks=[], zorder=-1)
    ground.set_axis_off()
    for _, begin, end, colour, _ in picture.faults:
        ground.axvspan(begin, end, facecolor=colour, alpha=0.38, linewidth=0)


def _dressed(
    figure: Figure, drill: Drill, keys: Sequence[tuple[Any, str]], caption: Sequence[str]
) -> Figure:
    broken = any(claim["verdict"] == "does not hold" for claim in drill["claims"])
    sentences = [
        (words.ending(drill), True),
        (words.durability_sentence(drill), drill["durability"]["verdict"] == "fail"),
        (words.outage_sentence(drill), drill["recovered"] is False),
        (words.claims_sentence(drill["claims"]), broken),
    ]
    every_ms, deadline_ms = drill["interval_ms"], drill["deadline_ms"]
    parts = [
        drill["description"].strip().rstrip("."),
        f"on {drill['topology']}",
        every_ms and f"one request of each kind and client every {every_ms:g} ms",
        deadline_ms and f"deadline {deadline_ms / 1000:g} s",
        f"times × {drill['scale']:g}" if drill["scale"] != 1 else "",
    ]
    late = lateness_sentence(drill.bundle)  # of what was sent before the faults
    lines = (*caption, rtt_sentence(drill.bundle, lines=False), *([late] if late else []))
    subtitle = " · ".join(part for part in parts if part)
    verdicts = [(text, ALARMING if alarming else VERDICT) for text, alarming in sentences if text]
    around = Words(words.finding(drill), subtitle, caption=lines)
    return dress(figure, around, keys=keys, verdicts=verdicts)


def kinds_of(rows: Any) -> Any:
    """What each request is in the legend."""
    kinds = rows["outcome"].where(rows["outcome"] != "ok", rows["operation"] + "s ok")
    kinds = kinds.where(rows["sent"], "expired")
    return kinds.where(rows["outcome"] != NOT_SENT, "not sent")


def _keys(drill: Drill, grid: Sequence[Axes]) -> list[tuple[Any, str]]:
    """An entry for each kind of mark that was drawn, with how many there are of it."""
    drawn: dict[str, Any] = {}
    for axes in grid:
        drawn |= {
            name: artist for artist, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
    counts = kinds_of(drill.requests).value_counts()
    texts = {name: f"{name}: {counts[name]}" if name in counts else name for name in drawn}
    are_ours = drill.requests["outcome"] == NOT_SENT
    none_sent = [scale_of([UNSENT_COLOUR], "none sent")] if are_ours.any() else []
    affected = {fault["affects"] for fault in drill["faults"]}
    return [
        *((drawn[name], texts[name]) for name in sorted(drawn)),
        SHARES_KEY,
        *none_sent,
        *(
            scale_of([colour], f"fault of {affects}" if affects else "fault")
            for affects, colour in FAULT_COLOURS.items()
            if affects in affected
        ),
    ]


def _caption(picture: Picture) -> Iterator[str]:
    """How to read a timeline, and what stands in no other place on it; paragraphs."""
    drill = picture.drill
    width_s = float(np.median(np.diff(picture.edges)))
    yield (
        f"{count(len(drill.requests), 'request')}, each a mark where it was due, as high as it "
        "took from then on, waiting for its turn included: a stall is a falling ramp. Solid line: "
        "the deadline. Dotted: an answer that takes longer counts as an outage. Strips: share that "
        "was ok of what was due (without what this machine could not send), in bins of "
        f"{width_s:g} s by due time, white where nothing was due. Shaded: a fault in force, "
        "coloured by what it hits, named at the top; ticks in its bar: single occurrences."
    )
    names = [name for name, *_ in picture.faults]
    full = [name for name in names if name != _short(name)]
    full += shortened([drill.series], drill.bundle.titles)
    if full:
        yield f"In full: {'; '.join(full)}."


def _short(name: str) -> str:
    return shorten(name, _LONGEST_NAME, placeholder=" …")
