"""Lanes above a timeline: what was broken and when, each with its name, none over another.

Bars and names are placed from measured text, first fit: a fault goes to the topmost lane that has
room for its bar and for its name together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from wanlat.analysis.charts.lettering import Lettering, text_width
from wanlat.analysis.charts.style import INK, SMALL_PT

LANE_IN = 0.27
NAME = Lettering(SMALL_PT)

_BAR_IN = 0.17
_OCCURRENCE_IN = 0.05
_PAD_IN = 0.06
_APART_IN = 0.12
_ELLIPSIS = "…"
_SLACK = 1.05
"""Drawn in few pixels, letters take a little more room than measured."""


@dataclass(frozen=True)
class Span:
    """Something that lasted from `begin` to `end`; an instant where both are the same.

    An `open` one was still going on when nothing more is known of it. One that was only `meant`
    never came. `occurrences` are instants within. A `marker` (of matplotlib) is drawn for an
    instant. Times in seconds.
    """

    begin: float
    end: float
    name: str
    colour: str
    occurrences: tuple[float, ...] = ()
    is_open: bool = False
    meant: bool = False
    marker: str = ""
    marker_colour: str = field(default=INK)

    @property
    def is_instant(self) -> bool:
        """Whether it is a mark and no bar."""
        return bool(self.marker)


@dataclass(frozen=True)
class Placed:
    """A span in its lane (0 is the topmost), its name as it is written, and where that begins.

    `name_at` is in inches from the left end of the axis. `is_outside`: it stands beside its bar and
    not on it. `is_cut` says that the name in full had
    no room even on a lane of its own.
    """

    span: Span
    lane: int
    name: str
    name_at: float
    is_outside: bool
    is_cut: bool


def place(spans: Sequence[Span], begin: float, end: float, width_in: float) -> list[Placed]:
    """Give each of `spans` a lane on an axis from `begin` to `end` that is `width_in` wide."""
    per_s = width_in / (end - begin)
    lanes: list[list[tuple[float, float]]] = []
    placed = []
    for span in sorted(spans, key=lambda one: (one.begin, -one.end)):
        left = min(max((span.begin - begin) * per_s, 0.0), width_in)
        right = min(max((span.end - begin) * per_s, left), width_in)
        if span.is_instant:
            left, right = left - _PAD_IN, right + _PAD_IN
        name = shortened(span.name, width_in / _SLACK)
        needed = _SLACK * text_width(name, NAME)
        chosen: tuple[int, float] | None = None
        for lane in range(len(lanes) + 1):
            taken = lanes[lane] if lane < len(lanes) else []
            places = _name_places(left, right, needed, width_in, inside=not span.is_instant)
            for at in places:
                used = (min(left, at), max(right, at + needed))
                if all(used[1] + _APART_IN <= a or b + _APART_IN <= used[0] for a, b in taken):
                    chosen = lane, at
                    break
            if chosen:
                break
        assert chosen  # an empty lane takes anything
        lane, at = chosen
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append((min(left, at), max(right, at + needed)))
        is_outside = at >= right or at + needed <= left
        placed.append(Placed(span, lane, name, at, is_outside, name != span.name))
    return placed


def lanes_of(placed: Sequence[Placed]) -> int:
    """How many lanes there are."""
    return max((one.lane for one in placed), default=-1) + 1


def draw_lanes(axes: Axes, placed: Sequence[Placed], width_in: float) -> None:
    """Draw `placed` on `axes`: x in seconds, y in inches downwards from the top of the lanes."""
    begin, end = axes.get_xlim()
    per_in = (end - begin) / width_in
    for one in placed:
        span, top = one.span, one.lane * LANE_IN
        middle = top + _BAR_IN / 2
        if span.is_instant:
            axes.plot(
                *([span.begin], [middle]),
                marker=span.marker,
                markersize=5.5,
                color=span.marker_colour,
                markeredgewidth=1.3,
                clip_on=False,
                zorder=4,
            )
        else:
            _draw_bar(axes, span, top, (begin, end))
        axes.text(
            begin + one.name_at * per_in,
            middle,
            one.name,
            fontsize=NAME.size_pt,
            color=span.marker_colour if span.is_instant else INK,
            va="center_baseline",
            ha="left",
            zorder=5,
            # Lines of phases pass behind a name, not through it.
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.65, "pad": 0.6}
            if one.is_outside
            else None,
        )


def _draw_bar(axes: Axes, span: Span, top: float, limits: tuple[float, float]) -> None:
    left, right = max(span.begin, limits[0]), min(span.end, limits[1])
    axes.add_patch(
        Rectangle(
            (left, top),
            max(right - left, 0.0),
            _BAR_IN,
            facecolor="white" if span.meant else span.colour,
            edgecolor=INK,
            linewidth=0.7,
            linestyle="--" if span.meant else "-",
            zorder=2,
        )
    )
    if span.is_open:
        # It has no end that anybody saw, so the bar is given none.
        axes.plot(
            *([right], [top + _BAR_IN / 2]),
            marker=">",
            markersize=7,
            color=INK,
            clip_on=False,
            zorder=3,
        )
    for occurrence in span.occurrences:
        axes.plot(
            [occurrence, occurrence],
            [top + _BAR_IN, top + _BAR_IN + _OCCURRENCE_IN],
            color=INK,
            linewidth=0.9,
            solid_capstyle="butt",
            zorder=3,
        )


def shortened(name: str, width_in: float) -> str:
    """`name`, its middle left out where it is wider than `width_in`."""
    if text_width(name, NAME) <= width_in:
        return name
    fits, too_many = 1, len(name)
    while too_many - fits > 1:
        kept = (fits + too_many) // 2
        if text_width(_without_middle(name, kept), NAME) <= width_in:
            fits = kept
        else:
            too_many = kept
    return _without_middle(name, fits)


def _without_middle(name: str, kept: int) -> str:
    return name[: kept - kept // 2] + _ELLIPSIS + name[len(name) - kept // 2 :]


def _name_places(
    left: float, right: float, needed: float, width: float, *, inside: bool
) -> list[float]:
    """Where the name of a bar may begin, the best first, inches."""
    places = []
    if inside and needed + 2 * _PAD_IN <= right - left:
        return [left + _PAD_IN]
    if right + _PAD_IN + needed <= width:
        places.append(right + _PAD_IN)
    if left - _PAD_IN - needed >= 0:
        places.append(left - _PAD_IN - needed)
    # Room on neither side: across its own bar, which is light enough to be written on.
    return places or [min(max(left, 0.0), width - needed)]
