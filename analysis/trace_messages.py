"""The packets around one request, put together to messages, and told whose they are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.trace_model import Kind, Message

if TYPE_CHECKING:
    from wanlat.analysis.first_bytes.labels import Key
    from wanlat.analysis.packets.background import Background
    from wanlat.analysis.packets.record import Record

TOGETHER_NS = 1_000_000
"""Packets of a stream that enter within this time of the one before are one message, unless each
says what it is."""
LOOSE_NS = 10_000_000
AT_ONCE_NS = 2_000_000
"""As in `analysis.packets.chains`: what makes a message the request's, or something else's."""

_NS_PER_MS = 1e6
_SYN, _FIN, _RST, _ACK = 2, 1, 4, 16


class Packets:
    """A system's packets, with what `Record` leaves out: fates, and labels within some spans."""

    def __init__(
        self,
        bundle: Bundle,
        record: Record,
        background: Background,
        spans: Sequence[tuple[int, int]],
    ) -> None:
        import pandas as pd

        from wanlat.analysis.first_bytes.labels import labels_within
        from wanlat.analysis.packets.messages import NEVER, messages_of

        self.record = record
        self.background = background.packets
        self.knows_background = background.seconds > 0
        path = bundle.directory / "packets.parquet"
        columns = ["source", "target", "fate", "ip_id"]
        self._table = pd.read_parquet(path, columns=columns)
        self._ip_id = self._table["ip_id"].fillna(-1).to_numpy(dtype="int64")
        capture = bundle.directory / "capture" / f"{record.system}.pcapng"
        before = longest_ns(record)  # what was under way as a span began has a label too
        wider = [(begin - before, end) for begin, end in spans]
        self._labels: dict[Key, str] = labels_within(capture, record.system, wider)
        messages = messages_of(record)
        self.is_resent = messages.is_resent
        self.arrival_ns = {
            int(packet): int(arrival)
            for packet, arrival in zip(messages.packet, messages.arrival_ns, strict=True)
            if arrival < NEVER
        }

    def fate(self, place: int) -> str:
        """What became of a packet."""
        return str(self._table["fate"].iat[int(self.record.row[place])])

    def label(self, place: int) -> str | None:
        """What a packet is, where it is known."""
        record, row = self.record, int(self.record.row[place])
        flags = int(record.flags[place])
        if flags & _SYN:
            return "SYN+ACK" if flags & _ACK else "SYN"
        if record.payload_bytes[place] == 0 and flags & (_FIN | _RST):
            return "RST" if flags & _RST else "FIN"
        direction = f"{self._table['source'].iat[row]}->{self._table['target'].iat[row]}"
        return self._labels.get((int(record.entry_ns[place]), direction, int(self._ip_id[row])))


def messages_within(
    packets: Packets,
    span: tuple[int, int],
    answered_ns: int,
    links: Sequence[int],
    client: str,
    target: str,
) -> tuple[tuple[Message, ...], int]:
    """The messages that were on a link between the two instants of `span`, in order of entry.

    The span begins with the request. `links` are the places of the chain's packets. Bare
    acknowledgements are left out, but for those of the chain; how many is the second answer.
    """
    import numpy as np

    record = packets.record
    begin, end = span
    first = int(np.searchsorted(record.entry_ns, begin - longest_ns(record)))
    last = int(np.searchsorted(record.entry_ns, end, side="right"))
    chain = {place: number for number, place in enumerate(links, start=1)}
    drawn, bare_acks = [], 0
    for place in range(first, last):
        if record.entry_ns[place] < begin and record.departure_ns[place] <= begin:
            continue
        if record.is_bare_ack[place] and place not in chain:
            bare_acks += bool(begin <= record.entry_ns[place] <= answered_ns)
            continue
        drawn.append(place)
    kinds = _kinds(packets, drawn, set(links), begin, client, target)
    bursts = _bursts(packets, drawn, kinds, chain)
    return tuple(_message(packets, burst, kinds, chain, begin) for burst in bursts), bare_acks


def longest_ns(record: Record) -> int:
    """How long a packet of the record was on a link at most."""
    import numpy as np

    crossed = record.departure_ns - record.entry_ns
    return int(np.max(crossed[record.departure_ns >= 0], initial=0))


def _kinds(
    packets: Packets,
    drawn: Sequence[int],
    chain: set[int],
    begin: int,
    client: str,
    target: str,
) -> dict[int, Kind]:
    """Whose each packet is.

    One of the request left a node where something of the request had arrived, or where it began;
    not long after, or at least not at once after something else.
    """
    record = packets.record
    origin = {record.site_of(client), record.site_of(target)}
    mine: dict[int, list[int]] = {}
    others: dict[int, list[int]] = {}
    on_the_way: list[tuple[int, int]] = []
    kinds: dict[int, Kind] = {}
    for place in drawn:
        now = int(record.entry_ns[place])
        for arrival, site in [one for one in on_the_way if one[0] <= now]:
            mine.setdefault(site, []).append(arrival)
        on_the_way = [one for one in on_the_way if one[0] > now]
        site = int(record.source_site[place])
        came = sorted(mine.get(site, []))
        if site in origin and now >= begin:
            came.insert(0, begin)
        since = came[bisect_right(came, now) - 1] if came and came[0] <= now else None
        if place in chain:
            kind: Kind = "request"
        elif packets.background[place]:
            kind = "background"
        elif since is None or now < begin or _came_of_others(others, record, place, now - since):
            kind = "other"
        else:
            kind = "request"
        kinds[place] = kind
        departure = int(record.departure_ns[place])
        if departure >= 0:
            if kind == "request":
                on_the_way.append((departure, int(record.target_site[place])))
            else:
                others.setdefault(int(record.target[place]), []).append(departure)
    return kinds


def _came_of_others(
    others: dict[int, list[int]], record: Record, place: int, since_ns: int
) -> bool:
    """Whether a packet left long after anything of the request came, and at once after others."""
    now = int(record.entry_ns[place])
    arrivals = others.get(int(record.source[place]), [])
    return since_ns > LOOSE_NS and any(0 <= now - one <= AT_ONCE_NS for one in arrivals)


@dataclass
class _Burst:
    places: list[int]
    label: str | None


def _bursts(
    packets: Packets, drawn: Sequence[int], kinds: dict[int, Kind], chain: dict[int, int]
) -> list[_Burst]:
    """Packets that are one message to a reader: one after the other of a stream, alike in kind."""
    record = packets.record
    open_: dict[int, _Burst] = {}
    bursts: list[_Burst] = []
    for place in drawn:
        label = packets.label(place)
        before = open_.get(int(record.stream[place]))
        if before is not None and _goes_on(packets, before, place, label, kinds, chain):
            before.places.append(place)
            continue
        burst = _Burst([place], label)
        open_[int(record.stream[place])] = burst
        bursts.append(burst)
    return bursts


def _goes_on(
    packets: Packets,
    burst: _Burst,
    place: int,
    label: str | None,
    kinds: dict[int, Kind],
    chain: dict[int, int],
) -> bool:
    record, last = packets.record, burst.places[-1]
    if label not in (None, "DATA"):
        return False
    if record.entry_ns[place] - record.entry_ns[last] > TOGETHER_NS:
        return False
    if record.is_bare_ack[place] or record.is_bare_ack[last] or packets.is_resent[place]:
        return False
    if kinds[place] != kinds[last] or not record.payload_bytes[place]:
        return False
    # What was lost is told of by itself, and a message has one place in the chain.
    if record.departure_ns[place] < 0 or record.departure_ns[last] < 0:
        return False
    return not (place in chain and any(one in chain for one in burst.places))


def _message(
    packets: Packets,
    burst: _Burst,
    kinds: dict[int, Kind],
    chain: dict[int, int],
    begin: int,
) -> Message:
    record, places = packets.record, burst.places
    number = next((chain[place] for place in places if place in chain), None)
    departures = [int(record.departure_ns[place]) for place in places]
    arrived = [departure for departure in departures if departure >= 0]
    last_ns = max(arrived) if arrived else None
    fate = packets.fate(places[-1])
    # Of the chain, what was lost arrived when it had been sent again.
    if number is not None and last_ns is None:
        last_ns = packets.arrival_ns.get(places[-1])

    def since(instant: Any) -> float:
        return (int(instant) - begin) / _NS_PER_MS

    return Message(
        source=record.nodes[int(record.source[places[0]])],
        target=record.nodes[int(record.target[places[0]])],
        entry_ms=since(record.entry_ns[places[0]]),
        last_entry_ms=since(record.entry_ns[places[-1]]),
        first_departure_ms=since(min(arrived)) if arrived else None,
        departure_ms=None if last_ns is None else since(last_ns),
        bytes=int(sum(record.wire_bytes[place] for place in places)),
        payload_bytes=int(sum(record.payload_bytes[place] for place in places)),
        packets=int(sum(record.segments[place] for place in places)),
        label=burst.label,
        kind=kinds[places[0]],
        on_chain=number,
        fate=fate,
        is_resent=bool(packets.is_resent[places[0]]),
        is_acknowledgement=bool(record.is_bare_ack[places[0]]),
    )
