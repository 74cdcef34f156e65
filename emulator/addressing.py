"""Names, MAC addresses and interfaces: all derived from a plan, none chosen at run time.

Interface names stay below the kernel's 15 characters however long a site's name is, because
they count and do not spell. MAC addresses are locally administered (02:…) and known beforehand,
so that permanent neighbour entries can be set: an ARP exchange over a delayed link would make
the first packet pay one more round trip. Indexes are known too, so that requests can name an
interface before it exists; 1 is the loopback.

The two ends of a veth pair never have the same index. Where they have, linkwatch_urgent_event()
(net/core/link_watch.c) takes the end for an interface without a peer, and its carrier may come
a second late: until then it drops whatever is sent, and a bridge does not forward to it.
"""

from __future__ import annotations

from dataclasses import dataclass

GATEWAY = "169.254.0.1"  # link-local, never on the wire: every node's next hop is its router
CORE = "core"  # the sandbox's first namespace: splices and the wire process live there

_WAN_INDEXES = 1 << 24  # above those of LAN links, of which there is one a node
_BRIDGE_INDEXES = 1 << 25


@dataclass(frozen=True, slots=True)
class End:
    """One end of a veth pair. Without a MAC address it is the kernel's choice."""

    namespace: str
    name: str
    index: int
    mac: str = ""


def router_namespace(site: str) -> str:
    """Return the namespace name of a site's router (a dot cannot occur in a node's name)."""
    return f"site.{site}"


def node_end(node: str, place: int) -> End:
    """Return the interface of a node, which has this place in the plan."""
    return End(node, "eth0", 2, _mac(0x01, place))


def router_lan_end(site: str, place: int) -> End:
    """Return the router's interface towards the node that has this place in the plan."""
    return End(router_namespace(site), f"n{place}", 3 + place, _mac(0x02, place))


def router_wan_end(site: str, link: int, side: str) -> End:
    """Return the interface on a WAN link of the router at its side ``a`` or ``b``."""
    index = _WAN_INDEXES + 2 * link + (side == "b")
    return End(router_namespace(site), f"w{link}", index, _mac(0x03 if side == "a" else 0x04, link))


def splice(kind: str, link: int) -> tuple[End, End]:
    """Return the two ends of a spliced link in the core namespace.

    ``kind`` is ``wan`` (ends towards site a, site b) or ``lan`` (towards node, router).
    """
    stem, first = ("x", _WAN_INDEXES + 1) if kind == "wan" else ("y", 3)
    first += 2 * link
    return End(CORE, f"{stem}{link}a", first), End(CORE, f"{stem}{link}b", first + 1)


def splice_bridge(kind: str, link: int) -> tuple[str, int]:
    """Return the name and index of the bridge, in the core namespace, between those two ends."""
    return f"b{kind[0]}{link}", _BRIDGE_INDEXES + splice(kind, link)[0].index


def _mac(kind: int, number: int) -> str:
    return bytes((0x02, kind, *number.to_bytes(4, "big"))).hex(":")
