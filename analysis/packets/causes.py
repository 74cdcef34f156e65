"""Which messages have their cause in some request, seen closely: each left at once after the start
of a request at the node that was asked, or after another such message arrived.

Stricter than a chain, which may wait for a disk, and for all requests at once: it does not matter
here whose a message is, only whether it is anybody's. What a timer sends is not, nor what answers
that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from analysis.packets.chains import AT_ONCE_NS, LOOSE_NS
from analysis.packets.messages import NEVER, messages_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from analysis.packets.record import Record

    Bools = NDArray[np.bool_]


def without_request(record: Record, samples: pd.DataFrame) -> Bools:
    """Which packets are messages that no request is seen to have caused; shape (packets,).

    `samples` are all of the record's system.
    """
    import numpy as np

    messages = messages_of(record)
    starts = _starts(record, samples)
    source, stream = (
        getattr(record, name)[messages.packet].tolist() for name in ("source", "stream")
    )
    target = record.target[messages.packet].tolist()
    entry, arrival = messages.entry_ns.tolist(), messages.arrival_ns.tolist()
    held_back = set(messages.releases[messages.releases >= 0].tolist())
    is_ack = (messages.releases >= 0).tolist()
    # Arrivals at each node, in order; a message arrives after all that are looked at before it.
    arrivals: list[list[tuple[int, int]]] = [[] for _ in record.nodes]
    for one in np.argsort(messages.arrival_ns, kind="stable").tolist():
        if arrival[one] < NEVER and not is_ack[one]:
            arrivals[target[one]].append((arrival[one], one))
    asked = [False] * len(entry)
    before: dict[int, int] = {}
    for one, now in enumerate(entry):
        if is_ack[one]:
            continue
        node = source[one]
        if one in held_back and stream[one] in before:
            asked[one] = asked[before[stream[one]]]  # it was to leave with the one before
        else:
            asked[one] = _is_asked(now, starts.get(node, []), arrivals[node], asked)
        before[stream[one]] = one
    result = np.zeros(len(record), dtype=bool)
    result[messages.packet] = ~(np.array(asked, dtype=bool) | np.array(is_ack, dtype=bool))
    return result


def _is_asked(
    now: int, starts: list[int], arrivals: list[tuple[int, int]], asked: list[bool]
) -> bool:
    """Whether what leaves a node now has a request's start or message just before it.

    Of what came within `AT_ONCE_NS` any will do; if nothing did, the latest within `LOOSE_NS`.
    """
    place = bisect_right(arrivals, (now, 1 << 62)) - 1
    begun = bisect_right(starts, now) - 1
    start = starts[begun] if begun >= 0 else -NEVER
    if now - start <= AT_ONCE_NS:
        return True
    latest = arrivals[place][0] if place >= 0 else -NEVER
    if now - latest > AT_ONCE_NS:
        if now - max(start, latest) > LOOSE_NS:
            return False
        return start >= latest or asked[arrivals[place][1]]
    first = bisect_left(arrivals, (now - AT_ONCE_NS, -1))
    return any(asked[message] for _, message in arrivals[first : place + 1])


def _starts(record: Record, samples: pd.DataFrame) -> dict[int, list[int]]:
    """When requests were begun, by the nodes that begin to speak then: client and asked node."""
    starts: dict[int, list[int]] = {}
    rows = samples.reindex(columns=["start_ns", "client", "target"])
    rows = rows[rows["start_ns"].notna()].sort_values("start_ns", kind="stable")
    for client, target, start_ns in zip(
        rows["client"], rows["target"], rows["start_ns"].tolist(), strict=True
    ):
        for name in {client, target if isinstance(target, str) else record.asked}:
            node = record.node_of(name) if isinstance(name, str) else None
            if node is not None:
                starts.setdefault(node, []).append(int(start_ns))
    return starts
