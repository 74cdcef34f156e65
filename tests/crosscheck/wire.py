"""Packets as a record of them would hold them, written by hand: a client, a server, a clock."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable

from wanlat.experiments.crosscheck.connections import Connections
from wanlat.experiments.crosscheck.events import Event
from wanlat.experiments.crosscheck.packets import FIN, SYN, Packet

HOST, PORT = "10.1.0.1", 9000
CLIENT = "10.2.0.1"
MS = 1_000_000
RTT = 100
ACK = 0x10


def frame(
    payload: bytes, *, out: bool, port: int = 40_000, seq: int = 1, flags: int = ACK
) -> bytes:
    """An Ethernet frame of a TCP segment, as a packet socket gives it."""
    ends = ((CLIENT, port), (HOST, PORT))
    source, target = ends if out else ends[::-1]
    tcp = struct.pack("!HHIIBBHHH", source[1], target[1], seq, 0, 5 << 4, flags, 65535, 0, 0)
    total = 20 + len(tcp) + len(payload)
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    ip = struct.pack("!BBHHHBBH", 0x45, 0, total, 0, 0, 64, 6, 0) + addresses
    return b"\0" * 12 + struct.pack("!H", 0x0800) + ip + tcp + payload


class Wire:
    """One client's connections, written down packet by packet; ``now`` is in ms."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self._next: dict[tuple[int, bool], int] = {}

    def syn(self, now: float, port: int = 40_000) -> None:
        """The client starts to connect."""
        self._next[port, True], self._next[port, False] = 1001, 5001
        self.packets.append(Packet(round(now * MS), True, port, 1000, SYN, b""))

    def syn_ack(self, now: float, port: int = 40_000) -> None:
        """The server accepts."""
        self.packets.append(Packet(round(now * MS), False, port, 5000, SYN | ACK, b""))

    def connect(self, now: float, port: int = 40_000) -> None:
        """Connect, in one round trip."""
        self.syn(now, port)
        self.syn_ack(now + RTT, port)

    def out(self, now: float, payload: bytes, port: int = 40_000) -> None:
        """The client sends."""
        self._add(now, True, payload, port)

    def came(self, now: float, payload: bytes = b"", port: int = 40_000) -> None:
        """The server sends; nothing: an acknowledgement alone."""
        self._add(now, False, payload, port)

    def end(self, now: float, port: int = 40_000) -> None:
        """The client has nothing more to send."""
        self._add(now, True, b"", port, FIN | ACK)

    def _add(self, now: float, out: bool, payload: bytes, port: int, flags: int = ACK) -> None:
        seq = self._next[port, out]
        self._next[port, out] = seq + len(payload)
        self.packets.append(Packet(round(now * MS), out, port, seq, flags, payload))

    def events(self) -> list[Event]:
        """Everything that the packets say."""
        return events_of(self.packets)


def events_of(packets: Iterable[Packet]) -> list[Event]:
    connections = Connections()
    connections.add(packets)
    return connections.take(0, 10**15)


def kinds(events: Iterable[Event]) -> list[str]:
    return [event.kind for event in events]


def http2_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack("!I", stream) + payload
    )
