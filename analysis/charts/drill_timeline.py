"""The timeline of a drill: every request, what was broken meanwhile, and what came back when.

A panel a client (a vantage's reads, its writes), one below another on one axis of time: a mark a
request at the instant it was due, as high as it took from then on. Below each panel a strip says
which share of the requests of each short stretch was answered; above all of them stand the faults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from analysis.charts.availability import colour_of
from analysis.charts.drill_lanes import LANE_IN, Placed, Span, draw_lanes, lanes_of, place
from analysis.charts.drill_words import (
    Line,
    caption_of,
    subtitle_of,
    title_of,
    verdict_lines,
)
from analysis.charts.lettering import (
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
from analysis.charts.style import ALARM, FAINT, INK, QUIET, TINY_PT, applied
from analysis.drill.wording import longest, percent, seconds

if TYPE_CHECKING:
    import pandas as pd

    from analysis.drill.model import ClientFigures, Drill, Outage, Phase, SlowStretch, Vantage
    from analysis.statistics import Values

READ_COLOUR, WRITE_COLOUR = "#004488", "#b8741a"
UNKNOWN_COLOUR = "#6b3fa0"
RECOVERED_COLOUR = "#117755"
SLOW_COLOUR = "#9a9a9a"
FAULT_COLOURS = {
    "process": "#efcac4",
    "link": "#c9d9ef",
    "resource": "#ece0b4",
}
OTHER_FAULT_COLOUR = "#dcdcdc"
_FAMILIES = {
    **dict.fromkeys(("kill", "stop", "restart", "crash-loop"), "process"),
    **dict.fromkeys(("disk-full", "cpu-throttled"), "resource"),
    **dict.fromkeys(
        ("slow", "lossy", "throttled", "blackhole", "partition", "one-way-cut", "flapping"),
        "link",
    ),
}

AS_SHAPES = 2000
"""Up to so many requests each is an element of an SVG; more of them are a picture in it."""

_WIDTH_IN = 10.0
_MARGIN_IN = 0.18
_TEXT_IN = _WIDTH_IN - 2 * _MARGIN_IN
_LEFT_IN, _RIGHT_IN = 1.1, 0.3
_PLOT_IN = _WIDTH_IN - _LEFT_IN - _RIGHT_IN
_TITLE_IN, _LINE_IN, _LEGEND_IN = 0.25, 0.165, 0.22
_PHASES_IN = 0.22
_HEAD_IN = 0.27
_HEADROOM_IN = 0.3
_STRIP_GAP_IN, _STRIP_IN, _SHARES_IN = 0.05, 0.13, 0.17
_BETWEEN_IN = 0.1
_AXIS_IN = 0.42
_ROOMY_IN, _DENSE_IN = 1.3, 1.1
_ROOMY_CLIENTS = 4

_BINS = 120
_DUE_A_BIN = 2
_NICE = (1.0, 2.0, 5.0)


def draw(drill: Drill) -> Figure:
    """The timeline of `drill`, however far it got."""
    with applied():
        picture = _Picture.of(drill)
        figure = Figure(figsize=(_WIDTH_IN, picture.height))
        FigureCanvasAgg(figure)
        _write_above(figure, picture)
        _draw_faults(figure, picture)
        for panel in picture.panels:
            _draw_panel(figure, picture, panel)
        _write_below(figure, picture)
    return figure


# -- what goes where -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Panel:
    """One client: the lower edge of its plot, inches from the bottom of the figure."""

    client: ClientFigures
    vantage: Vantage | None
    """Set at the first panel of a vantage, which carries its name."""
    requests: pd.DataFrame
    bottom: float


@dataclass(frozen=True)
class _Picture:
    """Everything that has to be known before a line is drawn; inches and seconds.

    Seconds are since `zero_s` of the drill, the begin of the phase `during`.
    """

    drill: Drill
    title: list[str]
    above: list[Line]
    caption: list[str]
    legend: list[list[tuple[float, _Key]]]
    placed: list[Placed]
    panels: list[_Panel]
    zero_s: float
    begin: float
    end: float
    bin_s: float
    low_ms: float
    high_ms: float
    """The deadline, or what took longest."""
    panel_in: float
    lanes_top: float
    height: float
    below: float

    @classmethod
    def of(cls, drill: Drill) -> _Picture:
        zero_s, begin, end = _times(drill)
        placed = place(_spans(drill, zero_s, end), begin, end, _PLOT_IN)
        bin_s = bin_width_s(end - begin, (drill.every_ms or 0.0) / 1000)
        title = wrapped(title_of(drill), _TEXT_IN, TITLE)
        above = [
            Line(text, line.lettering)
            for line in (*subtitle_of(drill), *verdict_lines(drill))
            for text in wrapped(line.text, _TEXT_IN, line.lettering)
        ]
        legend = _legend_lines(_keys(drill))
        caption = [
            text
            for paragraph in caption_of(drill, bin_s, placed)
            for text in wrapped(paragraph, _TEXT_IN, ASIDE)
        ]
        clients = _clients_by_vantage(drill)
        panel_in = _ROOMY_IN if len(clients) <= _ROOMY_CLIENTS else _DENSE_IN
        head_in = (
            _MARGIN_IN
            + _TITLE_IN * len(title)
            + _LINE_IN * len(above)
            + 0.08
            + _LEGEND_IN * len(legend)
            + 0.04
        )
        lanes_in = _PHASES_IN + LANE_IN * max(lanes_of(placed), 1)
        block_in = panel_in + _STRIP_GAP_IN + _STRIP_IN + _SHARES_IN + _BETWEEN_IN
        heads = len({client.vantage for client in clients})
        panels_in = block_in * max(len(clients), 1) + _HEAD_IN * heads - _BETWEEN_IN + 0.02
        below = _MARGIN_IN + _LINE_IN * len(caption) + 0.08
        height = head_in + lanes_in + panels_in + _AXIS_IN + below
        low_ms, high_ms = _latency_limits(drill)
        return cls(
            drill=drill,
            title=title,
            above=above,
            caption=caption,
            legend=legend,
            placed=placed,
            panels=_panels(drill, clients, height - head_in - lanes_in, panel_in, block_in),
            zero_s=zero_s,
            begin=begin,
            end=end,
            bin_s=bin_s,
            low_ms=low_ms,
            high_ms=high_ms,
            panel_in=panel_in,
            lanes_top=height - head_in,
            height=height,
            below=below,
        )

    @property
    def lanes_in(self) -> float:
        return LANE_IN * max(lanes_of(self.placed), 1)

    @property
    def bottom(self) -> float:
        """Of the axis of time."""
        return self.below + _AXIS_IN

    def top_ms(self) -> float:
        """Where the axes of latency end: so far above `high_ms` that outages have room there."""
        share = _HEADROOM_IN / self.panel_in
        decades = math.log10(self.high_ms / self.low_ms)
        return float(self.low_ms * 10 ** (decades / (1 - share)))

    def axes(self, figure: Figure, bottom: float, height: float) -> Axes:
        """Axes as wide as the plot with time on x, everything else bare."""
        axes = figure.add_axes(
            (
                _LEFT_IN / _WIDTH_IN,
                bottom / self.height,
                _PLOT_IN / _WIDTH_IN,
                height / self.height,
            )
        )
        axes.set_xlim(self.begin, self.end)
        axes.tick_params(axis="both", length=0, labelbottom=False, labelleft=False)
        axes.xaxis.set_major_locator(NullLocator())
        return axes


def bin_width_s(length_s: float, every_s: float) -> float:
    """Width of a bin of the strips: the least of 1, 2, 5 × 10ⁿ s with a few requests in each."""
    wanted = max(length_s / _BINS, _DUE_A_BIN * every_s, 1e-3)
    power = 10.0 ** math.floor(math.log10(wanted))
    for factor in (*_NICE, 10.0):
        if factor * power >= wanted * (1 - 1e-9):
            return factor * power
    return 10.0 * power


def _times(drill: Drill) -> tuple[float, float, float]:
    """The instant that is called 0, and the ends of the axis counted from it, seconds."""
    during = next((p for p in drill.phases if p.name == "during"), None)
    zero = during.begin_s if during is not None and during.begin_s is not None else 0.0
    ends = [p.end_s for p in drill.phases if p.end_s is not None]
    dues = drill.requests["due_s"].to_numpy(dtype=float)
    begins = [p.begin_s for p in drill.phases if p.begin_s is not None]
    begin = min([*begins, *dues[:1]], default=0.0)
    # What happened after the last phase (a verification's restarts) is not the timeline's.
    end = max([*ends, *dues[-1:]], default=begin)
    return zero, begin - zero, max(end, begin + 1.0) - zero


def _latency_limits(drill: Drill) -> tuple[float, float]:
    latencies = drill.requests["latency_ms"].to_numpy(dtype=float)
    known = latencies[np.isfinite(latencies) & (latencies > 0)]
    high = max([float(known.max())] if known.size else [100.0])
    high = max(high, drill.deadline_ms or 0.0)
    low = float(known.min()) / 2 if known.size else 1.0
    return min(max(low, 1e-3), high / 10), high


def _clients_by_vantage(drill: Drill) -> list[ClientFigures]:
    order = {name: rank for rank, name in enumerate(v.name for v in drill.vantages)}
    return sorted(
        drill.clients, key=lambda one: (order.get(one.vantage, len(order)), one.operation)
    )


def _panels(
    drill: Drill, clients: Sequence[ClientFigures], top: float, panel_in: float, block_in: float
) -> list[_Panel]:
    vantages = {vantage.name: vantage for vantage in drill.vantages}
    panels: list[_Panel] = []
    seen: set[str] = set()
    y = top
    for client in clients:
        head = None
        if client.vantage not in seen:
            seen.add(client.vantage)
            head = vantages.get(client.vantage)
            y -= _HEAD_IN
        rows = drill.requests[
            (drill.requests["vantage"] == client.vantage)
            & (drill.requests["operation"] == client.operation)
        ]
        panels.append(_Panel(client, head, rows, y - panel_in))
        y -= block_in
    return panels


def _spans(drill: Drill, zero_s: float, end: float) -> list[Span]:
    """What stands in the lanes: faults, deaths, and the return to normal."""
    spans = [
        Span(
            begin=fault.begin_s - zero_s,
            end=end if fault.end_s is None else fault.end_s - zero_s,
            name=fault.label,
            colour=FAULT_COLOURS.get(_FAMILIES.get(fault.kind, ""), OTHER_FAULT_COLOUR),
            blows=tuple(blow.at_s - zero_s for blow in fault.blows),
            is_open=fault.end_s is None,
        )
        for fault in drill.faults
    ]
    for death in drill.deaths:
        at = death.at_s - zero_s
        if at <= end:
            spans.append(_instant(at, f"{death.subject} died", "X", ALARM))
    if drill.recovery_s and drill.faults:
        at = min(fault.begin_s for fault in drill.faults) - zero_s + drill.recovery_s
        text = f"back to normal, {seconds(drill.recovery_s)} after the first fault"
        spans.append(_instant(at, text, "^", RECOVERED_COLOUR))
    elif drill.recovered is False:
        spans.append(_instant(end, "not back to normal", "X", ALARM))
    return spans


def _instant(at: float, name: str, marker: str, colour: str) -> Span:
    return Span(at, at, name, colour, marker=marker, marker_colour=colour)


# -- above the plots -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Key:
    """An entry of the legend: `shape` is what `_draw_key` draws for it."""

    shape: str
    colour: str
    label: str

    @property
    def width(self) -> float:
        swatch = 0.5 if self.shape == "shares" else 0.22 if self.shape == "outage" else 0.14
        return swatch


def _keys(drill: Drill) -> list[_Key]:
    outcomes = drill.requests["outcome"].to_numpy(dtype=str)
    sent = drill.requests["sent"].to_numpy(dtype=bool)
    keys = [_Key("ok", READ_COLOUR, "read ok"), _Key("ok", WRITE_COLOUR, "write ok")]
    keys += [_Key("fail", ALARM, "fail")] if ((outcomes == "fail") & sent).any() else []
    keys += [_Key("unknown", UNKNOWN_COLOUR, "unknown")] if (outcomes == "unknown").any() else []
    keys += [_Key("not sent", QUIET, "never sent")] if (~sent).any() else []
    keys += [_Key("outage", INK, "outage")] if drill.outages else []
    is_slow = any(client.slow for client in drill.clients)
    keys += [_Key("outage", SLOW_COLOUR, "slower than before")] if is_slow else []
    return [*keys, _Key("shares", INK, "strips: 0 to 100 % ok"), _Key("empty", INK, "none due")]


def _legend_lines(keys: Sequence[_Key]) -> list[list[tuple[float, _Key]]]:
    lines: list[list[tuple[float, _Key]]] = [[]]
    x = _MARGIN_IN
    for key in keys:
        needed = key.width + 0.07 + text_width(key.label, LABEL)
        if lines[-1] and x + needed > _WIDTH_IN - _MARGIN_IN:
            lines.append([])
            x = _MARGIN_IN
        lines[-1].append((x, key))
        x += needed + 0.26
    return lines


def _draw_key(figure: Figure, key: _Key, x: float, y: float) -> None:
    """Draw `key` with its swatch beginning at `x`, its middle at `y`, inches."""
    inches: Any = figure.dpi_scale_trans
    middle = x + key.width / 2

    def line(xs: Sequence[float], ys: Sequence[float], **looks: Any) -> None:
        figure.add_artist(Line2D(xs, ys, transform=inches, color=key.colour, **looks))

    def box(left: float, width: float, **looks: Any) -> None:
        corner = (left, y - _STRIP_IN / 2)
        figure.add_artist(Rectangle(corner, width, _STRIP_IN, transform=inches, **looks))

    if key.shape == "ok":
        line([middle], [y], marker="o", markersize=4.5, markeredgewidth=0)
    elif key.shape == "fail":
        line([middle], [y], marker="x", markersize=5, markeredgewidth=1.2)
    elif key.shape == "unknown":
        line([middle], [y], marker="D", markersize=4.2, markerfacecolor="white")
    elif key.shape == "not sent":
        for shift in (-0.03, 0.0, 0.03):
            line([middle + shift] * 2, [y - 0.04, y + 0.04], linewidth=0.8)
    elif key.shape == "outage":
        line([x, x + key.width], [y, y], linewidth=2.4, solid_capstyle="butt")
    elif key.shape == "empty":
        box(x, key.width, facecolor="white", edgecolor=QUIET, linewidth=0.4, hatch="//////")
    else:
        steps = 11
        for step in range(steps):
            colour = colour_of(step / (steps - 1))
            box(x + key.width * step / steps, key.width / steps, facecolor=colour, linewidth=0)


def _write_above(figure: Figure, picture: _Picture) -> None:
    y = picture.height - _MARGIN_IN
    for line in picture.title:
        y -= _TITLE_IN
        write(figure, (_MARGIN_IN, y + 0.07), line, TITLE)
    for entry in picture.above:
        y -= _LINE_IN
        write(figure, (_MARGIN_IN, y + 0.04), entry.text, entry.lettering)
    y -= 0.08
    for keys in picture.legend:
        y -= _LEGEND_IN
        for x, key in keys:
            middle = y + _LEGEND_IN / 2
            _draw_key(figure, key, x, middle)
            at = (x + key.width + 0.07, middle)
            write(figure, at, key.label, LABEL, ("left", "center_baseline"))


def _draw_faults(figure: Figure, picture: _Picture) -> None:
    """The phases and the lanes; shading and lines of these go down through all panels."""
    drill, zero = picture.drill, picture.zero_s
    top = picture.lanes_top - _PHASES_IN
    lanes = picture.axes(figure, top - picture.lanes_in, picture.lanes_in)
    lanes.set_label("lanes")
    lanes.set_ylim(picture.lanes_in, 0)
    lanes.set_axis_off()
    lanes.patch.set_visible(False)
    lanes.set_zorder(3)
    draw_lanes(lanes, picture.placed, _PLOT_IN)
    if not picture.placed:
        lanes.text(
            picture.begin,
            LANE_IN / 2,
            "nothing was injected",
            fontsize=ASIDE.size_pt,
            color=QUIET,
            va="center_baseline",
        )

    ground = picture.axes(figure, picture.bottom, picture.lanes_top - picture.bottom)
    ground.set_label("ground")
    ground.set_ylim(0, 1)
    ground.set_axis_off()
    ground.set_zorder(-1)
    for one in picture.placed:
        if not one.span.is_instant:
            left, right = max(one.span.begin, picture.begin), min(one.span.end, picture.end)
            ground.axvspan(left, right, facecolor=one.span.colour, alpha=0.38, linewidth=0)
        elif one.span.marker_colour == RECOVERED_COLOUR:
            ground.axvline(one.span.begin, color=RECOVERED_COLOUR, linewidth=1.0, linestyle=":")
    for phase in drill.phases:
        if phase.begin_s is None or phase.end_s is None:
            continue
        begin, end = phase.begin_s - zero, phase.end_s - zero
        if begin > picture.begin + 1e-6:
            ground.axvline(begin, color=QUIET, linewidth=0.9, linestyle=(0, (4, 2.5)))
        _write_phase(figure, picture, phase.name, begin, end)


def _write_phase(figure: Figure, picture: _Picture, name: str, begin: float, end: float) -> None:
    """The name of a phase above the middle of it, where it has the room."""
    per_s = _PLOT_IN / (picture.end - picture.begin)
    left, right = (begin - picture.begin) * per_s, (end - picture.begin) * per_s
    if text_width(name, GROUP) + 0.06 <= right - left:
        at = (_LEFT_IN + (left + right) / 2, picture.lanes_top - _PHASES_IN + 0.07)
        write(figure, at, name, GROUP, ("center", "baseline"))


# -- a client ------------------------------------------------------------------------------------


def _draw_panel(figure: Figure, picture: _Picture, panel: _Panel) -> None:
    axes = picture.axes(figure, panel.bottom, picture.panel_in)
    axes.set_label(panel.client.name)
    axes.patch.set_visible(False)
    axes.set_yscale("log")
    axes.set_ylim(picture.low_ms, picture.top_ms())
    _scale_of_latency(axes, picture)
    for at_ms, looks in (
        (picture.drill.deadline_ms, {"linestyle": "-", "linewidth": 0.7}),
        (panel.client.limit_ms, {"linestyle": (0, (1, 2)), "linewidth": 0.9}),
    ):
        if at_ms is not None and picture.low_ms < at_ms <= picture.high_ms:
            axes.axhline(at_ms, color=QUIET, zorder=1, **looks)
    _draw_requests(axes, picture, panel)
    _draw_outages(figure, axes, picture, panel)
    _draw_strip(figure, picture, panel)
    if panel.vantage is not None:
        _write_vantage(figure, picture, panel, panel.vantage)
    word = "reads" if panel.client.operation == "read" else "writes"
    at = (_MARGIN_IN, panel.bottom + picture.panel_in / 2)
    lettering = Lettering(LABEL.size_pt, _colour_of(panel.client), bold=True)
    write(figure, at, word, lettering, ("left", "center_baseline"))


def _colour_of(client: ClientFigures) -> str:
    return READ_COLOUR if client.operation == "read" else WRITE_COLOUR


def _scale_of_latency(axes: Axes, picture: _Picture) -> None:
    first = math.ceil(math.log10(picture.low_ms) - 1e-9)
    last = math.floor(math.log10(picture.high_ms) + 1e-9)
    powers = [10.0**power for power in range(first, last + 1)]
    axes.yaxis.set_major_locator(FixedLocator(powers))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticklabels([_latency_name(power) for power in powers])
    axes.tick_params(
        axis="y", length=3, labelleft=True, labelsize=TINY_PT, labelcolor=QUIET, color=QUIET
    )
    axes.yaxis.grid(True, color=FAINT, linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)


def _latency_name(value_ms: float) -> str:
    if value_ms < 0.999:
        return f"{value_ms * 1000:g} µs"
    return f"{value_ms:g} ms" if value_ms < 999 else f"{value_ms / 1000:g} s"


def _draw_requests(axes: Axes, picture: _Picture, panel: _Panel) -> None:
    """Every request of a client. One that has no latency waited until its deadline was over."""
    rows = panel.requests
    x = rows["due_s"].to_numpy(dtype=float) - picture.zero_s
    y = np.nan_to_num(rows["latency_ms"].to_numpy(dtype=float), nan=picture.high_ms)
    outcome, sent = rows["outcome"].to_numpy(dtype=str), rows["sent"].to_numpy(dtype=bool)
    y = np.where(sent, np.maximum(y, picture.low_ms), picture.drill.deadline_ms or picture.high_ms)
    crowding = min(1.6, max(0.3, math.sqrt(160 / max(len(rows), 1))))
    looks: dict[str, dict[str, Any]] = {
        "not sent": {"marker": 2, "s": 26, "color": QUIET, "linewidths": 0.7, "zorder": 2},
        "ok": {
            "marker": "o",
            "s": 11 * crowding,
            "color": _colour_of(panel.client),
            "linewidths": 0,
            "alpha": 0.75,
            "zorder": 3,
        },
        "unknown": {
            "marker": "D",
            "s": 15 * crowding,
            "facecolors": "white",
            "edgecolors": UNKNOWN_COLOUR,
            "linewidths": 0.9,
            "zorder": 4,
        },
        "fail": {
            "marker": "x",
            "s": 16 * crowding,
            "color": ALARM,
            "linewidths": 0.9,
            "zorder": 5,
        },
    }
    many = len(picture.drill.requests) > AS_SHAPES
    for kind, look in looks.items():
        chosen = ~sent if kind == "not sent" else (outcome == kind) & sent
        if chosen.any():
            dots = axes.scatter(x[chosen], y[chosen], rasterized=many, clip_on=False, **look)
            dots.set_gid(f"{panel.client.name} {kind}")


def _draw_outages(figure: Figure, axes: Axes, picture: _Picture, panel: _Panel) -> None:
    """A bar an outage or slow stretch, above the deadline; the longest outage of all is named."""
    decades = math.log10(picture.top_ms() / picture.low_ms)
    per_in = decades / picture.panel_in

    def at_ms(above_in: float) -> float:
        return float(picture.top_ms() / 10 ** ((_HEADROOM_IN - above_in) * per_in))

    def bar(stretch: Outage | SlowStretch, colour: str, name: str) -> tuple[float, float]:
        begin = max(stretch.begin_s - picture.zero_s, picture.begin)
        end = min(stretch.end_s - picture.zero_s, picture.end)
        line: dict[str, Any] = {"linewidth": 2.4, "solid_capstyle": "butt", "zorder": 4}
        axes.plot([begin, end], [at_ms(0.1)] * 2, color=colour, gid=name, **line)
        if not stretch.ended:
            head: dict[str, Any] = {"marker": ">", "markersize": 5, "clip_on": False, "zorder": 5}
            axes.plot([end], [at_ms(0.1)], color=colour, **head)
        return begin, end

    for stretch in panel.client.slow:
        bar(stretch, SLOW_COLOUR, "slow")
    worst = longest(picture.drill)
    for outage in panel.client.outages:
        ends = bar(outage, INK, "outage")
        if outage is worst:
            _name_outage(figure, picture, panel, outage, ends)


def _name_outage(
    figure: Figure, picture: _Picture, panel: _Panel, outage: Outage, ends: tuple[float, float]
) -> None:
    least = "" if outage.ended else "at least "
    text = f"longest outage, {least}{seconds(outage.duration_s)}"
    width = text_width(text, LABEL)
    per_s = _PLOT_IN / (picture.end - picture.begin)
    middle = (sum(ends) / 2 - picture.begin) * per_s
    middle = min(max(middle, width / 2), _PLOT_IN - width / 2)
    y = panel.bottom + picture.panel_in - _HEADROOM_IN + 0.15
    write(figure, (_LEFT_IN + middle, y), text, LABEL, ("center", "baseline"))


def _draw_strip(figure: Figure, picture: _Picture, panel: _Panel) -> None:
    """The share that was ok of the requests due in each bin; what is hatched had none."""
    bottom = panel.bottom - _STRIP_GAP_IN - _STRIP_IN
    axes = picture.axes(figure, bottom, _STRIP_IN)
    axes.set_label(f"{panel.client.name} strip")
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.patch.set_facecolor("white")
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(QUIET)
        spine.set_linewidth(0.5)
    edges, shares = shares_by_bin(
        panel.requests["due_s"].to_numpy(dtype=float) - picture.zero_s,
        panel.requests["outcome"].to_numpy(dtype=str) == "ok",
        (picture.begin, picture.end),
        picture.bin_s,
    )
    for left, right, share in zip(edges, edges[1:], shares, strict=False):
        if math.isnan(share):
            looks: dict[str, Any] = {"facecolor": "white", "edgecolor": QUIET, "hatch": "//////"}
        else:
            looks = {"facecolor": colour_of(share), "edgecolor": "none"}
        axes.add_patch(Rectangle((left, 0), right - left, 1, linewidth=0, **looks))
    for phase in picture.drill.phases:
        _write_share(figure, picture, panel, phase, bottom)


def shares_by_bin(
    due_s: Values, is_ok: Any, ends: tuple[float, float], bin_s: float
) -> tuple[Values, Values]:
    """Edges of the bins, shape (n + 1,), and the share that was ok in each, shape (n,).

    0 is an edge; the first and the last bin are cut at `ends`. NaN where nothing was due.
    """
    first, last = math.floor(ends[0] / bin_s + 1e-9), math.ceil(ends[1] / bin_s - 1e-9)
    edges = np.arange(first, max(last, first + 1) + 1, dtype=np.float64) * bin_s
    attempted, _ = np.histogram(due_s, edges)
    ok, _ = np.histogram(due_s[is_ok], edges)
    with np.errstate(invalid="ignore"):
        shares = ok / attempted
    return np.clip(edges, *ends), np.asarray(shares, dtype=np.float64)


def _write_share(
    figure: Figure, picture: _Picture, panel: _Panel, phase: Phase, strip: float
) -> None:
    """Below a strip, what share was ok in each phase, as fully as there is room for."""
    figures = panel.client.phases.get(phase.name)
    if figures is None or phase.begin_s is None or phase.end_s is None or not figures.attempted:
        return
    per_s = _PLOT_IN / (picture.end - picture.begin)
    left, right = ((t - picture.zero_s - picture.begin) * per_s for t in (phase.begin_s, phase.end_s))
    share = percent(figures.availability)
    for text in (f"{share} of {figures.attempted} ok", f"{share} ok", share):
        if text_width(text, ASIDE) + 0.05 <= right - left:
            at = (_LEFT_IN + (left + right) / 2, strip - _SHARES_IN + 0.06)
            write(figure, at, text, ASIDE, ("center", "baseline"))
            return


def _write_vantage(figure: Figure, picture: _Picture, panel: _Panel, vantage: Vantage) -> None:
    site = f" in {vantage.site}" if vantage.site and vantage.site != vantage.at else ""
    where = f"on {vantage.at}{site}, asks {'itself' if vantage.ask == vantage.at else vantage.ask}"
    name, aside = fitted(vantage.name, where, _WIDTH_IN - 2 * _MARGIN_IN)
    y = panel.bottom + picture.panel_in + 0.09
    write(figure, (_MARGIN_IN, y), name, GROUP)
    if aside:
        write(figure, (_MARGIN_IN + text_width(name, GROUP) + 0.1, y), aside, SUBTITLE)


def fitted(name: str, aside: str, width: float) -> tuple[str, str]:
    """`name` and `aside` as far as both fit into a line of `width`."""
    name = wrapped(name, width, GROUP)[0] if name else name
    room = width - text_width(name, GROUP) - 0.1
    if text_width(aside, SUBTITLE) <= room:
        return name, aside
    return name, ""


def _write_below(figure: Figure, picture: _Picture) -> None:
    """The axis of time, below the shares of the lowest strip, and the caption."""
    axes = picture.axes(figure, picture.bottom, 0.001)
    axes.set_label("time")
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(
        axis="x", length=3, pad=2, labelbottom=True, labelsize=LABEL.size_pt, color=QUIET
    )
    middle = _LEFT_IN + _PLOT_IN / 2
    y = picture.below + 0.07
    during = any(p.name == "during" and p.reached for p in picture.drill.phases)
    since = "the phase `during` began" if during else "the drill began to measure"
    write(figure, (middle, y), f"seconds since {since}", LABEL, ("center", "baseline"))
    for number, line in enumerate(reversed(picture.caption)):
        write(figure, (_MARGIN_IN, _MARGIN_IN + number * _LINE_IN), line, ASIDE)
