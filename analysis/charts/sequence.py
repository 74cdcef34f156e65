"""The sequence diagram of one request: nodes as lanes, time downwards, an arrow a message.

An arrow leads from the instant at which a message entered a WAN link to the one at which it left
it. What the answer waited for, the critical path, is thick and numbered. Where there are more than
`MOST_ARROWS`, what the request sends to several nodes at once is one shape, and what is not the
request's is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Polygon, Rectangle
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator, MultipleLocator
from matplotlib.transforms import offset_copy

from wanlat.analysis.charts import sequence_words as words
from wanlat.analysis.charts.frame import Words, dress
from wanlat.analysis.charts.lettering import GROUP, LABEL, SUBTITLE, Lettering, text_width
from wanlat.analysis.charts.sequence_labels import LABEL_PT, Label, groups_of, place, together
from wanlat.analysis.charts.style import ALARM, FAINT, INK, QUIET, SMALL_PT, TINY_PT, applied
from wanlat.analysis.names import format_ms
from wanlat.analysis.trace_model import Hop, Message, Trace

PATH = "#d55e00"
"""Vermillion of Okabe and Ito's palette, and its blue: told apart by everybody's eyes."""
REQUEST = "#5c93c4"
NOBODY = "#9a9a9a"
MOST_ARROWS = 60

_ALL_LANES = 8
"""Of more nodes, those without a message have no lane."""
_AFTER = "#f1f1f1"
_LANES_WIDE_IN = 8.6
_GAP_IN = (1.25, 2.3)
_RTT_IN = 1.75
_HEIGHT_IN = (3.0, 30.0)
_MARGIN_IN = (0.3, 1.9)
_AXES_IN = (0.7, 0.8)
"""What stands beside the lanes and above them."""
_HOP = Lettering(LABEL_PT, bold=True)
_FAN_IN = 0.15
"""Messages that leave a node, or come to it, within this of each other are one shape."""
_BURST_PART = 0.06
"""Of a crossing: what takes longer than this to enter is drawn as the band that it is."""


def stem(trace: Trace) -> str:
    """The name of its files among a bundle's charts: "trace-quorum-Get-local"."""
    series, endpoint, placement = trace.group
    known = () if placement == "unknown" else (placement,)
    return "-".join(("trace", series.system, endpoint.replace("/", "."), *known))


def draw(trace: Trace) -> Figure:
    """The sequence diagram of `trace`."""
    with applied():
        return _Picture(trace).figure


class _Picture:
    """The diagram being drawn: x counts lanes, y is milliseconds since the request's start."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.is_summary = len(trace.messages) > MOST_ARROWS
        is_shown = [one.kind == "request" or not self.is_summary for one in trace.messages]
        self.shown = [m for m, shown in zip(trace.messages, is_shown, strict=True) if shown]
        used = {trace.client, trace.target}
        used |= {node for one in self.shown for node in (one.source, one.target)}
        is_few = len(trace.lanes) <= _ALL_LANES
        self.nodes = [lane for lane in trace.lanes if is_few or lane.node in used]
        self.lanes = {lane.node: place for place, lane in enumerate(self.nodes)}
        until_ms = [one.departure_ms or 0.0 for one in self.shown if one.kind == "request"]
        unit_ms = (trace.rtt_ms or 0.0) if (trace.rtt_ms or 0.0) >= 1 else trace.latency_ms / 2
        span_ms = max([trace.latency_ms, *until_ms]) * 1.02
        plot_in = min(max(span_ms / unit_ms * _RTT_IN, _HEIGHT_IN[0]), _HEIGHT_IN[1])
        self.ms_per_in = span_ms / plot_in
        groups = groups_of(self.shown, self.lanes, self.ms_per_in)
        if self.is_summary:
            groups = [one for one in groups if len(one) > 1 or one[0].on_chain]
        self.figure, self.axes = self._axes(span_ms, plot_in, groups)
        self._draw_ground(unit_ms)
        beside = [*self._draw_lanes(), *self._draw_hops()]
        for fan in self._fans() if self.is_summary else [[one] for one in self.shown]:
            self._draw_message(fan[0]) if len(fan) == 1 else self._draw_fan(fan)
        ends = self._draw_ends()
        path = [self._ends(hop.message) for hop in trace.path]
        # Labels find their places when everything else has its own.
        self.figure.draw_without_rendering()
        labels, unlabelled = place(groups, self.axes, self.lanes, path, ends)
        for label in labels:
            self._draw_label(label)
        # matplotlib measures everything three times over; what lies inside the plot needs none.
        for artist in (*self.axes.patches, *self.axes.texts, *self.axes.lines):
            artist.set_in_layout(artist in beside)
        dress(
            self.figure,
            Words(
                title=words.title(trace),
                subtitle=words.subtitle(trace),
                x_label="",
                caption=tuple(
                    words.caption(
                        trace,
                        unlabelled=unlabelled,
                        unshown_lanes=len(trace.lanes) - len(self.nodes),
                        undrawn=len(trace.messages) - len(self.shown) if self.is_summary else None,
                    )
                ),
            ),
            keys=self._keys(),
            verdicts=[(words.picked(trace), SUBTITLE)],
        )

    def _axes(
        self, span_ms: float, plot_in: float, groups: Sequence[Sequence[Message]]
    ) -> tuple[Figure, Axes]:
        """Lanes side by side, with room for the labels beside the first and the last one."""
        last = len(self.lanes) - 1
        gap_in = min(max(_LANES_WIDE_IN / max(last, 1), _GAP_IN[0]), _GAP_IN[1])
        low, high = _MARGIN_IN
        margins = [
            min(max([low, *(0.2 + Label.of(group).width_in for group in of)]), high)
            for of in (
                [group for group in groups if self.lanes[group[0].source] == outer]
                for outer in (0, last)
            )
        ]
        top_ms, below_ms = 0.34 * self.ms_per_in, 0.45 * self.ms_per_in
        bottom_ms = max(span_ms, self.trace.latency_ms + below_ms)
        size = (
            last * gap_in + sum(margins) + 2 * _AXES_IN[0] + self._hops_in(),
            plot_in * (bottom_ms + top_ms) / span_ms + _AXES_IN[1],
        )
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_xlim(-margins[0] / gap_in, last + margins[1] / gap_in)
        axes.set_ylim(bottom_ms, -top_ms)
        return figure, axes

    def _write(
        self, text: str, at: tuple[float, float], offset_pt: tuple[float, float], **look: Any
    ) -> Annotation:
        """Set a text so many points from a place (lane, milliseconds, unless `look` says else)."""
        look = {"textcoords": "offset points", "fontsize": LABEL_PT, "va": "center", **look}
        return self.axes.annotate(text, at, xytext=offset_pt, **look)

    def _draw_ground(self, rtt_ms: float) -> None:
        """Time on the left, in RTTs on the right, and the time after the answer."""
        axes, trace = self.axes, self.trace
        axes.spines[["left", "bottom"]].set_visible(False)
        axes.axhspan(trace.latency_ms, axes.get_ylim()[0], color=_AFTER, lw=0, zorder=0)
        axes.yaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 2.5, 5, 10]))
        axes.tick_params(axis="y", length=2, labelsize=SMALL_PT, colors=QUIET)
        axes.set_ylabel("ms since the request was sent", fontsize=SMALL_PT, color=QUIET)
        if not trace.rtt_ms:
            return
        half = 0.5 if rtt_ms / self.ms_per_in > 0.8 else max(1, round(self.ms_per_in / rtt_ms))
        right = axes.secondary_yaxis("right", functions=(_times(1 / rtt_ms), _times(rtt_ms)))
        right.yaxis.set_major_locator(MultipleLocator(half))
        right.spines["right"].set_visible(False)
        right.tick_params(length=0, labelsize=TINY_PT, labelcolor=QUIET)
        right.set_ylabel("RTTs", fontsize=TINY_PT, color=QUIET)
        for number in range(int(axes.get_ylim()[0] / (half * rtt_ms)) + 1):
            axes.axhline(number * half * rtt_ms, color=FAINT, lw=0.7, zorder=0.5)

    def _draw_lanes(self) -> list[Artist]:
        """The nodes, and their sites above them; returns what stands beside the plot."""
        axes, trace = self.axes, self.trace
        names = [f"{n}\nclient" if n == trace.client else n for n in self.lanes]
        axes.set_xticks(range(len(names)), names, fontsize=LABEL.size_pt, va="bottom")
        axes.xaxis.tick_top()
        axes.tick_params(axis="x", length=0)
        for x in self.lanes.values():
            axes.axvline(x, color=QUIET, lw=0.8, zorder=1)
        # The target node is at work from the request to the answer.
        corner = (self.lanes[trace.target] - 0.02, 0)
        box: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "lw": 0.8, "zorder": 1.5}
        axes.add_patch(Rectangle(corner, 0.04, trace.latency_ms, **box))
        above = offset_copy(
            axes.get_xaxis_transform(), self.figure, y=3.6 * LABEL.size_pt, units="points"
        )
        beside: list[Artist] = []
        for site, members in groupby(self.nodes, key=lambda lane: lane.site):
            xs = [self.lanes[lane.node] for lane in members]
            low, high = min(xs) - 0.3, max(xs) + 0.3
            look: dict[str, Any] = {"color": QUIET, "lw": 1.2, "transform": above, "clip_on": False}
            beside += axes.plot([low, high], [1, 1], **look)
            look = {"ha": "center", "va": "bottom", "fontsize": GROUP.size_pt, "fontweight": "bold"}
            middle = ((low + high) / 2, 1)
            beside.append(self._write(site, middle, (0, 3), xycoords=above, **look))
        return beside

    def _ends(self, message: Message) -> tuple[tuple[float, float], tuple[float, float]]:
        """Where the arrow of a message begins and ends; what nobody saw arrive ends halfway."""
        source, target = self.lanes[message.source], self.lanes[message.target]
        begin = (source, message.last_entry_ms)
        if message.departure_ms is not None:
            return begin, (target, message.departure_ms)
        unit_ms = self.trace.rtt_ms or self.trace.latency_ms / 2
        return begin, ((source + target) / 2, message.last_entry_ms + unit_ms / 4)

    def _draw_message(self, message: Message) -> None:
        look, (begin, end) = _look(message), self._ends(message)
        self._draw_band(message, look["color"])
        arrow = FancyArrowPatch(
            begin,
            end,
            arrowstyle="-" if message.is_lost else "-|>",
            mutation_scale=9 if message.on_chain else 6,
            shrinkA=0,
            shrinkB=0,
            **look,
        )
        arrow.set_gid(f"message-{self.trace.messages.index(message) + 1}")
        self.axes.add_patch(arrow)
        if message.is_lost:
            look = {"marker": "X", "markersize": 7, "color": ALARM, "mec": "white", "zorder": 6}
            self.axes.plot(*end, **look)
            self._write(message.fate.replace("_", " "), end, (6, 0), color=ALARM)
        if message.on_chain:
            middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
            badge = {
                "boxstyle": "circle,pad=0.2",
                "facecolor": PATH,
                "edgecolor": "white",
                "lw": 0.8,
            }
            look = {"fontsize": TINY_PT, "fontweight": "bold", "color": "white", "ha": "center"}
            text = self._write(str(message.on_chain), middle, (0, 0), bbox=badge, zorder=7, **look)
            text.set_gid(f"hop-{message.on_chain}")

    def _draw_band(self, message: Message, colour: str) -> None:
        """What takes its time to enter: the band between its first bytes and its last."""
        first, last = message.first_departure_ms, message.departure_ms
        if first is None or last is None:
            return
        if message.last_entry_ms - message.entry_ms < _BURST_PART * (last - message.last_entry_ms):
            return
        source, target = self.lanes[message.source], self.lanes[message.target]
        entered = [(source, message.last_entry_ms), (source, message.entry_ms)]
        self._fill([*entered, (target, first), (target, last)], colour)

    def _fill(self, corners: Sequence[tuple[float, float]], colour: str) -> None:
        self.axes.add_patch(Polygon(corners, facecolor=colour, alpha=0.18, lw=0, zorder=1.8))

    def _fans(self) -> list[list[Message]]:
        """The request's messages: together those that leave a node at once for several others, and
        of the rest those that come to one from several; each of the critical path by itself."""
        free = [one for one in self.shown if not one.on_chain and not one.is_lost]
        within_ms = _FAN_IN * self.ms_per_in
        fans = together(free, lambda m: m.source, lambda m: m.entry_ms, within_ms)
        fans = [fan for fan in fans if len({one.target for one in fan}) > 1]
        taken = {id(one) for fan in fans for one in fan}
        rest = [one for one in free if id(one) not in taken]
        back = together(rest, lambda m: m.target, lambda m: m.departure_ms or 0.0, within_ms)
        fans += [fan for fan in back if len({one.source for one in fan}) > 1]
        taken = {id(one) for fan in fans for one in fan}
        return [*fans, *([one] for one in self.shown if id(one) not in taken)]

    def _draw_fan(self, fan: Sequence[Message]) -> None:
        """What leaves one node for several others at once, or comes from several, as a shape."""
        begins, ends = zip(*map(self._ends, fan), strict=True)
        self._fill([min(begins), max(begins), max(ends), min(ends)], REQUEST)

    def _draw_label(self, label: Label) -> None:
        self._write(
            label.text,
            label.at,
            label.offset_pt,
            color=PATH if label.is_path else QUIET,
            fontweight="bold" if label.is_path else "normal",
            ha="left" if label.offset_pt[0] > 0 else "right",
            zorder=5,
            bbox={"boxstyle": "square,pad=0.02", "facecolor": "white", "alpha": 0.9, "lw": 0},
        )

    def _draw_ends(self) -> list[Any]:
        """The lines at which the request was sent and answered; returns the words on them."""
        trace, axes = self.trace, self.axes
        axes.axhline(0, color=INK, lw=0.8, ls=(0, (4, 2)), zorder=1.2)
        axes.axhline(trace.latency_ms, color=INK, lw=1.4, zorder=4)
        texts = [(trace.latency_ms, f"answered after {format_ms(trace.latency_ms)} ms", "bold")]
        bottom_ms = axes.get_ylim()[0]
        after_ms = 0.3 * self.ms_per_in
        if trace.next_ms is not None and trace.latency_ms + after_ms < trace.next_ms < bottom_ms:
            axes.axhline(trace.next_ms, color=QUIET, lw=0.8, ls=":", zorder=4)
            texts.append((trace.next_ms, "the next request is sent", "normal"))
        look = {
            "xycoords": ("axes fraction", "data"),
            "fontsize": SMALL_PT,
            "ha": "right",
            "va": "top",
            "zorder": 6,
            "bbox": {"boxstyle": "square,pad=0.05", "facecolor": _AFTER, "lw": 0},
        }
        return [
            self._write(text, (1, at_ms), (-4, -3), fontweight=weight, **look)
            for at_ms, text, weight in texts
        ]

    def _hop_lines(self) -> list[tuple[Hop, list[str]]]:
        """The lines of each hop, in full or in two, whichever fits; none if neither does."""
        path = self.trace.path
        room_pt = 72 * self.trace.latency_ms / self.ms_per_in / max(len(path), 1)
        full = [words.hop_lines(hop, len(path)) for hop in path]
        for lines in (full, [[one[0], " ".join(one[1:-1])] for one in full]):
            if all((len(one) + 0.5) * LABEL_PT * 1.25 <= room_pt for one in lines):
                return list(zip(path, lines, strict=True))
        return []

    def _hops_in(self) -> float:
        """How wide the words on the critical path are."""
        widths = [text_width(line, _HOP) for _, lines in self._hop_lines() for line in lines]
        return max(widths, default=0.0)

    def _draw_hops(self) -> list[Artist]:
        """The critical path told hop by hop, each beside the arrow that it is."""
        return [
            self._write(
                line,
                (1, max(hop.message.entry_ms, 0.0)),
                (44, -number * LABEL_PT * 1.25),
                xycoords=("axes fraction", "data"),
                color=INK if number else PATH,
                fontweight="normal" if number else "bold",
                va="top",
            )
            for hop, lines in self._hop_lines()
            for number, line in enumerate(lines)
        ]

    def _keys(self) -> list[tuple[Any, str]]:
        """The legend: what is drawn, and what it means."""
        named = {"request": "of the request", "background": "background"}
        kinds = {one.kind: one for one in self.shown if not one.on_chain}
        keys: list[tuple[Any, str]] = [
            (Line2D([], [], color=PATH, lw=2.4), "critical path")
        ] * bool(self.trace.path)
        for kind, one in sorted(kinds.items(), reverse=True, key=lambda pair: pair[0] == "request"):
            look = {name: value for name, value in _look(one).items() if name != "zorder"}
            keys.append((Line2D([], [], **look), named.get(kind, "unrelated traffic")))
        if self.is_summary:
            keys.append((Patch(facecolor=REQUEST, alpha=0.18), "several together"))
        return keys


def _look(message: Message) -> dict[str, Any]:
    if message.on_chain:
        return {"color": PATH, "lw": 2.4, "ls": "-", "zorder": 3}
    if message.kind == "request":
        return {"color": REQUEST, "lw": 1.1, "ls": "-", "zorder": 2.5}
    dashes = "--" if message.kind == "background" else ":"
    return {"color": NOBODY, "lw": 0.9, "ls": dashes, "zorder": 2}


def _times(factor: float) -> Any:
    """A function that multiplies, for the axis on the other side."""
    return lambda values: values * factor
