"""Streams: the directions of connections, numbered, and their sequence numbers unwrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_SYN, _ACK = 2, 16
_WRAP = 1 << 32


def streams_of(
    source: Ints,
    target: Ints,
    source_port: Ints,
    target_port: Ints,
    is_tcp: Bools,
    flags: Ints,
    seq: Ints,
) -> tuple[Ints, Ints]:
    """Number the streams of packets in the order of entry; arrays of shape (n,).

    Returns the stream of each packet (`stream ^ 1` is the other direction of the same connection)
    and its sequence number, unwrapped within the stream (0 of UDP).
    """
    import numpy as np

    if len(source) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Of the two ends, the one with the smaller (node, port) comes first.
    near, far = source * 65536 + source_port, target * 65536 + target_port
    swapped = near > far
    low, high = np.minimum(near, far), np.maximum(near, far)
    pairs = np.stack([low, high, is_tcp.astype(np.int64)], axis=1)
    _, pair = np.unique(pairs, axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    order = np.argsort(pair, kind="stable")

    opens = is_tcp & (flags & _SYN != 0) & (flags & _ACK == 0)
    number = _openings(pair, order, opens, seq)
    _, connection = np.unique(np.stack([pair, number], axis=1), axis=0, return_inverse=True)
    stream = (2 * connection.reshape(-1) + swapped).astype(np.int64)
    return stream, np.where(is_tcp, _unwrapped(stream, seq), 0)


def _openings(pair: Ints, order: Ints, opens: Bools, seq: Ints) -> Ints:
    """How many connections have been opened between the two ends when each packet enters.

    A SYN that is sent again has the sequence number of the first, and opens nothing new.
    """
    import numpy as np

    number = np.zeros(len(pair), np.int64)
    latest: dict[int, tuple[int, int]] = {}
    for place in order[opens[order]]:
        key, first = int(pair[place]), int(seq[place])
        count, before = latest.get(key, (0, -1))
        if first != before:
            latest[key] = (count + 1, first)
            number[place] = 1
    sums = np.cumsum(number[order])
    starts = np.r_[True, np.diff(pair[order]) != 0]
    base = np.maximum.accumulate(np.where(starts, sums - number[order], 0))
    result = np.empty(len(pair), np.int64)
    result[order] = sums - base
    return result


def _unwrapped(stream: Ints, seq: Ints) -> Ints:
    """Sequence numbers that go on beyond 2³², each stream's from its first packet's."""
    import numpy as np

    order = np.argsort(stream, kind="stable")
    sorted_seq = seq[order]
    steps = np.diff(sorted_seq, prepend=sorted_seq[:1])
    steps = (steps + _WRAP // 2) % _WRAP - _WRAP // 2  # the nearest of the numbers it may be
    starts = np.r_[True, np.diff(stream[order]) != 0]
    steps[starts] = 0
    sums = np.cumsum(steps)
    places = np.maximum.accumulate(np.where(starts, np.arange(len(seq)), 0))
    result = np.empty(len(seq), np.int64)
    result[order] = sums - sums[places] + sorted_seq[places]
    return result
