"""The netems of one namespace, over one netlink socket that stays open.

Building a network asks the kernel to do things (`emulator.rtnetlink`); a backend also asks it how
things are, while packets pass, and as often as somebody changes a link.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wanlat.emulator.backends.netem_options import attributes
from wanlat.emulator.rtnetlink import DEL_QDISC, Request, queueing_discipline

# linux/netlink.h, linux/rtnetlink.h, linux/pkt_sched.h
_NLMSG_ERROR, _RTM_GETQDISC = 2, 38
_REQUEST, _ACK, _ECHO = 0x1, 0x4, 0x8
_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11
_ACK_TLVS, _ERROR_TEXT = 0x200, 1
_ROOT = 0xFFFFFFFF
_TCA_OPTIONS, _TCA_STATS = 2, 3
_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BxxxiIII")
_STATISTICS = struct.Struct("=QIIIIIII")  # struct tc_stats

_HANDLE = 0x10000

# What one call may hold: the kernel's default buffers of a socket take a good 200 kB, and an
# answer takes some 800 bytes of them.
_CALL_BYTES = 64 << 10
_CALL_REQUESTS = 100


@dataclass(frozen=True, slots=True)
class Statistics:
    """struct tc_stats: packets and bytes that left, drops, packets that wait."""

    bytes: int
    packets: int
    drops: int
    waiting: int


class Refused(OSError):
    """The kernel refused a request."""

    def __init__(self, number: int, what: str, text: str) -> None:
        super().__init__(number, text or os.strerror(number))
        self.what = what


def put(index: int, name: str, options: bytes, *, change: bool = False) -> Request:
    """Return the request that makes a netem at an interface's root, or changes it in place."""
    return queueing_discipline(index, name, "netem", _HANDLE, options, change=change)


def remove(index: int, name: str) -> Request:
    """Return the request that removes it."""
    body = _TCMSG.pack(0, index, _HANDLE, _ROOT, 0)
    return Request(DEL_QDISC, _REQUEST, body, f"take netem off the interface {name}")


def look(index: int, name: str) -> Request:
    """Return the request that asks for its parameters and statistics."""
    body = _TCMSG.pack(0, index, _HANDLE, _ROOT, 0)
    return Request(_RTM_GETQDISC, _REQUEST | _ECHO, body, f"read netem of the interface {name}")


class TrafficControl:
    """The socket. Made in the namespace that it serves, and used from anywhere."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._socket.settimeout(10)
        for option in (_NETLINK_CAP_ACK, _NETLINK_EXT_ACK):
            self._socket.setsockopt(_SOL_NETLINK, option, 1)
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, requests: Sequence[Request]) -> list[bytes | None]:
        """Have the kernel serve requests in order; return the message each was answered with.

        A request that asks nothing has no answer. All are served whatever becomes of the others;
        raises Refused for the first that was refused.
        """
        answers: list[bytes | None] = [None] * len(requests)
        refused: list[Refused] = []
        for start, call in self._calls(requests):
            first = self._sequence - len(call) + 1
            self._socket.send(b"".join(call))
            open_answers = len(call)
            while open_answers:
                for kind, sequence, body in _messages(self._socket.recv(1 << 18)):
                    place = start + sequence - first
                    if not start <= place < start + len(call):
                        continue  # the answer to a call that was given up
                    if kind != _NLMSG_ERROR:
                        answers[place] = body
                        continue
                    open_answers -= 1
                    if error := _error(body, requests[place].what):
                        refused.append(error)
        if refused:
            raise refused[0]
        return answers

    def _calls(self, requests: Sequence[Request]) -> Iterator[tuple[int, list[bytes]]]:
        start, call, size = 0, list[bytes](), 0
        for place, request in enumerate(requests):
            length = _HEADER.size + len(request.body)
            if call and (size + length > _CALL_BYTES or len(call) == _CALL_REQUESTS):
                yield start, call
                start, call, size = place, [], 0
            self._sequence = (self._sequence + 1) & 0x7FFFFFFF
            flags = request.flags | _ACK
            header = _HEADER.pack(length, request.kind, flags, self._sequence, 0)
            call.append(header + request.body)
            size += length
        if call:
            yield start, call


def options(answer: bytes) -> bytes:
    """Return the payload of TCA_OPTIONS of an answer to `look`."""
    return _attribute_of(answer, _TCA_OPTIONS)


def statistics(answer: bytes) -> Statistics:
    """Return the statistics of an answer to `look`."""
    sent, packets, drops, _, _, _, waiting, _ = _STATISTICS.unpack_from(
        _attribute_of(answer, _TCA_STATS)
    )
    return Statistics(sent, packets, drops, waiting)


def _attribute_of(answer: bytes, wanted: int) -> bytes:
    for number, value in attributes(answer[_TCMSG.size :]):
        if number == wanted:
            return value
    raise ValueError(f"the kernel's answer has no attribute {wanted}")


def _messages(datagram: bytes) -> Iterator[tuple[int, int, bytes]]:
    while len(datagram) >= _HEADER.size:
        length, kind, flags, sequence, _ = _HEADER.unpack_from(datagram)
        # What follows an acknowledgement's number is told from an error's text by the flag.
        prefix = struct.pack("=?", bool(flags & _ACK_TLVS)) if kind == _NLMSG_ERROR else b""
        yield kind, sequence, prefix + datagram[_HEADER.size : length]
        datagram = datagram[(length + 3) & ~3 :]


def _error(body: bytes, what: str) -> Refused | None:
    has_text, number = struct.unpack_from("=?i", body)
    if number == 0:
        return None
    text = ""
    if has_text:  # behind the number is the header of the refused request
        for attribute, value in attributes(body[5 + _HEADER.size :]):
            if attribute == _ERROR_TEXT:
                text = value.rstrip(b"\0").decode(errors="replace")
    return Refused(-number, what, text)
