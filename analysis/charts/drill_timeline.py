"""The timeline of a drill: every request, what was broken meanwhile, and what came back when.

A panel for each client's reads, and one for its writes, one below another on one axis of time: a
mark a request at the instant it was due, as high as it took from then on. Below each panel a strip
says which share of the requests of each short stretch was answered; above all of them stand the
faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wanlat.analysis.charts.drill_key import LEGEND_IN, draw_key
from wanlat.analysis.charts.drill_lanes import LANE_IN, draw_lanes
from wanlat.analysis.charts.drill_layout import (
    LEFT_IN,
    LINE_IN,
    MARGIN_IN,
    PHASES_IN,
    PLOT_IN,
    TITLE_IN,
    WIDTH_IN,
    Picture,
)
from wanlat.analysis.charts.drill_panel import draw_instants, draw_panel
from wanlat.analysis.charts.lettering import ASIDE, GROUP, LABEL, TITLE, text_width, write
from wanlat.analysis.charts.style import QUIET, applied

if TYPE_CHECKING:
    from wanlat.analysis.drill.model import Drill


def draw(drill: Drill) -> Figure:
    """The timeline of `drill`, however far it got."""
    with applied():
        picture = Picture.of(drill)
        figure = Figure(figsize=(WIDTH_IN, picture.height))
        FigureCanvasAgg(figure)
        _write_above(figure, picture)
        if picture.panels:
            _draw_faults(figure, picture)
            _draw_time(figure, picture)
        for panel in picture.panels:
            draw_panel(figure, picture, panel)
        for number, line in enumerate(reversed(picture.caption)):
            write(figure, (MARGIN_IN, MARGIN_IN + number * LINE_IN), line, ASIDE)
    return figure


def _write_above(figure: Figure, picture: Picture) -> None:
    y = picture.height - MARGIN_IN
    for line in picture.title:
        y -= TITLE_IN
        write(figure, (MARGIN_IN, y + 0.07), line, TITLE)
    for entry in picture.above:
        y -= LINE_IN
        write(figure, (MARGIN_IN, y + 0.04), entry.text, entry.lettering)
    y -= 0.08
    for keys in picture.legend:
        y -= LEGEND_IN
        for x, key in keys:
            middle = y + LEGEND_IN / 2
            draw_key(figure, key, x, middle)
            at = (x + key.width + 0.07, middle)
            write(figure, at, key.label, LABEL, ("left", "center_baseline"))


def _draw_faults(figure: Figure, picture: Picture) -> None:
    """The phases and the lanes; the shading of faults goes down through all panels."""
    drill, zero = picture.drill, picture.zero_s
    top = picture.lanes_top - PHASES_IN
    lanes = picture.axes(figure, top - picture.lanes_in, picture.lanes_in)
    lanes.set_label("lanes")
    lanes.set_ylim(picture.lanes_in, 0)
    lanes.set_axis_off()
    lanes.patch.set_visible(False)
    lanes.set_zorder(3)
    draw_instants(lanes, picture)
    draw_lanes(lanes, picture.placed, PLOT_IN)
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
    for phase in drill.phases:
        if phase.begin_s is None or phase.end_s is None:
            continue
        begin, end = phase.begin_s - zero, phase.end_s - zero
        _write_phase(figure, picture, phase.name, begin, end)


def _write_phase(figure: Figure, picture: Picture, name: str, begin: float, end: float) -> None:
    """The name of a phase above the middle of it, where it has the room."""
    per_s = PLOT_IN / (picture.end - picture.begin)
    left, right = (begin - picture.begin) * per_s, (end - picture.begin) * per_s
    if text_width(name, GROUP) + 0.06 <= right - left:
        at = (LEFT_IN + (left + right) / 2, picture.lanes_top - PHASES_IN + 0.07)
        write(figure, at, name, GROUP, ("center", "baseline"))


def _draw_time(figure: Figure, picture: Picture) -> None:
    """The axis of time, below the shares of the lowest strip."""
    axes = picture.axes(figure, picture.bottom, 0.001)
    axes.set_label("time")
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(
        axis="x", length=3, pad=2, labelbottom=True, labelsize=LABEL.size_pt, color=QUIET
    )
    middle = LEFT_IN + PLOT_IN / 2
    y = picture.below + 0.07
    during = any(p.name == "during" and p.reached for p in picture.drill.phases)
    since = "the phase `during` began" if during else "the drill began to measure"
    write(figure, (middle, y), f"seconds since {since}", LABEL, ("center", "baseline"))
