"""Streams: the directions of connections, numbered, and their sequence numbers unwrapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FIN, SYN, RST, ACK = 1, 2, 4, 16
_WRAP = 1 << 32


def streams_of(packets: pd.DataFrame) -> tuple[Ints, Ints]:
    """Number the streams of packets, which come in the order of entry; two arrays of shape (n,).

    Of `packets` it takes the columns `source`, `target` (nodes, by number), `source_port`,
    `target_port`, `is_tcp`, `flags` and `seq`. Returns the stream of each packet (`stream ^ 1` is
    the other direction of the same connection) and its sequence number, unwrapped within the
    stream (0 of UDP).
    """
    # Of the two ends, the one with the smaller (node, port) comes first.
    near = packets["source"] * 65536 + packets["source_port"]
    far = packets["target"] * 65536 + packets["target_port"]
    ends = [np.minimum(near, far), np.maximum(near, far), packets["is_tcp"]]
    pair = packets.groupby(ends, sort=True).ngroup()
    # Between two ends a new connection begins with each SYN, but for one that is sent again.
    is_syn = packets["is_tcp"] & (packets["flags"] & (SYN | ACK) == SYN)
    opening = packets["seq"].where(is_syn)
    latest = opening.groupby(pair).ffill().groupby(pair).shift()
    number = (is_syn & (opening != latest)).groupby(pair).cumsum()
    connection = packets.groupby([pair, number], sort=True).ngroup()
    stream = np.asarray(2 * connection + (near > far), dtype=np.int64)
    return stream, np.asarray(_unwrapped(packets["seq"], stream) * packets["is_tcp"])


def _unwrapped(seq: pd.Series[Any], stream: Ints) -> Ints:
    """Sequence numbers that go on beyond 2³², each stream's from its first packet's."""
    steps = seq.groupby(stream).diff().fillna(0).astype(np.int64)
    steps = (steps + _WRAP // 2) % _WRAP - _WRAP // 2  # the nearest of the numbers it may be
    first = seq.groupby(stream).transform("first")
    return np.asarray(first + steps.groupby(stream).cumsum(), dtype=np.int64)


def split(stream: Ints, places: Ints) -> list[Ints]:
    """`places` of packets, split by the `stream` of each packet, their order kept."""
    ordered = places[np.argsort(stream[places], kind="stable")]
    cuts = np.flatnonzero(np.diff(stream[ordered])) + 1
    return [part for part in np.split(ordered, cuts) if len(part)]
