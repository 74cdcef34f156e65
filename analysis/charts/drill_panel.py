"""One client on a timeline: its requests, its outages, and the strip of its availability."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from wanlat.analysis.charts.availability import colour_of
from wanlat.analysis.charts.drill_layout import (
    HEADROOM_IN,
    LEFT_IN,
    MARGIN_IN,
    PLOT_IN,
    SHARES_IN,
    STRIP_GAP_IN,
    STRIP_IN,
    TEXT_IN,
    Panel,
    Picture,
)
from wanlat.analysis.charts.drill_looks import (
    RECOVERED_COLOUR,
    SLOW_COLOUR,
    UNKNOWN_COLOUR,
    colour_of_operation,
)
from wanlat.analysis.charts.lettering import (
    ASIDE,
    GROUP,
    LABEL,
    SUBTITLE,
    Lettering,
    text_width,
    wrapped,
    write,
)
from wanlat.analysis.charts.style import ALARM, FAINT, INK, QUIET, TINY_PT
from wanlat.analysis.drill.wording import longest, percent, seconds

if TYPE_CHECKING:
    from wanlat.analysis.drill.model import Outage, Phase, Place, SlowStretch
    from wanlat.analysis.statistics import Values

AS_SHAPES = 2000
"""Up to so many requests each is an element of an SVG; more of them are a picture in it."""


def draw_panel(figure: Figure, picture: Picture, panel: Panel) -> None:
    """Draw all of one client where `panel` says."""
    axes = picture.axes(figure, panel.bottom, picture.panel_in)
    axes.set_label(panel.client.name)
    axes.patch.set_visible(False)
    axes.set_yscale("log")
    axes.set_ylim(picture.low_ms, picture.top_ms())
    _scale_of_latency(axes, picture)
    for at_ms, style, width in (
        (picture.drill.deadline_ms, "-", 0.7),
        (panel.client.limit_ms, ":", 0.9),
    ):
        if at_ms is not None and picture.low_ms < at_ms <= picture.high_ms:
            axes.axhline(at_ms, color=QUIET, linestyle=style, linewidth=width, zorder=1)
    draw_instants(axes, picture)
    _draw_requests(axes, picture, panel)
    _draw_outages(axes, picture, panel)
    _draw_strip(figure, picture, panel)
    if panel.place is not None:
        _write_place(figure, picture, panel, panel.place)
    word = "reads" if panel.client.operation == "read" else "writes"
    at = (MARGIN_IN, panel.bottom + picture.panel_in / 2)
    lettering = Lettering(LABEL.size_pt, colour_of_operation(panel.client.operation), bold=True)
    write(figure, at, word, lettering, ("left", "center_baseline"))


def draw_instants(axes: Axes, picture: Picture) -> None:
    """Lines where phases begin and where all was normal again."""
    for begin in picture.borders:
        axes.axvline(begin, color=QUIET, linewidth=0.9, linestyle=(0, (4, 2.5)), zorder=1)
    for one in picture.placed:
        if one.span.marker_colour == RECOVERED_COLOUR:
            at = one.span.begin
            axes.axvline(at, color=RECOVERED_COLOUR, linewidth=1.1, linestyle=":", zorder=1)


def _scale_of_latency(axes: Axes, picture: Picture) -> None:
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


def _draw_requests(axes: Axes, picture: Picture, panel: Panel) -> None:
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
            "color": colour_of_operation(panel.client.operation),
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


def _draw_outages(axes: Axes, picture: Picture, panel: Panel) -> None:
    """A bar an outage or slow stretch, above the deadline; the longest outage of all is named."""
    decades = math.log10(picture.top_ms() / picture.low_ms)
    per_in = decades / picture.panel_in

    def at_ms(above_in: float) -> float:
        return float(picture.top_ms() / 10 ** ((HEADROOM_IN - above_in) * per_in))

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
            _name_outage(axes, picture, outage, ends)


def _name_outage(axes: Axes, picture: Picture, outage: Outage, ends: tuple[float, float]) -> None:
    least = "" if outage.ended else "at least "
    text = f"longest outage, {least}{seconds(outage.duration_s)}"
    share = text_width(text, LABEL) / PLOT_IN
    middle = (sum(ends) / 2 - picture.begin) / (picture.end - picture.begin)
    axes.text(
        min(max(middle, share / 2), 1 - share / 2),
        1 - (HEADROOM_IN - 0.15) / picture.panel_in,
        text,
        transform=axes.transAxes,
        fontsize=LABEL.size_pt,
        ha="center",
        va="baseline",
    )


def _draw_strip(figure: Figure, picture: Picture, panel: Panel) -> None:
    """The share that was ok of the requests due in each bin; what is hatched had none."""
    bottom = panel.bottom - STRIP_GAP_IN - STRIP_IN
    axes = picture.axes(figure, bottom, STRIP_IN)
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
    for left, right, share in (
        (*ends, share) for ends, share in zip(pairwise(edges), shares, strict=True)
    ):
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
    figure: Figure, picture: Picture, panel: Panel, phase: Phase, strip: float
) -> None:
    """Below a strip, what share was ok in each phase, as fully as there is room for."""
    figures = panel.client.phases.get(phase.name)
    if figures is None or phase.begin_s is None or phase.end_s is None or not figures.attempted:
        return
    per_s = PLOT_IN / (picture.end - picture.begin)
    left, right = (
        (t - picture.zero_s - picture.begin) * per_s for t in (phase.begin_s, phase.end_s)
    )
    share = percent(figures.availability)
    for text in (f"{share} of {figures.attempted} ok", f"{share} ok", share):
        if text_width(text, ASIDE) + 0.05 <= right - left:
            at = (LEFT_IN + (left + right) / 2, strip - SHARES_IN + 0.06)
            write(figure, at, text, ASIDE, ("center", "baseline"))
            return


def _write_place(figure: Figure, picture: Picture, panel: Panel, place: Place) -> None:
    """The client's name; its node and target as far as there is room."""
    site = f" in {place.site}" if place.site and place.site != place.node else ""
    where = f"on {place.node}{site}, target {place.target}"
    name, *rest = wrapped(place.name, TEXT_IN - 0.2, GROUP) or [""]
    name += "…" if rest else ""
    y = panel.bottom + picture.panel_in + 0.09
    write(figure, (MARGIN_IN, y), name, GROUP)
    # Drawn in few pixels, letters take a little more room than measured.
    after = 1.04 * text_width(name, GROUP) + 0.1
    if after + text_width(where, SUBTITLE) <= TEXT_IN:
        write(figure, (MARGIN_IN + after, y), where, SUBTITLE)
