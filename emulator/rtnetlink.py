"""The kernel's rtnetlink: requests, many in one message, and what is answered.

A lab of 1,000 nodes takes about 8,000 requests. Sent one by one through a general library they
take most of the time that a lab needs to come up: pyroute2 takes half a millisecond for each, and
half a second and 22 MB to be imported into the lab's first process. To read a counter takes it
0.5 ms and this 20 µs, of a processor on which somebody is being measured. So the few kinds of
requests that a lab is made of, and the few queries while packets pass, are written here byte
for byte. The tests read them with pyroute2.

Sources: RFC 3549; include/uapi/linux/{netlink,rtnetlink,if_link,if_addr,neighbour,veth}.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wanlat.emulator.addressing import End
from wanlat.emulator.closing import Closing

_ERROR = 2  # NLMSG_ERROR: an acknowledgement too, with the error 0
_REQUEST, _ACK, _ECHO = 0x1, 0x4, 0x8
_SOL_NETLINK, _NETLINK_CAP_ACK = 270, 10
_CREATE = 0x400 | 0x200 | 0x1  # NLM_F_CREATE | NLM_F_EXCL, NLM_F_REQUEST

_NEW_LINK, _GET_LINK, _NEW_ADDRESS, _NEW_ROUTE, _NEW_NEIGHBOUR = 16, 18, 20, 24, 28
_NEW_QDISC, _DEL_QDISC, _GET_QDISC, _GET_STATS = 36, 37, 38, 94

_UP = 0x1  # IFF_UP
_OPERATING = 6  # IF_OPER_UP, RFC 2863
_OPERATING_STATE = 16  # IFLA_OPERSTATE
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS
_LINK_64 = 1  # IFLA_STATS_LINK_64
_PERMANENT = 0x80  # NUD_PERMANENT
_TABLE_MAIN, _PROTOCOL_STATIC = 254, 4
_SCOPE_UNIVERSE, _SCOPE_LINK = 0, 253
_UNICAST = 1
_ONLINK = 0x4  # RTNH_F_ONLINK
_ROOT = 0xFFFFFFFF  # TC_H_ROOT
_HANDLE = 0x10000  # of the one queueing discipline that an interface of ours has
_TCA_KIND, _TCA_OPTIONS, _TCA_STATS = 1, 2, 3

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")
_LINK = struct.Struct("=BxHiII")  # ifinfomsg: family, type, index, flags, change
_ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg: family, prefix, flags, scope, index
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # ndmsg: family, index, state, flags, type
_ROUTE = struct.Struct("=BBBBBBBBI")  # rtmsg
_TC = struct.Struct("=BxxxiIII")  # tcmsg: family, index, handle, parent, info
_TC_STATISTICS = struct.Struct("=QIIIIIII")  # tc_stats
_STATS = struct.Struct("=BxHII")  # if_stats_msg: family, index, which statistics
_TRAFFIC = struct.Struct("=QQQQ")  # the first of rtnl_link_stats64

# What one sendmsg() carries. The kernel refuses more than the socket's send buffer (208 KiB by
# default, but an administrator may have set less); the answers, of up to 4 KiB each, lie in the
# receive buffer, which is as large.
_CALL_BYTES = 1 << 15
_CALL_REQUESTS = 32
_ANSWER_BYTES = 1 << 17


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its type and flags, what follows its header, and what it is in words."""

    kind: int
    flags: int
    body: bytes
    what: str


class Refusal(OSError):
    """The kernel refused a request, with an error number."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(number, os.strerror(number))
        self.what = what

    def __str__(self) -> str:
        assert self.errno is not None
        return f"{self.what}: {self.strerror} ({errno.errorcode.get(self.errno, self.errno)})"


def attribute(kind: int, data: bytes) -> bytes:
    """Return one attribute (struct nlattr), padded."""
    return _ATTRIBUTE.pack(4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def attributes(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and value of each attribute in a block of them."""
    while len(block) >= _ATTRIBUTE.size:
        length, number = _ATTRIBUTE.unpack_from(block)
        yield number & 0x3FFF, block[4:length]  # the upper bits say how it was made
        block = block[max(4, (length + 3) & ~3) :]


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _named(end: End) -> bytes:
    # One queue: by default the kernel sets one aside for every processor and uses one.
    parts = _text(3, end.name) + _number(31, 1) + _number(32, 1)  # IFLA_IFNAME, NUM_*_QUEUES
    return parts + (attribute(1, _mac(end.mac)) if end.mac else b"")  # IFLA_ADDRESS


def veth(near: End, far: End, far_namespace_fd: int) -> Request:
    """Make a veth pair. ``near`` is up at once; ``far`` cannot be before the pair is whole."""
    peer = _LINK.pack(0, 0, far.index, 0, 0) + _named(far)
    peer += _number(28, far_namespace_fd)  # IFLA_NET_NS_FD
    # IFLA_LINKINFO { IFLA_INFO_KIND, IFLA_INFO_DATA { VETH_INFO_PEER } }
    info = _text(1, "veth") + attribute(2, attribute(1, peer))
    body = _LINK.pack(0, 0, near.index, _UP, _UP) + _named(near) + attribute(18, info)
    return Request(_NEW_LINK, _CREATE, body, f"make the interfaces {near.name} and {far.name}")


def bridge(name: str, index: int) -> Request:
    """Make a bridge that is up. No spanning tree, no multicast snooping: of two ports, a wire."""
    snooping = attribute(23, b"\0")  # IFLA_BR_MCAST_SNOOPING
    info = _text(1, "bridge") + attribute(2, snooping)
    body = _LINK.pack(0, 0, index, _UP, _UP) + _text(3, name) + attribute(18, info)
    return Request(_NEW_LINK, _CREATE, body, f"make the bridge {name}")


def link_up(index: int, name: str) -> Request:
    """Bring an interface up."""
    return Request(
        _NEW_LINK, _REQUEST, _LINK.pack(0, 0, index, _UP, _UP), f"bring the interface {name} up"
    )


def into_bridge(index: int, name: str, bridge_index: int) -> Request:
    """Make an interface a port of a bridge."""
    body = _LINK.pack(0, 0, index, 0, 0) + _number(10, bridge_index)  # IFLA_MASTER
    return Request(_NEW_LINK, _REQUEST, body, f"put the interface {name} into its bridge")


def single_segments(index: int, name: str) -> Request:
    """Have the kernel cut TCP's large segments up before they reach an interface."""
    body = _LINK.pack(0, 0, index, 0, 0) + _number(40, 1)  # IFLA_GSO_MAX_SEGS
    return Request(_NEW_LINK, _REQUEST, body, f"limit the interface {name} to single segments")


def address(index: int, name: str, ipv4: str) -> Request:
    """Give an interface one IPv4 address, with a prefix of 32 bits."""
    packed = socket.inet_aton(ipv4)
    body = _ADDRESS.pack(socket.AF_INET, 32, 0, _SCOPE_UNIVERSE, index)
    body += attribute(2, packed) + attribute(1, packed)  # IFA_LOCAL, IFA_ADDRESS
    return Request(_NEW_ADDRESS, _CREATE, body, f"give the interface {name} the address {ipv4}")


def neighbour(index: int, name: str, ipv4: str, mac: str) -> Request:
    """Set beforehand which MAC address an IPv4 address has, for good."""
    body = _NEIGHBOUR.pack(socket.AF_INET, index, _PERMANENT, 0, _UNICAST)
    body += attribute(1, socket.inet_aton(ipv4)) + attribute(2, _mac(mac))  # NDA_DST, NDA_LLADDR
    return Request(
        _NEW_NEIGHBOUR, _CREATE, body, f"set the neighbour {ipv4} of the interface {name}"
    )


def route(index: int, name: str, destination: str, gateway: str = "") -> Request:
    """Send what goes to ``destination`` (``10.1.0.0/16``) out of an interface.

    ``gateway`` need not be in any subnet of the interface.
    """
    network, _, bits = destination.partition("/")
    prefix = int(bits)
    body = _ROUTE.pack(
        socket.AF_INET,
        prefix,
        0,
        0,
        _TABLE_MAIN,
        _PROTOCOL_STATIC,
        _SCOPE_UNIVERSE if gateway else _SCOPE_LINK,
        _UNICAST,
        _ONLINK if gateway else 0,
    )
    if prefix:
        body += attribute(1, socket.inet_aton(network))  # RTA_DST
    body += _number(4, index)  # RTA_OIF
    if gateway:
        body += attribute(5, socket.inet_aton(gateway))  # RTA_GATEWAY
    return Request(_NEW_ROUTE, _CREATE, body, f"set the route to {destination} through {name}")


def put_qdisc(index: int, name: str, kind: str, options: bytes, *, change: bool = False) -> Request:
    """Put a queueing discipline at the root of an interface, or change the one that is there.

    ``options`` is what goes into TCA_OPTIONS, encoded.
    """
    body = _TC.pack(0, index, _HANDLE, _ROOT, 0)
    body += _text(_TCA_KIND, kind) + attribute(_TCA_OPTIONS, options)
    verb, flags = ("change", _REQUEST) if change else ("put", _CREATE)
    return Request(_NEW_QDISC, flags, body, f"{verb} {kind} on the interface {name}")


def remove_qdisc(index: int, name: str) -> Request:
    """Take that queueing discipline away."""
    body = _TC.pack(0, index, _HANDLE, _ROOT, 0)
    return Request(_DEL_QDISC, _REQUEST, body, f"take a queue off the interface {name}")


def look_at_qdisc(index: int, name: str) -> Request:
    """Request its parameters and statistics: see `qdisc_statistics`."""
    body = _TC.pack(0, index, _HANDLE, _ROOT, 0)
    return Request(_GET_QDISC, _REQUEST | _ECHO, body, f"read a queue of the interface {name}")


@dataclass(frozen=True, slots=True)
class Statistics:
    """struct tc_stats: packets and bytes that left, drops, packets that wait."""

    bytes: int
    packets: int
    drops: int
    waiting: int


def qdisc_statistics(answer: bytes) -> Statistics:
    """Return the statistics of an answer to `look_at_qdisc`."""
    raw = dict(attributes(answer[_TC.size :]))[_TCA_STATS]
    sent, packets, drops, _, _, _, waiting, _ = _TC_STATISTICS.unpack_from(raw)
    return Statistics(sent, packets, drops, waiting)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Since the interface was made. A packet here is what the kernel hands on: up to 64 KiB."""

    rx_bytes: int
    tx_bytes: int
    rx_packets: int
    tx_packets: int


class Socket(Closing):
    """An rtnetlink socket: of the network namespace that it is opened in, or one that is given."""

    def __init__(self, given: socket.socket | None = None) -> None:
        self._socket = given or socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE
        )
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._sequence = 0

    def close(self) -> None:
        """Close it. Safe to repeat."""
        self._socket.close()

    def send(self, requests: Sequence[Request]) -> list[bytes | None]:
        """Have the kernel serve requests in order; return what each was answered with, if at all.

        All are served whatever becomes of the others; raises Refusal for the first that was
        refused. A socket that is shared between threads needs a lock.
        """
        answers: list[bytes | None] = [None] * len(requests)
        refusals: list[Refusal] = []
        first, self._sequence = self._sequence + 1, self._sequence + len(requests)
        for places in _calls(requests):
            message = bytearray()
            for place in places:
                request = requests[place]
                # Errors are reported in any case; that all is done, for the last alone.
                flags = request.flags | (_ACK if place == places[-1] else 0)
                length = _HEADER.size + len(request.body)
                message += _HEADER.pack(length, request.kind, flags, first + place, 0)
                message += request.body + b"\0" * (-length % 4)
            self._socket.send(message)
            for place, kind, body in self._heard(first, places[-1]):
                if kind != _ERROR:
                    answers[place] = body
                elif number := struct.unpack_from("=i", body)[0]:
                    refusals.append(Refusal(requests[place].what, -number))
        if refusals:
            raise refusals[0]
        return answers

    def _heard(self, first: int, last: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield place, kind and body of each message of the kernel, until ``last`` is done.

        It works while send() does: all its messages are there.
        """
        while True:
            try:
                data = self._socket.recv(_ANSWER_BYTES, socket.MSG_DONTWAIT)
            except OSError as error:
                if error.errno == errno.ENOBUFS:  # more errors than fit: the first one did
                    continue
                raise
            while len(data) >= _HEADER.size:
                length, kind, _, sequence, _ = _HEADER.unpack_from(data)
                if sequence >= first:  # else it answers a call that was interrupted
                    yield sequence - first, kind, data[_HEADER.size : length]
                if kind == _ERROR and sequence - first == last:
                    return
                data = data[(length + 3) & ~3 :]

    def are_operating(self, indexes: Sequence[int]) -> bool:
        """Return whether interfaces can send: up, with their peers up, and the kernel aware of it.

        From Linux 6.8 on, the request makes it aware (linkwatch_sync_dev() in rtnl_getlink()).
        """
        mask = _number(29, _SKIP_STATISTICS)  # IFLA_EXT_MASK
        answers = self.send(
            [
                Request(_GET_LINK, _REQUEST, _LINK.pack(0, 0, index, 0, 0) + mask, "read a link")
                for index in indexes
            ]
        )
        operating = _OPERATING_STATE, bytes([_OPERATING])
        return all(operating in attributes((answer or b"")[_LINK.size :]) for answer in answers)

    def traffic(self, index: int) -> Traffic:
        """Return what crossed an interface (rtnl_stats_get(), net/core/rtnetlink.c)."""
        body = _STATS.pack(0, 0, index, 1 << (_LINK_64 - 1))
        (answer,) = self.send([Request(_GET_STATS, _REQUEST, body, "count what crossed a link")])
        raw = dict(attributes((answer or b"")[_STATS.size :]))[_LINK_64]
        rx_packets, tx_packets, rx_bytes, tx_bytes = _TRAFFIC.unpack_from(raw)
        return Traffic(rx_bytes, tx_bytes, rx_packets, tx_packets)


def _calls(requests: Sequence[Request]) -> Iterator[range]:
    """Yield the places of requests that go together."""
    start, size = 0, 0
    for place, request in enumerate(requests):
        length = _HEADER.size + len(request.body) + 3
        if place > start and (size + length > _CALL_BYTES or place - start == _CALL_REQUESTS):
            yield range(start, place)
            start, size = place, 0
        size += length
    if requests:
        yield range(start, len(requests))
