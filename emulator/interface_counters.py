"""What the kernel counted on interfaces of a lab: bytes and packets, by RTM_GETSTATS.

A socket stays in the namespace that it was made in, so the caller outside asks the kernel without
asking the lab's supervisor, and never wakes what moves the packets. Reading needs no privilege.
(rtnl_stats_get(), net/core/rtnetlink.c; include/uapi/linux/if_link.h.)
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from wanlat.emulator import addressing
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, links_of

_GET_STATS = 94
_ERROR = 2
_REQUEST = 0x1
_LINK_64 = 1  # IFLA_STATS_LINK_64
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_STATS = struct.Struct("=BxHII")  # if_stats_msg: family, index, which statistics
_COUNTS = struct.Struct("=QQQQ")  # the first of rtnl_link_stats64
_COUNTS_AT = _HEADER.size + _STATS.size + 4
_ANSWER_BYTES = 4096
_NETLINK_ROUTE = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Since the interface was made. A packet here is what the kernel hands on: up to 64 KiB."""

    rx_bytes: int
    tx_bytes: int
    rx_packets: int
    tx_packets: int


class InterfaceCounters:
    """Interfaces of a lab's nodes, and the sending ends of its WAN links.

    Close it before the lab: an open socket keeps its namespace.
    """

    def __init__(self, lab: Lab) -> None:
        """Open a socket on every node and router. Raises MachineError."""
        self._nodes: dict[str, socket.socket] = {}
        self._sites: dict[str, socket.socket] = {}
        self._links: list[tuple[Direction, int]] = []
        try:
            for node in lab.nodes:
                self._nodes[node.name] = lab.socket(
                    node.name, socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE
                )
            for link in links_of(lab.plan):
                if link.kind != "wan":
                    continue
                for side, direction in zip("ab", link.directions, strict=True):
                    index = addressing.router_wan_index(link.index, side)
                    self._links.append((direction, index))
            for site in {direction.source for direction, _ in self._links}:
                self._sites[site] = lab.site_socket(
                    site, socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE
                )
        except BaseException:
            self.close()
            raise

    def nodes(self) -> dict[str, Traffic]:
        """Return what crossed each node's interface. Raises OSError."""
        index = addressing.NODE_INTERFACE_INDEX
        return {name: _read(asked, index) for name, asked in self._nodes.items()}

    def links(self) -> dict[Direction, Traffic]:
        """Return what was sent into each direction of a WAN link: its ``tx``. Raises OSError."""
        return {
            direction: _read(self._sites[direction.source], index)
            for direction, index in self._links
        }

    def close(self) -> None:
        """Let go of the sockets. May be called again."""
        sockets: Iterable[socket.socket] = (*self._nodes.values(), *self._sites.values())
        for each in sockets:
            each.close()


def _read(asked: socket.socket, index: int) -> Traffic:
    body = _STATS.pack(0, 0, index, 1 << (_LINK_64 - 1))
    asked.send(_HEADER.pack(_HEADER.size + len(body), _GET_STATS, _REQUEST, 0, 0) + body)
    answer = asked.recv(_ANSWER_BYTES)
    if _HEADER.unpack_from(answer)[1] == _ERROR:
        number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        raise OSError(number or errno.EPROTO, os.strerror(number or errno.EPROTO))
    rx_packets, tx_packets, rx_bytes, tx_bytes = _COUNTS.unpack_from(answer, _COUNTS_AT)
    return Traffic(rx_bytes, tx_bytes, rx_packets, tx_packets)
