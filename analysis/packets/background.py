"""What crosses the links without any request: heartbeats, pings, gossip, healing.

It is learnt in the idle windows of the visits, in which nobody asks anything: messages that come as
often then as while requests are made are not the requests'. That is decided of classes of messages:
those of one length that go one way between two nodes, to or from one port; those of one length on
one connection; and, where lengths vary, all of a connection or a way.

Of a single message that cannot be told. Where requests send messages of a heartbeat's length too
there are more of them the more is asked, and none of that length is marked. And a message that is
marked may still be a link of a chain, where it left at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.packets.acknowledged import confirming_only
from analysis.packets.messages import by_stream, messages_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analysis.bundle import Bundle
    from analysis.packets.record import Record

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Values = NDArray[np.float64]

Span = tuple[int, int]

_CHANCE = 3.0
"""Standard errors: what is beyond is not chance."""
_LEAST_A_REQUEST = 0.05
"""Messages of a length a request: with fewer, nineteen of twenty requests have none."""

LEAST_SEEN = 3
"""Messages of a class in idle windows: fewer may be chance, or a straggler of what was asked."""
LEAST_PART = 0.5
"""Of a class, at least this part of what crossed while requests were made came without them."""


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
    def bytes_per_s(self) -> float:
        """On the wire, over all links, when nobody asks anything; 0 if that was never watched."""
        return float(self.window_bytes.sum()) / self.seconds if self.seconds else 0.0

    @property
    def packets_per_s(self) -> float:
        """The same in packets."""
        return float(self.window_packets.sum()) / self.seconds if self.seconds else 0.0


def read_background(bundle: Bundle, record: Record) -> Background:
    """Learn a bundle's background in the idle windows of its visits; none without such windows."""
    from analysis.visits import read_visits

    visits = read_visits(bundle)
    mine = visits.of(record.system) if visits is not None else ()
    idle = [visit.idle_ns for visit in mine if visit.idle_ns is not None]
    samples = bundle.samples
    asked = samples[(samples["system"] == record.system) & samples["start_ns"].notna()]
    busy = list(
        zip(
            asked["start_ns"].tolist(),
            (asked["start_ns"] + asked["elapsed_ns"].fillna(asked["total_ns"]).fillna(0)).tolist(),
            strict=True,
        )
    )
    return background_of(record, idle, busy)


def background_of(record: Record, idle: Iterable[Span], busy: Iterable[Span]) -> Background:
    """Tell what is background from spans in which nobody asks, and the spans of single requests."""
    import numpy as np

    def spans(given: Iterable[Span]) -> Ints:
        return np.array([one for one in given if one[1] > one[0]], dtype=np.int64).reshape(-1, 2)

    windows = spans(idle)
    marked = _marked(record, windows, spans(sorted(busy)))
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


def _marked(record: Record, idle: Ints, busy: Ints) -> Bools:
    """Mark the messages of every class that comes as often without requests as with them."""
    import numpy as np

    marked = np.zeros(len(record), dtype=bool)
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
    sent_for_requests = _grows(when, length, idle, busy)
    for kind in (_classes(way, length), _classes(stream, length)):
        is_background, _ = _as_often(kind, in_idle, in_busy, ratio)
        marked[places[is_background & ~sent_for_requests]] = True
    # What has no length of its own, such as gossip: the whole of a connection or a way, unless
    # there is a length on it, either way, that is sent often, and never when nothing is asked.
    ends = record.source[places], record.target[places]
    pair = _classes(np.minimum(*ends), np.maximum(*ends), ports[0][places])
    for kind, both_ways in ((stream, stream // 2), (way, pair)):
        left = ~marked[places]
        is_background, _ = _as_often(kind, in_idle & left, in_busy & left, ratio)
        lengths = _classes(kind, length)
        _, seen = _as_often(lengths, in_idle, in_busy, ratio)
        _, asked = _as_often(lengths, in_busy, in_busy, ratio)
        strange = left & (seen == 0) & (asked / ratio >= LEAST_SEEN)
        _, place = np.unique(both_ways, return_inverse=True)
        is_pure = np.bincount(place, weights=strange)[place] == 0
        marked[places[is_background & left & is_pure]] = True
    return marked


def _grows(when: Ints, length: Ints, idle: Ints, busy: Ints) -> Bools:
    """Which messages are of a length that requests send too, beside what comes without them.

    For every length its number in each span is held against the span's duration and against
    whether it is a request's: requests at small RTTs are short, and background has no time there.
    Poisson's variance grows with duration, so the spans are weighted by its inverse.
    """
    import numpy as np

    spans = np.concatenate([idle, busy])
    seconds = _seconds(spans)
    is_request = np.r_[np.zeros(len(idle)), np.ones(len(busy))]
    weight = 1 / np.sqrt(np.maximum(seconds, 0.01))
    regressors = np.stack([is_request, seconds], axis=1) * weight[:, None]
    covariance = np.linalg.pinv(regressors.T @ regressors)
    result = np.zeros(len(when), dtype=bool)
    for one in np.unique(length):
        members = length == one
        begin, end = (np.searchsorted(when[members], spans[:, side]) for side in (0, 1))
        number = (end - begin) * weight
        slope = covariance @ (regressors.T @ number)
        errors = number - regressors @ slope
        variance = float(errors @ errors) / max(1, len(number) - 2)
        chance = _CHANCE * float(np.sqrt(variance * covariance[0, 0]))
        if slope[0] > max(chance, _LEAST_A_REQUEST):
            result[members] = True
    return result


def _classes(*columns: Ints) -> Ints:
    """Number the different rows of some columns."""
    import numpy as np

    _, kind = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return kind.reshape(-1).astype(np.int64)


def _as_often(kind: Ints, in_idle: Bools, in_busy: Bools, ratio: float) -> tuple[Bools, Values]:
    """Of each message, whether its class comes as often without requests, and how many did."""
    import numpy as np

    _, place = np.unique(kind, return_inverse=True)
    seen: Values = np.bincount(place, weights=in_idle).astype(np.float64)
    asked = np.bincount(place, weights=in_busy)
    is_background = (seen >= LEAST_SEEN) & (seen * ratio >= LEAST_PART * asked)
    return np.asarray(is_background[place]), np.asarray(seen[place])


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
