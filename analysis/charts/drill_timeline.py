"""The timeline of a drill: every request, what was broken meanwhile, and what came back when.

A panel for each client's reads, and one for its writes, one below another on one axis of time: a
mark a request at the instant it was due, as high as it took from then on. Below each panel a strip
says which share of the requests sent in each short stretch was ok; above all of them stand the
faults, each on a line of its own and named beside it, where no line crosses its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.availability import UNSENT_COLOUR, colour_of
from wanlat.analysis.charts.drill_panel import Picture, draw_instants, draw_panel, draw_strip
from wanlat.analysis.charts.frame import WIDTH_IN, Words, dress
from wanlat.analysis.charts.lettering import ALARMING, GROUP, LABEL, Lettering
from wanlat.analysis.charts.style import INK, QUIET, SMALL_PT, applied
from wanlat.analysis.charts.wording import rtt_sentence
from wanlat.analysis.figures.drill.model import ClientFigures, Drill
from wanlat.analysis.names import count, shortened
from wanlat.analysis.report.drill import (
    claims_sentence,
    durability_sentence,
    ending,
    finding,
    outage_sentence,
)

_LANE_IN, _PANEL_IN, _STRIP_IN, _TIME_IN = 0.2, 1.15, 0.13, 0.02
_AROUND_IN = 0.36
"""What the words around a panel take: its client's name, the shares below its strip."""


def draw(drill: Drill) -> Figure:
    """The timeline of `drill`, however far it got."""
    picture, clients = Picture(drill), _ordered(drill)
    with applied():
        lanes_in = _LANE_IN * max(len(picture.spans), 1)
        heights = [lanes_in, *[_PANEL_IN, _STRIP_IN] * len(clients), _TIME_IN]
        if not clients:
            return _dressed(Figure(figsize=(WIDTH_IN, 0.1)), picture)
        height = sum(heights) + _AROUND_IN * len(clients) + 0.6
        figure = Figure(figsize=(WIDTH_IN, height), layout="constrained")
        FigureCanvasAgg(figure)
        engine: Any = figure.get_layout_engine()
        engine.set(h_pad=0.02, hspace=0.0, w_pad=0.02)
        grid = figure.subplots(len(heights), 1, height_ratios=heights)
        for axes in grid:
            axes.set_xlim(picture.ends)
            axes.patch.set_visible(False)
        _draw_lanes(grid[0], picture)
        named: set[str] = set()
        for number, client in enumerate(clients):
            panel, strip = grid[1 + 2 * number : 3 + 2 * number]
            if client.client not in named:
                named.add(client.client)
                head = _place(drill, client)
                panel.set_title(head, loc="left", fontsize=GROUP.size_pt, pad=3)
            draw_panel(panel, picture, client)
            draw_strip(strip, picture, client)
        _draw_time(grid[-1], picture)
        figure.align_ylabels(grid[1::2])
        _dressed(figure, picture, grid)
        _shade(figure, picture, grid)
    return figure


def _draw_lanes(axes: Axes, picture: Picture) -> None:
    """What was broken, and what came of it: a line each, its name to the left of the plot."""
    spans = picture.spans
    axes.set_label("lanes")
    axes.set_ylim(max(len(spans), 1) - 0.5, -0.5)
    axes.xaxis.tick_top()
    picture.phase_labels(axes, [[phase.name] for phase in picture.drill.phases], GROUP)
    axes.set_yticks(range(len(spans)), [span.short_name for span in spans], fontsize=SMALL_PT)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.spines[:].set_visible(False)
    draw_instants(axes, picture, 1.0)
    if not spans:
        axes.set_yticks([0], ["nothing was injected"], fontsize=SMALL_PT, color=QUIET)
    for y, span in enumerate(spans):
        if span.marker:
            axes.plot(
                [span.begin],
                [y],
                marker=span.marker,
                markersize=6,
                color=span.colour,
                clip_on=False,
            )
            axes.get_yticklabels()[y].set_color(span.colour)
            continue
        corner, width = (span.begin, y - 0.33), max(span.end - span.begin, 0.0)
        axes.add_patch(
            Rectangle(corner, width, 0.66, facecolor=span.colour, edgecolor=INK, linewidth=0.7)
        )
        if span.open:  # it has no end that anybody saw, so the bar is given none
            axes.plot([span.end], [y], marker=">", markersize=7, color=INK, clip_on=False)
        axes.vlines(span.occurrences, y - 0.33, y + 0.33, color=INK, linewidth=1.2)


def _draw_time(axes: Axes, picture: Picture) -> None:
    """The axis of time."""
    during = picture.drill.phases[1].begin_s is not None
    since = "the phase `during` began" if during else "the drill began to measure"
    axes.set_label("time")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(axis="x", length=3, pad=2, labelsize=LABEL.size_pt, color=QUIET)
    axes.set_xlabel(f"seconds since {since}", fontsize=LABEL.size_pt)


def _shade(figure: Figure, picture: Picture, grid: Sequence[Axes]) -> None:
    """Shade what was broken, from its line down through all panels."""
    top, bottom = grid[0].get_position(), grid[-1].get_position()
    ground = figure.add_axes((top.x0, bottom.y0, top.width, top.y1 - bottom.y0), label="ground")
    ground.set_xlim(picture.ends)
    ground.set_axis_off()
    ground.set(xticks=[], yticks=[])
    ground.set_zorder(-1)
    for span in picture.spans:
        if not span.marker:
            begin = max(span.begin, picture.ends[0])
            ground.axvspan(begin, span.end, facecolor=span.colour, alpha=0.38, linewidth=0)


def _dressed(figure: Figure, picture: Picture, axes: Sequence[Axes] = ()) -> Figure:
    drill = picture.drill
    plain = Lettering(SMALL_PT, INK, bold=True)
    wrong = any(claim.verdict == "does not hold" for claim in drill.claims)
    said = [
        (ending(drill), True),
        (durability_sentence(drill.durability), drill.durability.verdict == "fail"),
        (outage_sentence(drill), drill.recovered is False),
        (claims_sentence(each.verdict for each in drill.claims) if drill.claims else None, wrong),
    ]
    parts = [drill.description.strip().rstrip("."), f"on {drill.topology}"]
    if drill.interval_ms:
        parts.append(f"a read and a write of each client every {drill.interval_ms:g} ms")
    parts += [f"deadline {drill.deadline_ms / 1000:g} s"] if drill.deadline_ms else []
    parts += [f"times × {drill.scale:g}"] if drill.scale != 1 else []
    words = Words(
        title=finding(drill),
        subtitle=" · ".join(part for part in parts if part),
        caption=tuple(_caption(picture)),
    )
    verdicts = [(text, ALARMING if alarming else plain) for text, alarming in said if text]
    return dress(figure, words, keys=_keys(picture, axes), verdicts=verdicts)


def _keys(picture: Picture, axes: Sequence[Axes]) -> list[tuple[Any, str]]:
    """An entry for each kind of mark that is on the timeline, with how many there are of it.

    What stands for a mark is one that was drawn, so that both look alike.
    """
    requests = picture.drill.requests
    if requests.empty:
        return []
    outcome, sent, of = requests["outcome"], requests["sent"], requests["operation"]
    counts = {
        "reads ok": (outcome == "ok") & (of == "read"),
        "writes ok": (outcome == "ok") & (of == "write"),
        "fail": (outcome == "fail") & sent,
        "unknown": (outcome == "unknown") & sent,
        "due and never sent": ~sent,
    }
    drawn: dict[str, Any] = {}
    for one in axes:
        for artist, label in zip(*one.get_legend_handles_labels(), strict=True):
            drawn.setdefault(label, artist)
    keys = [
        (drawn[name], f"{name}: {rows.sum()}") for name, rows in counts.items() if name in drawn
    ]
    keys += [(drawn[name], name) for name in ("outage", "slow") if name in drawn]
    shares = tuple(Patch(facecolor=colour_of(n / 10), linewidth=0) for n in range(11))
    keys.append((shares, "0 to 100 % ok of what was sent"))
    if not sent.all():
        keys.append((Patch(facecolor=UNSENT_COLOUR), "none sent"))
    empty = Patch(facecolor="white", edgecolor=QUIET, hatch="//////", linewidth=0.4)
    return [*keys, (empty, "none due")]


def _caption(picture: Picture) -> list[str]:
    """How to read a timeline, and what stands in no other place on it; paragraphs."""
    drill, rtt = picture.drill, rtt_sentence(picture.drill.bundle, lines=False)
    if drill.requests.empty:
        return [rtt]
    dotted = any(client.limit_ms is not None for client in drill.clients)
    lines = [
        f"{count(len(drill.requests), 'request')}, each a mark where it was due, as high as it "
        "took from then on, waiting for its turn included: a stall is a falling ramp."
        + (" Solid line: the deadline." if drill.deadline_ms else "")
        + (" Dotted: an answer that takes longer counts as an outage." if dotted else "")
        + f" Strips: share that was ok of what was sent, in bins of {picture.bin_s:g} s by due "
        "time. Shaded: a fault in force, named at the top; ticks in its bar: single occurrences.",
        rtt,
    ]
    full = [span.name for span in picture.spans if span.name != span.short_name]
    full += shortened([drill.series])
    return [*lines, *([f"In full: {'; '.join(full)}."] if full else [])]


def _ordered(drill: Drill) -> list[ClientFigures]:
    order = {place.name: rank for rank, place in enumerate(drill.places)}
    return sorted(drill.clients, key=lambda one: (order.get(one.client, len(order)), one.operation))


def _place(drill: Drill, client: ClientFigures) -> str:
    """The client's name, its node and target."""
    for place in drill.places:
        if place.name == client.client:
            site = f" in {place.site}" if place.site and place.site != place.node else ""
            return f"{place.name}: on {place.node}{site}, target {place.target}"
    return client.client
