"""The legend of a timeline: each mark that is on it, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from wanlat.analysis.charts.availability import colour_of
from wanlat.analysis.charts.drill_looks import (
    READ_COLOUR,
    SLOW_COLOUR,
    UNKNOWN_COLOUR,
    WRITE_COLOUR,
)
from wanlat.analysis.charts.lettering import LABEL, text_width
from wanlat.analysis.charts.style import ALARM, INK, QUIET

if TYPE_CHECKING:
    from wanlat.analysis.drill.model import Drill

LEGEND_IN = 0.22
"""Height of a line of it."""

_BOX_IN = 0.13


@dataclass(frozen=True)
class Key:
    """An entry of the legend: `shape` is what `draw_key` draws for it."""

    shape: str
    colour: str
    label: str

    @property
    def width(self) -> float:
        """Of its swatch, inches."""
        return {"shares": 0.5, "outage": 0.22}.get(self.shape, 0.14)


def keys_of(drill: Drill) -> list[Key]:
    """An entry for each kind of mark that is on the timeline of `drill`."""
    outcomes = drill.requests["outcome"].to_numpy(dtype=str)
    sent = drill.requests["sent"].to_numpy(dtype=bool)
    keys = [Key("ok", READ_COLOUR, "read ok"), Key("ok", WRITE_COLOUR, "write ok")]
    keys += [Key("fail", ALARM, "fail")] if ((outcomes == "fail") & sent).any() else []
    keys += [Key("unknown", UNKNOWN_COLOUR, "unknown")] if (outcomes == "unknown").any() else []
    keys += [Key("not sent", QUIET, "never sent")] if (~sent).any() else []
    keys += [Key("outage", INK, "outage")] if drill.outages else []
    is_slow = any(client.slow for client in drill.clients)
    keys += [Key("outage", SLOW_COLOUR, "slow")] if is_slow else []
    if drill.requests.empty:
        return []
    return [*keys, Key("shares", INK, "strips: 0 to 100 % ok"), Key("empty", INK, "none due")]


def key_lines(keys: Sequence[Key], left: float, right: float) -> list[list[tuple[float, Key]]]:
    """The entries of each line from `left` to `right`, and where each begins, inches."""
    lines: list[list[tuple[float, Key]]] = [[]]
    x = left
    for key in keys:
        needed = key.width + 0.07 + text_width(key.label, LABEL)
        if lines[-1] and x + needed > right:
            lines.append([])
            x = left
        lines[-1].append((x, key))
        x += needed + 0.26
    return lines


def draw_key(figure: Figure, key: Key, x: float, y: float) -> None:
    """Draw `key` with its swatch beginning at `x`, its middle at `y`, inches."""
    inches: Any = figure.dpi_scale_trans
    middle = x + key.width / 2

    def line(xs: Sequence[float], ys: Sequence[float], **looks: Any) -> None:
        figure.add_artist(Line2D(xs, ys, transform=inches, color=key.colour, **looks))

    def box(left: float, width: float, **looks: Any) -> None:
        corner = (left, y - _BOX_IN / 2)
        figure.add_artist(Rectangle(corner, width, _BOX_IN, transform=inches, **looks))

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
