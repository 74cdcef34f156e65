"""From packets to events: TCP's streams put together, and read as what the client speaks."""

from __future__ import annotations

from collections.abc import Iterable

from wanlat.experiments.crosscheck.events import Event, Kind
from wanlat.experiments.crosscheck.http1 import Http1
from wanlat.experiments.crosscheck.http2 import PREFACE, Http2
from wanlat.experiments.crosscheck.packets import FIN, RST, SYN, Packet
from wanlat.experiments.crosscheck.reading import Step, Unreadable

_BETWEEN_NODES = ("/minio/",)
"""Paths that MinIO's own nodes ask each other for, on the port that S3 is on."""


class Stream:
    """One direction: its bytes in order, however the packets came."""

    def __init__(self, next_seq: int) -> None:
        self._next = next_seq
        self._early: dict[int, bytes] = {}

    def take(self, seq: int, payload: bytes) -> bytes:
        """Return the bytes that a segment adds to what was there without a gap."""
        ahead = (seq - self._next) & 0xFFFFFFFF
        if ahead >= 1 << 31:  # sent again, in part or whole
            known = (1 << 32) - ahead
            if known >= len(payload):
                return b""
            payload, ahead = payload[known:], 0
        if ahead:
            self._early[seq] = payload
            return b""
        self._next = (self._next + len(payload)) & 0xFFFFFFFF
        following = self._early.pop(self._next, None)
        return payload if following is None else payload + self.take(self._next, following)


class Connection:
    """One TCP connection since its SYN, and the events on it so far."""

    def __init__(self, syn: Packet) -> None:
        self.events: list[Event] = [Event(syn.at_ns, True, "syn")]
        self.between_nodes = False
        self._closed: set[bool] = set()
        self._client = Stream(syn.seq + 1 & 0xFFFFFFFF)
        self._server: Stream | None = None
        self._buffers = {True: bytearray(), False: bytearray()}
        self._readers: dict[bool, Step] | None = None
        self._unread: list[Packet] = []
        self._now = (syn.at_ns, True)

    @property
    def ended(self) -> bool:
        """Tell whether both sides have closed it."""
        return len(self._closed) == 2

    @property
    def accepted(self) -> bool:
        """Tell whether the server has accepted it."""
        return self._server is not None

    def add(self, packet: Packet) -> None:
        """Take in one more packet."""
        if packet.flags & SYN:
            if not packet.out and self._server is None:
                self._server = Stream(packet.seq + 1 & 0xFFFFFFFF)
                self.events.append(Event(packet.at_ns, False, "syn-ack"))
            return
        stream = self._client if packet.out else self._server
        if stream is None:
            return
        if packet.payload:
            self._add_bytes(packet, stream)
        elif not packet.out and not packet.flags & (FIN | RST):
            self.events.append(Event(packet.at_ns, False, "ack"))
        if packet.flags & (FIN | RST):
            self.events.append(Event(packet.at_ns, packet.out, "end"))
            self._closed |= {True, False} if packet.flags & RST else {packet.out}

    def _add_bytes(self, packet: Packet, stream: Stream) -> None:
        before = len(self.events)
        self._buffers[packet.out] += stream.take(packet.seq, packet.payload)
        self._now = (packet.at_ns, packet.out)
        if self._readers is None and not self._choose():
            return  # a server may speak first; what it says is read when the client has spoken
        self._read(packet.out)
        if len(self.events) == before:  # the middle of something
            self._emit("body" if packet.out else "answer")

    def _choose(self) -> bool:
        """Find out by the client's first bytes which protocol it speaks."""
        said = self._buffers[True]
        if len(said) < 4:
            return False
        protocol = Http2(self._emit) if PREFACE.startswith(said[:24]) else Http1(self._emit)
        self._readers = {
            True: protocol.client(self._buffers[True]),
            False: protocol.server(self._buffers[False]),
        }
        if self._buffers[False]:
            now, self._now = self._now, (self._now[0], False)
            self._read(False)
            self._now = now
        return True

    def _read(self, out: bool) -> None:
        assert self._readers is not None
        try:
            next(self._readers[out])
        except (Unreadable, ValueError, StopIteration):
            # Not understood: from here on it is bytes that come and go.
            self._buffers[out].clear()
            self._readers[out] = _nothing(self._buffers[out])

    def _emit(self, kind: Kind, text: str = "", expects_continue: bool = False) -> None:
        at_ns, out = self._now
        self.events.append(Event(at_ns, out, kind, text, expects_continue))
        path = text.partition(" ")[2]
        if kind == "head" and path.startswith(_BETWEEN_NODES):
            self.between_nodes = True


def _nothing(buffer: bytearray) -> Step:
    while True:
        buffer.clear()
        yield


class Connections:
    """All connections of a record whose beginning is in it.

    A connection that is older is the cluster's own: every client starts after the record does.
    """

    def __init__(self) -> None:
        self._all: list[Connection] = []
        self._by_port: dict[int, Connection] = {}

    def add(self, packets: Iterable[Packet]) -> None:
        """Take in packets, in order."""
        for packet in packets:
            if packet.out and packet.flags & SYN:
                if packet.port in self._by_port and self._is_again(packet):
                    continue
                self._by_port[packet.port] = Connection(packet)
                self._all.append(self._by_port[packet.port])
            elif packet.port in self._by_port:
                self._by_port[packet.port].add(packet)

    def _is_again(self, syn: Packet) -> bool:
        """Tell whether a SYN is of the same attempt to connect, sent again."""
        return not self._by_port[syn.port].accepted

    def take(self, start_ns: int, end_ns: int) -> list[Event]:
        """Return the clients' events of that time, in order, and forget what was until its end."""
        taken = []
        for connection in self._all:
            events, connection.events = connection.events, []
            for event in events:
                if event.at_ns > end_ns:
                    connection.events.append(event)
                elif event.at_ns >= start_ns and not connection.between_nodes:
                    taken.append(event)
        self._all = [each for each in self._all if each.events or not each.ended]
        return sorted(taken, key=lambda event: event.at_ns)
