"""Requests to the kernel's rtnetlink, many in one message.

A lab of 1,000 nodes takes about 8,000 requests. Sent one by one through a general library they
take most of the time that a lab needs to come up (pyroute2: half a millisecond each), so the few
kinds that a lab is made of are written here, byte for byte, and sent together. The tests read
them with pyroute2.

Sources: RFC 3549; include/uapi/linux/{netlink,rtnetlink,if_link,if_addr,neighbour,veth}.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_ERROR = 2  # NLMSG_ERROR: an acknowledgement too, with the error 0
_REQUEST, _ACK = 0x1, 0x4
_CREATE = 0x400 | 0x200 | 0x1  # NLM_F_CREATE | NLM_F_EXCL, NLM_F_REQUEST
_CAPPED, _ACK_TLVS = 0x100, 0x200
_SOL_NETLINK = 270
_NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 10, 11
_ERROR_TEXT = 1  # NLMSGERR_ATTR_MSG

_GET_LINK = 18
_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE, _NEW_NEIGHBOUR = 16, 20, 24, 28
NEW_QDISC, DEL_QDISC = 36, 37

_UP = 0x1  # IFF_UP
_OPERATING = 6  # IF_OPER_UP, RFC 2863
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS
_PERMANENT = 0x80  # NUD_PERMANENT
_TABLE_MAIN, _PROTOCOL_STATIC = 254, 4
_SCOPE_UNIVERSE, _SCOPE_LINK = 0, 253
_UNICAST = 1
_ONLINK = 0x4  # RTNH_F_ONLINK
_ROOT = 0xFFFFFFFF  # TC_H_ROOT

_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_ATTRIBUTE = struct.Struct("=HH")
_LINK = struct.Struct("=BxHiII")  # ifinfomsg: family, type, index, flags, change
_ADDRESS = struct.Struct("=BBBBI")  # ifaddrmsg: family, prefix, flags, scope, index
_NEIGHBOUR = struct.Struct("=BxxxiHBB")  # ndmsg: family, index, state, flags, type
_ROUTE = struct.Struct("=BBBBBBBBI")  # rtmsg
_TC = struct.Struct("=BxxxiIII")  # tcmsg: family, index, handle, parent, info

# What one sendmsg() carries. The kernel refuses more than the socket's send buffer (208 KiB by
# default, but an administrator may have set less).
_MESSAGE_BYTES = 1 << 15


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its type and flags, what follows its header, and what it is in words."""

    kind: int
    flags: int
    body: bytes
    what: str


class Refusal(Exception):
    """The kernel said no to ``request``, with an error number and perhaps a reason in words."""

    def __init__(self, request: Request, number: int, reason: str) -> None:
        self.request = request
        self.number = number
        self.reason = reason
        words = f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
        super().__init__(f"{request.what}: {words}{f': {reason}' if reason else ''}")


def attribute(kind: int, data: bytes) -> bytes:
    """Return one attribute (struct nlattr), padded."""
    return _ATTRIBUTE.pack(4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


@dataclass(frozen=True, slots=True)
class VethEnd:
    """One end of a veth pair. ``namespace_fd`` None: the namespace that the request is sent in.

    ``mac`` empty: the kernel's choice.
    """

    name: str
    index: int
    mac: str = ""
    namespace_fd: int | None = None

    def _attributes(self) -> bytes:
        # One queue: by default the kernel sets one aside for every processor and uses one.
        parts = [_text(3, self.name), _number(31, 1), _number(32, 1)]  # IFLA_IFNAME, NUM_*_QUEUES
        if self.mac:
            parts.append(attribute(1, _mac(self.mac)))  # IFLA_ADDRESS
        if self.namespace_fd is not None:
            parts.append(_number(28, self.namespace_fd))  # IFLA_NET_NS_FD
        return b"".join(parts)


def veth(near: VethEnd, far: VethEnd) -> Request:
    """Make a veth pair. ``near`` is up at once; ``far`` cannot be before the pair is whole."""
    peer = _LINK.pack(0, 0, far.index, 0, 0) + far._attributes()
    # IFLA_LINKINFO { IFLA_INFO_KIND, IFLA_INFO_DATA { VETH_INFO_PEER } }
    info = _text(1, "veth") + attribute(2, attribute(1, peer))
    body = _LINK.pack(0, 0, near.index, _UP, _UP) + near._attributes() + attribute(18, info)
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
    """Tell beforehand which MAC address an IPv4 address has, for good."""
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


def queueing_discipline(
    index: int, name: str, kind: str, handle: int, options: bytes | None, *, change: bool = False
) -> Request:
    """Put a queueing discipline at the root of an interface, or change the one that is there.

    ``options`` is what goes into TCA_OPTIONS, encoded (None: no such attribute).
    """
    body = _TC.pack(0, index, handle, _ROOT, 0) + _text(1, kind)  # TCA_KIND
    if options is not None:
        body += attribute(2, options)  # TCA_OPTIONS
    verb = "change" if change else "put"
    return Request(
        NEW_QDISC,
        _REQUEST if change else _CREATE,
        body,
        f"{verb} {kind} on the interface {name}",
    )


class Socket:
    """An rtnetlink socket of the network namespace that it is opened in."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)

    def __enter__(self) -> Socket:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._socket.close()

    def send(self, requests: Sequence[Request]) -> None:
        """Send requests, in order. Raises Refusal for the first that is refused.

        Those that follow it in the same message have been carried out nevertheless.
        """
        start = 0
        while start < len(requests):
            message = bytearray()
            sequence = start
            while sequence < len(requests) and len(message) < _MESSAGE_BYTES:
                request = requests[sequence]
                length = _HEADER.size + len(request.body)
                message += _HEADER.pack(length, request.kind, request.flags, sequence + 1, 0)
                message += request.body
                message += b"\0" * (-length % 4)
                last, sequence = len(message) - length - (-length % 4), sequence + 1
            # Errors are told unasked; that all is done, for the last alone.
            flags = requests[sequence - 1].flags | _ACK
            struct.pack_into("=H", message, last + 6, flags)
            self._socket.send(message)
            self._await(requests, sequence)
            start = sequence

    def are_operating(self, indexes: Sequence[int]) -> bool:
        """Tell whether interfaces can send: up, with their peers up, and the kernel aware of it.

        From Linux 6.8 on, asking makes it aware (linkwatch_sync_dev() in rtnl_getlink()).
        """
        for index in indexes:
            body = _LINK.pack(0, 0, index, 0, 0) + _number(29, _SKIP_STATISTICS)  # IFLA_EXT_MASK
            self._socket.send(_HEADER.pack(16 + len(body), _GET_LINK, _REQUEST, index, 0) + body)
            answer = self._socket.recv(1 << 16)
            (kind,) = struct.unpack_from("=4xH", answer)
            if kind != _NEW_LINK or _operating_state(answer) != _OPERATING:
                return False
        return True

    def _await(self, requests: Sequence[Request], last: int) -> None:
        refusal: Refusal | None = None
        while True:
            try:
                # The kernel works while send() does: what it has to say is all there.
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except OSError as error:
                if error.errno == errno.ENOBUFS:  # more errors than fit: the first one did
                    continue
                raise refusal or error from None
            offset = 0
            while offset < len(data):
                length, kind, flags, sequence, _ = _HEADER.unpack_from(data, offset)
                (code,) = struct.unpack_from("=i", data, offset + _HEADER.size)
                if kind == _ERROR and code and refusal is None:
                    reason = _reason(data[offset : offset + length], flags)
                    refusal = Refusal(requests[sequence - 1], -code, reason)
                if sequence == last:
                    if refusal is not None:
                        raise refusal
                    return
                offset += (length + 3) & ~3


def _operating_state(answer: bytes) -> int:
    offset = _HEADER.size + _LINK.size
    while offset + _ATTRIBUTE.size <= len(answer):
        length, kind = _ATTRIBUTE.unpack_from(answer, offset)
        if kind == 16:  # IFLA_OPERSTATE
            return answer[offset + _ATTRIBUTE.size]
        offset += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return 0


def _reason(message: bytes, flags: int) -> str:
    """Return the kernel's own words from an error message; empty where it gave none."""
    if not flags & _ACK_TLVS:
        return ""
    offset = 2 * _HEADER.size + 4  # its header, the error, the header of what it answers
    if not flags & _CAPPED:
        (echoed,) = struct.unpack_from("=I", message, _HEADER.size + 4)
        offset += (echoed - _HEADER.size + 3) & ~3
    while offset + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, offset)
        if kind & 0x3FFF == _ERROR_TEXT:
            text = message[offset + _ATTRIBUTE.size : offset + length]
            return text.rstrip(b"\0").decode(errors="replace")
        offset += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return ""


def has_queueing_discipline(kind: str) -> bool:
    """Tell whether the kernel has a queueing discipline (its module is loaded if need be).

    Must be called where the loopback interface is ours. Works for disciplines that insist on
    options, as netem does: without any they say EINVAL when they are there.
    """
    request = queueing_discipline(1, "lo", kind, 0x10000, None)
    try:
        with Socket() as netlink:
            netlink.send([request])
            netlink.send([Request(DEL_QDISC, _REQUEST, request.body, f"take {kind} off lo")])
    except Refusal as refusal:
        if refusal.number in (errno.ENOENT, errno.EOPNOTSUPP):
            return False
        if refusal.number != errno.EINVAL:
            raise
    return True
