"""What crosses the links without any request: heartbeats, pings, gossip, healing.

It is learnt in the idle windows of the visits, in which nobody asks anything: messages that come as
often then as while requests are made are not the requests'. That is decided of classes of messages:
those of one length that go one way between two nodes, to or from one port, or on one connection.

Requests may send messages of a heartbeat's length too. Then those of some endpoint have one nearly
always, even where they are short and a heartbeat would seldom fall into them; and none of that
length is marked. Of a single message nothing can be told, so a message that is marked may still be
a link of a chain (`wanlat.analysis.packets.chains` says when).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.packets.acknowledged import confirming_only
from wanlat.analysis.packets.messages import by_stream, messages_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.packets.record import Record

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Values = NDArray[np.float64]

Span = tuple[int, int]

LEAST_SEEN = 3
"""Messages of a class in idle windows: fewer may be chance, or a straggler of what was asked."""
LEAST_PART = 0.5
"""Of a class, at least this part of what crossed while requests were made came without them."""

_MOST_CHANCE = 0.5
_SIGMAS = 3.0
_LEAST_EXCESS = 0.2
"""Of the requests of a kind: a length that fewer have, beyond chance, is not theirs."""


@dataclass(frozen=True)
class Background:
    """What of a record looks like background, and how much of it there is.

    `messages`, shape (packets,), marks those of classes that come without requests. `packets`
    marks these, what was sent again of them, and what acknowledges nothing but them. The windows'
    totals, shape (windows,), are of everything that crossed the links in them.
    """

    messages: Bools
    packets: Bools
    idle: Ints
    """The windows, as spans of ns, shape (windows, 2)."""
    window_s: Values
    window_bytes: Values
    window_packets: Values

    @property
    def seconds(self) -> float:
        """How long the idle windows last together."""
        return float(self.window_s.sum())

    @property
    def packets_per_s(self) -> float:
        """Over all links, when nobody asks anything; 0 if that was never watched."""
        return float(self.window_packets.sum()) / self.seconds if self.seconds else 0.0


def read_background(bundle: Bundle, record: Record) -> Background:
    """Learn a bundle's background in the idle windows of its visits; none without such windows."""
    from wanlat.analysis.visits import read_visits

    visits = read_visits(bundle)
    mine = visits.of(record.system) if visits is not None else ()
    idle = [visit.idle_ns for visit in mine if visit.idle_ns is not None]
    samples = bundle.samples
    asked = samples[(samples["system"] == record.system) & samples["start_ns"].notna()]
    ends = asked["start_ns"] + asked["elapsed_ns"].fillna(asked["total_ns"]).fillna(0)
    requests = {
        str(endpoint): list(zip(rows.tolist(), ends[rows.index].tolist(), strict=True))
        for endpoint, rows in asked.groupby("endpoint")["start_ns"]
    }
    return background_of(record, idle, requests)


def background_of(
    record: Record, idle: Iterable[Span], requests: Mapping[str, Iterable[Span]]
) -> Background:
    """Tell what is background from spans in which nobody asks, and those of requests, by kind."""
    import numpy as np

    def spans(given: Iterable[Span]) -> Ints:
        return np.array([one for one in given if one[1] > one[0]], dtype=np.int64).reshape(-1, 2)

    windows = spans(idle)
    marked = _marked(record, windows, {kind: spans(some) for kind, some in requests.items()})
    return Background(
        messages=marked,
        packets=and_what_follows(record, marked),
        idle=windows,
        window_s=_seconds(windows),
        window_bytes=totals(record.entry_ns, record.wire_bytes, windows),
        window_packets=totals(record.entry_ns, record.segments, windows),
    )


def and_what_follows(record: Record, marked: Bools) -> Bools:
    """Marked messages with what was sent again of them and what acknowledges nothing else."""
    import numpy as np

    result = marked.copy()
    again = messages_of(record).is_resent
    for places in by_stream(record, np.flatnonzero(marked | again)):
        ends = record.seq[places] + record.payload_bytes[places]
        known = np.isin(ends, ends[marked[places]])
        result[places] |= again[places] & known
    return result | confirming_only(record, result)


def totals(when: Ints, values: Ints, spans: Ints) -> Values:
    """The sum of `values` at the instants `when`, in order, shape (n,), within each span."""
    import numpy as np

    upto = np.r_[0, np.cumsum(values)]
    begin, end = (np.searchsorted(when, spans[:, side]) for side in (0, 1))
    return np.asarray(upto[end] - upto[begin], dtype=np.float64)


def _marked(record: Record, idle: Ints, requests: Mapping[str, Ints]) -> Bools:
    """Mark the messages of every class that comes as often without requests as with them."""
    import numpy as np

    marked = np.zeros(len(record), dtype=bool)
    busy = np.concatenate([np.zeros((0, 2), np.int64), *requests.values()])
    if not len(record) or not len(idle) or not len(busy):
        return marked
    messages = messages_of(record)
    places = messages.packet[messages.releases < 0]
    when, length = record.entry_ns[places], record.payload_bytes[places]
    in_idle, in_busy = _within(when, idle), _within(when, busy)
    ratio = float(_seconds(busy).sum() / _seconds(idle).sum())
    ports = _service_ports(record)
    way = _classes(record.source[places], record.target[places], *(port[places] for port in ports))
    stream = record.stream[places]
    asked_for = _sent_for_requests(when, length, idle, requests)
    for kind in (_classes(way, length), _classes(stream, length)):
        is_background = _as_often(kind, in_idle, in_busy, ratio)
        marked[places[is_background & ~asked_for]] = True
    return marked


def _sent_for_requests(when: Ints, length: Ints, idle: Ints, requests: Mapping[str, Ints]) -> Bools:
    """Which messages are of a length that requests of some kind send, whatever else does.

    Requests that are short beside the pauses of the background tell: if it were only background's,
    a message of that length would cross during no more of them than during as long a part of an
    idle window. (Requests at small RTTs are short.)
    """
    import numpy as np

    result = np.zeros(len(when), dtype=bool)
    known, seen = np.unique(length[_within(when, idle)], return_counts=True)
    for one in known[seen >= LEAST_SEEN]:
        members = length == one
        by_chance = _Chance(when[members], idle)
        for spans in requests.values():
            begin, end = (np.searchsorted(when[members], spans[:, side]) for side in (0, 1))
            chance = by_chance.of(spans[:, 1] - spans[:, 0])
            tells = chance <= _MOST_CHANCE
            n, expected = int(tells.sum()), float(chance[tells].sum())
            sigma = float(np.sqrt((chance * (1 - chance))[tells].sum()))
            had = int(np.count_nonzero((end > begin)[tells]))
            if n >= LEAST_SEEN and had > expected + _SIGMAS * sigma + _LEAST_EXCESS * n:
                result[members] = True
                break
    return result


class _Chance:
    """How likely a span of some length, anywhere in the idle windows, has a message in it."""

    def __init__(self, when: Ints, idle: Ints) -> None:
        import numpy as np

        # A span has none where it lies between two messages: what each gap leaves free.
        gaps: list[int] = []
        for begin, end in idle.tolist():
            first, last = np.searchsorted(when, [begin, end])
            gaps += np.diff(np.r_[begin, when[first:last], end]).tolist()
        self._gaps = np.sort(np.array(gaps, dtype=np.int64))
        self._sums = np.r_[0, np.cumsum(self._gaps[::-1])]
        self._idle = idle

    def of(self, lasts_ns: Ints) -> Values:
        import numpy as np

        greater = len(self._gaps) - np.searchsorted(self._gaps, lasts_ns, side="right")
        free = self._sums[greater] - greater * lasts_ns
        windows = self._idle[:, 1] - self._idle[:, 0]
        room = np.maximum(0, windows[None, :] - lasts_ns[:, None]).sum(axis=1)
        return np.asarray(np.where(room > 0, 1 - free / np.maximum(room, 1), 1.0))


def _classes(*columns: Ints) -> Ints:
    """Number the different rows of some columns."""
    import numpy as np

    _, kind = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return kind.reshape(-1).astype(np.int64)


def _as_often(kind: Ints, in_idle: Bools, in_busy: Bools, ratio: float) -> Bools:
    """Of each message, whether its class comes as often without requests as with them."""
    import numpy as np

    _, place = np.unique(kind, return_inverse=True)
    seen: Values = np.bincount(place, weights=in_idle).astype(np.float64)
    asked = np.bincount(place, weights=in_busy)
    is_background = (seen >= LEAST_SEEN) & (seen * ratio >= LEAST_PART * asked)
    return np.asarray(is_background[place], dtype=bool)


def _seconds(spans: Ints) -> Values:
    import numpy as np

    return np.asarray((spans[:, 1] - spans[:, 0]) / 1e9)


def _within(instants: Ints, spans: Ints) -> Bools:
    import numpy as np

    inside = np.zeros(len(instants), dtype=bool)
    if not len(spans):
        return inside
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    place = np.searchsorted(ordered[:, 0], instants, side="right") - 1
    return np.asarray((place >= 0) & (instants < ordered[np.maximum(place, 0), 1]), dtype=bool)


def _service_ports(record: Record) -> tuple[Ints, Ints]:
    """Of each packet's two ports the one that many speak to; and whether the packet goes there.

    Ephemeral ports differ from one connection to the next, so that they make no class.
    """
    import numpy as np

    ports = np.concatenate([record.source_port, record.target_port])
    others = np.concatenate([record.target_port, record.source_port])
    known = np.unique(ports)
    pairs = np.unique(np.stack([ports, others], axis=1), axis=0)
    peers = np.bincount(np.searchsorted(known, pairs[:, 0]), minlength=len(known))
    of_each = peers[np.searchsorted(known, ports)]
    to_service = of_each[len(record) :] >= of_each[: len(record)]
    port = np.where(to_service, record.target_port, record.source_port)
    return port, to_service.astype(np.int64)
