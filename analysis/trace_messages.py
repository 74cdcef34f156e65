"""The packets around one request, put together to messages, and told whose they are."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import numpy as np

from wanlat.analysis.first_bytes.labels import HEARTBEATS, labels_of
from wanlat.analysis.packets.background import Background
from wanlat.analysis.packets.critical_path import LOOSE_NS
from wanlat.analysis.packets.messages import AT_ONCE_NS, FULL_SEGMENT_BYTES, NEVER, messages_of
from wanlat.analysis.packets.record import Record
from wanlat.analysis.packets.streams import ACK, FIN, RST, SYN
from wanlat.analysis.trace_model import Kind, Message

TOGETHER_NS = 1_000_000
"""Packets of a stream that enter within this time of the one before are one message, unless each
says what it is."""

_REPLY = "reply to "
Span = tuple[int, int]


class Packets:
    """A system's packets, with labels of those within some spans, and what is background.

    The labels are taken from the pcapng file `capture`; where that is missing there are none.
    """

    def __init__(
        self, record: Record, background: Background, capture: Path, spans: Sequence[Span]
    ) -> None:
        self.record, self.background = record, background
        crossed_ns = record.departure_ns - record.entry_ns
        self.longest_ns = int(np.max(crossed_ns[record.departure_ns >= 0], initial=0))
        # What had just arrived as a span began may be answered in it.
        wider = [(begin - self.longest_ns, end) for begin, end in spans]
        present = {place for span in wider for place in self.within(span)}
        self._labels = labels_of(record, present, capture)

    def within(self, span: Span) -> list[int]:
        """The places of the packets that were on a link between the two instants of a span."""
        record, (begin, end) = self.record, span
        first = int(np.searchsorted(record.entry_ns, begin - self.longest_ns))
        places = range(first, int(np.searchsorted(record.entry_ns, end, side="right")))
        return [p for p in places if record.entry_ns[p] >= begin or record.departure_ns[p] > begin]

    def label(self, place: int) -> str | None:
        """What a packet is, where it is known."""
        record, flags = self.record, int(self.record.flags[place])
        if flags & SYN:
            return "SYN+ACK" if flags & ACK else "SYN"
        if record.payload_bytes[place] == 0 and flags & (FIN | RST):
            return "RST" if flags & RST else "FIN"
        return self._labels.get(place)


def messages_within(
    packets: Packets,
    span: Span,
    answered_ns: int,
    links: Sequence[int],
    ends: tuple[str, str],
) -> tuple[tuple[Message, ...], int]:
    """The messages that were on a link between the two instants of `span`, in order of entry.

    The span begins with the request. `links` are the places of the critical path's packets, `ends`
    the client and the target node. Bare acknowledgements are left out, but for those of the path;
    how many of them entered before the answer is the second result.
    """
    record, begin = packets.record, span[0]
    path = {place: number for number, place in enumerate(links, start=1)}
    present = packets.within(span)
    left_out = {place for place in present if record.is_bare_ack[place] and place not in path}
    bare_acks = sum(begin <= record.entry_ns[place] <= answered_ns for place in left_out)
    drawn = [place for place in present if place not in left_out]
    kinds = _Kinds(packets, path, begin, ends).of(drawn)
    latest: dict[int, list[int]] = {}
    bursts: list[list[int]] = []
    for place in drawn:
        stream = int(record.stream[place])
        if stream in latest and _is_more_of(packets, latest[stream], place, kinds, path):
            latest[stream].append(place)
        else:
            latest[stream] = [place]
            bursts.append(latest[stream])
    messages = (_message(packets, burst, kinds[burst[0]], path, begin) for burst in bursts)
    return tuple(messages), int(bare_acks)


class _Kinds:
    """Tells whose packets are, in the order of entry.

    The request's are those of its critical path, and what left its node

    - as a reply, by its label, to what is the request's;
    - at once after something of the request on its connection; not after something of others;
    - not long after something of the request arrived at the node, or after the request began at the
      client and the target node; or at once after something arrived at another node of the site
      (then the LAN handed it on);
    - as the answer that its connection owes, after all the time that a disk takes; or as the rest
      of what does not fit into one segment;
    - together with a packet of the critical path.

    Heartbeats by their label, and whatever idle windows show to come without requests, are nobody's
    unless the path has them.
    """

    def __init__(
        self, packets: Packets, path: dict[int, int], begin: int, ends: tuple[str, str]
    ) -> None:
        self.packets, self.record, self.path, self.begin = packets, packets.record, path, begin
        self.kinds: dict[int, Kind] = {}
        self.on_the_way: list[tuple[int, int]] = []
        self.arrived: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """Of each node, instants and places of what arrived there, in order."""
        self.unanswered: defaultdict[tuple[int, str | None], list[int]] = defaultdict(list)
        self.latest: dict[int, int] = {}
        """Of each stream, the place of what was sent last."""
        self.owed: Counter[int] = Counter()
        """Of each stream, how many of the request's messages it has not answered yet."""
        self.origin = {self.record.node_of(end) for end in ends}

    def of(self, drawn: Sequence[int]) -> dict[int, Kind]:
        """The kind of each packet, by its place in the record."""
        record = self.record
        for place in drawn:
            now = int(record.entry_ns[place])
            while self.on_the_way and self.on_the_way[0][0] <= now:
                self._arrive(*heapq.heappop(self.on_the_way))
            label = self.packets.label(place)
            if place in self.path:
                self.kinds[place] = "request"
            elif label in HEARTBEATS or self.packets.background.packets[place]:
                self.kinds[place] = "background"
            else:
                self.kinds[place] = "request" if self._is_mine(place, now, label) else "other"
            self.latest[int(record.stream[place])] = place
            self.owed[int(record.stream[place])] -= self._ends_one(place)
            if record.departure_ns[place] >= 0:
                heapq.heappush(self.on_the_way, (int(record.departure_ns[place]), place))
        return self.kinds

    def _arrive(self, instant: int, place: int) -> None:
        record, stream = self.record, int(self.record.stream[place])
        self.arrived[int(record.target[place])].append((instant, place))
        self.unanswered[stream, self.packets.label(place)].append(place)
        self.owed[stream ^ 1] += self._ends_one(place)

    def _ends_one(self, place: int) -> bool:
        """Whether a packet is the last of a message of the request: no full segment."""
        record = self.record
        is_full = record.payload_bytes[place] >= FULL_SEGMENT_BYTES * record.segments[place]
        return self.kinds[place] == "request" and not is_full

    def _is_mine(self, place: int, now: int, label: str | None) -> bool:
        if now < self.begin:
            return False
        record, node = self.record, int(self.record.source[place])
        stream = int(record.stream[place])
        asked = self.unanswered[stream ^ 1, (label or "").removeprefix(_REPLY)]
        if asked and label and label.startswith(_REPLY):
            return self.kinds[asked.pop(0)] == "request"
        at_once = self._came(node, now - AT_ONCE_NS)
        answered = [one for one in at_once if record.stream[one] == stream ^ 1]
        if answered:
            return self.kinds[answered[0]] == "request"
        is_first = node in self.origin and now - self.begin <= LOOSE_NS
        if is_first or any(
            self.kinds[one] == "request" for one in self._came(node, now - LOOSE_NS)
        ):
            return True
        others = self._goes_on(place, stream) or self._by_lan(node, now) or self._with_path(place)
        return others and not at_once

    def _came(self, node: int, since: int) -> list[int]:
        """What arrived at a node since some instant, the last first."""
        recent = takewhile(lambda arrival: arrival[0] >= since, reversed(self.arrived[node]))
        return [place for _, place in recent]

    def _goes_on(self, place: int, stream: int) -> bool:
        """Whether its connection owes the request an answer, or it is the rest of what was sent."""
        record, last = self.record, self.latest.get(stream)
        if self.owed[stream] > 0:
            return True
        if last is None or self.kinds[last] != "request":
            return False
        is_near = record.entry_ns[place] - record.entry_ns[last] <= LOOSE_NS
        is_resent = messages_of(record).is_resent[place]
        return bool(is_near or is_resent or not self._ends_one(last))

    def _by_lan(self, node: int, now: int) -> bool:
        """Whether something of the request came to another node of the site just before."""
        site = self.record.node_site[node]
        return any(
            self.kinds[one] == "request"
            for other in np.flatnonzero(self.record.node_site == site).tolist()
            for one in self._came(other, now - AT_ONCE_NS)
        )

    def _with_path(self, place: int) -> bool:
        """Whether a packet of the critical path leaves the node at the same time."""
        record = self.record
        return any(
            record.source[one] == record.source[place]
            and abs(int(record.entry_ns[one] - record.entry_ns[place])) <= AT_ONCE_NS
            for one in self.path
        )


def _is_more_of(
    packets: Packets, burst: list[int], place: int, kinds: dict[int, Kind], path: dict[int, int]
) -> bool:
    """Whether a packet is, to a reader, one message with those of its stream before it."""
    record, last = packets.record, burst[-1]
    is_resent = messages_of(record).is_resent
    return bool(
        packets.label(place) in (None, "DATA")
        and record.entry_ns[place] - record.entry_ns[last] <= TOGETHER_NS
        and not (record.is_bare_ack[place] or record.is_bare_ack[last] or is_resent[place])
        and kinds[place] == kinds[last]
        and record.payload_bytes[place]
        # What was lost is told of by itself, and a message has one place in the critical path.
        and record.departure_ns[place] >= 0
        and record.departure_ns[last] >= 0
        and not (place in path and any(one in path for one in burst))
    )


def _message(
    packets: Packets, places: list[int], kind: Kind, path: dict[int, int], begin: int
) -> Message:
    record, messages, first = packets.record, messages_of(packets.record), places[0]
    number = next((path[place] for place in places if place in path), None)
    entered, left = record.entry_ns[places], record.departure_ns[places]
    left = left[left >= 0]
    first_left = int(left.min()) if len(left) else None
    last_left = int(left.max()) if len(left) else None
    # Of the critical path, what was lost arrived when it had been sent again.
    if number is not None and last_left is None:
        last_left = int(messages.handed_over_ns[places[-1]])

    def since(instant: int | None) -> float | None:
        return None if instant is None or instant == NEVER else (instant - begin) / 1e6

    return Message(
        source=record.nodes[record.source[first]],
        target=record.nodes[record.target[first]],
        entry_ms=float(entered[0] - begin) / 1e6,
        last_entry_ms=float(entered[-1] - begin) / 1e6,
        first_departure_ms=since(first_left),
        departure_ms=since(last_left),
        bytes=int(record.wire_bytes[places].sum()),
        payload_bytes=int(record.payload_bytes[places].sum()),
        packets=int(record.segments[places].sum()),
        label=packets.label(first),
        on_chain=number,
        kind=kind,
        fate=str(record.fate[places[-1]]),
        resent=bool(messages.is_resent[first]),
        acknowledgement=bool(record.is_bare_ack[first]),
    )
