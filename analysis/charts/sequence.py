"""The sequence diagram of one request: nodes as lanes, time downwards, an arrow a message.

An arrow leads from the instant at which a message entered a WAN link to the one at which it left
it. What the answer waited for, the longest chain, is thick and numbered.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Polygon, Rectangle

from wanlat.analysis.charts import sequence_words as words
from wanlat.analysis.charts.lettering import (
    ASIDE,
    GROUP,
    LABEL,
    SUBTITLE,
    TITLE,
    Lettering,
    text_width,
    wrapped,
    write,
)
from wanlat.analysis.charts.sequence_layout import (
    LABEL_PT,
    LINE_IN,
    Box,
    Label,
    labels_of,
    scale_of,
)
from wanlat.analysis.charts.style import ALARM, FAINT, INK, QUIET, SMALL_PT, TINY_PT, applied

if TYPE_CHECKING:
    from wanlat.analysis.trace_model import Message, Trace

CHAIN = "#d55e00"
"""Vermillion of Okabe and Ito's palette, and its blue: told apart by everybody's eyes."""
REQUEST = "#5c93c4"
NOBODY = "#9a9a9a"
_AFTER = "#f1f1f1"

_TICKS_IN, _TRIPS_IN, _EDGE_IN = 0.65, 0.42, 0.2
_STEPS_IN = 2.6
_STEPS_OFF_IN = 0.16
_HEADER_IN = 0.62
_CAPTION_LINE_IN = 0.155
_LEGEND_IN = 0.3
_NARROWEST_IN = 7.2
_BURST_PART = 0.06
"""Of a crossing: what takes longer than this to enter is drawn as the band that it is."""
_NEXT_IN = 0.3


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
    """The diagram being drawn: its parts from the top down, in inches."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.scale = scale_of(trace)
        scale = self.scale
        self.right_in = scale.width_in + scale.right_in + _TRIPS_IN
        self.steps = self._steps()
        plot_in = scale.left_in + self.right_in
        self.width = max(_TICKS_IN + plot_in + self._steps_in() + _EDGE_IN, _NARROWEST_IN)
        text_in = self.width - 2 * _EDGE_IN
        titles = wrapped(words.title(trace), text_in, TITLE)
        subtitles = [
            line for text in words.subtitles(trace) for line in wrapped(text, text_in, SUBTITLE)
        ]
        answer = self._answer_box()
        self.labels, unlabelled = labels_of(trace, scale, answer)
        caption = [
            line
            for text in words.caption(
                trace,
                unlabelled=unlabelled,
                unshown_lanes=len(trace.lanes) - len(scale.lanes),
            )
            for line in wrapped(text, text_in, ASIDE)
        ]
        top = 0.2 + 0.24 * len(titles) + 0.17 * len(subtitles) + 0.1
        below = 0.12 + _LEGEND_IN + _CAPTION_LINE_IN * len(caption) + 0.12
        self.height = top + _HEADER_IN + scale.height_in + below
        self.figure = Figure(figsize=(self.width, self.height))
        self._write_titles(titles, subtitles)
        self.axes = self._axes(top + _HEADER_IN)
        self._draw_ground()
        self._draw_lanes()
        for number, message in enumerate(trace.messages, start=1):
            self._draw_message(number, message)
        for label in self.labels:
            self._draw_label(label)
        self._draw_ends()
        self._draw_steps()
        self._draw_legend(below - 0.12 - _LEGEND_IN / 2)
        for number, line in enumerate(caption):
            at = below - 0.12 - _LEGEND_IN - _CAPTION_LINE_IN * (number + 1) + 0.03
            write(self.figure, (_EDGE_IN, at), line, ASIDE)

    def _steps(self) -> list[list[str]]:
        """The lines of each crossing, in full or in two, whichever fits; none if neither does."""
        chain = self.trace.chain
        room = self.scale.height_in / max(len(chain), 1)
        full = [words.step_lines(crossing, len(chain)) for crossing in chain]
        for steps in (full, [[lines[0], " ".join(lines[1:-1])] for lines in full]):
            if all((len(lines) + 0.5) * LINE_IN <= room for lines in steps):
                return [[_fitted(line, _STEPS_IN) for line in lines] for lines in steps]
        return []

    def _steps_in(self) -> float:
        """How wide the chain's telling is."""
        widths = [text_width(line, _STEP) for lines in self.steps for line in lines]
        return max(widths) + _STEPS_OFF_IN if widths else 0.0

    def _write_titles(self, titles: list[str], subtitles: list[str]) -> None:
        at = self.height - 0.2
        for line in titles:
            at -= 0.2
            write(self.figure, (_EDGE_IN, at), line, TITLE)
            at -= 0.04
        for line in subtitles:
            at -= 0.15
            write(self.figure, (_EDGE_IN, at), line, SUBTITLE)
            at -= 0.02

    def _axes(self, top: float) -> Axes:
        """Axes in inches: x from the first lane, y downwards from the top of the plot."""
        scale = self.scale
        bottom = self.height - top - scale.height_in
        width = scale.left_in + self.right_in
        rect = (
            _TICKS_IN / self.width,
            bottom / self.height,
            width / self.width,
            scale.height_in / self.height,
        )
        axes = self.figure.add_axes(rect)
        axes.set_xlim(-scale.left_in, self.right_in)
        axes.set_ylim(scale.height_in, 0)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        axes.set_xticks([])
        ticks = _ticks_ms(scale.bottom_ms)
        axes.set_yticks([scale.y(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])
        axes.tick_params(axis="y", length=2, labelsize=SMALL_PT, colors=QUIET)
        axes.set_ylabel("ms since the request was sent", fontsize=SMALL_PT, color=QUIET)
        return axes

    def _draw_ground(self) -> None:
        """What lies behind: sites as bands, multiples of half an RTT, the time after the answer."""
        scale, axes, trace = self.scale, self.axes, self.trace
        answered = scale.y(trace.latency_ms)
        axes.axhspan(answered, scale.height_in, color=_AFTER, lw=0, zorder=0)
        rtt_ms = trace.rtt_ms
        if not rtt_ms or scale.in_per_ms * rtt_ms < 0.2:
            return
        halves = int(scale.bottom_ms / (rtt_ms / 2))
        for half in range(1, halves + 1):
            whole = half % 2 == 0
            y = scale.y(half * rtt_ms / 2)
            axes.axhline(y, color=FAINT, lw=0.9 if whole else 0.5, zorder=0.5)
            text = f"{half // 2 or ''}{'' if whole else '½'} RTT"
            axes.text(
                self.right_in - 0.02,
                y - 0.02,
                text,
                fontsize=TINY_PT - 1,
                color=QUIET,
                ha="right",
                va="bottom",
                zorder=0.6,
            )

    def _draw_lanes(self) -> None:
        scale, axes, trace = self.scale, self.axes, self.trace
        for lane in scale.lanes:
            axes.axvline(scale.x(lane.node), color=QUIET, lw=0.8, zorder=1)
        # The node that was asked is at work from the request to the answer.
        x, begin = scale.x(trace.target), scale.y(0)
        axes.add_patch(
            Rectangle(
                (x - 0.035, begin),
                0.07,
                scale.y(trace.latency_ms) - begin,
                facecolor="white",
                edgecolor=INK,
                lw=0.8,
                zorder=1.5,
            )
        )
        for lane in scale.lanes:
            is_client = lane.node == trace.client
            self._above(scale.x(lane.node), 0.12, lane.node, LABEL, bold=is_client)
            if is_client:
                self._above(scale.x(lane.node), 0.0, "client", ASIDE)
        for site, members in groupby(scale.lanes, key=lambda lane: lane.site):
            xs = [scale.x(lane.node) for lane in members]
            low, high = min(xs) - 0.22 * scale.gap_in, max(xs) + 0.22 * scale.gap_in
            self._above((low + high) / 2, 0.34, site, GROUP)
            axes.plot(
                [low, high], [-0.3, -0.3], color=QUIET, lw=1.2, clip_on=False, solid_capstyle="butt"
            )

    def _above(
        self, x: float, up: float, text: str, lettering: Lettering, *, bold: bool = False
    ) -> None:
        """Write above the plot, `up` inches over its upper edge."""
        self.axes.text(
            x,
            -up - 0.03,
            text,
            fontsize=lettering.size_pt,
            color=lettering.colour,
            fontweight="bold" if lettering.bold or bold else "normal",
            ha="center",
            va="bottom",
            clip_on=False,
        )

    def _draw_message(self, number: int, message: Message) -> None:
        scale, look = self.scale, _look(message)
        begin = (scale.x(message.source), scale.y(message.last_entry_ms))
        departure_ms = message.departure_ms
        if departure_ms is None:
            end = self._halfway(message)
        else:
            end = (scale.x(message.target), scale.y(departure_ms))
        self._draw_band(message, look)
        arrow = FancyArrowPatch(
            begin,
            end,
            arrowstyle="-" if departure_ms is None else "-|>",
            mutation_scale=9 if message.on_chain else 6,
            shrinkA=0,
            shrinkB=0,
            clip_on=True,
            **look,
        )
        arrow.set_gid(f"message-{number}")
        self.axes.add_patch(arrow)
        if message.is_lost:
            self.axes.plot(
                *end, marker="X", markersize=7, color=ALARM, mec="white", zorder=6, clip_on=True
            )
            self._aside(end, message.fate.replace("_", " "))
        if message.on_chain:
            self._draw_badge(message.on_chain, begin, end)

    def _aside(self, at: tuple[float, float], text: str) -> None:
        self.axes.text(
            at[0] + 0.08, at[1], text, fontsize=LABEL_PT, color=ALARM, va="center", clip_on=True
        )

    def _halfway(self, message: Message) -> tuple[float, float]:
        """Where an arrow ends that nobody saw arrive."""
        scale = self.scale
        unit_ms = (self.trace.rtt_ms or 2 * self.trace.latency_ms / 4) / 2
        x = (scale.x(message.source) + scale.x(message.target)) / 2
        return x, scale.y(message.last_entry_ms + unit_ms / 2)

    def _draw_band(self, message: Message, look: dict[str, Any]) -> None:
        """What takes its time to enter: the band between its first bytes and its last."""
        first, last = message.first_departure_ms, message.departure_ms
        if first is None or last is None:
            return
        if message.last_entry_ms - message.entry_ms < _BURST_PART * (last - message.last_entry_ms):
            return
        scale = self.scale
        source, target = scale.x(message.source), scale.x(message.target)
        corners = [
            (source, scale.y(message.entry_ms)),
            (target, scale.y(first)),
            (target, scale.y(last)),
            (source, scale.y(message.last_entry_ms)),
        ]
        self.axes.add_patch(
            Polygon(corners, closed=True, facecolor=look["color"], alpha=0.18, lw=0, zorder=1.8)
        )

    def _draw_badge(
        self, number: int, begin: tuple[float, float], end: tuple[float, float]
    ) -> None:
        along = 0.5
        x = begin[0] + (end[0] - begin[0]) * along
        y = begin[1] + (end[1] - begin[1]) * along
        self.axes.text(
            x,
            y,
            str(number),
            fontsize=TINY_PT,
            fontweight="bold",
            color="white",
            ha="center",
            va="center",
            zorder=7,
            clip_on=True,
            gid=f"crossing-{number}",
            bbox={
                "boxstyle": "circle,pad=0.2",
                "facecolor": CHAIN,
                "edgecolor": "white",
                "lw": 0.8,
            },
        )

    def _draw_label(self, label: Label) -> None:
        for down, line in enumerate(label.lines):
            self.axes.text(
                label.x,
                label.y + down * LINE_IN,
                line.text,
                fontsize=LABEL_PT,
                color=CHAIN if line.is_chain else QUIET,
                fontweight="bold" if line.is_chain else "normal",
                ha="left" if label.to_right else "right",
                va="top",
                zorder=5,
                clip_on=True,
                bbox={"boxstyle": "square,pad=0.02", "facecolor": "white", "alpha": 0.9, "lw": 0},
            )

    def _answer_box(self) -> list[Box]:
        """The room that the words at the line of the answer take, which labels keep clear of."""
        width = text_width(words.answered(self.trace), _ENDS) + 0.12
        y = self.scale.y(self.trace.latency_ms)
        line = Box(-self.scale.left_in, y - 0.02, self.right_in, y + 0.02)
        return [line, Box(self.right_in - width - _TRIPS_IN, y, self.right_in, y + 0.2)]

    def _draw_ends(self) -> None:
        """The lines at which the request was sent and at which it was answered."""
        scale, trace, axes = self.scale, self.trace, self.axes
        axes.axhline(scale.y(0), color=INK, lw=0.8, ls=(0, (4, 2)), zorder=1.2)
        y = scale.y(trace.latency_ms)
        axes.axhline(y, color=INK, lw=1.4, zorder=4)
        axes.text(
            self.right_in - _TRIPS_IN - 0.04,
            y + 0.03,
            words.answered(trace),
            fontsize=_ENDS.size_pt,
            fontweight="bold",
            ha="right",
            va="top",
            zorder=6,
            gid="answered",
            bbox={"boxstyle": "square,pad=0.05", "facecolor": _AFTER, "lw": 0},
        )
        if trace.next_ms is not None and scale.y(trace.next_ms) - y > _NEXT_IN:
            at = scale.y(trace.next_ms)
            axes.axhline(at, color=QUIET, lw=0.8, ls=":", zorder=4)
            axes.text(
                self.right_in - _TRIPS_IN - 0.04,
                at - 0.02,
                "the next request is sent",
                fontsize=TINY_PT,
                color=QUIET,
                ha="right",
                va="bottom",
            )

    def _draw_steps(self) -> None:
        """The chain told crossing by crossing, each beside the arrow that it is."""
        least = 0.0
        for crossing, lines in zip(self.trace.chain, self.steps, strict=False):
            y = max(self.scale.y(crossing.message.entry_ms), least)
            for number, line in enumerate(lines):
                self.axes.text(
                    self.right_in + _STEPS_OFF_IN,
                    y + number * LINE_IN,
                    line,
                    fontsize=LABEL_PT,
                    color=CHAIN if number == 0 else INK,
                    fontweight="bold" if number == 0 else "normal",
                    va="top",
                    clip_on=False,
                )
            least = y + len(lines) * LINE_IN + 0.03

    def _draw_legend(self, at: float) -> None:
        kinds = [("chain", CHAIN, 2.4, "-")] if self.trace.chain else []
        kinds.append(("of the request", REQUEST, 1.1, "-"))
        present = {message.kind for message in self.trace.messages}
        if "background" in present:
            kinds.append(("background", NOBODY, 0.9, "--"))
        if "other" in present:
            kinds.append(("left over", NOBODY, 0.9, ":"))
        x = _EDGE_IN
        for text, colour, width, dashes in kinds:
            line = Line2D(
                [x, x + 0.3],
                [at, at],
                color=colour,
                lw=width,
                ls=dashes,
                transform=self.figure.dpi_scale_trans,
            )
            self.figure.add_artist(line)
            write(self.figure, (x + 0.36, at - 0.035), text, LABEL)
            x += 0.36 + text_width(text, LABEL) + 0.28


_ENDS = Lettering(SMALL_PT, bold=True)
_STEP = Lettering(LABEL_PT, bold=True)


def _fitted(line: str, room_in: float) -> str:
    if text_width(line, _STEP) <= room_in:
        return line
    kept = len(line)
    while kept > 1 and text_width(line[:kept] + "…", _STEP) > room_in:
        kept -= 1
    return line[:kept].rstrip() + "…"


def _look(message: Message) -> dict[str, Any]:
    if message.on_chain:
        return {"color": CHAIN, "lw": 2.4, "ls": "-", "zorder": 3}
    if message.kind == "request":
        return {"color": REQUEST, "lw": 1.1, "ls": "-", "zorder": 2.5}
    dashes = "--" if message.kind == "background" else ":"
    return {"color": NOBODY, "lw": 0.9, "ls": dashes, "zorder": 2}


def _ticks_ms(until_ms: float) -> list[float]:
    """Instants from 0 at round steps, about ten of them."""
    from math import floor, log10

    if until_ms <= 0:
        return [0.0]
    rough = until_ms / 10
    magnitude = 10.0 ** floor(log10(rough))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough)
    return [round(number * step, 6) for number in range(int(until_ms / step) + 1)]
