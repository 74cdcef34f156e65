"""The record of packets between a node and one server: a packet socket in the node's namespace.

The kernel keeps, and stamps, what the filter lets through; it is read between two requests, so
that nothing here runs while one is in flight. It works without root: the lab makes the socket.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from wanlat.topologies.errors import RunFailed

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

SYN, FIN, RST = 0x02, 0x01, 0x04

_ETH_P_ALL, _ETH_P_IP = 0x0003, 0x0800  # linux/if_ether.h
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23  # linux/if_packet.h
_SO_ATTACH_FILTER, _SO_TIMESTAMPNS, _SO_RCVBUFFORCE = 26, 35, 33  # asm-generic/socket.h
_TIMESPEC = struct.Struct("qq")
_BUFFER_BYTES = 16 << 20
_LONGEST = 65536 + 64
_LD_WORD, _LD_HALF, _LD_BYTE = 0x20, 0x28, 0x30  # linux/bpf_common.h
_LDX_IP_HEADER, _LD_HALF_INDEXED = 0xB1, 0x48
_JUMP_EQUAL, _RETURN = 0x15, 0x06


@dataclass(frozen=True, slots=True)
class Packet:
    """One TCP segment between the client and the server, at the client's interface."""

    at_ns: int
    """CLOCK_MONOTONIC."""
    out: bool
    """From the client to the server."""
    port: int
    """The client's port: one a connection."""
    seq: int
    flags: int
    payload: bytes


def parse(
    frame: bytes, at_ns: int, host: str, port: int, *, link_header: int = 14
) -> Packet | None:
    """Return the segment in a frame that goes to or comes from ``host:port``, else None."""
    ip = frame[link_header:]
    if len(ip) < 20 or ip[0] >> 4 != 4 or ip[9] != socket.IPPROTO_TCP:
        return None
    tcp = ip[(ip[0] & 15) * 4 : int.from_bytes(ip[2:4], "big")]
    if len(tcp) < 20:
        return None
    source, target = int.from_bytes(tcp[0:2], "big"), int.from_bytes(tcp[2:4], "big")
    address = socket.inet_aton(host)
    out = ip[16:20] == address and target == port
    if not out and not (ip[12:16] == address and source == port):
        return None
    seq, flags = int.from_bytes(tcp[4:8], "big"), tcp[13]
    payload = tcp[(tcp[12] >> 4) * 4 :]
    return Packet(at_ns, out, source if out else target, seq, flags, bytes(payload))


class Recorder:
    """A running record of one node's packets to and from ``host:port``. A context manager.

    ``interface`` is the one that they pass: ``eth0``, or ``lo`` where the node asks itself.
    """

    def __init__(
        self,
        lab: Lab,
        node: str,
        host: str,
        port: int,
        interface: Literal["eth0", "lo"] = "eth0",
    ) -> None:
        self._host, self._port = host, port
        # No protocol until the filter is there: nothing may slip through before it.
        self._socket = lab.socket(node, socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._set_buffer()
            self._attach(_filter(host, port))
            if interface == "lo":  # where every packet is seen twice, going out and coming in
                self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            self._socket.bind((interface, _ETH_P_ALL))
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def read(self) -> Iterator[Packet]:
        """Return the packets since the last call, in order.

        Raises RunFailed when the kernel had no room for one: a record with holes proves nothing.
        """
        # The stamps are on the other clock; what lies between the two is asked for each time.
        offset_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
        while True:
            try:
                frame, control, _, _ = self._socket.recvmsg(_LONGEST, 64)
            except BlockingIOError:
                break
            stamp = next(data for _, kind, data in control if kind == _SO_TIMESTAMPNS)
            seconds, nanoseconds = _TIMESPEC.unpack(stamp[: _TIMESPEC.size])
            at_ns = seconds * 1_000_000_000 + nanoseconds - offset_ns
            packet = parse(frame, at_ns, self._host, self._port)
            if packet is not None:
                yield packet
        _, dropped = struct.unpack(
            "II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        )
        if dropped:
            raise RunFailed(
                f"The record of packets has holes: {dropped} did not fit into the socket's buffer. "
                "A larger net.core.rmem_max gives it more room."
            )

    def _set_buffer(self) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:  # only the machine's root may pass net.core.rmem_max
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)

    def _attach(self, program: list[tuple[int, int, int, int]]) -> None:
        import ctypes

        code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
        held = ctypes.create_string_buffer(code)
        described = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(held))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)


def _filter(host: str, port: int) -> list[tuple[int, int, int, int]]:
    """Return the program ``tcp and host HOST and port PORT`` for the kernel's packet filter.

    An instruction is a code, how many to skip when true and when false, and a number.
    """
    address = int.from_bytes(socket.inet_aton(host), "big")
    return [
        (_LD_HALF, 0, 0, 12),
        (_JUMP_EQUAL, 0, 11, _ETH_P_IP),
        (_LD_BYTE, 0, 0, 23),
        (_JUMP_EQUAL, 0, 9, socket.IPPROTO_TCP),
        (_LDX_IP_HEADER, 0, 0, 14),
        (_LD_WORD, 0, 0, 26),
        (_JUMP_EQUAL, 0, 2, address),  # from the server?
        (_LD_HALF_INDEXED, 0, 0, 14),
        (_JUMP_EQUAL, 5, 0, port),
        (_LD_WORD, 0, 0, 30),
        (_JUMP_EQUAL, 0, 2, address),  # to the server?
        (_LD_HALF_INDEXED, 0, 0, 16),
        (_JUMP_EQUAL, 1, 0, port),
        (_RETURN, 0, 0, 0),
        (_RETURN, 0, 0, _LONGEST),
    ]
