"""Where everything goes on a timeline, known before a line is drawn.

Placed in inches from measured text, so that nothing overlaps however long a name is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from wanlat.analysis.charts.drill_key import LEGEND_IN, Key, key_lines, keys_of
from wanlat.analysis.charts.drill_lanes import LANE_IN, Placed, Span, lanes_of, place
from wanlat.analysis.charts.drill_looks import RECOVERED_COLOUR, colour_of_fault
from wanlat.analysis.charts.drill_words import (
    Line,
    caption_of,
    subtitle_of,
    title_of,
    verdict_lines,
)
from wanlat.analysis.charts.lettering import ASIDE, TITLE, wrapped
from wanlat.analysis.charts.style import ALARM
from wanlat.analysis.drill.wording import seconds

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.drill.model import ClientFigures, Drill, Place

WIDTH_IN = 10.0
MARGIN_IN = 0.18
TEXT_IN = WIDTH_IN - 2 * MARGIN_IN
LEFT_IN = 1.1
PLOT_IN = WIDTH_IN - LEFT_IN - 0.3
TITLE_IN, LINE_IN = 0.25, 0.165
PHASES_IN = 0.22
HEADROOM_IN = 0.3
STRIP_GAP_IN, STRIP_IN, SHARES_IN = 0.05, 0.13, 0.17
AXIS_IN = 0.42
_HEAD_IN = 0.27
_BETWEEN_IN = 0.1
_ROOMY_IN, _DENSE_IN = 1.3, 1.1
_ROOMY_CLIENTS = 4

_BINS = 120
_DUE_A_BIN = 2
_NICE = (1.0, 2.0, 5.0)


@dataclass(frozen=True)
class Panel:
    """One client: the lower edge of its plot, inches from the bottom of the figure."""

    client: ClientFigures
    place: Place | None
    """Set at the first panel of a client, which carries its name."""
    requests: pd.DataFrame
    bottom: float


@dataclass(frozen=True)
class Picture:
    """Everything that has to be known before a line is drawn; inches and seconds.

    Seconds are since `zero_s` of the drill, the begin of the phase `during`.
    """

    drill: Drill
    title: list[str]
    above: list[Line]
    caption: list[str]
    legend: list[list[tuple[float, Key]]]
    placed: list[Placed]
    panels: list[Panel]
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
    def of(cls, drill: Drill) -> Picture:
        """That of `drill`."""
        zero_s, begin, end = _times(drill)
        placed = place(_spans(drill, zero_s, end), begin, end, PLOT_IN)
        bin_s = bin_width_s(end - begin, (drill.interval_ms or 0.0) / 1000)
        title = wrapped(title_of(drill), TEXT_IN, TITLE)
        above = [
            Line(text, line.lettering)
            for line in (*subtitle_of(drill), *verdict_lines(drill))
            for text in wrapped(line.text, TEXT_IN, line.lettering)
        ]
        legend = key_lines(keys_of(drill), MARGIN_IN, WIDTH_IN - MARGIN_IN)
        caption = [
            text
            for paragraph in caption_of(drill, bin_s, placed)
            for text in wrapped(paragraph, TEXT_IN, ASIDE)
        ]
        clients = _ordered_clients(drill)
        panel_in = _ROOMY_IN if len(clients) <= _ROOMY_CLIENTS else _DENSE_IN
        head_in = (
            MARGIN_IN
            + TITLE_IN * len(title)
            + LINE_IN * len(above)
            + 0.08
            + LEGEND_IN * len(legend)
            + 0.04
        )
        # Without one request there is nothing to put on an axis, so there is none.
        lanes_in = PHASES_IN + LANE_IN * max(lanes_of(placed), 1) if clients else 0.0
        block_in = panel_in + STRIP_GAP_IN + STRIP_IN + SHARES_IN + _BETWEEN_IN
        heads = len({client.client for client in clients})
        panels_in = block_in * len(clients) + _HEAD_IN * heads - _BETWEEN_IN + 0.02
        below = MARGIN_IN + LINE_IN * len(caption) + 0.08
        height = head_in + below
        height += lanes_in + panels_in + AXIS_IN if clients else 0.0
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
        """Height of all lanes."""
        return LANE_IN * max(lanes_of(self.placed), 1)

    @property
    def borders(self) -> list[float]:
        """Where one phase follows another."""
        begins = [p.begin_s - self.zero_s for p in self.drill.phases if p.begin_s is not None]
        return [begin for begin in begins if begin > self.begin + 1e-6]

    @property
    def bottom(self) -> float:
        """Of the axis of time."""
        return self.below + AXIS_IN

    def top_ms(self) -> float:
        """Where the axes of latency end: so far above `high_ms` that outages have room there."""
        share = HEADROOM_IN / self.panel_in
        decades = math.log10(self.high_ms / self.low_ms)
        return float(self.low_ms * 10 ** (decades / (1 - share)))

    def axes(self, figure: Figure, bottom: float, height: float) -> Axes:
        """Axes as wide as the plot with time on x, everything else bare."""
        axes = figure.add_axes(
            (
                LEFT_IN / WIDTH_IN,
                bottom / self.height,
                PLOT_IN / WIDTH_IN,
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
    return zero, begin - zero, (end if end > begin else begin + 1.0) - zero


def _latency_limits(drill: Drill) -> tuple[float, float]:
    latencies = drill.requests["latency_ms"].to_numpy(dtype=float)
    known = latencies[np.isfinite(latencies) & (latencies > 0)]
    high = max([float(known.max())] if known.size else [100.0])
    high = max(high, drill.deadline_ms or 0.0)
    low = float(known.min()) / 2 if known.size else 1.0
    return min(max(low, 1e-3), high / 10), high


def _ordered_clients(drill: Drill) -> list[ClientFigures]:
    order = {name: rank for rank, name in enumerate(v.name for v in drill.places)}
    return sorted(drill.clients, key=lambda one: (order.get(one.client, len(order)), one.operation))


def _panels(
    drill: Drill, clients: Sequence[ClientFigures], top: float, panel_in: float, block_in: float
) -> list[Panel]:
    places = {place.name: place for place in drill.places}
    panels: list[Panel] = []
    seen: set[str] = set()
    y = top
    for client in clients:
        head = None
        if client.client not in seen:
            seen.add(client.client)
            head = places.get(client.client)
            y -= _HEAD_IN
        rows = drill.requests[
            (drill.requests["client"] == client.client)
            & (drill.requests["operation"] == client.operation)
        ]
        panels.append(Panel(client, head, rows, y - panel_in))
        y -= block_in
    return panels


def _spans(drill: Drill, zero_s: float, end: float) -> list[Span]:
    """What stands in the lanes: faults, deaths, and the return to normal."""
    spans = [
        Span(
            begin=fault.begin_s - zero_s,
            end=end if fault.end_s is None else fault.end_s - zero_s,
            name=fault.label,
            colour=colour_of_fault(fault.kind),
            occurrences=tuple(occurrence.at_s - zero_s for occurrence in fault.occurrences),
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
