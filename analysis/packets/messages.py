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

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from wanlat.analysis.packets.record import ACK, SYN, WRAP, Bools, Ints, Record

AT_ONCE_NS = 3_000_000
"""A message that left within this time after another arrived at its site's router was most likely
caused by it: two ways over the LAN, the kernel, and a program that does not wait for a disk."""
_RELEASED_AT_ONCE_NS = 1_000_000
"""The same of an acknowledgement and the data that it let go, which no program has a hand in."""
FULL_SEGMENT_BYTES = 1448
"""Of data, where Ethernet's 1500 bytes have TCP's timestamps in them."""
INITIAL_WINDOW = 10
"""Segments (RFC 6928)."""
NEVER = 1 << 62


@dataclass(frozen=True)
class Messages:
    """The links that a critical path may be made of, in the order of entry; arrays (messages,)."""

    packet: Ints
    """The place in the record of the packet that carries it; of several, the last's."""
    releases: Ints
    """Of an acknowledgement that was waited for: the place, among these, of what it let go; -1."""
    arrival_ns: Ints
    """Of shape (packets,): when each packet had arrived with all before it; NEVER: it did not."""
    is_resent: Bools
    """Of shape (packets,): which packets of the record were there before."""


@lru_cache(maxsize=2)  # whatever is said of a record begins with them
def messages_of(record: Record) -> Messages:
    """Find the messages in a record, and the acknowledgements that somebody waited for."""
    packets = record.packets
    left_ns = record.ints("departure_ns")
    arrival_ns = np.where(left_ns >= 0, left_ns, NEVER)
    data = packets[packets["is_tcp"] & (packets["end"] > packets["seq"])]
    sent = data["end"].groupby(data["stream"]).cummax().groupby(data["stream"]).shift()
    is_resent = np.zeros(len(packets), dtype=bool)
    is_resent[data.index[data["end"] <= sent]] = True
    for _, stream in data.groupby("stream"):
        places = stream.index.to_numpy()
        begin, end = (stream[name].to_numpy() for name in ("seq", "end"))
        arrival_ns[places] = _handed_over(begin, end, arrival_ns[places])
    is_message = ~packets["is_tcp"].to_numpy()
    is_message[data.index] = ~is_resent[data.index]
    released = _waited_for(packets, data[is_message[data.index] & (data["flags"] & SYN == 0)])
    packet = np.flatnonzero(is_message | (released >= 0))
    number = np.full(len(packets) + 1, -1, dtype=np.int64)
    number[packet] = np.arange(len(packet))
    return Messages(packet, number[released[packet]], arrival_ns, is_resent)


def _handed_over(begin: Ints, end: Ints, arrival_ns: Ints) -> Ints:
    """When each packet of a stream is whole together with all before it."""
    edges = np.unique(np.r_[begin, end])
    first, last = np.searchsorted(edges, begin), np.searchsorted(edges, end)
    # Of the bytes between two edges, when the first copy arrived; then of all up to there.
    came_ns = np.full(len(edges), NEVER, dtype=np.int64)
    for low, high, arrival in zip(first, last, arrival_ns, strict=True):
        came_ns[low:high] = np.minimum(came_ns[low:high], arrival)
    return np.maximum.accumulate(came_ns)[last - 1]


def _waited_for(packets: pd.DataFrame, data: pd.DataFrame) -> Ints:
    """For each packet the place of the `data` that it let go, being an acknowledgement; else -1."""
    released = np.full(len(packets), -1, dtype=np.int64)
    is_ack = packets["is_tcp"] & (packets["flags"] & ACK != 0) & (packets["departure_ns"] >= 0)
    acks = dict(list(packets[is_ack].sort_values("departure_ns", kind="stable").groupby("stream")))
    for stream, sent in data.groupby("stream"):
        if (answers := acks.get(int(str(stream)) ^ 1)) is not None and len(sent) > 1:
            _let_go(sent, answers, released)
    return released


def _let_go(data: pd.DataFrame, acks: pd.DataFrame, released: Ints) -> None:
    """Mark in `released`, for one stream of data, the acknowledgements that it waited for.

    `acks` are those of the other direction in the order of arrival.
    """
    arrivals, entries = acks["departure_ns"].to_numpy(), data["entry_ns"].to_numpy()
    is_bare, takes = acks["is_bare_ack"].to_numpy(), arrivals - acks["entry_ns"].to_numpy()
    # How far data is confirmed before the first acknowledgement and after each, unwrapped.
    base = int(data["seq"].iloc[0])
    steps = np.diff(acks["ack"].to_numpy(), prepend=base % WRAP)
    steps = (steps + WRAP // 2) % WRAP - WRAP // 2
    confirmed = np.r_[base, np.maximum.accumulate(base + np.cumsum(steps))]
    sent, before, now = data["end"].to_numpy()[:-1], entries[:-1], entries[1:]
    is_full = data["payload_bytes"] >= FULL_SEGMENT_BYTES * data["segments"]
    # The last to arrive before the data left, and the first of those that arrived just then.
    last = np.searchsorted(arrivals, now, side="right") - 1
    first = np.searchsorted(
        arrivals, np.maximum(before, now - _RELEASED_AT_ONCE_NS - 1), side="right"
    )
    none = first > last
    first = np.minimum(first, len(arrivals) - 1)
    outstanding = sent - confirmed[first]
    nagle = ~is_full.to_numpy()[1:] & (confirmed[last + 1] >= sent)
    used_up = outstanding >= INITIAL_WINDOW * FULL_SEGMENT_BYTES
    used_up &= arrivals[first] - before >= takes[last]
    waited = ~none & is_bare[last] & (outstanding > 0) & (nagle | used_up)
    released[acks.index[last[waited]]] = data.index[1:][waited]
