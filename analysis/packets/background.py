"""What crosses the links without any request: heartbeats, pings, gossip, healing.

It is learnt in the idle windows of the RTT steps, in which no request is sent: messages that come
as often then as while requests are made are not the requests'. That is decided of classes of
messages: those of one length that go one way between two nodes, to or from one port, or on one
connection.

Requests may send messages of a heartbeat's length too. Then those of some endpoint have one nearly
always, even where they are short and a heartbeat would seldom fall into them; and none of that
length is marked. Of a single message nothing can be told, so a message that is marked may still be
a link of a critical path (`wanlat.analysis.packets.critical_path` says when).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.packets.messages import confirmations, messages_of
from wanlat.analysis.packets.record import Record, steps_of
from wanlat.analysis.packets.streams import Bools, Ints, split

Values = NDArray[np.float64]
Span = tuple[int, int]

LEAST_SEEN = 3
"""Messages of a class in idle windows: fewer may be chance, or a straggler of a request."""
LEAST_PART = 0.5
"""Of a class, at least this part of what crossed while requests were made came without them."""
_MOST_CHANCE = 0.5
_SIGMAS = 3.0
_LEAST_EXCESS = 0.2
"""Of the requests of a kind: a length that fewer have, beyond chance, is not theirs."""


@dataclass(frozen=True, eq=False)
class Background:
    """What of a record looks like background.

    `messages`, shape (packets,), marks those of classes that come without requests. `packets`
    marks these, what was sent again of them, and what acknowledges nothing but them. `idle` are
    the windows from which that was learnt, as spans of ns, shape (windows, 2).
    """

    messages: Bools
    packets: Bools
    idle: Ints


def read_background(bundle: Bundle, record: Record) -> Background:
    """Learn a bundle's background in the idle windows of its RTT steps; none without them."""
    steps = steps_of(bundle, record.system)
    idle = [one.idle_ns for one in steps if one.idle_ns is not None]
    samples = bundle.samples
    sent = samples[(samples["system"] == record.system) & samples["start_ns"].notna()]
    ends = sent["start_ns"] + sent["elapsed_ns"].fillna(sent["total_ns"]).fillna(0)
    requests = {
        str(endpoint): list(zip(rows.tolist(), ends[rows.index].tolist(), strict=True))
        for endpoint, rows in sent.groupby("endpoint")["start_ns"]
    }
    return background_of(record, idle, requests)


def background_of(
    record: Record, idle: Iterable[Span], requests: Mapping[str, Iterable[Span]]
) -> Background:
    """Tell what is background from spans without requests, and those of requests, by kind."""

    def spans(given: Iterable[Span]) -> Ints:
        return np.array([one for one in given if one[1] > one[0]], dtype=np.int64).reshape(-1, 2)

    windows = spans(idle)
    marked = _marked(record, windows, {kind: spans(some) for kind, some in requests.items()})
    return Background(marked, _with_what_follows(record, marked), windows)


def totals(when: Ints, values: Ints, spans: Ints) -> Values:
    """The sum of `values` at the instants `when`, in order, shape (n,), within each span."""
    upto = np.r_[0, np.cumsum(values)]
    begin, end = np.searchsorted(when, spans.T)
    return np.asarray(upto[end] - upto[begin], dtype=np.float64)


def seconds(spans: Ints) -> Values:
    """How long each span lasts."""
    return np.asarray((spans[:, 1] - spans[:, 0]) / 1e9)


def _with_what_follows(record: Record, marked: Bools) -> Bools:
    """Marked messages with what was sent again of them and what acknowledges nothing else.

    An acknowledgement confirms what the ones before it on its stream, those on packets with data
    among them, had not. One that confirms nothing new is of no data.
    """
    result = marked.copy()
    again = messages_of(record).is_resent
    for places in split(record.stream, np.flatnonzero(marked | again)):
        ends = record.end[places]
        result[places] |= again[places] & np.isin(ends, ends[marked[places]])
    for data, acks, before, upto in confirmations(record):
        sums = np.r_[0, np.cumsum(result[data])]
        is_bare = record.is_bare_ack[acks] & (upto > before)
        result[acks] |= is_bare & (sums[upto] - sums[before] == upto - before)
    return result


def _marked(record: Record, idle: Ints, requests: Mapping[str, Ints]) -> Bools:
    """Mark the messages of every class that comes as often without requests as with them."""
    marked = np.zeros(len(record), dtype=bool)
    busy = np.concatenate([np.zeros((0, 2), np.int64), *requests.values()])
    if not len(record) or not len(idle) or not len(busy):
        return marked
    messages = messages_of(record)
    places = messages.packet[messages.releases < 0]
    when = record.entry_ns[places]
    port, to_service = _service_ports(record)
    seen = pd.DataFrame(
        {
            "length": record.payload_bytes[places],
            "source": record.source[places],
            "target": record.target[places],
            "port": port[places],
            "to_service": to_service[places],
            "stream": record.stream[places],
            "idle": _within(when, idle),
            "busy": _within(when, busy),
        }
    )
    ratio = float(seconds(busy).sum() / seconds(idle).sum())
    of_requests = _sent_for_requests(when, seen, idle, requests)
    for kind in (["source", "target", "port", "to_service", "length"], ["stream", "length"]):
        times = seen.groupby(kind)[["idle", "busy"]].transform("sum")
        as_often = (times.idle >= LEAST_SEEN) & (times.idle * ratio >= LEAST_PART * times.busy)
        marked[places[as_often.to_numpy() & ~of_requests]] = True
    return marked


def _sent_for_requests(
    when: Ints, seen: pd.DataFrame, idle: Ints, requests: Mapping[str, Ints]
) -> Bools:
    """Which messages are of a length that requests of some kind send, whatever else does.

    Requests that are short beside the pauses of the background tell: if it were only background's,
    a message of that length would cross during no more of them than during as long a part of an
    idle window. (Requests at small RTTs are short.)
    """
    length = seen["length"].to_numpy()
    result = np.zeros(len(when), dtype=bool)
    known, times = np.unique(length[seen["idle"].to_numpy()], return_counts=True)
    for one in known[times >= LEAST_SEEN]:
        members = length == one
        for spans in requests.values():
            begin, end = np.searchsorted(when[members], spans.T)
            chance = _chance(when[members], idle, spans[:, 1] - spans[:, 0])
            tells = chance <= _MOST_CHANCE
            n, expected = int(tells.sum()), float(chance[tells].sum())
            sigma = float(np.sqrt((chance * (1 - chance))[tells].sum()))
            had = int(np.count_nonzero((end > begin)[tells]))
            if n >= LEAST_SEEN and had > expected + _SIGMAS * sigma + _LEAST_EXCESS * n:
                result |= members
                break
    return result


def _chance(when: Ints, idle: Ints, lasts_ns: Ints) -> Values:
    """How likely a span of each length, anywhere in the idle windows, has one of `when` in it."""
    # A span has none where it lies between two of them: what each gap leaves free.
    parts = [when[(when >= begin) & (when < end)] for begin, end in idle]
    edges = zip(idle[:, 0], parts, idle[:, 1], strict=True)
    gaps = np.sort(np.concatenate([np.diff(np.r_[edge]) for edge in edges]))[::-1]
    greater = np.searchsorted(-gaps, -lasts_ns)
    free = np.r_[0, np.cumsum(gaps)][greater] - greater * lasts_ns
    room = np.maximum(0, np.subtract.outer(-lasts_ns, idle[:, 0] - idle[:, 1])).sum(axis=1)
    return np.asarray(np.where(room > 0, 1 - free / np.maximum(room, 1), 1.0))


def _within(instants: Ints, spans: Ints) -> Bools:
    """Which instants lie within one of some spans, which may come in any order."""
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    place = np.searchsorted(ordered[:, 0], instants, side="right") - 1
    return np.asarray((place >= 0) & (instants < ordered[np.maximum(place, 0), 1]), dtype=bool)


def _service_ports(record: Record) -> tuple[Ints, Bools]:
    """Of each packet's two ports the one that many speak to; and whether the packet goes there.

    Ephemeral ports differ from one connection to the next, so that they make no class.
    """
    ways = pd.DataFrame({"port": record.source_port, "peer": record.target_port})
    both = pd.concat([ways, ways.set_axis(["peer", "port"], axis=1)])
    peers = both.groupby("port")["peer"].nunique()
    to_service = peers[record.target_port].to_numpy() >= peers[record.source_port].to_numpy()
    return np.where(to_service, record.target_port, record.source_port), to_service
