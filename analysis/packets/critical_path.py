"""The critical path of each request: the longest chain of messages inside it.

Between a request's start and its response, the first message leaves the client's site, each next
one leaves the site where the one before arrived, after it had arrived, and the last arrives at the
client's site. Half the number of messages is the round trips: A → B → C → A is 1.5.

A message is followed by one that left the same node where there is such a one; inside a site it
may have been handed on over the LAN, which the record does not show.

Who waited for what cannot be seen from outside, only what was possible. So a critical path says
what the request may have waited for at most. Two things keep it from being more than that:

- A link is doubtful where the message is of a kind that crosses without requests as well
  (`analysis.packets.background`) and did not leave at once; or where it left long after anything
  of the request arrived at its node, and at once after something else did: so goes on what an
  earlier request left behind. A path with a doubtful link counts only if from there on all is at
  once and the response comes soon after it (within `LOOSE_NS`): then it is the request that was
  held up, by what an earlier one left on a connection or by a timer.
- Nothing is faster than the links: where the time that a request spent beside its path is less
  than what a link takes, no longer path would fit, and where it is not, `spare_ns` says so.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wanlat.analysis.packets.background import Background
from wanlat.analysis.packets.messages import AT_ONCE_NS, NEVER, messages_of
from wanlat.analysis.packets.record import Record

LOOSE_NS = 10_000_000
"""A message that left later than this after the one before it arrived hangs on it loosely: a disk,
a timer, a delayed acknowledgement, or a coincidence."""

_START = -1
"""The state before the first message of a path."""


class Path(NamedTuple):
    """The critical path of one request that was acknowledged and lies within the record.

    `links` are places in the record of the packets that carry the messages, in order. `loose` of
    them left more than `LOOSE_NS` after what came before them, `acknowledgements` are such for
    which a sender waited. `within_sites` times the path went on at another node of the site, over
    its LAN. `spare_ns` of the request's time the path was not on a link.
    """

    links: tuple[int, ...]
    loose: int = 0
    acknowledgements: int = 0
    within_sites: int = 0
    spare_ns: int = -1


class _Score(NamedTuple):
    """How good a path is, up to one of its messages: its length; then the fewer messages that look
    like background, loose links, hand-overs inside a site, and acknowledgements the better.
    """

    length: int = 0
    suspects: int = 0
    loose: int = 0
    handed_over: int = 0
    acknowledgements: int = 0


_Choice = tuple[_Score, int, int]
"""What a message may hang on: the score with that link, when it arrived, its state."""


@dataclass(frozen=True)
class _Request:
    start_ns: int
    end_ns: int
    client: int | None
    asked: int | None
    site: int


def critical_paths(
    record: Record, samples: pd.DataFrame, background: Background | None = None
) -> pd.DataFrame:
    """Find the critical path of each of `samples`, which are of the record's system.

    Of what `background` marks, not everything is taken for a message of a request (see above).
    Returns a frame with the index of `samples`, the fields of `Path`, and `round_trips`: half the
    links; NaN where a request was not acknowledged or does not lie within the record.
    """
    timeline = _timeline(record, background)
    columns = ["start_ns", "total_ns", "client", "target", "outcome"]
    rows = samples.reindex(columns=columns).itertuples(index=False, name=None)
    requests = [_request(record, *row) for row in rows]
    found = [None if one is None else _Search(timeline, one).path() for one in requests]
    paths = pd.DataFrame([one or Path(()) for one in found], samples.index, Path._fields)
    trips = [np.nan if one is None else len(one.links) / 2 for one in found]
    return paths.assign(round_trips=np.array(trips, dtype=np.float64))


def _request(
    record: Record, start_ns: Any, total_ns: Any, client: Any, target: Any, outcome: Any
) -> _Request | None:
    if outcome != "ok" or not isinstance(client, str) or pd.isna(start_ns) or pd.isna(total_ns):
        return None
    end_ns, site = int(start_ns) + int(total_ns), record.site_of(client)
    if site is None or (record.ended_ns is not None and end_ns > record.ended_ns):
        return None
    asked = target if isinstance(target, str) else record.asked or client
    return _Request(int(start_ns), end_ns, record.node_of(client), record.node_of(asked), site)


class _Timeline:
    """The messages of a record, ready to be cut into requests."""

    def __init__(self, record: Record, background: Background | None) -> None:
        messages = messages_of(record)
        packet = messages.packet
        is_ack = messages.releases >= 0
        suspect = np.zeros(len(packet), dtype=bool)
        if background is not None:
            suspect = background.messages[packet] & ~is_ack
        self.is_suspect: list[bool] = suspect.tolist()
        self.packet: list[int] = packet.tolist()
        self.entry: list[int] = messages.entry_ns.tolist()
        self.arrival: list[int] = messages.arrival_ns.tolist()
        self.releases: list[int] = messages.releases.tolist()
        self.source: list[int] = record.source[packet].tolist()
        self.target: list[int] = record.target[packet].tolist()
        self.stream: list[int] = record.stream[packet].tolist()
        self.site: list[int] = record.node_site.tolist()
        # When any message arrived at each node.
        came = ~is_ack & (messages.arrival_ns < NEVER)
        self.came = [
            np.sort(messages.arrival_ns[came & (record.target[packet] == node)]).tolist()
            for node in range(len(record.nodes))
        ]


@lru_cache(maxsize=1)  # traces ask for one endpoint after the other
def _timeline(record: Record, background: Background | None) -> _Timeline:
    return _Timeline(record, background)


class _Search:
    """The longest path to each message of one request, message by message in order of entry.

    Every message may be reached in two ways, told apart by the last bit of a state: by a path that
    is sound (0), and by one with a doubtful link, all of whose links since then were at once (1).

    Of every node it is kept what arrived there and belongs to the request, in the order of arrival,
    with the best sound path up to there, so that a message finds the best among those before it:
    the late ones one by one, whose link would be tight, and the best of all that are earlier.
    """

    def __init__(self, timeline: _Timeline, request: _Request) -> None:
        self.timeline, self.request = timeline, request
        self.score: dict[int, _Score] = {_START: _Score()}
        self.before: dict[int, int] = {}
        self.on_the_way: list[tuple[int, int]] = []
        self.released: defaultdict[int, list[int]] = defaultdict(list)
        # Of each node: instants of arrival, messages, and the best sound path up to each.
        self.instants: defaultdict[int, list[int]] = defaultdict(list)
        self.arrived: defaultdict[int, list[int]] = defaultdict(list)
        self.best: defaultdict[int, list[int]] = defaultdict(list)
        self.nodes_of: defaultdict[int, set[int]] = defaultdict(set)

    def path(self) -> Path:
        """The longest path that came back to the client's site in time; maybe without a link."""
        timeline, request = self.timeline, self.request
        first = bisect_left(timeline.entry, request.start_ns)
        for message in range(first, bisect_right(timeline.entry, request.end_ns)):
            self._take(message)
        lasts_ns = request.end_ns - request.start_ns
        ends = [
            (score, self._is_asked(state // 2), timeline.arrival[state // 2], state)
            for state, score in self.score.items()
            if state != _START and self._may_be_last(state)
        ]
        if not ends:
            return Path((), spare_ns=lasts_ns)
        # Of equals one to the node that answers, and of these the last: what was waited for.
        score, _, _, state = max(ends)
        links: list[int] = []
        while state != _START:
            links.append(state // 2)
            state = self.before[state]
        links.reverse()
        return Path(
            links=tuple(timeline.packet[one] for one in links),
            loose=-score.loose,
            acknowledgements=-score.acknowledgements,
            within_sites=-score.handed_over,
            spare_ns=lasts_ns - sum(timeline.arrival[one] - timeline.entry[one] for one in links),
        )

    def _may_be_last(self, state: int) -> bool:
        """Whether a path arrives at the client's site before the response; soon, if doubtful."""
        timeline, message = self.timeline, state // 2
        until_ns = self.request.end_ns - timeline.arrival[message]
        return (
            timeline.site[timeline.target[message]] == self.request.site
            and timeline.releases[message] < 0
            and 0 <= until_ns <= (LOOSE_NS if state % 2 else NEVER)
        )

    def _is_asked(self, message: int) -> bool:
        """Whether a message goes to the node that answers, or the client."""
        return self.timeline.target[message] in (self.request.asked, self.request.client)

    def _take(self, message: int) -> None:
        """Find the best paths that `message` can be the last of, if any."""
        timeline, now = self.timeline, self.timeline.entry[message]
        while self.on_the_way and self.on_the_way[0][0] <= now:
            self._arrive(*heapq.heappop(self.on_the_way))
        is_ack = timeline.releases[message] >= 0
        found = self._before_ack(message) if is_ack else self._before(message, now)
        for state, (score, _, before) in found.items():
            self.score[state] = score._replace(
                length=score.length + 1,
                suspects=score.suspects - timeline.is_suspect[message],
                acknowledgements=score.acknowledgements - is_ack,
            )
            self.before[state] = before
        if found and timeline.arrival[message] <= self.request.end_ns:
            heapq.heappush(self.on_the_way, (timeline.arrival[message], message))

    def _arrive(self, instant: int, message: int) -> None:
        timeline = self.timeline
        if timeline.releases[message] >= 0:
            self.released[timeline.releases[message]].append(message)
            return
        node, sound = timeline.target[message], 2 * message
        best = self.best[node]
        upto = best[-1] if best else _START
        if sound in self.score and (upto == _START or self.score[upto] < self.score[sound]):
            upto = sound
        best.append(upto)
        self.instants[node].append(instant)
        self.arrived[node].append(message)
        self.nodes_of[timeline.site[node]].add(node)

    def _before(self, message: int, now: int) -> dict[int, _Choice]:
        """For each state of `message` the best of what it may hang on."""
        timeline = self.timeline
        node = timeline.source[message]
        choices = list(self._offers(message, node, now))
        is_tight = any(now - since <= LOOSE_NS and _is_sound(state) for _, since, state in choices)
        # Where nothing of the request arrived for long, what did just now is its cause.
        is_doubtful = not is_tight and _is_at_once(timeline.came[node], now)
        found: dict[int, _Choice] = {}
        for choice in choices:
            _, since, before = choice
            at_once = now - since <= AT_ONCE_NS
            if not _is_sound(before) and not at_once:
                continue
            doubt = is_doubtful or (timeline.is_suspect[message] and not at_once)
            state = 2 * message + (doubt or not _is_sound(before))
            if state not in found or found[state] < choice:  # of equals the last to arrive
                found[state] = choice
        return found

    def _before_ack(self, message: int) -> dict[int, _Choice]:
        """The same of an acknowledgement: it comes from what it confirms, however late it is.

        That is what arrived last on its connection.
        """
        timeline = self.timeline
        for one in reversed(self.arrived[timeline.source[message]]):
            if timeline.stream[one] == timeline.stream[message] ^ 1:
                return {
                    2 * message + doubt: (self.score[state], timeline.arrival[one], state)
                    for doubt, state in enumerate((2 * one, 2 * one + 1))
                    if state in self.score
                }
        return {}

    def _offers(self, message: int, node: int, now: int) -> Iterator[_Choice]:
        """All that `message`, which leaves `node`, may hang on."""
        timeline, request = self.timeline, self.request
        site = timeline.site[node]

        def offer(state: int, since: int, at: int | None) -> _Choice:
            score = self.score[state]
            return (
                score._replace(
                    loose=score.loose - (now - since > LOOSE_NS),
                    handed_over=score.handed_over - (at is not None and at != node),
                ),
                since,
                state,
            )

        if site == request.site:
            at_client = node == request.client
            yield offer(_START, request.start_ns, node if at_client else request.asked)
        for other in self.nodes_of[site]:
            instants, arrived = self.instants[other], self.arrived[other]
            loose = bisect_left(instants, now - LOOSE_NS)
            for place in range(loose, len(instants)):
                for state in (2 * arrived[place], 2 * arrived[place] + 1):
                    if state in self.score:
                        yield offer(state, instants[place], other)
            if loose and self.best[other][loose - 1] != _START:
                best = self.best[other][loose - 1]
                yield offer(best, timeline.arrival[best // 2], other)
        for ack in self.released[message]:
            for state in (2 * ack, 2 * ack + 1):
                if state in self.score:
                    yield offer(state, timeline.arrival[ack], node)


def _is_sound(state: int) -> bool:
    """Whether nothing on the way to a state is doubtful (see `_Search`)."""
    return state == _START or state % 2 == 0


def _is_at_once(instants: list[int], now: int) -> bool:
    """Whether the last of some instants, in order, was just before `now`."""
    place = bisect_right(instants, now) - 1
    return place >= 0 and now - instants[place] <= AT_ONCE_NS
