"""One client on the timeline of a drill: its requests, its outages, the strip of availability.

And the picture that all panels are parts of: its time, its latencies, and what stands above them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from wanlat.analysis.charts.availability import UNSENT_COLOUR, colour_of
from wanlat.analysis.charts.lettering import ASIDE, LABEL, Lettering, text_width
from wanlat.analysis.charts.style import ALARM, FAINT, INK, QUIET, TINY_PT
from wanlat.analysis.report.drill import percent, seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wanlat.analysis.figures.drill.model import ClientFigures, Disturbance, Drill

    Values = NDArray[np.float64]

# Blue and ochre differ in lightness and for every kind of colour-blindness; outcomes differ in
# shape as well.
OPERATION_COLOURS = {"read": "#004488", "write": "#b8741a"}
UNKNOWN_COLOUR, BACK_COLOUR, SLOW_COLOUR = "#6b3fa0", "#117755", "#9a9a9a"
AS_SHAPES = 2000
"""Up to so many requests each is an element of an SVG; more of them are a picture in it."""

_PROCESS, _LINK, _RESOURCE, _OTHER = "#efcac4", "#c9d9ef", "#ece0b4", "#dcdcdc"
_FAULT_COLOURS = {
    **dict.fromkeys(("kill", "stop", "restart", "crash-loop"), _PROCESS),
    **dict.fromkeys(
        ("slow", "lossy", "throttled", "blackhole", "partition", "one-way-cut", "flapping"), _LINK
    ),
    **dict.fromkeys(("disk-full", "cpu-throttled"), _RESOURCE),
}
"""Light enough for marks to be seen on; faults on processes, links and resources differ."""

_LINES_UP_TO = 0.76
"""Of a panel's height: above are the outages, whose names no line shall cross."""
_PLOT_IN = 8.0
_LONGEST_NAME = 30
_BINS, _DUE_A_BIN, _NICE = 120, 2, (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Span:
    """Something on a line of its own: from `begin` to `end`, or an instant with a `marker`.

    An `open` one was still going on when nothing more is known of it.
    """

    name: str
    begin: float
    end: float
    colour: str
    marker: str = ""
    open: bool = False
    occurrences: tuple[float, ...] = ()

    @property
    def short_name(self) -> str:
        """The name, its middle left out where it is long."""
        if len(self.name) <= _LONGEST_NAME:
            return self.name
        half = (_LONGEST_NAME - 1) // 2
        return f"{self.name[: _LONGEST_NAME - 1 - half]}…{self.name[-half:]}"


@dataclass(frozen=True)
class Picture:
    """What a drill's panels have in common: seconds since `during` began, and milliseconds."""

    drill: Drill

    @cached_property
    def zero_s(self) -> float:
        """The instant that is called 0."""
        return self.drill.phases[1].begin_s or 0.0

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Of the axis of time. What happened after the last phase is not the timeline's."""
        dues_s = self.drill.requests["due_s"].to_numpy(dtype=float)
        begins_s = [p.begin_s for p in self.drill.phases if p.begin_s is not None]
        ends_s = [p.end_s for p in self.drill.phases if p.end_s is not None]
        begin_s = min([*begins_s, *dues_s[:1]], default=0.0)
        end_s = max([*ends_s, *dues_s[-1:]], default=begin_s)
        return begin_s - self.zero_s, max(end_s, begin_s + 1e-3) - self.zero_s

    @cached_property
    def limits_ms(self) -> tuple[float, float]:
        """The least latency, and the deadline or what took longest."""
        latencies = self.drill.requests["latency_ms"].to_numpy(dtype=float)
        known = latencies[np.isfinite(latencies) & (latencies > 0)]
        high = max(float(known.max(initial=0.0)) or 100.0, self.drill.deadline_ms or 0.0)
        low = float(known.min()) / 2 if known.size else 1.0
        return min(max(low, 1e-3), high / 10), high

    @cached_property
    def bin_s(self) -> float:
        """Width of a bin of the strips."""
        begin, end = self.ends
        return bin_width_s(end - begin, (self.drill.interval_ms or 0.0) / 1000)

    @cached_property
    def spans(self) -> list[Span]:
        """What stands above the panels: faults, deaths, and the return to normal."""
        drill, end = self.drill, self.ends[1]
        spans = [
            Span(
                name=fault.label,
                begin=fault.begin_s - self.zero_s,
                end=end if fault.end_s is None else min(fault.end_s - self.zero_s, end),
                colour=_FAULT_COLOURS.get(fault.kind, _OTHER),
                open=fault.end_s is None,
                occurrences=tuple(at_s - self.zero_s for at_s in fault.occurrences),
            )
            for fault in drill.faults
        ]
        for death in drill.deaths:
            if (at := death.at_s - self.zero_s) <= end:
                spans.append(Span(f"{death.node} died", at, at, ALARM, marker="X"))
        if drill.recovery_s and drill.faults:
            at = min(span.begin for span in spans if not span.marker) + drill.recovery_s
            name = f"back to normal, {seconds(drill.recovery_s)}"
            spans.append(Span(name, at, at, BACK_COLOUR, marker="^"))
        elif drill.recovered is False:
            spans.append(Span("not back to normal", end, end, ALARM, marker="X"))
        return spans

    def phase_labels(self, axes: Axes, texts: Sequence[Sequence[str]], how: Lettering) -> None:
        """Write below or above `axes`, in the middle of each phase, the first text with room."""
        begin, end = self.ends
        middles, labels = [], []
        for phase, choices in zip(self.drill.phases, texts, strict=True):
            if phase.begin_s is None or phase.end_s is None:
                continue
            room_in = (phase.end_s - phase.begin_s) / (end - begin) * _PLOT_IN
            fitting = [text for text in choices if text_width(text, how) < room_in - 0.06]
            middles.append((phase.begin_s + phase.end_s) / 2 - self.zero_s)
            labels.append(fitting[0] if fitting else "")
        weight = "bold" if how.bold else "normal"
        axes.set_xticks(middles, labels, fontsize=how.size_pt, color=how.colour, fontweight=weight)
        axes.tick_params(axis="x", length=0, pad=2)


def bin_width_s(length_s: float, interval_s: float) -> float:
    """Width of a bin of the strips: the least of 1, 2, 5 × 10ⁿ s with a few requests in each."""
    wanted = max(length_s / _BINS, _DUE_A_BIN * interval_s, 1e-3)
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(n * power for n in _NICE if n * power >= wanted * (1 - 1e-9))


def shares_by_bin(
    requests: Any, ends: tuple[float, float], bin_s: float, zero_s: float = 0.0
) -> tuple[Values, Values, Values]:
    """Edges of the bins, shape (n + 1,); share that was ok of what was sent, and number due, (n,).

    0 is an edge; the first and the last bin are cut at `ends`. NaN where nothing was sent.
    """
    first, last = math.floor(ends[0] / bin_s + 1e-9), math.ceil(ends[1] / bin_s - 1e-9)
    edges = np.arange(first, max(last, first + 1) + 1, dtype=np.float64) * bin_s
    due_s = requests["due_s"].to_numpy(dtype=float) - zero_s
    is_ok = (requests["outcome"] == "ok").to_numpy()
    counts = [np.histogram(due_s[which], edges)[0] for which in (is_ok, requests["sent"], ...)]
    ok, sent, due = (np.asarray(each, dtype=np.float64) for each in counts)
    with np.errstate(invalid="ignore"):
        return np.clip(edges, *ends), np.where(sent > 0, ok / sent, np.nan), due


def draw_panel(axes: Axes, picture: Picture, client: ClientFigures) -> None:
    """One client: its requests, and above them its outages."""
    low_ms, high_ms = picture.limits_ms
    axes.set_label(client.name)
    axes.set_yscale("log")
    axes.set_ylim(low_ms, low_ms * (high_ms * 1.15 / low_ms) ** (1 / _LINES_UP_TO))
    powers_ms = [ms for ms in 10.0 ** np.arange(-3, 7) if low_ms < ms <= high_ms * 1.01]
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks(powers_ms, [_duration(ms) for ms in powers_ms])
    axes.xaxis.set_major_locator(NullLocator())
    axes.tick_params(axis="y", length=2.5, labelsize=TINY_PT, labelcolor=QUIET, color=QUIET)
    axes.set_ylabel(
        f"{client.operation}s",
        color=OPERATION_COLOURS[client.operation],
        fontweight="bold",
        fontsize=LABEL.size_pt,
    )
    axes.hlines(powers_ms, *picture.ends, color=FAINT, linewidth=0.5, zorder=0)
    lines = ((picture.drill.deadline_ms, "-", 0.7), (client.limit_ms, ":", 0.9))
    for at_ms, style, width in lines:
        if at_ms is not None and low_ms < at_ms <= high_ms:
            axes.axhline(at_ms, color=QUIET, linestyle=style, linewidth=width, zorder=1)
    draw_instants(axes, picture, _LINES_UP_TO)
    _draw_requests(axes, picture, client)
    for stretch in client.slow:
        _draw_outage(axes, picture, stretch, SLOW_COLOUR)
    for outage in client.outages:
        _draw_outage(axes, picture, outage, INK)


def _looks(operation: str) -> dict[str, dict[str, Any]]:
    """How each kind of request is drawn, here and in the legend."""
    colour = OPERATION_COLOURS[operation]
    return {
        "not sent": {"marker": 2, "s": 26, "color": QUIET, "linewidths": 0.7, "zorder": 2},
        "ok": {"marker": "o", "s": 11, "color": colour, "linewidths": 0, "zorder": 3},
        "unknown": {
            **{"marker": "D", "s": 15, "facecolors": "white", "edgecolors": UNKNOWN_COLOUR},
            **{"linewidths": 0.9, "zorder": 4},
        },
        "fail": {"marker": "x", "s": 16, "color": ALARM, "linewidths": 0.9, "zorder": 5},
    }


def _draw_requests(axes: Axes, picture: Picture, client: ClientFigures) -> None:
    """Every request of a client. One that has no latency waited until its deadline was over."""
    every = picture.drill.requests
    rows = every[(every["client"] == client.client) & (every["operation"] == client.operation)]
    low_ms, high_ms = picture.limits_ms
    x = rows["due_s"].to_numpy(dtype=float) - picture.zero_s
    y = np.nan_to_num(rows["latency_ms"].to_numpy(dtype=float), nan=high_ms)
    outcome, sent = rows["outcome"].to_numpy(dtype=str), rows["sent"].to_numpy(dtype=bool)
    y = np.where(sent, np.maximum(y, low_ms), picture.drill.deadline_ms or high_ms)
    crowding = min(1.6, max(0.3, math.sqrt(160 / max(len(rows), 1))))
    for kind, look in _looks(client.operation).items():
        chosen = ~sent if kind == "not sent" else (outcome == kind) & sent
        if chosen.any():
            look["s"] *= 1 if kind == "not sent" else crowding
            dots = axes.scatter(
                x[chosen], y[chosen], rasterized=len(every) > AS_SHAPES, clip_on=False, **look
            )
            dots.set_gid(f"{client.name} {kind}")
            names = {"ok": f"{client.operation}s ok", "not sent": "due and never sent"}
            dots.set_label(names.get(kind, kind))


def _draw_outage(axes: Axes, picture: Picture, stretch: Disturbance, colour: str) -> None:
    """A bar above the latencies; the longest outage of all is named."""
    first, last = picture.ends
    begin, end = max(stretch.begin_s - picture.zero_s, first), stretch.end_s - picture.zero_s
    end = min(end, last)
    across, y = axes.get_xaxis_transform(), 0.83
    name = "outage" if colour == INK else "slow"
    axes.plot(
        [begin, end],
        [y, y],
        color=colour,
        gid=name,
        label=name,
        transform=across,
        linewidth=2.4,
        solid_capstyle="butt",
    )
    if not stretch.ended:
        axes.plot(
            [end], [y], color=colour, marker=">", markersize=5, transform=across, clip_on=False
        )
    if stretch is picture.drill.longest_outage:
        least = "" if stretch.ended else "at least "
        text = f"longest outage, {least}{seconds(stretch.duration_s)}"
        half = text_width(text, LABEL) / _PLOT_IN / 2 * (last - first)
        middle = min(max((begin + end) / 2, first + half), last - half)
        axes.text(
            middle,
            y + 0.05,
            text,
            transform=across,
            fontsize=LABEL.size_pt,
            ha="center",
            va="bottom",
        )


def draw_strip(axes: Axes, picture: Picture, client: ClientFigures) -> None:
    """The share that was ok of what was sent in each bin, and below it that of each phase."""
    every = picture.drill.requests
    rows = every[(every["client"] == client.client) & (every["operation"] == client.operation)]
    axes.set_label(f"{client.name} strip")
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.spines[:].set(visible=True, color=QUIET, linewidth=0.5)
    edges, shares, due = shares_by_bin(rows, picture.ends, picture.bin_s, picture.zero_s)
    for (left, right), share, asked in zip(pairwise(edges), shares, due, strict=True):
        looks: dict[str, Any] = {"facecolor": "white", "edgecolor": QUIET, "hatch": "//////"}
        if asked:
            fill = UNSENT_COLOUR if math.isnan(share) else colour_of(share)
            looks = {"facecolor": fill, "edgecolor": "none"}
        axes.add_patch(Rectangle((left, 0), right - left, 1, linewidth=0, **looks))
    texts = []
    for phase in picture.drill.phases:
        figures = client.phases[phase.name]
        share = f"{percent(figures.availability)} of {figures.sent} ok"
        never = f"{figures.not_sent} never sent"
        if not figures.attempted:
            texts.append([""])
        elif figures.not_sent:
            short = f"{percent(figures.availability)} · {never}"
            texts.append([f"{share} · {never}", short, percent(figures.availability)])
        else:
            texts.append([share, percent(figures.availability)])
    picture.phase_labels(axes, texts, ASIDE)


def draw_instants(axes: Axes, picture: Picture, up_to: float) -> None:
    """Lines where phases begin and where all was normal again, `up_to` a part of the height."""
    for phase in picture.drill.phases:
        at = None if phase.begin_s is None else phase.begin_s - picture.zero_s
        if at is not None and at > picture.ends[0] + 1e-6:
            axes.axvline(
                at, 0, up_to, color=QUIET, linewidth=0.9, linestyle=(0, (4, 2.5)), zorder=1
            )
    for span in picture.spans:
        if span.colour == BACK_COLOUR:
            axes.axvline(span.begin, 0, up_to, color=BACK_COLOUR, linewidth=1.1, linestyle=":")


def _duration(value_ms: float) -> str:
    if value_ms < 0.999:
        return f"{value_ms * 1000:g} µs"
    return f"{value_ms:g} ms" if value_ms < 999 else f"{value_ms / 1000:g} s"
