"""Datagrams sent one way between nodes, and what became of each of them.

A datagram is a whole IP packet made here (a raw socket sends it), so that its source port, and by
it its flow, is chosen for each: packets of one flow keep their order, packets of different flows
do not wait for each other. What arrives is read from ``wanlat.emulator.arrivals``.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from wanlat.emulator.arrivals import KEPT_BYTES, Arrivals, Frames, instants_ns
from wanlat.emulator.lab import Lab
from wanlat.emulator.patience import STALL_S, wait

Pair = tuple[str, str]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

PACKET_BYTES = 160
"""Of a datagram with its IP header; large against an Ethernet header, small in a ring's slot."""
FRAME_BYTES = PACKET_BYTES + 14
SINK_PORT = 7  # a socket is bound to it, so that nobody answers; it is never read
_FIRST_PORT, _PORTS = 1024, 64_000
_UDP_HEADER_BYTES = 8
_CHUNK = 4000  # datagrams made at a time
_NAP_S = 0.0003  # a shorter wait is not slept: a sleep ends that late
_IP, _UDP, _DATA = slice(0, 20), slice(20, 28), slice(28, 40)

assert PACKET_BYTES <= KEPT_BYTES


@dataclass(frozen=True)
class Delivery:
    """What became of one pair's datagrams.

    ``sent_ns`` (shape (sent,)) is by number, which counts from 0 in the order of sending;
    ``numbers`` and ``arrived_ns`` (shape (arrived,)) are in the order of arrival, copies included.
    ``damaged`` packets arrived with a wrong checksum and are in none of them.
    """

    sent_ns: Numbers
    numbers: Numbers
    arrived_ns: Numbers
    damaged: int

    def __add__(self, later: Delivery) -> Delivery:
        """Return what became of both, as if ``later`` had been sent right after these."""
        return Delivery(
            np.concatenate((self.sent_ns, later.sent_ns)),
            np.concatenate((self.numbers, later.numbers + self.sent)),
            np.concatenate((self.arrived_ns, later.arrived_ns)),
            self.damaged + later.damaged,
        )

    @property
    def sent(self) -> int:
        """Return how many datagrams were sent."""
        return int(self.sent_ns.size)

    @property
    def missing(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for each datagram whether it never arrived whole, shape (sent,)."""
        missing = np.ones(self.sent, dtype=np.bool_)
        missing[self.numbers] = False
        return missing

    @property
    def lost(self) -> int:
        """Return how many never arrived, neither whole nor damaged."""
        return max(0, int(self.missing.sum()) - self.damaged)

    @property
    def duplicated(self) -> int:
        """Return how many arrivals were copies of one before."""
        return int(self.numbers.size - np.unique(self.numbers).size)

    @property
    def overtaken(self) -> int:
        """Return how many first copies arrived after one that had been sent later."""
        firsts = self.numbers[self._firsts()]
        if not firsts.size:
            return 0
        return int((firsts < np.maximum.accumulate(firsts)).sum())

    @property
    def delays_ns(self) -> Numbers:
        """Return the delay of each datagram that arrived, in the order of sending."""
        firsts = self._firsts()
        numbers, instants = self.numbers[firsts], self.arrived_ns[firsts]
        by_number = np.argsort(numbers)
        return instants[by_number] - self.sent_ns[numbers[by_number]]

    @property
    def bursts(self) -> Numbers:
        """Return the lengths of the runs of missing datagrams, in order."""
        edges = np.diff(np.concatenate(([0], self.missing.astype(np.int8), [0])))
        return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)

    def _firsts(self) -> Numbers:
        """Return where in ``numbers`` the first copy of each stands, in the order of arrival."""
        return np.sort(np.unique(self.numbers, return_index=True)[1])


class Stream:
    """Sends datagrams from and to nodes of a lab."""

    def __init__(self, lab: Lab, nodes: Sequence[str]) -> None:
        self._lab = lab
        self._addresses = {node: lab.node(node).address for node in nodes}
        self._open = ExitStack()
        self._senders: dict[str, socket.socket] = {}
        self._turn = 0
        try:
            for node in nodes:
                sender = lab.socket(node, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
                self._senders[node] = self._open.enter_context(sender)
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
                sink = self._open.enter_context(lab.socket(node, socket.AF_INET, socket.SOCK_DGRAM))
                sink.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # others may do the same
                sink.bind((self._addresses[node], SINK_PORT))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        self._open.close()

    def send(
        self,
        pairs: Sequence[Pair],
        count: int,
        interval_s: float,
        patience_s: float,
        *,
        flows: int = 1,
    ) -> dict[Pair, Delivery]:
        """Send ``count`` datagrams a pair, one every ``interval_s``, all pairs interleaved.

        Each pair's are spread over ``flows`` flows in turn. Waits ``patience_s`` for the last.
        Where the machine stalls, what is still to be sent is put off and not sent in a burst.
        Raises MachineError when the lab ends or there is no room for what arrives.
        """
        self._turn += 1
        sent_ns = np.zeros((len(pairs), count), dtype=np.int64)
        with ExitStack() as open_rings:
            rings = {
                node: open_rings.enter_context(Arrivals(self._lab, node, _room(pairs, node, count)))
                for node in dict.fromkeys(target for _, target in pairs)
            }
            self._send_all(pairs, count, interval_s / max(1, len(pairs)), flows, sent_ns)
            self._lab.check()
            wait(patience_s)
            arrived = {node: _Arrived.of(ring.frames(), self._turn) for node, ring in rings.items()}
        return {
            pair: arrived[pair[1]].delivery(place, sent_ns[place], pairs)
            for place, pair in enumerate(pairs)
        }

    def _send_all(
        self,
        pairs: Sequence[Pair],
        count: int,
        step_s: float,
        flows: int,
        sent_ns: Numbers,
    ) -> None:
        ways = [(self._senders[a], (self._addresses[b], 0)) for a, b in pairs]
        clock, now = time.clock_gettime_ns, time.monotonic
        begin = now() + 0.005
        for done, (number, place, packet) in enumerate(self._packets(pairs, count, flows)):
            while (early_s := begin + done * step_s - now()) > 0:
                if early_s > _NAP_S:
                    time.sleep(early_s - _NAP_S / 2)
            if early_s < -STALL_S:
                begin -= early_s
            sender, address = ways[place]
            sent_ns[place, number] = clock(time.CLOCK_REALTIME)
            sender.sendto(packet, address)
            if done % 1024 == 0:
                self._lab.check()

    def _packets(
        self, pairs: Sequence[Pair], count: int, flows: int
    ) -> Iterator[tuple[int, int, memoryview]]:
        """Yield number, place of the pair and the packet, in the order of sending."""
        total = count * len(pairs)
        sources, targets = (
            np.array([_words(self._addresses[pair[end]]) for pair in pairs]) for end in (0, 1)
        )
        for begin in range(0, total, _CHUNK):
            orders = np.arange(begin, min(begin + _CHUNK, total))
            numbers, places = np.divmod(orders, len(pairs))
            made = _datagrams(self._turn, numbers, places, flows, sources[places], targets[places])
            for number, place, packet in zip(numbers.tolist(), places.tolist(), made, strict=True):
                yield number, place, packet.data


def _room(pairs: Sequence[Pair], node: str, count: int) -> int:
    """Return a capacity for all that a node is sent, with copies of half of it."""
    return 4096 + 3 * count * sum(target == node for _, target in pairs) // 2


def _words(address: str) -> tuple[int, int]:
    high, low = np.frombuffer(socket.inet_aton(address), dtype=">u2").tolist()
    return high, low


def _datagrams(
    turn: int, numbers: Numbers, places: Numbers, flows: int, sources: Numbers, targets: Numbers
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return IP packets, shape (n, PACKET_BYTES). The kernel adds the IP header's checksum."""
    words = np.zeros((numbers.size, PACKET_BYTES // 2), dtype=">u2")
    udp_bytes = PACKET_BYTES - 20
    words[:, 0], words[:, 1] = 0x4500, PACKET_BYTES
    words[:, 3] = 0x4000  # don't fragment
    words[:, 4] = 64 << 8 | socket.IPPROTO_UDP
    words[:, 6:8], words[:, 8:10] = sources, targets
    words[:, 10] = _FIRST_PORT + numbers % min(flows, _PORTS)
    words[:, 11], words[:, 12] = SINK_PORT, udp_bytes
    words[:, 14], words[:, 15] = turn >> 16, turn & 0xFFFF
    words[:, 16], words[:, 17] = numbers >> 16, numbers & 0xFFFF
    words[:, 18], words[:, 19] = places >> 16, places & 0xFFFF
    # Half of the payload's bits are ones, so that a bit that is stuck would be noticed.
    words[:, 20:] = 0xA55A
    checksums = ~_folded(_udp_sums(words)) & 0xFFFF
    words[:, 13] = np.where(checksums == 0, 0xFFFF, checksums)
    return words.view(np.uint8).reshape(numbers.size, PACKET_BYTES)


def _udp_sums(words: np.ndarray[Any, np.dtype[Any]]) -> Numbers:
    """Return the sum that UDP's checksum is made of: pseudo-header and datagram (RFC 768)."""
    pseudo = words[:, 6:10].sum(axis=1, dtype=np.int64) + socket.IPPROTO_UDP
    sums: Numbers = pseudo + (PACKET_BYTES - 20) + words[:, 10:].sum(axis=1, dtype=np.int64)
    return sums


def _folded(sums: Numbers) -> Numbers:
    sums = (sums & 0xFFFF) + (sums >> 16)
    return (sums & 0xFFFF) + (sums >> 16)


@dataclass(frozen=True)
class _Arrived:
    """Datagrams of one turn that reached one node whole, and how many reached it damaged."""

    places: Numbers
    numbers: Numbers
    instants_ns: Numbers
    damaged: int
    damaged_places: Numbers

    @classmethod
    def of(cls, frames: Frames, turn: int) -> _Arrived:
        ours = frames[frames["length"] == FRAME_BYTES]
        words = np.ascontiguousarray(ours["packet"][:, :PACKET_BYTES]).view(">u2")
        whole = _folded(words[:, :10].sum(axis=1, dtype=np.int64)) == 0xFFFF
        whole &= _folded(_udp_sums(words)) == 0xFFFF
        double = words.astype(np.int64)
        turns = double[:, 14] << 16 | double[:, 15]
        places = double[:, 18] << 16 | double[:, 19]
        numbers = double[:, 16] << 16 | double[:, 17]
        good = whole & (turns == turn)
        return cls(
            places=places[good],
            numbers=numbers[good],
            instants_ns=instants_ns(ours)[good],
            damaged=int((~whole).sum()),
            damaged_places=places[~whole],
        )

    def delivery(self, place: int, sent_ns: Numbers, pairs: Sequence[Pair]) -> Delivery:
        mine = self.places == place
        alone = sum(target == pairs[place][1] for _, target in pairs) == 1
        # The place is written in the packet itself: with a single sender it need not be read.
        damaged = self.damaged if alone else int((self.damaged_places == place).sum())
        return Delivery(sent_ns, self.numbers[mine], self.instants_ns[mine], damaged)
