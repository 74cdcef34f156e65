"""Round trips between nodes, measured with real packets and the kernel's own timestamps.

Each probe is an ICMP echo. Raw sockets in both nodes' namespaces stamp it on arrival
(SO_TIMESTAMPNS), so one probe gives both one-way delays and the round trip, and a late wake-up
of this process adds nothing to any of them: only the instant of sending is read here.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from wanlat.emulator.lab import Lab
from wanlat.emulator.patience import STALL_S

_ECHO_REPLY, _ECHO_REQUEST = 0, 8
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; also the type of its control message
_SOL_RAW, _ICMP_FILTER = 255, 1  # linux/icmp.h
_HEADER = struct.Struct("!BBHHH")
_PAYLOAD = struct.Struct("!III")  # round, pair, number
_TIMESPEC = struct.Struct("qq")
_IP_HEADER_BYTES = 20

FRAME_BYTES = 14 + _IP_HEADER_BYTES + _HEADER.size + _PAYLOAD.size
"""Of a probe on a link, with its Ethernet header."""

Pair = tuple[str, str]


@dataclass
class Echoes:
    """What came back of one pair's probes, in the order of receipt. All times in ns.

    ``numbers`` are the probes' positions in the order of sending. The one-way lists are shorter
    than ``rtt_ns`` where the target's own copy of a probe was not seen; ``seen_numbers`` and
    ``seen_sent_ns`` (CLOCK_REALTIME) belong to them. ``corrupted`` counts what arrived with a wrong
    checksum, at either end.
    """

    sent: int = 0
    numbers: list[int] = field(default_factory=list)
    rtt_ns: list[int] = field(default_factory=list)
    seen_numbers: list[int] = field(default_factory=list)
    seen_sent_ns: list[int] = field(default_factory=list)
    forward_ns: list[int] = field(default_factory=list)
    backward_ns: list[int] = field(default_factory=list)
    duplicates: int = 0
    corrupted: int = 0

    def __add__(self, later: Echoes) -> Echoes:
        """Return those of both, as if ``later`` had been sent right after these."""
        return Echoes(
            sent=self.sent + later.sent,
            numbers=self.numbers + [self.sent + number for number in later.numbers],
            rtt_ns=self.rtt_ns + later.rtt_ns,
            seen_numbers=self.seen_numbers + [self.sent + number for number in later.seen_numbers],
            seen_sent_ns=self.seen_sent_ns + later.seen_sent_ns,
            forward_ns=self.forward_ns + later.forward_ns,
            backward_ns=self.backward_ns + later.backward_ns,
            duplicates=self.duplicates + later.duplicates,
            corrupted=self.corrupted + later.corrupted,
        )

    @property
    def lost(self) -> int:
        """Return how many probes never came back."""
        return self.sent - len(self.numbers)

    @property
    def reordered(self) -> int:
        """Return how many echoes came back after one that had been sent later."""
        count, latest = 0, -1
        for number in self.numbers:
            if number < latest:
                count += 1
            latest = max(latest, number)
        return count


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def _echo_request(turn: int, pair: int, number: int, flow: int) -> bytes:
    payload = _PAYLOAD.pack(turn, pair, number)
    identifier, sequence = flow & 0xFFFF, number & 0xFFFF
    bare = _HEADER.pack(_ECHO_REQUEST, 0, 0, identifier, sequence) + payload
    return _HEADER.pack(_ECHO_REQUEST, 0, _checksum(bare), identifier, sequence) + payload


class _Round:
    """The probes of one call of ``measure``, by (pair, number)."""

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.sent_ns: dict[tuple[int, int], int] = {}
        self.at_target_ns: dict[tuple[int, int], int] = {}
        self.returned: list[tuple[tuple[int, int], int]] = []
        self.corrupted: dict[int, int] = {}

    def note(self, packet: bytes, instant_ns: int) -> None:
        """Take in one ICMP packet that a raw socket received, IP header included."""
        header_end = _IP_HEADER_BYTES + _HEADER.size
        if len(packet) < header_end + _PAYLOAD.size:
            return
        turn, pair, number = _PAYLOAD.unpack_from(packet, header_end)
        key = (pair, number)
        if _checksum(packet[_IP_HEADER_BYTES:]):  # raw sockets are given what has a wrong one too
            self.corrupted[pair] = self.corrupted.get(pair, 0) + 1
            return
        if turn != self.turn or key not in self.sent_ns:
            return  # a straggler of an earlier round
        if packet[_IP_HEADER_BYTES] == _ECHO_REQUEST:
            self.at_target_ns.setdefault(key, instant_ns)
        else:
            self.returned.append((key, instant_ns))

    def echoes(self, pairs: Sequence[Pair]) -> dict[Pair, Echoes]:
        """Sort what came back by pair."""
        result = {
            pair: Echoes(corrupted=self.corrupted.get(place, 0)) for place, pair in enumerate(pairs)
        }
        for pair, _ in self.sent_ns:
            result[pairs[pair]].sent += 1
        seen: set[tuple[int, int]] = set()
        for key, instant_ns in self.returned:
            echo = result[pairs[key[0]]]
            if key in seen:
                echo.duplicates += 1
                continue
            seen.add(key)
            echo.numbers.append(key[1])
            echo.rtt_ns.append(instant_ns - self.sent_ns[key])
            if key in self.at_target_ns:  # else its copy did not fit the target's socket buffer
                echo.seen_numbers.append(key[1])
                echo.seen_sent_ns.append(self.sent_ns[key])
                echo.forward_ns.append(self.at_target_ns[key] - self.sent_ns[key])
                echo.backward_ns.append(instant_ns - self.at_target_ns[key])
        return result


class Prober:
    """Sockets on the nodes of a lab, and the loop that sends and receives on them."""

    def __init__(self, lab: Lab, nodes: Sequence[str]) -> None:
        self._lab = lab
        self._addresses = {node: lab.node(node).address for node in nodes}
        self._sockets = {node: self._open(lab, node) for node in nodes}
        self._turn = 0
        self._selector = selectors.DefaultSelector()
        for node, opened in self._sockets.items():
            self._selector.register(opened, selectors.EVENT_READ, node)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        self._selector.close()
        for opened in self._sockets.values():
            opened.close()

    @staticmethod
    def _open(lab: Lab, node: str) -> socket.socket:
        opened = lab.socket(node, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        wanted = (1 << _ECHO_REPLY) | (1 << _ECHO_REQUEST)
        opened.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("I", ~wanted & 0xFFFFFFFF))
        return opened

    def measure(
        self,
        pairs: Sequence[Pair],
        count: int,
        interval_s: float,
        patience_s: float,
        on_progress: Callable[[float], None] = lambda _: None,
        *,
        many_flows: bool = False,
    ) -> dict[Pair, Echoes]:
        """Send ``count`` probes a pair, one every ``interval_s``, all pairs interleaved.

        Waits ``patience_s`` for stragglers after the last. ``on_progress`` is given the part
        done, 0 to 1. Each pair is a flow, whose packets keep their order; with ``many_flows`` each
        probe is one, and its order counts for nothing. Where the machine stalls, what is still to
        be done is put off: nothing is sent in a burst, and nothing in flight is given up.
        """
        self._turn += 1
        this = _Round(self._turn)
        step_s = interval_s / max(1, len(pairs))
        begin = time.monotonic() + 0.01
        total, done = count * len(pairs), 0
        deadline = begin + count * interval_s + patience_s
        due = begin  # when this loop is to turn again at the latest
        while len(this.returned) < total:
            now = time.monotonic()
            if (stalled_s := now - due) > STALL_S:
                begin, deadline = begin + stalled_s, deadline + stalled_s
            if now >= deadline:
                break
            self._lab.check()
            while done < total and time.monotonic() >= begin + done * step_s:
                number, which = divmod(done, len(pairs))
                source, target = pairs[which]
                flow = done if many_flows else which
                packet = _echo_request(this.turn, which, number, flow)
                this.sent_ns[which, number] = time.clock_gettime_ns(time.CLOCK_REALTIME)
                self._sockets[source].sendto(packet, (self._addresses[target], 0))
                done += 1
                if done % 50 == 0:
                    on_progress(done / total)
            wake = begin + done * step_s if done < total else deadline
            wait_s = min(max(0.0, wake - time.monotonic()), STALL_S)
            due = time.monotonic() + wait_s
            for key, _ in self._selector.select(wait_s):
                self._drain(key.fileobj, this)
        for opened in self._sockets.values():
            self._drain(opened, this)
        on_progress(1.0)
        return this.echoes(pairs)

    @staticmethod
    def _drain(ready: object, this: _Round) -> None:
        assert isinstance(ready, socket.socket)
        while True:
            try:
                packet, control, _, _ = ready.recvmsg(256, 64)
            except BlockingIOError:
                return
            stamp = next((data for _, kind, data in control if kind == _SO_TIMESTAMPNS), None)
            if stamp is not None:
                seconds, nanoseconds = _TIMESPEC.unpack(stamp[: _TIMESPEC.size])
                this.note(packet, seconds * 1_000_000_000 + nanoseconds)
