"""The sequence diagram of one request: nodes as lanes, time downwards, an arrow a message.

An arrow leads from the instant at which a message entered a WAN link to the one at which it left
it. What the answer waited for, the critical path, is thick and numbered. Where there are more than
`MOST_ARROWS`, what is not the request's is left out, and what stands for itself has no label.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Polygon
from matplotlib.path import Path as Line
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator, MultipleLocator
from matplotlib.transforms import offset_copy

from wanlat.analysis import trace_words as words
from wanlat.analysis.charts import style
from wanlat.analysis.charts.frame import Words, dress, sheet
from wanlat.analysis.charts.style import (
    ALARM,
    BODY_PT,
    FAINT,
    INK,
    QUIET,
    SMALL_PT,
    SUBTITLE,
    TINY_PT,
    applied,
)
from wanlat.analysis.endpoints import is_known
from wanlat.analysis.files import replace_text
from wanlat.analysis.groups import Group
from wanlat.analysis.names import format_ms
from wanlat.analysis.trace import Trace, traces_of
from wanlat.analysis.trace_messages import BACKGROUND, OTHER, REQUEST, Row
from wanlat.bundle.beneath import file_name
from wanlat.bundle.run import Run

PATH = "#d55e00"
"""Vermillion of Okabe and Ito's palette, and its blue: distinct to everybody's eyes."""
MOST_ARROWS = 60

_PATH_LOOK: dict[str, Any] = {"color": PATH, "lw": 2.4, "ls": "-", "zorder": 3}
_LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    REQUEST: ("of the request", {"color": "#5c93c4", "lw": 1.1, "ls": "-", "zorder": 2.5}),
    BACKGROUND: ("background", {"color": "#9a9a9a", "lw": 0.9, "ls": "--", "zorder": 2}),
    OTHER: ("unrelated traffic", {"color": "#9a9a9a", "lw": 0.9, "ls": ":", "zorder": 2}),
}
_ALL_LANES = 8
"""Of more nodes, those without a message have no lane."""
_AFTER = "#f1f1f1"
_LANES_WIDE_IN, _GAP_IN, _MARGIN_IN = 8.6, (1.25, 2.3), 1.5
_RTT_IN, _HEIGHT_IN, _ABOVE_IN = 1.75, (3.0, 30.0), 0.34
_AXES_IN = (2.7, 0.8)
"""What stands beside the lanes and above them."""
_LABEL_PT, _LINE_PT, _LONGEST_LABEL = 6.5, 8.3, 18
_TOGETHER_IN, _OFF_LANE_PT = 0.11, 5.8
"""Messages that leave a node within so much of each other share a label; it stands so far off."""
_STRONG: dict[str, Any] = {"color": PATH, "fontweight": "bold"}
_BEHIND: dict[str, Any] = {"boxstyle": "square,pad=0.02", "facecolor": "white", "lw": 0}
_BAND_PART = 0.06
"""Of the time on the link: what takes longer than this to enter is drawn as a band."""


def draw(trace: Trace) -> Figure:
    """The sequence diagram of `trace`."""
    with applied():
        return _Picture(trace).figure


def write_trace(trace: Trace, stem: Path) -> list[Path]:
    """Write `stem`.svg, `stem`.png and `stem`.json, and return the three; only the last of a
    request that crossed no WAN link.

    Raises BundleError where they cannot be written.
    """
    pictures = style.save(draw(trace), stem) if trace["chain"] else []
    document = stem.with_name(f"{stem.name}.json")
    replace_text(document, json.dumps(trace, indent=2, ensure_ascii=False) + "\n")
    return [*sorted(pictures, reverse=True), document]


def charts_of(bundle: Run, groups: Sequence[Group]) -> dict[str, Figure]:
    """The diagrams of the typical requests of `groups` that cross WAN links, by their files' stem.

    Of a group that the packet record has no request of there is none.
    """
    traces = [trace for trace in traces_of(bundle, groups) if trace["chain"]]
    return {stem(trace): draw(trace) for trace in traces}


def stem(trace: Trace) -> str:
    """The name of its files among a bundle's charts: "trace-quorum-Get-local"."""
    placement = trace["placement"]
    known = (placement,) if is_known(placement) else ()
    return "-".join(("trace", *map(file_name, (trace["system"], trace["endpoint"], *known))))


class _Picture:
    """The diagram being drawn: x counts lanes, y is milliseconds since the request's start."""

    def __init__(self, trace: Trace) -> None:
        self.trace, messages = trace, trace["messages"]
        is_summary = len(messages) > MOST_ARROWS
        self.shown = [m for m in messages if m["kind"] == REQUEST or not is_summary]
        used = {trace["client"], trace["target"]}
        used |= {m[end] for m in self.shown for end in ("from", "to")}
        is_few = len(trace["nodes"]) <= _ALL_LANES
        self.nodes = [lane for lane in trace["nodes"] if is_few or lane["node"] in used]
        self.lanes = {lane["node"]: place for place, lane in enumerate(self.nodes)}
        rtt_ms, latency_ms = trace["measured_rtt_ms"] or 0.0, trace["latency_ms"]
        self.unit_ms = rtt_ms if rtt_ms >= 1 else latency_ms / 2
        until_ms = [m["departure_ms"] or 0.0 for m in self.shown if m["kind"] == REQUEST]
        span_ms = max([latency_ms, *until_ms]) * 1.02
        plot_in = min(max(span_ms / self.unit_ms * _RTT_IN, _HEIGHT_IN[0]), _HEIGHT_IN[1])
        self.ms_per_in = span_ms / plot_in
        self.figure, self.axes = self._axes(span_ms)
        self._draw_ground()
        beside = [*self._draw_lanes(), *self._draw_hops()]
        for message in self.shown:
            self._draw_message(message)
        ends = self._draw_ends()
        # Labels find their places when everything else has its own.
        self.figure.draw_without_rendering()
        groups = self._groups()
        if is_summary:
            groups = [group for group in groups if len(group) > 1 or group[0]["on_chain"]]
        caption = words.caption(
            trace,
            unlabelled=self._draw_labels(groups, ends),
            unshown_lanes=len(trace["nodes"]) - len(self.nodes),
            undrawn=len(messages) - len(self.shown),
        )
        # matplotlib measures everything three times over; what lies inside the plot needs none.
        for artist in (*self.axes.patches, *self.axes.texts, *self.axes.lines):
            artist.set_in_layout(artist in beside)
        heads = Words(words.title(trace), words.subtitle(trace), caption=tuple(caption))
        picked = [(words.picked(trace), SUBTITLE)]
        dress(self.figure, heads, keys=self._keys(), verdicts=picked)

    def _axes(self, span_ms: float) -> tuple[Figure, Axes]:
        """Lanes side by side, with room for the labels beside the first and the last one."""
        last = len(self.lanes) - 1
        gap_in = min(max(_LANES_WIDE_IN / max(last, 1), _GAP_IN[0]), _GAP_IN[1])
        top_ms = _ABOVE_IN * self.ms_per_in
        bottom_ms = max(span_ms, self.trace["latency_ms"] + 0.45 * self.ms_per_in)
        width_in = last * gap_in + 2 * _MARGIN_IN + _AXES_IN[0]
        figure = sheet(width_in, (bottom_ms + top_ms) / self.ms_per_in + _AXES_IN[1])
        axes = figure.add_subplot()
        axes.set_xlim(-_MARGIN_IN / gap_in, last + _MARGIN_IN / gap_in)
        axes.set_ylim(bottom_ms, -top_ms)
        return figure, axes

    def _write(self, text: str, at: Any, offset_pt: tuple[float, float], **look: Any) -> Annotation:
        """Set a text so many points from a place (lane, milliseconds, unless `look` has others)."""
        look = {"textcoords": "offset points", "fontsize": _LABEL_PT, "va": "center", **look}
        return self.axes.annotate(text, at, xytext=offset_pt, **look)

    def _draw_ground(self) -> None:
        """Time on the left, in RTTs on the right, and the time after the answer."""
        axes, trace, rtt_ms = self.axes, self.trace, self.unit_ms
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.axhspan(trace["latency_ms"], axes.get_ylim()[0], color=_AFTER, lw=0, zorder=0)
        axes.yaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 2.5, 5, 10]))
        axes.tick_params(axis="y", length=2, labelsize=SMALL_PT, colors=QUIET)
        axes.set_ylabel("ms since the request was sent", fontsize=SMALL_PT, color=QUIET)
        if not trace["measured_rtt_ms"]:
            return
        half = 0.5 if rtt_ms / self.ms_per_in > 0.8 else max(1, round(self.ms_per_in / rtt_ms))
        functions = (lambda ms: ms / rtt_ms, lambda trips: trips * rtt_ms)
        right = axes.secondary_yaxis("right", functions=functions)
        right.yaxis.set_major_locator(MultipleLocator(half))
        right.spines["right"].set_visible(False)
        right.tick_params(length=0, labelsize=TINY_PT, labelcolor=QUIET)
        right.set_ylabel("RTTs", fontsize=TINY_PT, color=QUIET)
        for number in range(int(axes.get_ylim()[0] / (half * rtt_ms)) + 1):
            axes.axhline(number * half * rtt_ms, color=FAINT, lw=0.7, zorder=0.5)

    def _draw_lanes(self) -> list[Artist]:
        """The nodes, and their sites above them; returns what stands beside the plot."""
        axes, trace = self.axes, self.trace
        names = [f"{n}\nclient" if n == trace["client"] else n for n in self.lanes]
        axes.set_xticks(range(len(names)), names, fontsize=SMALL_PT, va="bottom")
        axes.xaxis.tick_top()
        axes.tick_params(axis="x", length=0)
        for x in self.lanes.values():
            axes.axvline(x, color=QUIET, lw=0.8, zorder=1)
        # The target node is at work from the request to the answer.
        ends = [self.lanes[trace["target"]] + off for off in (-0.02, 0.02)]
        box: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "lw": 0.8, "zorder": 1.5}
        axes.fill_between(ends, 0, trace["latency_ms"], **box)
        above = offset_copy(
            axes.get_xaxis_transform(), self.figure, y=3.6 * SMALL_PT, units="points"
        )
        beside: list[Artist] = []
        for site, members in groupby(self.nodes, key=lambda lane: lane["site"]):
            xs = [self.lanes[lane["node"]] for lane in members]
            low, high = min(xs) - 0.3, max(xs) + 0.3
            line: dict[str, Any] = {"color": QUIET, "lw": 1.2, "transform": above, "clip_on": False}
            beside += axes.plot([low, high], [1, 1], **line)
            look = {"ha": "center", "va": "bottom", "fontsize": BODY_PT, "fontweight": "bold"}
            beside.append(self._write(site, ((low + high) / 2, 1), (0, 3), xycoords=above, **look))
        return beside

    def _ends(self, message: Row) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where the arrow of a message begins and ends; what never arrived ends halfway."""
        source, target = self.lanes[message["from"]], self.lanes[message["to"]]
        entered, left = message["last_entry_ms"], message["departure_ms"]
        if left is None:
            return (source, entered), ((source + target) / 2, entered + self.unit_ms / 4)
        return (source, entered), (target, left)

    def _draw_message(self, message: Row) -> None:
        """The arrow; a band where it took long to enter, a cross where it was lost."""
        look = _PATH_LOOK if message["on_chain"] else _LOOKS[message["kind"]][1]
        (source, entered), (target, left) = begin, end = self._ends(message)
        first_in, first_out = message["entry_ms"], message["first_departure_ms"]
        if first_out is not None and entered - first_in > _BAND_PART * (left - entered):
            corners = [begin, (source, first_in), (target, first_out), end]
            band = Polygon(corners, facecolor=look["color"], alpha=0.18, lw=0, zorder=1.8)
            self.axes.add_patch(band)
        is_lost = message["departure_ms"] is None
        head: dict[str, Any] = {"arrowstyle": "-" if is_lost else "-|>", "shrinkA": 0, "shrinkB": 0}
        size = 9 if message["on_chain"] else 6
        arrow = FancyArrowPatch(begin, end, mutation_scale=size, **head, **look)
        arrow.set_gid(f"message-{self.trace['messages'].index(message) + 1}")
        self.axes.add_patch(arrow)
        if is_lost:
            self.axes.plot(*end, marker="X", markersize=7, color=ALARM, mec="white", zorder=6)
            self._write(message["fate"].replace("_", " "), end, (6, 0), color=ALARM)
        if message["on_chain"]:
            middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
            badge = {"boxstyle": "circle,pad=0.2", "facecolor": PATH, "edgecolor": "white"}
            look = {"fontsize": TINY_PT, "fontweight": "bold", "color": "white", "ha": "center"}
            number = str(message["on_chain"])
            self._write(number, middle, (0, 0), bbox=badge | {"lw": 0.8}, zorder=7, **look)

    def _draw_ends(self) -> list[Annotation]:
        """The lines at which the request was sent and answered; returns the words on them."""
        axes, latency_ms = self.axes, self.trace["latency_ms"]
        next_ms = self.trace["next_request_ms"]
        axes.axhline(0, color=INK, lw=0.8, ls=(0, (4, 2)), zorder=1.2)
        axes.axhline(latency_ms, color=INK, lw=1.4, zorder=4)
        texts = [(latency_ms, f"answered after {format_ms(latency_ms)} ms", "bold")]
        after_ms = latency_ms + 0.3 * self.ms_per_in
        if next_ms is not None and after_ms < next_ms < axes.get_ylim()[0]:
            axes.axhline(next_ms, color=QUIET, lw=0.8, ls=":", zorder=4)
            texts.append((next_ms, "the next request is sent", "normal"))
        look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "top"}
        look |= {"fontsize": SMALL_PT, "zorder": 6, "bbox": _BEHIND | {"facecolor": _AFTER}}
        return [
            self._write(text, (1, at), (-4, -3), fontweight=how, **look) for at, text, how in texts
        ]

    def _draw_hops(self) -> list[Artist]:
        """The critical path hop by hop, each beside the arrow that it is; if there is room."""
        written: list[Artist] = []
        look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "top"}
        hops = words.hop_texts(self.trace)
        longest = max((rest.count("\n") + 2.5 for _, _, rest in hops), default=0) * _LINE_PT
        if longest * len(hops) <= 72 * self.trace["latency_ms"] / self.ms_per_in:
            for at_ms, which, rest in hops:
                written.append(self._write(which, (1, at_ms), (44, 0), **_STRONG, **look))
                written.append(self._write(rest, (1, at_ms), (44, -_LINE_PT), **look))
        return written

    def _groups(self) -> list[list[Row]]:
        """The messages that share a label: alike, from one node to one side, at about one time.

        What matters most comes first: the critical path's, then the request's, then all else.
        """
        groups: list[list[Row]] = []
        latest: dict[object, list[Row]] = {}
        within_ms = _TOGETHER_IN * self.ms_per_in
        for one in sorted(self.shown, key=lambda m: float(m["entry_ms"])):
            is_right = self.lanes[one["to"]] > self.lanes[one["from"]]
            alike = (one["from"], is_right, _what(one), one["kind"] == REQUEST)
            group = latest.get(alike)
            if group and one["entry_ms"] - group[0]["entry_ms"] <= within_ms:
                group.append(one)
            elif one["entry_ms"] >= 0:
                latest[alike] = [one]
                groups.append(latest[alike])
        return sorted(
            groups,
            key=lambda group: min(2 * (m["kind"] != REQUEST) - bool(m["on_chain"]) for m in group),
        )

    def _draw_labels(self, groups: Sequence[Sequence[Row]], taken: Sequence[Annotation]) -> int:
        """Write labels that overlap neither each other nor the texts `taken`; returns for how many
        messages there was no room.

        A label stands at the tail of its arrows, on that side of the lane to which nothing of it
        goes; where its place is taken, a little higher or lower, or on the other side. The axes
        have been laid out.
        """
        boxes = [text.get_window_extent() for text in taken]
        page, unlabelled = self.axes.bbox, 0
        to_page = self.axes.transData.transform
        path = [Line(to_page(self._ends(m))) for m in self.shown if m["on_chain"]]
        for group in groups:
            lane = self.lanes[group[0]["from"]]
            look = _STRONG if any(m["on_chain"] for m in group) else {"color": QUIET}
            at = (lane, group[0]["entry_ms"])
            text = self._write(_label(group), at, (0, 0), zorder=5, bbox=_BEHIND, **look)
            away = 1 if self.lanes[group[0]["to"]] <= lane else -1
            # Rather elsewhere than across the critical path, rather there than not at all.
            for crosses, side, line in product((False, True), (away, -away), (0, 1, -1, 2, -2)):
                text.set_horizontalalignment("left" if side > 0 else "right")
                text.xyann = (side * _OFF_LANE_PT, line * _LINE_PT)
                box = text.get_window_extent()
                if not (page.contains(*box.min) and page.contains(*box.max)):
                    continue
                lines = () if crosses else path
                if not any(map(box.overlaps, boxes)) and not any(
                    one.intersects_bbox(box, filled=False) for one in lines
                ):
                    boxes.append(box)
                    break
            else:
                text.remove()
                unlabelled += len(group)
        return unlabelled

    def _keys(self) -> list[tuple[Any, str]]:
        """The legend: what is drawn, and what it means."""
        kinds = {message["kind"] for message in self.shown if not message["on_chain"]}
        looks = [("critical path", _PATH_LOOK)] + [_LOOKS[kind] for kind in _LOOKS if kind in kinds]
        return [
            (Line2D([], [], **{k: v for k, v in look.items() if k != "zorder"}), name)
            for name, look in looks
        ]


def _label(group: Sequence[Row]) -> str:
    """The label of messages that leave a node together: "4 × GET …/shard 250–254 B"."""
    times = f"{len(group)} ×" if len(group) > 1 else ""
    return " ".join(filter(None, (times, _what(group[0]), words.sizes(group))))


def _what(message: Row) -> str:
    return words.what_of(message, _LONGEST_LABEL)
