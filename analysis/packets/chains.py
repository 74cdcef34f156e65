"""The longest chain of messages inside each request.

Between a request's start and its response, the first message leaves the client's site, each next
one leaves the site where the one before arrived, after it had arrived, and the last arrives at the
client's site. Half the number of messages is the round trips: A → B → C → A is 1.5.

A message is followed by one that left the same node where there is such a one; inside a site it
may have been handed on over the LAN, which the record does not show.

Who waited for what cannot be seen from outside, only what was possible. So a chain says what the
request may have waited for at most. Two things keep it from being more than it did wait for:

- A link is doubtful where the message is of a kind that crosses without requests as well
  (`analysis.packets.background`) and did not leave at once; or where it left long after anything
  of the request arrived at its node, and at once after something else did: so goes on what an
  earlier request left behind. A chain with a doubtful link counts only if from there on all is at
  once and the response comes soon after it (within `LOOSE_NS`): then it is the request that was
  held up, by what an earlier one left on a connection or by a timer.
- Nothing is faster than the links: where the time that a request spent beside its chain is less
  than what a link takes, no longer chain would fit, and where it is not, `spare_ns` says so.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from wanlat.analysis.packets.messages import NEVER, Messages, by_stream, messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from wanlat.analysis.packets.background import Background
    from wanlat.analysis.packets.record import Record

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Values = NDArray[np.float64]

LOOSE_NS = 10_000_000
"""A message that left later than this after the one before it arrived hangs on it loosely: a disk,
a timer, a delayed acknowledgement, or a coincidence."""
AT_ONCE_NS = 3_000_000
"""A message that left within this time after another arrived was most likely caused by it."""


@dataclass(frozen=True)
class Chains:
    """The chain of each sample, in the order of the samples; arrays of shape (samples,)."""

    links: tuple[tuple[int, ...], ...]
    """Places in the record of the packets that carry the messages, in order; () for none."""
    known: Bools
    """Whether the request was acknowledged and lies within the record, so that its chain counts."""
    loose: Ints
    """Messages that left more than `LOOSE_NS` after what came before them."""
    acknowledgements: Ints
    """Links that are acknowledgements for which a sender waited."""
    within_sites: Ints
    """Times that a chain went on at another node of the site, over its LAN."""
    held_up: Ints
    """Loose links that left at once after something arrived on their connection that is not in the
    chain: what an earlier request left behind, or its acknowledgement, let them go."""
    spare_ns: Ints
    """The request's time that its chain was not on a link; -1 where none is known."""

    @property
    def messages(self) -> Ints:
        """How many messages each chain has."""
        import numpy as np

        return np.array([len(links) for links in self.links], dtype=np.int64)

    @property
    def round_trips(self) -> Values:
        """Half of the messages; NaN where it cannot be told."""
        import numpy as np

        return np.where(self.known, self.messages / 2, np.nan)


@dataclass(frozen=True)
class _Request:
    start_ns: int
    end_ns: int
    client: int | None
    asked: int | None
    site: int


def chains(record: Record, samples: pd.DataFrame, background: Background | None = None) -> Chains:
    """Find the longest chain of each of `samples`, which are of the record's system.

    Of what `background` marks, not everything is taken for a message of a request (see above).
    """
    import numpy as np

    messages = messages_of(record)
    timeline = _Timeline(record, messages, background)
    requests = [_request(record, sample) for sample in _rows(samples)]
    found = [timeline.longest(request) if request else None for request in requests]
    known = np.array([chain is not None for chain in found], dtype=bool)

    def ints(name: str, otherwise: int) -> Ints:
        values = [otherwise if chain is None else getattr(chain, name) for chain in found]
        return np.array(values, dtype=np.int64)

    return Chains(
        links=tuple(() if chain is None else chain.links for chain in found),
        known=known,
        loose=ints("loose", 0),
        acknowledgements=ints("acknowledgements", 0),
        within_sites=ints("within_sites", 0),
        held_up=ints("held_up", 0),
        spare_ns=ints("spare_ns", -1),
    )


def _rows(samples: pd.DataFrame) -> list[tuple[object, ...]]:
    import pandas as pd

    columns = ["start_ns", "total_ns", "client", "target", "outcome"]
    rows = samples.reindex(columns=columns)
    return [
        tuple(None if pd.isna(value) else value for value in row)
        for row in rows.itertuples(index=False, name=None)
    ]


def _request(record: Record, row: tuple[object, ...]) -> _Request | None:
    start_ns, total_ns, client, target, outcome = row
    if outcome != "ok" or not isinstance(client, str):
        return None
    if start_ns is None or total_ns is None:
        return None
    begin, end = int(start_ns), int(start_ns) + int(total_ns)  # type: ignore[call-overload]
    if record.ended_ns is not None and end > record.ended_ns:
        return None
    site = record.site_of(client)
    if site is None:
        return None
    asked = target if isinstance(target, str) else record.asked or client
    return _Request(begin, end, record.node_of(client), record.node_of(asked), site)


@dataclass(frozen=True)
class _Chain:
    links: tuple[int, ...]
    loose: int
    acknowledgements: int
    within_sites: int
    held_up: int
    spare_ns: int


# How good a chain is, up to one of its messages: its length; then the fewer messages that look like
# background, loose links, hand-overs inside a site, and acknowledgements the better.
_Score = tuple[int, int, int, int, int]
_START: _Score = (0, 0, 0, 0, 0)


def _is_sound(state: int) -> bool:
    """Whether nothing on the way to a state is doubtful (see `_Search`)."""
    return state < 0 or state % 2 == 0


class _Timeline:
    """The messages of a record, ready to be cut into requests."""

    def __init__(self, record: Record, messages: Messages, background: Background | None) -> None:
        import numpy as np

        packet = messages.packet
        suspect = np.zeros(len(packet), dtype=bool)
        if background is not None:
            suspect = background.messages[packet] & (messages.releases < 0)
        self.is_suspect: list[bool] = suspect.tolist()
        self.packet: list[int] = packet.tolist()
        self.entry: list[int] = messages.entry_ns.tolist()
        self.arrival: list[int] = messages.arrival_ns.tolist()
        self.releases: list[int] = messages.releases.tolist()
        self.source: list[int] = record.source[packet].tolist()
        self.target: list[int] = record.target[packet].tolist()
        self.stream: list[int] = record.stream[packet].tolist()
        # Per stream, when anything arrived, data or not.
        arrived = np.flatnonzero(record.departure_ns >= 0)
        self.heard = {
            int(record.stream[places[0]]): np.sort(record.departure_ns[places]).tolist()
            for places in by_stream(record, arrived)
        }
        self.site: list[int] = record.node_site.tolist()
        # Arrivals at each node by time, whatever they are of.
        self.came: list[list[int]] = [[] for _ in record.nodes]
        for arrival, target, releases_one in sorted(
            zip(self.arrival, self.target, self.releases, strict=True)
        ):
            if arrival < NEVER and releases_one < 0:
                self.came[target].append(arrival)

    def longest(self, request: _Request) -> _Chain:
        """The longest chain of a request; an empty one where nothing crossed a link."""
        first = bisect_left(self.entry, request.start_ns)
        last = bisect_right(self.entry, request.end_ns)
        search = _Search(self, request)
        for message in range(first, last):
            search.take(message)
        return search.chain()


class _Search:
    """The longest chain to each message of one request, message by message in order of entry.

    Every message may be reached in two ways, told apart by the last bit of a state: by a chain that
    is sound (0), and by one with a doubtful link, all of whose links since then were at once (1).

    Of every node it is kept what arrived there and belongs to the request, in the order of arrival,
    with the best sound chain up to there, so that a message finds the best among those before it:
    the late ones one by one, whose link would be tight, and the best of all that are earlier.
    """

    def __init__(self, timeline: _Timeline, request: _Request) -> None:
        self.timeline, self.request = timeline, request
        self.score: dict[int, _Score] = {}
        self.before: dict[int, int] = {}
        self.on_the_way: list[tuple[int, int]] = []
        self.released: dict[int, list[int]] = {}
        # Of each node: instants of arrival, messages, and the best sound chain up to each.
        self.instants: dict[int, list[int]] = {}
        self.arrived: dict[int, list[int]] = {}
        self.best: dict[int, list[int]] = {}
        self.nodes_of: dict[int, set[int]] = {}

    def take(self, message: int) -> None:
        """Find the best chains that `message` can be the last of, if any."""
        timeline, now = self.timeline, self.timeline.entry[message]
        while self.on_the_way and self.on_the_way[0][0] <= now:
            self._arrive(*heapq.heappop(self.on_the_way))
        is_ack = timeline.releases[message] >= 0
        found = self._best_before(message, now)
        for state, (score, _, before) in found.items():
            length, suspects, loose, within, acks = score
            suspects -= timeline.is_suspect[message]
            self.score[state] = (length + 1, suspects, loose, within, acks - is_ack)
            self.before[state] = before
        if found and timeline.arrival[message] <= self.request.end_ns:
            heapq.heappush(self.on_the_way, (timeline.arrival[message], message))

    def _arrive(self, instant: int, message: int) -> None:
        timeline = self.timeline
        released = timeline.releases[message]
        if released >= 0:
            self.released.setdefault(released, []).append(message)
            return
        node, sound = timeline.target[message], 2 * message
        best = self.best.setdefault(node, [])
        upto = best[-1] if best else -1
        if sound in self.score and (upto < 0 or self.score[upto] < self.score[sound]):
            upto = sound
        best.append(upto)
        self.instants.setdefault(node, []).append(instant)
        self.arrived.setdefault(node, []).append(message)
        self.nodes_of.setdefault(timeline.site[node], set()).add(node)

    def _best_before(self, message: int, now: int) -> dict[int, tuple[_Score, int, int]]:
        """For each state of `message`: the best score up to just before it, when the message it
        hangs on arrived, and that one's state (-1: the start of the request).
        """
        timeline = self.timeline
        if timeline.releases[message] >= 0:
            return self._best_before_ack(message)
        node = timeline.source[message]
        choices = list(self._offers(message, node, now))
        is_tight = any(
            now - since <= LOOSE_NS for _, since, state in choices if state % 2 == 0 or state < 0
        )
        is_doubtful = not is_tight and self._has_another_cause(node, now)
        found: dict[int, tuple[_Score, int, int]] = {}
        for choice in choices:
            _, since, before = choice
            at_once = now - since <= AT_ONCE_NS
            was_sound = _is_sound(before)
            if not was_sound and not at_once:
                continue
            doubt = is_doubtful or (timeline.is_suspect[message] and not at_once)
            state = 2 * message + (doubt or not was_sound)
            if state not in found or found[state] < choice:  # of equals the last to arrive
                found[state] = choice
        return found

    def _best_before_ack(self, message: int) -> dict[int, tuple[_Score, int, int]]:
        """The same of an acknowledgement: it comes from what it confirms, however late it is.

        That is what arrived last on its connection.
        """
        timeline = self.timeline
        data_stream = timeline.stream[message] ^ 1
        arrived = self.arrived.get(timeline.source[message], ())
        for one in reversed(arrived):
            if timeline.stream[one] == data_stream:
                return {
                    2 * message + bit: (
                        self.score[2 * one + bit],
                        timeline.arrival[one],
                        2 * one + bit,
                    )
                    for bit in (0, 1)
                    if 2 * one + bit in self.score
                }
        return {}

    def _offers(self, message: int, node: int, now: int) -> Iterator[tuple[_Score, int, int]]:
        """What `message` may hang on: the score with that link, its arrival, its state."""
        timeline = self.timeline
        site = timeline.site[node]

        def offer(state: int, since: int, at: int | None) -> tuple[_Score, int, int]:
            length, suspects, loose, within, acks = self.score[state] if state >= 0 else _START
            is_loose, away = now - since > LOOSE_NS, at is not None and at != node
            return (length, suspects, loose - is_loose, within - away, acks), since, state

        if site == self.request.site:
            at_client = node == self.request.client
            yield offer(-1, self.request.start_ns, node if at_client else self.request.asked)
        for other in self.nodes_of.get(site, ()):
            instants, arrived = self.instants[other], self.arrived[other]
            place = len(instants) - 1
            while place >= 0 and now - instants[place] <= LOOSE_NS:
                for state in (2 * arrived[place], 2 * arrived[place] + 1):
                    if state in self.score:
                        yield offer(state, instants[place], other)
                place -= 1
            if place >= 0 and self.best[other][place] >= 0:
                best = self.best[other][place]
                yield offer(best, timeline.arrival[best // 2], other)
        for ack in self.released.get(message, ()):
            for state in (2 * ack, 2 * ack + 1):
                if state in self.score:
                    yield offer(state, timeline.arrival[ack], node)

    def _has_another_cause(self, node: int, now: int) -> bool:
        """Whether something arrived at a node just before, which is then not the request's.

        Asked only where nothing of the request arrived there for long.
        """
        came = self.timeline.came[node]
        place = bisect_right(came, now) - 1
        return place >= 0 and now - came[place] <= AT_ONCE_NS

    def _is_held_up(self, before: int, message: int) -> bool:
        """Whether a loose link left at once after something arrived on its connection."""
        timeline, now = self.timeline, self.timeline.entry[message]
        since = timeline.arrival[before] if before >= 0 else self.request.start_ns
        if now - since <= LOOSE_NS or timeline.releases[message] >= 0:
            return False
        heard = timeline.heard.get(timeline.stream[message] ^ 1, [])
        place = bisect_right(heard, now) - 1
        return place >= 0 and now - heard[place] <= AT_ONCE_NS

    def _is_asked(self, message: int) -> bool:
        """Whether a message goes to the node that answers, or the client."""
        return self.timeline.target[message] in (self.request.asked, self.request.client)

    def chain(self) -> _Chain:
        """The longest chain that came back to the client's site in time."""
        timeline, request = self.timeline, self.request
        lasts_ns = request.end_ns - request.start_ns
        ends = [
            (score, self._is_asked(state // 2), timeline.arrival[state // 2], state)
            for state, score in self.score.items()
            if timeline.arrival[state // 2]
            <= request.end_ns
            <= (NEVER if state % 2 == 0 else timeline.arrival[state // 2] + LOOSE_NS)
            and timeline.site[timeline.target[state // 2]] == request.site
            and timeline.releases[state // 2] < 0
        ]
        if not ends:
            return _Chain((), 0, 0, 0, 0, lasts_ns)
        # Of equals one to the node that answers, and of these the last: what was waited for.
        score, _, _, state = max(ends)
        links: list[int] = []
        while state >= 0:
            links.append(state // 2)
            state = self.before[state]
        links.reverse()
        travelled_ns = sum(timeline.arrival[one] - timeline.entry[one] for one in links)
        return _Chain(
            links=tuple(timeline.packet[one] for one in links),
            loose=-score[2],
            acknowledgements=-score[4],
            within_sites=-score[3],
            held_up=sum(self._is_held_up(*pair) for pair in pairwise((-1, *links))),
            spare_ns=lasts_ns - travelled_ns,
        )
