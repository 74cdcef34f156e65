"""What crosses the links without any request: heartbeats, pings, gossip, healing.

It is learnt in the idle windows of the RTT steps, in which no request is sent: messages that come
as often then as while requests are made are not the requests'. That is decided of classes of
messages: those of one length that go one way between two nodes, or on one connection.

Requests may send messages of a heartbeat's length too. Then those of some endpoint have one nearly
always, even where they are short and a heartbeat would seldom fall into them; and none of that
length is marked. Of a single message nothing is known, so a message that is marked may still be
a link of a critical path (`wanlat.analysis.packets.critical_path` has the conditions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wanlat.analysis.packets.record import Bools, Ints, Record, messages_of, steps_of
from wanlat.bundle.run import Run

Span = tuple[int, int]

LEAST_SEEN = 3
"""Messages of a class in idle windows: fewer may be chance, or a straggler of a request."""
LEAST_PART = 0.5
"""Of a class, at least this part of what crossed while requests were made came without them."""
_MOST_CHANCE, _SIGMAS, _LEAST_EXCESS = 0.5, 3.0, 0.2
"""A length is a kind of requests' own where more of them have it than chance explains: of those
that a heartbeat falls into so seldom, by so many standard errors, and so great a part."""


@dataclass(frozen=True, eq=False)
class Background:
    """What of a record looks like background.

    `packets`, shape (packets,), marks messages of classes that come without requests, what was sent
    again of them, and their bare acknowledgements. `idle` are the windows from which that was
    learnt, as spans of ns, shape (windows, 2).
    """

    packets: Bools
    idle: Ints


def read_background(bundle: Run, record: Record) -> Background:
    """Learn a bundle's background in the idle windows of its RTT steps; none without them."""
    idle = [one.idle_ns for one in steps_of(bundle, record.system) if one.idle_ns is not None]
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
    """Learn what is background from spans without requests, and those of requests, by kind."""
    windows, *kinds = (
        np.array([one for one in spans if one[1] > one[0]], dtype=np.int64).reshape(-1, 2)
        for spans in (idle, *requests.values())
    )
    marked = np.zeros(len(record), dtype=bool)
    if not len(record) or not len(windows) or not any(map(len, kinds)):
        return Background(marked, windows)
    messages = messages_of(record)
    seen = record.packets.iloc[messages.packet[messages.releases < 0]]
    busy = np.concatenate(kinds)
    when = seen["entry_ns"].to_numpy()
    seen = seen.assign(idle=_within(when, windows), busy=_within(when, busy))
    ratio = float(np.diff(busy).sum() / np.diff(windows).sum())
    of_requests = [
        length
        for length, rows in seen.groupby("payload_bytes")
        if rows["idle"].sum() >= LEAST_SEEN
        and any(_is_own(rows["entry_ns"].to_numpy(), windows, spans) for spans in kinds)
    ]
    free = ~seen["payload_bytes"].isin(of_requests)
    for kind in (["source", "target", "payload_bytes"], ["stream", "payload_bytes"]):
        times = seen.groupby(kind)[["idle", "busy"]].transform("sum")
        as_often = (times.idle >= LEAST_SEEN) & (times.idle * ratio >= LEAST_PART * times.busy)
        marked[seen.index[as_often & free]] = True
    ends = pd.MultiIndex.from_frame(record.packets[["stream", "end"]])
    marked |= messages.is_resent & ends.isin(ends[marked])
    return Background(marked | _acknowledges(record.packets, marked), windows)


def _acknowledges(packets: pd.DataFrame, marked: Bools) -> Bools:
    """Which bare acknowledgements come after marked data: what was sent last the other way."""
    connection, side = packets["stream"] // 2, packets["stream"] % 2
    data = pd.Series(marked, packets.index, dtype=float).where(packets["payload_bytes"] > 0)
    last = [data.where(side == one).groupby(connection).ffill() for one in (0, 1)]
    other = np.where(side == 0, last[1], last[0])
    return np.asarray(packets["is_bare_ack"] & (other == 1), dtype=bool)


def _is_own(when: Ints, idle: Ints, spans: Ints) -> bool:
    """Whether requests with these spans send what was sent at the instants `when`, in order.

    Requests that are short beside the pauses of the background show (at small RTTs they are): of
    those, no more than of as long parts of an idle window have one of it by chance.
    """
    begin, end = np.searchsorted(when, spans.T)
    chance = _chance(when, idle, spans[:, 1] - spans[:, 0])
    is_unlikely = chance <= _MOST_CHANCE
    n, expected = int(is_unlikely.sum()), float(chance[is_unlikely].sum())
    sigma = float(np.sqrt((chance * (1 - chance))[is_unlikely].sum()))
    had = int(np.count_nonzero((end > begin)[is_unlikely]))
    return n >= LEAST_SEEN and had > expected + _SIGMAS * sigma + _LEAST_EXCESS * n


def _chance(when: Ints, idle: Ints, lasts_ns: Ints) -> NDArray[np.float64]:
    """How likely a span of each length, anywhere in the idle windows, has one of `when` in it."""
    parts = [np.r_[begin, when[(when >= begin) & (when < end)], end] for begin, end in idle]
    gaps = np.concatenate([np.diff(part) for part in parts])
    # A span has none where it lies within a gap: it has one from where its end passes the next.
    return np.asarray(np.minimum.outer(lasts_ns, gaps).sum(axis=1) / gaps.sum())


def _within(instants: Ints, spans: Ints) -> Bools:
    """Which instants lie within one of some spans, which may come in any order."""
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    place = np.searchsorted(ordered[:, 0], instants, side="right") - 1
    return np.asarray((place >= 0) & (instants < ordered[np.maximum(place, 0), 1]), dtype=bool)
