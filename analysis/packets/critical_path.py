"""The critical path of each request: the longest chain of messages inside it.

Between a request's start and its response, the first message leaves the client's site, each next
one leaves the site where the one before arrived, after it had arrived, and the last arrives at the
client's site. Half the number of messages is the round trips: A → B → C → A is 1.5.

A message is followed by one that left the same node where there is such a one; inside a site it
may have been handed on over the LAN, which the record does not show.

Who waited for what cannot be seen from outside, only what was possible. So a critical path is
what the request may have waited for at most. Against that, a link is *doubtful* where the message
is of a kind that crosses without requests as well (`analysis.packets.background`) and did not
leave at once; or where it left long after anything of the request arrived at its node, and at once
after something else did: so goes on what an earlier request left behind. A path with a doubtful
link counts only if from there on all is at once and the response comes soon after it (within
`LOOSE_NS`): then it is the request that was held up, by what an earlier one left on a connection
or by a timer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wanlat.analysis.packets.background import Background
from wanlat.analysis.packets.record import AT_ONCE_NS, Ints, Record, messages_of

LOOSE_NS = 10_000_000
"""A message that left later than this after the one before it arrived hangs on it loosely: a disk,
a timer, a delayed acknowledgement, or a coincidence."""

# How good a path is: as long as can be, then with as few links as can be that look like
# background, are loose, go on at another node of the site, are acknowledgements. It adds up.
_LINK, _SUSPECT, _LOOSE, _LAN, _ACK = (1 << bits for bits in (48, 36, 24, 12, 0))
_NONE = -(1 << 62)
_SOUND, _DOUBTFUL = 0, 1


class _Request(NamedTuple):
    start_ns: int
    end_ns: int
    client: int
    target_node: int | None
    site: int


def critical_paths(
    record: Record, samples: pd.DataFrame, background: Background | None = None
) -> pd.DataFrame:
    """Find the critical path of each of `samples`, which are of the record's system.

    Of what `background` marks, not everything is taken for a message of a request (see above).
    Returns a frame with the index of `samples`: `links`, the places in the record of the packets
    that carry the path's messages, in order; and `round_trips`, half their number, NaN where a
    request was not acknowledged or does not lie within the record.
    """
    links = _links(record, background)
    columns = ["start_ns", "total_ns", "client", "target", "outcome"]
    rows = samples.reindex(columns=columns).itertuples(index=False, name=None)
    requests = [_request(record, *row) for row in rows]
    paths = [() if one is None else _longest(links, one) for one in requests]
    known = [np.nan if one is None else 1.0 for one in requests]
    trips = np.array([len(path) / 2 for path in paths]) * np.array(known)
    return pd.DataFrame({"links": paths, "round_trips": trips}, index=samples.index)


def _request(
    record: Record, start_ns: Any, total_ns: Any, client: Any, target: Any, outcome: Any
) -> _Request | None:
    if outcome != "ok" or not isinstance(client, str) or pd.isna(start_ns) or pd.isna(total_ns):
        return None
    end_ns, node = int(start_ns) + int(total_ns), record.node_of(client)
    if node is None or (record.ended_ns is not None and end_ns > record.ended_ns):
        return None
    target_node = target if isinstance(target, str) else record.target_node or client
    return _Request(
        int(start_ns), end_ns, node, record.node_of(target_node), int(record.node_site[node])
    )


@lru_cache(maxsize=1)  # traces ask for one endpoint after the other
def _links(record: Record, background: Background | None) -> dict[str, Ints]:
    """All messages of a record, by entry; `follows`: whether any message at all arrived at its node
    just before it left."""
    messages = messages_of(record)
    carriers = record.packets.iloc[messages.packet]
    links = carriers[["entry_ns", "source", "target", "stream"]].assign(
        packet=messages.packet,
        arrival_ns=messages.arrival_ns[messages.packet],
        releases=messages.releases,
        source_site=record.node_site[carriers["source"]],
        target_site=record.node_site[carriers["target"]],
        is_suspect=False if background is None else background.packets[messages.packet],
        follows=False,
    )
    links["is_suspect"] &= links["releases"] < 0
    for node in range(len(record.nodes)):
        came = links[(links["releases"] < 0) & (links["target"] == node)]
        came_ns = np.r_[_NONE, np.sort(came["arrival_ns"].to_numpy())]
        left_ns = links.loc[links["source"] == node, "entry_ns"]
        latest_ns = came_ns[np.searchsorted(came_ns, left_ns, side="right") - 1]
        links.loc[left_ns.index, "follows"] = left_ns - latest_ns <= AT_ONCE_NS
    return {str(name): column.to_numpy() for name, column in links.items()}


def _longest(links: dict[str, Ints], request: _Request) -> tuple[int, ...]:
    """The longest path of a request, as places in the record; maybe without a link.

    Message by message in the order of entry, the best path up to each: a sound one, and one with a
    doubtful link, with all links since then at once.
    """
    begin = int(np.searchsorted(links["entry_ns"], request.start_ns))
    end = int(np.searchsorted(links["entry_ns"], request.end_ns, side="right"))
    links = {name: column[begin:end] for name, column in links.items()}
    entry_ns, source, stream, source_site, is_suspect, follows = (
        links[name]
        for name in ("entry_ns", "source", "stream", "source_site", "is_suspect", "follows")
    )
    n = end - begin
    score = np.full((n + 1, 2), _NONE, dtype=np.int64)
    before = np.full((n + 1, 2), -1, dtype=np.int64)  # a message and its state: 2 × one + state
    # The request's start stands after the messages: at the client, or where it is taken in.
    score[n, _SOUND] = 0
    arrival_ns = np.r_[links["arrival_ns"], request.start_ns]
    target, site = np.r_[links["target"], -1], np.r_[links["target_site"], request.site]
    releases = np.r_[np.maximum(links["releases"] - begin, -1), -1]
    is_there = np.arange(n + 1) == n
    for one in range(n):
        now, node = entry_ns[one], source[one]
        if releases[one] >= 0:
            # It confirms what arrived last on its connection, however late it is.
            came = is_there[:n] & (stream == stream[one] ^ 1) & (arrival_ns[:n] <= now)
            if not came.any():
                continue
            latest = int(np.flatnonzero(came)[np.argmax(arrival_ns[:n][came])])
            before[one] = 2 * latest, 2 * latest + 1
            score[one] = np.where(score[latest] > _NONE, score[latest] + _LINK - _ACK, _NONE)
        else:
            came = is_there & (arrival_ns <= now) & (site == source_site[one])
            candidates = np.flatnonzero(came & ((releases < 0) | (releases == one)))
            waited_ns = now - arrival_ns[candidates]
            at_lan = (target[candidates] != node) & (candidates < n)
            at_lan |= (
                (candidates == n)
                & (node != request.client)
                & (request.target_node not in (None, node))
            )
            states = 2 * candidates[:, None] + [_SOUND, _DOUBTFUL]
            since_ns = np.broadcast_to(arrival_ns[candidates, None], states.shape)
            value = score[candidates] - (_LOOSE * (waited_ns > LOOSE_NS) + _LAN * at_lan)[:, None]
            reached, at_once = score[candidates] > _NONE, waited_ns <= AT_ONCE_NS
            # Where nothing of the request arrived for long, what did just now is its cause.
            is_tight = bool(np.any(reached[:, _SOUND] & (waited_ns <= LOOSE_NS)))
            doubt = (~at_once & is_suspect[one]) | (follows[one] and not is_tight)
            ways = {
                _SOUND: reached & np.column_stack([~doubt, np.zeros_like(doubt)]),
                _DOUBTFUL: reached & np.column_stack([doubt, at_once]),
            }
            for state, may in ways.items():
                if may.any():
                    choices = zip(value[may], since_ns[may], states[may], strict=True)
                    best, _, before[one, state] = max(choices)
                    score[one, state] = best + _LINK - _SUSPECT * is_suspect[one]
        is_there[one] = bool((score[one] > _NONE).any()) and arrival_ns[one] <= request.end_ns
    ends = (site[:n] == request.site) & (releases[:n] < 0) & (arrival_ns[:n] <= request.end_ns)
    may = (score[:n] > _NONE) & ends[:, None]
    may[:, _DOUBTFUL] &= request.end_ns - arrival_ns[:n] <= LOOSE_NS
    # Of equals one to the node that answers, and of these the last: what was waited for.
    answers = np.isin(
        target, [request.client, -1 if request.target_node is None else request.target_node]
    )
    last = [
        (score[one][other], answers[one], arrival_ns[one], 2 * one + other)
        for one, other in np.argwhere(may)
    ]
    path, state = list[int](), max(last)[-1] if last else 2 * n
    while state < 2 * n:
        path.insert(0, int(links["packet"][state // 2]))
        state = before[state // 2][state % 2]
    return tuple(path)
