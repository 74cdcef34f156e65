"""Where things stand in a sequence diagram: lanes across, time downwards, labels where room is.

Lengths are inches; x from the first lane to the right, y from the request's start downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from wanlat.analysis.charts.lettering import Lettering, text_width
from wanlat.analysis.charts.sequence_words import sizes, what_of
from wanlat.analysis.trace_model import Lane, Message, Trace

LABEL_PT = 6.5
LINE_IN = 0.115
"""From one line of a label to the next."""

_LANES_WIDE_IN = 8.6
_GAP_IN = (1.25, 2.3)
_RTT_IN = 1.75
_HEIGHT_IN = (3.4, 30.0)
_LABEL_OFF_LANE_IN = 0.08
_MARGIN_IN = (0.3, 1.9)
_AFTER_IN = 0.32
"""At least so much is shown of the time after the answer."""
_MOST_LINES = 4
_LONGEST_LABEL = 24
_TRIED_LINES = (0, -1, 1, -2, 2, -3, 3)
_TOGETHER_IN = 0.11
"""Messages that leave a node within this of each other share a label."""


@dataclass(frozen=True)
class Scale:
    """From milliseconds and nodes to inches."""

    lanes: tuple[Lane, ...]
    gap_in: float
    in_per_ms: float
    top_ms: float
    bottom_ms: float
    left_in: float = _MARGIN_IN[0]
    right_in: float = _MARGIN_IN[0]

    def x(self, node: str) -> float:
        """Where the lane of a node is."""
        return self.gap_in * next(
            (place for place, lane in enumerate(self.lanes) if lane.node == node), 0
        )

    def y(self, at_ms: float) -> float:
        """Where an instant is."""
        return (at_ms - self.top_ms) * self.in_per_ms

    @property
    def width_in(self) -> float:
        """From the first lane to the last."""
        return self.gap_in * max(len(self.lanes) - 1, 1)

    @property
    def height_in(self) -> float:
        """From the top to the bottom."""
        return self.y(self.bottom_ms)


def scale_of(trace: Trace) -> Scale:
    """Lanes for the nodes that have a message (or all, where they are few), and time to scale."""
    used = {trace.client, trace.target}
    used |= {node for message in trace.messages for node in (message.source, message.target)}
    lanes = (
        trace.lanes if len(trace.lanes) <= 8 else tuple(n for n in trace.lanes if n.node in used)
    )
    gap = min(max(_LANES_WIDE_IN / max(len(lanes) - 1, 1), _GAP_IN[0]), _GAP_IN[1])
    ends = [trace.latency_ms]
    ends += [
        message.departure_ms
        for message in trace.messages
        if message.kind == "request" and message.departure_ms is not None
    ]
    # Beyond the last of the request's own messages only the background goes on.
    if not trace.chain and trace.rtt_ms:
        ends.append(min(trace.until_ms, trace.rtt_ms / 2))
    bottom = max(ends)
    unit = trace.rtt_ms if trace.rtt_ms and trace.rtt_ms >= 1 else _usual_crossing_ms(trace) * 2
    span = bottom * 1.02
    height = min(max(span / unit * _RTT_IN, _HEIGHT_IN[0]), _HEIGHT_IN[1])
    in_per_ms = height / span if span else 1.0
    # A little room above the request, in which the label of what leaves at once has its place.
    top = -0.34 / in_per_ms
    scale = Scale(lanes, gap, in_per_ms, top, bottom + 0.12 / in_per_ms)
    left, right = _margins(trace, scale)
    least = (trace.latency_ms + _AFTER_IN / in_per_ms) if in_per_ms else scale.bottom_ms
    return replace(scale, left_in=left, right_in=right, bottom_ms=max(scale.bottom_ms, least))


def _margins(trace: Trace, scale: Scale) -> tuple[float, float]:
    """The room beside the outer lanes, for the labels of what leaves them."""
    widths = {True: 0.0, False: 0.0}
    outer = {scale.lanes[0].node: True, scale.lanes[-1].node: False} if scale.lanes else {}
    for group in _together(trace, scale):
        is_left = outer.get(group[0].source)
        if is_left is None:
            continue
        for text, is_chain in _wordings(group)[0]:
            width = text_width(text, Lettering(LABEL_PT, bold=is_chain))
            widths[is_left] = max(widths[is_left], width)
    low, high = _MARGIN_IN
    off = 2 * _LABEL_OFF_LANE_IN + 0.02
    left, right = (min(max(width + off, low), high) for width in widths.values())
    return left, right


def _usual_crossing_ms(trace: Trace) -> float:
    crossings = sorted(
        one.departure_ms - one.entry_ms for one in trace.messages if one.departure_ms is not None
    )
    usual = crossings[len(crossings) // 2] if crossings else 0.0
    return max(usual, trace.latency_ms / 4, 0.01)


Segment = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Box:
    """A rectangle; y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two have more than an edge in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def is_crossed_by(self, segment: Segment) -> bool:
        """Whether a line between two points passes through it."""
        (x0, y0), (x1, y1) = segment
        enters, leaves = 0.0, 1.0
        for begin, way, low, high in (
            (x0, x1 - x0, self.left, self.right),
            (y0, y1 - y0, self.top, self.bottom),
        ):
            if way == 0:
                if not low < begin < high:
                    return False
                continue
            first, last = sorted(((low - begin) / way, (high - begin) / way))
            enters, leaves = max(enters, first), min(leaves, last)
        return enters < leaves


@dataclass(frozen=True)
class Line:
    """A line of a label, and whether it is of a message of the chain."""

    text: str
    is_chain: bool


@dataclass(frozen=True)
class Label:
    """A text at the tail of one or several arrows. `x`, `y`: its upper corner at the lane."""

    lines: tuple[Line, ...]
    x: float
    y: float
    to_right: bool
    box: Box = field(compare=False)


def labels_of(trace: Trace, scale: Scale, taken: Sequence[Box] = ()) -> tuple[list[Label], int]:
    """Labels that overlap neither each other nor `taken`; and how many messages have none.

    What leaves a node on one side at about the same time has one label: "4 × LockLock 249 B". It
    stands at the tail, on that side of the lane to which nothing of it goes. Where its place is
    taken, or an arrow of the chain passes, it moves up or down, then to the other side, then makes
    itself shorter, then lies on the chain, then gives up.
    """
    boxes = list(taken)
    placed: list[Label] = []
    unlabelled = 0
    groups = _together(trace, scale)
    thick = _chain_arrows(trace, scale)
    # What matters most finds its place first: the chain, then the request's, then all else.
    for group in sorted(groups, key=lambda one: (_rank(one), one[0].entry_ms)):
        label = _placed(group, scale, boxes, thick) or _placed(group, scale, boxes, [])
        if label is None:
            unlabelled += len(group)
            continue
        boxes.append(label.box)
        placed.append(label)
    return placed, unlabelled


def _rank(group: list[Message]) -> int:
    if any(message.on_chain for message in group):
        return 0
    return 1 if any(message.kind == "request" for message in group) else 2


def _together(trace: Trace, scale: Scale) -> list[list[Message]]:
    groups: list[list[Message]] = []
    latest: dict[tuple[str, bool, bool], list[Message]] = {}
    for message in trace.messages:
        if message.entry_ms < 0 or scale.y(message.entry_ms) > scale.height_in:
            continue
        side = scale.x(message.target) > scale.x(message.source)
        key = (message.source, side, message.kind == "request")
        group = latest.get(key)
        if group and scale.y(message.entry_ms) - scale.y(group[0].entry_ms) <= _TOGETHER_IN:
            group.append(message)
            continue
        latest[key] = [message]
        groups.append(latest[key])
    return groups


def _chain_arrows(trace: Trace, scale: Scale) -> list[Segment]:
    return [
        (
            (scale.x(one.message.source), scale.y(one.message.last_entry_ms)),
            (scale.x(one.message.target), scale.y(one.message.departure_ms)),
        )
        for one in trace.chain
        if one.message.departure_ms is not None
    ]


def _placed(
    group: list[Message], scale: Scale, boxes: list[Box], thick: list[Segment]
) -> Label | None:
    first = group[0]
    lane = scale.x(first.source)
    away = scale.x(first.target) <= lane  # from where its arrows go
    top = scale.y(first.entry_ms) - LINE_IN / 2
    for texts in _wordings(group):
        for to_right in (away, not away):
            room = _room(scale, first.source, to_right)
            x = lane + _LABEL_OFF_LANE_IN * (1 if to_right else -1)
            lines = [
                Line(_cut(text, room, Lettering(LABEL_PT, bold=is_chain)), is_chain)
                for text, is_chain in texts
            ]
            width = max(
                text_width(one.text, Lettering(LABEL_PT, bold=one.is_chain)) for one in lines
            )
            left, right = (x, x + width) if to_right else (x - width, x)
            for moved in _TRIED_LINES:
                y = top + moved * LINE_IN
                box = Box(left, y, right, y + LINE_IN * len(lines))
                fits = box.top >= 0 and box.bottom <= scale.height_in
                fits = fits and not any(box.overlaps(other) for other in boxes)
                if fits and not any(box.is_crossed_by(arrow) for arrow in thick):
                    return Label(tuple(lines), x, y, to_right, box)
    return None


def _room(scale: Scale, node: str, to_right: bool) -> float:
    """How wide a label beside a lane may be."""
    if to_right and node == scale.lanes[-1].node:
        room = scale.right_in
    elif not to_right and node == scale.lanes[0].node:
        room = scale.left_in
    else:
        room = scale.gap_in
    return room - 2 * _LABEL_OFF_LANE_IN


def _wordings(group: list[Message]) -> list[list[tuple[str, bool]]]:
    """What may be said of messages that leave together, the fullest first; and what is chain."""
    alike: dict[str, list[Message]] = {}
    for message in group:
        alike.setdefault(what_of(message, _LONGEST_LABEL), []).append(message)
    full = [_line(what, messages) for what, messages in alike.items()]
    if len(full) > _MOST_LINES:
        # The chain's line is not among those that are left out.
        full.sort(key=lambda one: not one[1])
        rest = sum(len(messages) for messages in alike.values())
        rest -= sum(len(messages) for messages in list(alike.values())[: _MOST_LINES - 1])
        full = [*full[: _MOST_LINES - 1], (f"and {rest} more", False)]
    short = [_line("", group)]
    return [full, short] if full != short else [full]


def _line(what: str, messages: list[Message]) -> tuple[str, bool]:
    times = f"{len(messages)} × " if len(messages) > 1 else ""
    text = f"{times}{what}{' ' if what else ''}{sizes(messages)}"
    return text, any(message.on_chain for message in messages)


def _cut(text: str, room: float, lettering: Lettering) -> str:
    """`text`, shortened in the middle until it is no wider than `room`."""
    if text_width(text, lettering) <= room:
        return text
    for kept in range(len(text) - 1, 4, -1):
        # More of the beginning than of the end, which has the size.
        end = min(kept // 2, 9)
        shorter = f"{text[: kept - end].rstrip()}…{text[len(text) - end :].lstrip()}"
        if text_width(shorter, lettering) <= room:
            return shorter
    return text[:4]
