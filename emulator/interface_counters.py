"""What the kernel counted on interfaces of a lab: bytes and packets, by RTM_GETSTATS.

A socket stays in the namespace that it was made in, so the caller outside queries the kernel
without the lab's supervisor, and never wakes what moves the packets. Reading needs no privilege.
"""

from __future__ import annotations

import socket

from wanlat.emulator import addressing
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, links_of
from wanlat.emulator.rtnetlink import Socket, Traffic

_KIND = (socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)


class InterfaceCounters:
    """Interfaces of a lab's nodes, and the sending ends of its WAN links.

    Close it before the lab: an open socket keeps its namespace.
    """

    def __init__(self, lab: Lab) -> None:
        """Open a socket on every node and router. Raises MachineError."""
        self._nodes: dict[str, Socket] = {}
        self._sites: dict[str, Socket] = {}
        self._links = [
            (direction, addressing.router_wan_end(direction.source, link.index, side).index)
            for link in links_of(lab.plan)
            if link.kind == "wan"
            for side, direction in zip("ab", link.directions, strict=True)
        ]
        try:
            for node in lab.nodes:
                self._nodes[node.name] = Socket(lab.socket(node.name, *_KIND))
            for site in {direction.source for direction, _ in self._links}:
                self._sites[site] = Socket(lab.site_socket(site, *_KIND))
        except BaseException:
            self.close()
            raise

    def nodes(self) -> dict[str, Traffic]:
        """Return what crossed each node's interface. Raises OSError."""
        return {
            name: netlink.traffic(addressing.node_end(name, 0).index)
            for name, netlink in self._nodes.items()
        }

    def links(self) -> dict[Direction, Traffic]:
        """Return what was sent into each direction of a WAN link: its ``tx``. Raises OSError."""
        return {
            direction: self._sites[direction.source].traffic(index)
            for direction, index in self._links
        }

    def close(self) -> None:
        """Let go of the sockets. May be called again."""
        for netlink in (*self._nodes.values(), *self._sites.values()):
            netlink.close()
