"""Probes between the nodes of a lab: real packets, and when the kernel saw them arrive.

One process sends all of them, and one kind of packet serves for everything: ICMP, made here whole.
An echo request is answered by the kernel of the node that it reaches, and so measures both ways;
an echo reply without a request is not answered, and measures one. Its identifier is its
flow: `wire` keeps the order of a flow, and packets of different flows do not wait for each other.

What arrives is stamped by the kernel (`emulator.arrivals`), so that a late wake-up of this process
enters no figure: only the instant of sending is read here, just before.

A probe that flew while the machine was late, as what emulates the links reports (`lateness`),
shows nothing of delays, and is in none of them. It counts as sent, as lost, as a copy or as
overtaken like all others.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wanlat.emulator.arrivals import KEPT_BYTES, Arrivals, instants_ns
from wanlat.emulator.closing import Closing
from wanlat.emulator.lab import Lab
from wanlat.emulator.lateness import realtime_offset_ns

ECHO_BYTES, ONE_WAY_BYTES, FULL_BYTES = 40, 160, 1500
"""Of an IP packet: echoes are small; what may be damaged is large against an Ethernet header."""
ETHERNET_BYTES = 14
"""Of a packet's header on a link, which counts for its rate."""
_ECHO_REPLY, _ECHO_REQUEST = 0, 8
_PUT_OFF_S = 0.05  # late: what is still to be sent is not sent in a burst
_STEP_S = 0.01  # of waiting: a stall uses up one step and not all of the patience
_STILL_S = 0.1  # without an arrival, before patience ends: a slow machine is still handing on
_LONGEST_PATIENCE = 10  # times what was requested: echoes of others may arrive for ever
_AT_ONCE = 50_000  # probes between two looks at what arrived: their stamps take memory
_CHECK_EVERY = 1024
# Places of a packet's fields, in 16-bit words.
_IP, _ICMP, _FLOW, _TURN, _NUMBER, _PLACE, _DATA = slice(10), 10, 12, 14, 16, 18, 20

Pair = tuple[str, str]
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Words = np.ndarray[Any, np.dtype[Any]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Progress = Callable[[float], None]


def _none() -> Numbers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Leg:
    """Probes of one pair at one end, in the order of arrival, copies included.

    ``numbers`` count from 0 in the order of sending; ``instants_ns`` are CLOCK_REALTIME.
    """

    numbers: Numbers = field(default_factory=_none)
    instants_ns: Numbers = field(default_factory=_none)

    def followed_by(self, later: Leg, sent: int) -> Leg:
        """Return both, where the later ones were sent after ``sent`` of these."""
        return Leg(
            np.concatenate((self.numbers, later.numbers + sent)),
            np.concatenate((self.instants_ns, later.instants_ns)),
        )

    @property
    def firsts(self) -> Numbers:
        """Where the first copy of each probe stands, in the order of arrival."""
        return np.sort(np.unique(self.numbers, return_index=True)[1])

    def by_number(self, sent: int) -> Numbers:
        """Return when each of ``sent`` probes arrived first, shape (sent,); 0: it did not."""
        instants = np.zeros(sent, dtype=np.int64)
        instants[self.numbers[self.firsts]] = self.instants_ns[self.firsts]
        return instants


@dataclass(frozen=True)
class Probes:
    """What became of one pair's probes. All instants are CLOCK_REALTIME in ns.

    ``sent_ns`` (shape (sent,)) is by number; ``there`` is what reached the target, ``back`` what
    came back of echoes; None: they were sent one way. ``damaged`` packets had a wrong checksum and
    are in neither. ``late`` (shape (sent,), or none are): those with delays that show nothing.
    """

    sent_ns: Numbers = field(default_factory=_none)
    there: Leg = field(default_factory=Leg)
    back: Leg | None = None
    damaged: int = 0
    late: Flags = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    def __add__(self, later: Probes) -> Probes:
        """Return what became of both, as if ``later`` had been sent right after these."""
        back = None
        if self.back is not None and later.back is not None:
            back = self.back.followed_by(later.back, self.sent)
        return Probes(
            np.concatenate((self.sent_ns, later.sent_ns)),
            self.there.followed_by(later.there, self.sent),
            back,
            self.damaged + later.damaged,
            np.concatenate((self.is_late, later.is_late)),
        )

    @property
    def sent(self) -> int:
        """How many were sent."""
        return int(self.sent_ns.size)

    @property
    def is_late(self) -> Flags:
        """For each probe whether the machine was late while it flew, shape (sent,)."""
        return self.late if self.late.size else np.zeros(self.sent, dtype=np.bool_)

    @property
    def clean(self) -> int:
        """How many of those that arrived whole (echoes: came back) flew while nothing was late."""
        return int((~self.missing & ~self.is_late).sum())

    @property
    def _last(self) -> Leg:
        return self.there if self.back is None else self.back

    @property
    def missing(self) -> Flags:
        """For each probe whether it never arrived whole (an echo: came back), shape (sent,)."""
        missing = np.ones(self.sent, dtype=np.bool_)
        missing[self._last.numbers] = False
        return missing

    @property
    def lost(self) -> int:
        """How many never arrived whole, or never came back."""
        return int(self.missing.sum())

    @property
    def duplicated(self) -> int:
        """How many arrivals were copies of one before."""
        numbers = self._last.numbers
        return int(numbers.size - np.unique(numbers).size)

    @property
    def overtaken(self) -> int:
        """How many arrived after one that had been sent later; of echoes, came back."""
        firsts = self._last.numbers[self._last.firsts]
        return int((firsts < np.maximum.accumulate(firsts)).sum()) if firsts.size else 0

    @property
    def delays_ns(self) -> Numbers:
        """The delay there of each clean one that arrived, in the order of sending."""
        arrived_ns = self.there.by_number(self.sent)
        return (arrived_ns - self.sent_ns)[(arrived_ns > 0) & ~self.is_late]

    @property
    def returns_ns(self) -> Numbers:
        """The delay back of each clean echo that came back, in the order of sending."""
        turned_ns, back_ns = self.there.by_number(self.sent), self.arrived_ns
        return (back_ns - turned_ns)[(turned_ns > 0) & (back_ns > 0) & ~self.is_late]

    @property
    def rtt_ns(self) -> Numbers:
        """The round-trip time of each clean echo that came back, in the order of sending."""
        back_ns = self.arrived_ns
        return (back_ns - self.sent_ns)[(back_ns > 0) & ~self.is_late]

    @property
    def arrived_ns(self) -> Numbers:
        """When each arrived (an echo: came back), shape (sent,); 0: it did not."""
        return self._last.by_number(self.sent)

    @property
    def bursts(self) -> Numbers:
        """The lengths of the runs of missing probes, in order."""
        edges = np.diff(np.concatenate(([0], self.missing.astype(np.int8), [0])))
        return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


class Prober(Closing):
    """Sends probes from and to nodes of a lab. A context manager.

    ``late_ms``: how late the machine may be on a link without spoiling a probe that flies then.
    """

    def __init__(self, lab: Lab, nodes: Sequence[str], late_ms: float = math.inf) -> None:
        self._lab = lab
        self._late_ms = late_ms
        self._open = ExitStack()
        self._senders: dict[str, socket.socket] = {}
        self.turn = 0
        """How often it sent; each probe has its turn."""
        try:
            for node in nodes:
                sender = lab.socket(node, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
                self._senders[node] = self._open.enter_context(sender)
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the sockets."""
        self._open.close()

    def measure(
        self,
        pairs: Sequence[Pair],
        count: int,
        interval_s: float,
        patience_s: float,
        on_progress: Progress = lambda _: None,
        *,
        many_flows: bool = False,
    ) -> dict[Pair, Probes]:
        """Send ``count`` echoes a pair, one every ``interval_s``, all pairs interleaved.

        Waits ``patience_s`` after the last, unless all came back sooner. ``on_progress`` is given
        the part done, 0 to 1. Each pair's are one flow; with ``many_flows`` each echo is one, and
        its order counts for nothing.
        """
        total: dict[Pair, Probes] = {}
        part = max(1, _AT_ONCE // max(1, len(pairs)))
        for begin in range(0, count, part):
            due_s = _interleaved(pairs, min(part, count - begin), interval_s)
            this = self._send(due_s, ECHO_BYTES, count if many_flows else 1, patience_s, echo=True)
            total = {pair: total[pair] + this[pair] for pair in pairs} if total else this
            on_progress(min(1.0, (begin + part) / count))
        return total

    def send(
        self,
        pairs: Sequence[Pair],
        count: int,
        interval_s: float,
        patience_s: float,
        *,
        flows: int = 1,
    ) -> dict[Pair, Probes]:
        """Send ``count`` probes a pair one way, one every ``interval_s``, all pairs interleaved.

        Each pair's are spread over ``flows`` flows in turn. Waits ``patience_s`` for the last, and
        longer while they keep arriving.
        """
        due_s = _interleaved(pairs, count, interval_s)
        return self._send(due_s, ONE_WAY_BYTES, flows, patience_s)

    def send_full(
        self, due_s: Mapping[Pair, Sequence[float]], patience_s: float
    ) -> dict[Pair, Probes]:
        """Send packets of ``FULL_BYTES`` one way, each so long after the beginning."""
        return self._send({p: np.asarray(s) for p, s in due_s.items()}, FULL_BYTES, 1, patience_s)

    def _send(
        self,
        due_s: Mapping[Pair, Words],
        size: int,
        flows: int,
        patience_s: float,
        *,
        echo: bool = False,
    ) -> dict[Pair, Probes]:
        """Send probes when they are due, and return what became of them.

        Where the machine stalls, what is still to be sent is put off and not sent in a burst.
        Raises MachineError when the lab ends or there is no room for what arrives.
        """
        self.turn += 1
        pairs = list(due_s)
        counts = [due_s[pair].size for pair in pairs]
        schedule_s = np.concatenate(list(due_s.values()))
        order = np.argsort(schedule_s, kind="stable")
        places = np.repeat(np.arange(len(pairs)), counts)[order]
        numbers = np.concatenate([np.arange(count) for count in counts])[order]
        addresses = {node: self._lab.node(node).address for pair in pairs for node in pair}
        ends = np.array([[_words(addresses[node]) for node in pair] for pair in pairs])[places]
        kind = _ECHO_REQUEST if echo else _ECHO_REPLY
        packets = _packets(kind, self.turn, numbers, places, numbers % flows, ends, size)
        rooms: dict[str, int] = {}
        for pair, count in zip(pairs, counts, strict=True):
            for node in pair if echo else pair[1:]:
                rooms[node] = rooms.get(node, 4096) + 3 * count // 2  # and copies
        with ExitStack() as opened:
            rings = {
                node: opened.enter_context(Arrivals(self._lab, node, room))
                for node, room in rooms.items()
            }
            ways = [(self._senders[a], (addresses[b], 0)) for a, b in pairs]
            ways = [ways[place] for place in places]
            sent_ns, held_ns = self._send_all(packets, ways, schedule_s[order].tolist())
            for arrived in self._waiting(rings.values(), patience_s):
                if echo and arrived >= 2 * numbers.size:
                    seen = {node: _Seen.read(ring, self.turn, size) for node, ring in rings.items()}
                    if sum(reached.returned for reached in seen.values()) == numbers.size:
                        break  # every one came back, copies apart
            else:
                seen = {node: _Seen.read(ring, self.turn, size) for node, ring in rings.items()}
        over_ns, result = time.time_ns(), {}
        is_known = math.isfinite(self._late_ms) and self._lab.lateness.update()
        for place, (a, b) in enumerate(pairs):
            mine = np.flatnonzero(places == place)[np.argsort(numbers[places == place])]
            probes = Probes(
                sent_ns[mine],
                seen[b].leg(place, kind),
                seen[a].leg(place, _ECHO_REPLY) if echo else None,
                sum(seen[node].damaged(place) for node in ({a, b} if echo else {b})),
            )
            late_ns = held_ns[mine]
            if is_known:
                late_ns = np.maximum(late_ns, self._lateness_ns(probes, over_ns))
            result[a, b] = replace(probes, late=late_ns > 1e6 * self._late_ms)
        return result

    def _waiting(self, rings: Collection[Arrivals], patience_s: float) -> Iterator[int]:
        """Yield how many packets have arrived, a step at a time, until patience is over.

        It is not as long as they keep arriving.
        """
        steps, arrived, still = max(1, round(patience_s / _STEP_S)), 0, 0
        for step in range(_LONGEST_PATIENCE * steps):
            if step >= steps and still * _STEP_S >= _STILL_S:
                return
            time.sleep(_STEP_S)
            self._lab.check()
            before, arrived = arrived, sum(ring.count for ring in rings)
            still = 0 if arrived > before else still + 1
            yield arrived

    def _lateness_ns(self, probes: Probes, over_ns: int) -> Numbers:
        """Return how late the machine was while each flew; one that is lost, until all was over."""
        back_ns = probes.arrived_ns
        offset_ns = realtime_offset_ns()
        return self._lab.lateness.of_all(
            probes.sent_ns - offset_ns, np.where(back_ns > 0, back_ns, over_ns) - offset_ns
        )

    def _send_all(
        self, packets: Words, ways: Sequence[tuple[socket.socket, Any]], due_s: Sequence[float]
    ) -> tuple[Numbers, Numbers]:
        """Return when each was sent, and for how long this process was held up in it, ns."""
        clock, now = time.clock_gettime_ns, time.monotonic
        sent_ns, held_ns = np.zeros((2, len(due_s)), dtype=np.int64)
        begin = now() + 0.002
        for done, (offset_s, (sender, address)) in enumerate(zip(due_s, ways, strict=True)):
            if (early_s := begin + offset_s - now()) > 0:
                time.sleep(early_s)
                late_s = now() - begin - offset_s
                if late_s > _PUT_OFF_S:
                    begin += late_s
            elif early_s < -_PUT_OFF_S:
                begin -= early_s
            packet = packets[done].data
            sent_ns[done] = clock(time.CLOCK_REALTIME)
            sender.sendto(packet, address)
            held_ns[done] = clock(time.CLOCK_REALTIME) - sent_ns[done]
            if done % _CHECK_EVERY == 0:
                self._lab.check()
        return sent_ns, held_ns


def _interleaved(pairs: Sequence[Pair], count: int, interval_s: float) -> dict[Pair, Words]:
    step_s = interval_s / max(1, len(pairs))
    return {
        pair: np.arange(count) * interval_s + place * step_s for place, pair in enumerate(pairs)
    }


def _words(address: str) -> tuple[int, int]:
    high, low = np.frombuffer(socket.inet_aton(address), dtype=">u2").tolist()
    return high, low


def _packets(
    kind: int, turn: int, numbers: Numbers, places: Numbers, flows: Numbers, ends: Words, size: int
) -> Words:
    """Return IP packets, shape (n, size) of bytes. The kernel adds the IP header's checksum.

    ``ends`` (shape (n, 2, 2)) are their source's and their target's address as words.
    """
    words = np.zeros((numbers.size, size // 2), dtype=">u2")
    words[:, 0], words[:, 1] = 0x4500, size
    words[:, 3] = 0x4000  # don't fragment
    words[:, 4] = 64 << 8 | socket.IPPROTO_ICMP
    words[:, 6:8], words[:, 8:10] = ends[:, 0], ends[:, 1]
    words[:, _ICMP] = kind << 8
    words[:, _FLOW] = flows & 0xFFFF
    words[:, 13] = numbers & 0xFFFF
    for place, values in ((_NUMBER, numbers), (_PLACE, places)):
        words[:, place], words[:, place + 1] = values >> 16, values & 0xFFFF
    words[:, _TURN], words[:, _TURN + 1] = turn >> 16, turn & 0xFFFF
    # Half of the payload's bits are ones, so that a bit that is stuck would be noticed.
    words[:, _DATA:] = 0xA55A
    words[:, _ICMP + 1] = ~_folded(words[:, _ICMP:]) & 0xFFFF
    return words.view(np.uint8).reshape(numbers.size, size)


def _folded(words: Words) -> Numbers:
    """Return the sum that the Internet's checksums are made of (RFC 1071), by row."""
    sums: Numbers = words.sum(axis=1, dtype=np.int64)
    sums = (sums & 0xFFFF) + (sums >> 16)
    return (sums & 0xFFFF) + (sums >> 16)


@dataclass(frozen=True)
class _Seen:
    """Probes of one turn that reached a node. Of full packets no checksum can be verified."""

    kinds: Numbers
    places: Numbers
    numbers: Numbers
    instants_ns: Numbers
    is_whole: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def read(cls, ring: Arrivals, turn: int, size: int) -> _Seen:
        frames = ring.frames()
        frames = frames[frames["length"] == size + ETHERNET_BYTES]
        words = np.ascontiguousarray(frames["packet"][:, : min(size, KEPT_BYTES)]).view(">u2")

        def double(place: int) -> Numbers:
            both: Numbers = words[:, place].astype(np.int64) << 16 | words[:, place + 1]
            return both

        whole = _folded(words[:, _IP]) == 0xFFFF
        if size <= KEPT_BYTES:
            whole &= _folded(words[:, _ICMP:]) == 0xFFFF
        mine = double(_TURN) == turn
        return cls(
            (words[:, _ICMP].astype(np.int64) >> 8)[mine],
            double(_PLACE)[mine],
            double(_NUMBER)[mine],
            instants_ns(frames)[mine],
            whole[mine],
        )

    @property
    def returned(self) -> int:
        """How many echoes came back whole."""
        mine = (self.kinds == _ECHO_REPLY) & self.is_whole
        return int(np.unique(self.places[mine] << 32 | self.numbers[mine]).size)

    def leg(self, place: int, kind: int) -> Leg:
        mine = (self.places == place) & (self.kinds == kind) & self.is_whole
        return Leg(self.numbers[mine], self.instants_ns[mine])

    def damaged(self, place: int) -> int:
        return int(((self.places == place) & ~self.is_whole).sum())
