"""Which data each bare acknowledgement confirms, and since when that was on its way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wanlat.analysis.packets.messages import by_stream, confirmed_upto

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.packets.record import Record

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_ACK = 16


def confirming_only(record: Record, marked: Bools) -> Bools:
    """Which packets are bare acknowledgements of marked packets and of nothing else; (packets,).

    An acknowledgement confirms what the ones before it on its stream, those on packets with data
    among them, had not. One that confirms nothing new is of no data.
    """
    import numpy as np

    result = np.zeros(len(record), dtype=bool)
    for data, acks, before, upto in _confirmed(record):
        sums = np.r_[0, np.cumsum(marked[data])]
        result[acks] = record.is_bare_ack[acks] & (upto > before)
        result[acks] &= sums[upto] - sums[before] == upto - before
    return result


def since_ns(record: Record) -> Ints:
    """When each packet entered a link; of a bare acknowledgement, when what it confirms did."""

    result = record.entry_ns.copy()
    for data, acks, before, upto in _confirmed(record):
        new = record.is_bare_ack[acks] & (upto > before)
        result[acks[new]] = record.entry_ns[data][upto[new] - 1]
    return result


def _confirmed(record: Record) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """For each stream of data the data in order, what acknowledges, and how far before and after.

    How far: how many of the data packets are confirmed before, and with, each acknowledgement.
    """
    import numpy as np

    end = record.seq + record.payload_bytes + (record.flags & 2 != 0)
    carries = np.flatnonzero(record.is_tcp & (end > record.seq))
    has_ack = np.flatnonzero(record.is_tcp & (record.flags & _ACK != 0))
    answers = {int(record.stream[places[0]]): places for places in by_stream(record, has_ack)}
    for data in by_stream(record, carries):
        acks = answers.get(int(record.stream[data[0]]) ^ 1)
        if acks is None:
            continue
        ordered = data[np.argsort(end[data], kind="stable")]
        upto = np.searchsorted(end[ordered], confirmed_upto(record, data, acks), side="right")
        yield ordered, acks, np.r_[0, upto[:-1]], upto
