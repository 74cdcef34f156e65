"""Labels of a sequence diagram: what leaves a node together has one, where there is room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from wanlat.analysis.charts.lettering import Lettering, text_width
from wanlat.analysis.charts.sequence_words import sizes, what_of
from wanlat.analysis.trace_model import Message

LABEL_PT = 6.5
LINE_IN = 0.115
"""From one label to the next."""

_TOGETHER_IN = 0.11
"""Messages that leave a node within this of each other share a label."""
_OFF_LANE_IN = 0.08
_LONGEST_LABEL = 24
_TRIED_LINES = (0, -1, 1, -2, 2, -3, 3)

Line = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Label:
    """A text at the tail of one or several arrows: `at` lane and milliseconds, and from there."""

    text: str
    is_path: bool
    at: tuple[float, float]
    offset_pt: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, group: Sequence[Message], lane: float = 0.0) -> Label:
        """What messages that leave a node together say: "4 × LockRLock 250–254 B"."""
        times = f"{len(group)} ×" if len(group) > 1 else ""
        parts = (times, what_of(group[0], _LONGEST_LABEL), sizes(group))
        is_path = any(message.on_chain for message in group)
        return cls(" ".join(filter(None, parts)), is_path, (lane, group[0].entry_ms))

    @property
    def width_in(self) -> float:
        """How wide it is."""
        return text_width(self.text, Lettering(LABEL_PT, bold=self.is_path))


def groups_of(
    messages: Sequence[Message], lanes: Mapping[str, int], ms_per_in: float
) -> list[list[Message]]:
    """The messages that share a label: alike, from one node to one side, at about the same time.

    What matters most comes first: the critical path's, then the request's, then all else.
    """

    def alike(message: Message) -> object:
        is_right = lanes[message.target] > lanes[message.source]
        what = what_of(message, _LONGEST_LABEL)
        return message.source, is_right, what, message.kind == "request"

    shown = [message for message in messages if message.entry_ms >= 0]
    groups = together(shown, alike, lambda one: one.entry_ms, _TOGETHER_IN * ms_per_in)
    return sorted(groups, key=lambda group: (min(map(_rank, group)), group[0].entry_ms))


def together(
    messages: Sequence[Message],
    key: Callable[[Message], object],
    at_ms: Callable[[Message], float],
    within_ms: float,
) -> list[list[Message]]:
    """Messages with the same key, each at most so long after the first of its group."""
    groups: list[list[Message]] = []
    latest: dict[object, list[Message]] = {}
    for message in sorted(messages, key=at_ms):
        group = latest.get(key(message))
        if group and at_ms(message) - at_ms(group[0]) <= within_ms:
            group.append(message)
        else:
            latest[key(message)] = [message]
            groups.append(latest[key(message)])
    return groups


def _rank(message: Message) -> int:
    if message.on_chain:
        return 0
    return 1 if message.kind == "request" else 2


def place(
    groups: Sequence[Sequence[Message]],
    axes: Axes,
    lanes: Mapping[str, int],
    path: Sequence[Line],
    taken: Sequence[Any],
) -> tuple[list[Label], int]:
    """Labels that overlap neither each other nor the texts `taken`; how many messages have none.

    A label stands at the tail, on that side of the lane to which nothing of it goes. Where its
    place is taken, or an arrow of the critical path passes, it moves up or down, then to the other
    side, then lies on the path, then gives up. The axes have been laid out.
    """
    figure = axes.get_figure()
    assert figure is not None
    to_in = axes.transData + figure.dpi_scale_trans.inverted()
    boxes = [
        text.get_window_extent().transformed(figure.dpi_scale_trans.inverted()) for text in taken
    ]
    page = axes.bbox.transformed(figure.dpi_scale_trans.inverted())
    lines = [Path(to_in.transform(line)) for line in path]
    placed: list[Label] = []
    unlabelled = 0
    for group in groups:
        label = Label.of(group, lanes[group[0].source])
        away = lanes[group[0].target] <= lanes[group[0].source]
        x, y = to_in.transform(label.at)
        tries = [
            (to_right, line, crossing)
            for crossing in (False, True)
            for to_right in (away, not away)
            for line in _TRIED_LINES
        ]
        for to_right, line, crossing in tries:
            off, down = _OFF_LANE_IN * (1 if to_right else -1), -line * LINE_IN
            left = x + off - (0 if to_right else label.width_in)
            bottom = y + down - LINE_IN / 2
            box = Bbox.from_bounds(left, bottom, label.width_in, LINE_IN)
            if not (
                page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
            ):
                continue
            if any(box.overlaps(other) for other in boxes):
                continue
            if crossing or not any(arrow.intersects_bbox(box, filled=False) for arrow in lines):
                boxes.append(box)
                placed.append(replace(label, offset_pt=(72 * off, 72 * down)))
                break
        else:
            unlabelled += len(group)
    return placed, unlabelled
