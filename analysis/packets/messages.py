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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from wanlat.analysis.packets.record import Record
from wanlat.analysis.packets.streams import ACK, SYN, Bools, Ints, split

AT_ONCE_NS = 3_000_000
"""A message that left within this time after another arrived at its site's router was most likely
caused by it: two ways over the LAN, the kernel, and a program that does not wait for a disk."""
_RELEASED_AT_ONCE_NS = 1_000_000
"""The same of an acknowledgement and the data that it let go, which no program has a hand in. Sites
whose nodes take longer to answer a SYN are given what they take besides."""
FULL_SEGMENT_BYTES = 1448
"""Of data, where Ethernet's 1500 bytes have TCP's timestamps in them."""
INITIAL_WINDOW = 10
"""Segments (RFC 6928)."""
NEVER = 1 << 62
_WRAP = 1 << 32


@dataclass(frozen=True)
class Messages:
    """The links that a critical path may be made of, in the order of entry; arrays (messages,)."""

    packet: Ints
    """The place in the record of the packet that carries it; of several, the last's."""
    entry_ns: Ints
    arrival_ns: Ints
    """When all of it had left the link; NEVER: it did not."""
    releases: Ints
    """Of an acknowledgement that was waited for: the place, among these, of what it let go; -1."""
    handed_over_ns: Ints
    """Of shape (packets,): the same of every packet of the record, messages or not."""
    is_resent: Bools
    """Of shape (packets,): which packets of the record were there before."""


@lru_cache(maxsize=2)  # whatever is said of a record begins with them
def messages_of(record: Record) -> Messages:
    """Find the messages in a record, and the acknowledgements that somebody waited for."""
    arrival_ns = np.where(record.departure_ns >= 0, record.departure_ns, NEVER)
    is_new = ~record.is_tcp
    is_resent = np.zeros(len(record), dtype=bool)
    for places in split(record.stream, _data(record)):
        sent = np.maximum.accumulate(record.end[places])
        new = np.r_[True, record.end[places][1:] > sent[:-1]]
        is_new[places], is_resent[places] = new, ~new
        begin, end = record.seq[places], record.end[places]
        arrival_ns[places] = _handed_over(begin, end, arrival_ns[places])
    released = _waited_for(record, is_new)
    packet = np.flatnonzero(is_new | (released >= 0))
    place = np.full(len(record), -1, dtype=np.int64)
    place[packet] = np.arange(len(packet))
    releases = np.where(released[packet] >= 0, place[released[packet]], -1)
    entry_ns = record.entry_ns[packet]
    return Messages(packet, entry_ns, arrival_ns[packet], releases, arrival_ns, is_resent)


def confirmations(record: Record) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """For each stream of data the data in order, what acknowledges, and how far before and after.

    How far: how many of the data packets are confirmed before, and with, each acknowledgement.
    """
    for data, acks in _with_acks(record, _data(record), record.flags & ACK != 0):
        ordered = data[np.argsort(record.end[data], kind="stable")]
        confirmed = _confirmed_upto(record, data, acks)
        upto = np.searchsorted(record.end[ordered], confirmed, side="right")
        yield ordered, acks, np.r_[0, upto[:-1]], upto


def _data(record: Record) -> Ints:
    """The places of packets with something in their stream: data, or a SYN."""
    return np.flatnonzero(record.is_tcp & (record.end > record.seq))


def _with_acks(record: Record, data: Ints, is_ack: Bools) -> Iterator[tuple[Ints, Ints]]:
    """The places of each stream's data, with those of the other direction's acknowledgements."""
    acks = {
        int(record.stream[places[0]]): places
        for places in split(record.stream, np.flatnonzero(record.is_tcp & is_ack))
    }
    for places in split(record.stream, data):
        answers = acks.get(int(record.stream[places[0]]) ^ 1)
        if answers is not None:
            yield places, answers


def _confirmed_upto(record: Record, data: Ints, acks: Ints) -> Ints:
    """How far the data of one stream is confirmed after each of `acks`, in their order.

    As unwrapped sequence numbers; an acknowledgement that arrives late takes nothing back.
    """
    base = int(record.seq[data[0]])
    # As far beyond the first byte as the 32 bits of the header tell, then from one to the next.
    first = record.ack[acks[:1]] - base
    steps = (np.r_[first, np.diff(record.ack[acks])] + _WRAP // 2) % _WRAP - _WRAP // 2
    return np.maximum.accumulate(base + np.cumsum(steps))


def _handed_over(begin: Ints, end: Ints, arrival_ns: Ints) -> Ints:
    """When each packet of a stream, in the order of entry, is whole together with all before it."""
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


def _waited_for(record: Record, is_new: Bools) -> Ints:
    """For each packet the place of the data that it let go, being an acknowledgement; else -1."""
    released = np.full(len(record), -1, dtype=np.int64)
    data = np.flatnonzero(record.is_tcp & is_new & (record.flags & SYN == 0))
    arrived = (record.flags & ACK != 0) & (record.departure_ns >= 0)
    at_once_ns = _RELEASED_AT_ONCE_NS + _turnaround_ns(record)
    for places, acks in _with_acks(record, data, arrived):
        _let_go(record, places, acks, int(at_once_ns[record.source[places[0]]]), released)
    return released


def _turnaround_ns(record: Record) -> Ints:
    """What each node needs, seen from its site's router, to answer at once; shape (nodes,).

    The median time from a SYN to its SYN-ACK.
    """
    opening = np.flatnonzero(record.is_tcp & (record.flags & SYN != 0))
    syns = pd.DataFrame(
        {
            "is_answer": record.flags[opening] & ACK != 0,
            "entry_ns": record.entry_ns[opening],
            "departure_ns": record.departure_ns[opening],
        }
    )
    asked = syns.groupby(record.stream[opening] // 2).shift()
    answered = syns["is_answer"] & asked["is_answer"].eq(False) & (asked["departure_ns"] >= 0)
    waits_ns = (syns["entry_ns"] - asked["departure_ns"])[answered]
    median_ns = waits_ns.groupby(record.source[opening][answered]).median().clip(lower=0)
    return median_ns.reindex(range(len(record.nodes)), fill_value=0).to_numpy(dtype=np.int64)


def _let_go(record: Record, data: Ints, acks: Ints, at_once_ns: int, released: Ints) -> None:
    """Mark in `released`, for one stream of data, the acknowledgements that it waited for."""
    acks = acks[np.argsort(record.departure_ns[acks], kind="stable")]
    arrivals = record.departure_ns[acks].tolist()
    confirmed = [int(record.seq[data[0]]), *_confirmed_upto(record, data, acks).tolist()]
    is_bare = record.is_bare_ack[acks].tolist()
    entries, ends = record.entry_ns[data].tolist(), record.end[data].tolist()
    is_full = (record.payload_bytes >= FULL_SEGMENT_BYTES * record.segments)[data].tolist()
    for number in range(1, len(data)):
        before, now, sent = entries[number - 1], entries[number], ends[number - 1]
        ack = bisect_right(arrivals, now) - 1
        if ack < 0 or not is_bare[ack]:
            continue  # a message let it go
        # Of those that arrived together: what matters is what was outstanding before the first.
        first = bisect_right(arrivals, max(before, now - at_once_ns - 1))
        if first > ack or confirmed[first] >= sent:
            continue  # it came later, or nothing was outstanding: nothing waited
        nagle = not is_full[number] and confirmed[ack + 1] >= sent
        takes_ns = arrivals[ack] - int(record.entry_ns[acks[ack]])
        is_used_up = sent - confirmed[first] >= INITIAL_WINDOW * FULL_SEGMENT_BYTES
        if nagle or (is_used_up and arrivals[first] - before >= takes_ns):
            released[acks[ack]] = data[number]
