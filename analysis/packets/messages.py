"""What of a record carries a cause: messages, and the acknowledgements that a sender waited for.

A message is what makes somebody at the other end do something: data that was not sent before, the
SYN and SYN-ACK of a new connection, a datagram. It arrives when all of its stream up to its last
byte has: TCP hands nothing over before. So what was lost and sent again is one message, which left
when it was first sent and arrived when its last missing part did; what was sent again for nothing
is none.

A bare acknowledgement causes nothing, but in two cases in which the sender had data and waited:

- Nagle's algorithm (RFC 896) holds back a segment that is not full while anything is unconfirmed.
  Then the acknowledgement of everything outstanding arrives, and at once the segment leaves.
- The congestion window (RFC 5681) is used up: at least ten segments are outstanding, the stream
  has been silent for the time an acknowledgement takes, and goes on at once as one arrives.

Such an acknowledgement is a link from the data that it confirms to the data that it lets go.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.packets.record import Record

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

FULL_SEGMENT_BYTES = 1448
"""Of data, where Ethernet's 1500 bytes have TCP's timestamps in them."""
INITIAL_WINDOW = 10
"""Segments (RFC 6928)."""
AT_ONCE_NS = 1_000_000
"""Between an acknowledgement at the receiving site's router and the data it let go: two crossings
of the LAN and the kernel's work. Sites whose LANs take longer are given what they take besides."""

NEVER = 1 << 62


@dataclass(frozen=True)
class Messages:
    """The links that a chain may be made of, in the order of entry; arrays of shape (m,)."""

    packet: Ints
    """The place in the record of the packet that carries it; of several, the last's."""
    entry_ns: Ints
    arrival_ns: Ints
    """When all of it had left the link; NEVER: it did not."""
    releases: Ints
    """Of an acknowledgement that was waited for: the place, among these, of what it let go; -1."""
    is_resent: Bools
    """Of shape (packets,): which packets of the record were there before."""


def messages_of(record: Record) -> Messages:
    """Find the messages in a record, and the acknowledgements that somebody waited for.

    They are kept with the record: whatever is said of it begins with them.
    """
    kept: dict[str, object] = record.__dict__
    if not isinstance(found := kept.get("_messages"), Messages):
        found = kept["_messages"] = _messages_of(record)
    return found


def _messages_of(record: Record) -> Messages:
    import numpy as np

    arrival_ns = np.where(record.departure_ns >= 0, record.departure_ns, NEVER)
    is_new = ~record.is_tcp
    is_resent = np.zeros(len(record), dtype=bool)
    end = record.seq + record.payload_bytes + (record.flags & 2 != 0)
    carries = record.is_tcp & (end > record.seq)
    for places in by_stream(record, np.flatnonzero(carries)):
        sent = np.maximum.accumulate(end[places])
        new = np.r_[True, end[places][1:] > sent[:-1]]
        is_new[places], is_resent[places] = new, ~new
        arrival_ns[places] = _handed_over(record.seq[places], end[places], arrival_ns[places])
    released = _waited_for(record, is_new & record.is_tcp, end)
    packet = np.flatnonzero(is_new | (released >= 0))
    place = np.full(len(record), -1, dtype=np.int64)
    place[packet] = np.arange(len(packet))
    releases = np.where(released[packet] >= 0, place[released[packet]], -1)
    return Messages(packet, record.entry_ns[packet], arrival_ns[packet], releases, is_resent)


def by_stream(record: Record, places: Ints) -> list[Ints]:
    """`places` in a record, split by stream, their order kept."""
    import numpy as np

    ordered = places[np.argsort(record.stream[places], kind="stable")]
    cuts = np.flatnonzero(np.diff(record.stream[ordered])) + 1
    return [part for part in np.split(ordered, cuts) if len(part)]


def _handed_over(begin: Ints, end: Ints, arrival_ns: Ints) -> Ints:
    """When each packet of a stream, in the order of entry, is whole together with all before it."""
    import numpy as np

    in_order = bool(np.all(begin[1:] == end[:-1])) and bool(np.all(arrival_ns < NEVER))
    if in_order:
        return np.maximum.accumulate(arrival_ns)
    result = np.full(len(begin), NEVER, dtype=np.int64)
    # Bytes are had without a gap up to `have`; what lies beyond one waits in `beyond`.
    have, beyond = int(begin.min()), []
    waiting = sorted(range(len(begin)), key=lambda place: end[place])
    ripe = 0
    for place in np.argsort(arrival_ns, kind="stable"):
        if arrival_ns[place] == NEVER:
            break
        beyond.append((int(begin[place]), int(end[place])))
        beyond.sort()
        while beyond and beyond[0][0] <= have:
            have = max(have, beyond.pop(0)[1])
        while ripe < len(waiting) and end[waiting[ripe]] <= have:
            result[waiting[ripe]] = arrival_ns[place]
            ripe += 1
    return result


def _waited_for(record: Record, is_data: Bools, end: Ints) -> Ints:
    """For each packet the place of the data that it let go, being an acknowledgement; else -1."""
    import numpy as np

    released = np.full(len(record), -1, dtype=np.int64)
    acks = record.is_tcp & (record.flags & 16 != 0) & (record.departure_ns >= 0)
    streams_of_acks = {
        int(record.stream[places[0]]): places for places in by_stream(record, np.flatnonzero(acks))
    }
    late_ns = _turnaround_ns(record)
    for data in by_stream(record, np.flatnonzero(is_data & (record.flags & 2 == 0))):
        places = streams_of_acks.get(int(record.stream[data[0]]) ^ 1)
        if places is not None and len(data) > 1:
            patience_ns = AT_ONCE_NS + int(late_ns[record.source[data[0]]])
            _let_go(record, data, places, end, patience_ns, released)
    return released


def _let_go(
    record: Record, data: Ints, acks: Ints, end: Ints, patience_ns: int, released: Ints
) -> None:
    """Mark, for one stream of data, the acknowledgements that it waited for."""
    import numpy as np

    acks = acks[np.argsort(record.departure_ns[acks], kind="stable")]
    arrivals = record.departure_ns[acks].tolist()
    base = int(record.seq[data[0]])
    confirmed = confirmed_upto(record, data, acks).tolist()
    is_bare = record.is_bare_ack[acks].tolist()
    entries, ends = record.entry_ns[data].tolist(), end[data].tolist()
    payloads, segments = record.payload_bytes[data].tolist(), record.segments[data].tolist()
    for number in range(1, len(data)):
        ack = bisect_right(arrivals, entries[number]) - 1
        if ack < 0 or entries[number] - arrivals[ack] > patience_ns:
            continue
        if not is_bare[ack] or arrivals[ack] <= entries[number - 1]:
            continue  # a message let it go; or the data before left later, so nothing waited
        sent = ends[number - 1]
        first = ack  # of those that arrived together: what matters is what was outstanding before
        while (
            first > 0
            and arrivals[first - 1] > entries[number - 1]
            and (entries[number] - arrivals[first - 1] <= patience_ns)
        ):
            first -= 1
        before = confirmed[first - 1] if first else base
        if before >= sent:
            continue  # nothing was outstanding
        short = payloads[number] < FULL_SEGMENT_BYTES * segments[number]
        nagle = short and confirmed[ack] >= sent
        crossing_ns = arrivals[ack] - int(record.entry_ns[acks[ack]])
        silent_ns = arrivals[first] - entries[number - 1]
        window = sent - before >= INITIAL_WINDOW * FULL_SEGMENT_BYTES and silent_ns >= crossing_ns
        if nagle or window:
            released[acks[ack]] = data[number]


def confirmed_upto(record: Record, data: Ints, acks: Ints) -> Ints:
    """How far the data of one stream is confirmed after each of `acks`, in their order.

    As unwrapped sequence numbers; an acknowledgement that arrives late takes nothing back.
    """
    import numpy as np

    base = int(record.seq[data[0]])
    # As far beyond the first byte as the 32 bits of the header tell, then from one to the next.
    first = (record.ack[acks[:1]] - base + (1 << 31)) % (1 << 32) - (1 << 31)
    steps = (np.diff(record.ack[acks]) + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.maximum.accumulate(base + np.cumsum(np.r_[first, steps]))


def _turnaround_ns(record: Record) -> Ints:
    """What each node needs, seen from its site's router, to answer at once; shape (nodes,).

    The median time from a SYN to its SYN-ACK, which no program has a hand in.
    """
    import numpy as np

    opening = record.is_tcp & (record.flags & 2 != 0)
    asked: dict[int, int] = {}
    times: dict[int, list[int]] = {}
    for place in np.flatnonzero(opening).tolist():
        stream = int(record.stream[place])
        if record.flags[place] & 16 == 0:
            asked[stream] = int(record.departure_ns[place])
        elif asked.get(stream ^ 1, -1) >= 0:
            waited_ns = int(record.entry_ns[place]) - asked.pop(stream ^ 1)
            times.setdefault(int(record.source[place]), []).append(waited_ns)
    result = np.zeros(len(record.nodes), dtype=np.int64)
    for node, waits_ns in times.items():
        result[node] = max(0, int(np.median(waits_ns)))
    return result
