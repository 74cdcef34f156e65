"""Names, MAC addresses and interfaces: all derived from a plan, none chosen at run time.

Interface names stay below the kernel's 15 characters however long a site's name is, because
they count and do not spell. MAC addresses are locally administered (02:…) and known beforehand,
so that permanent neighbour entries can be set: an ARP exchange over a delayed link would make
the first packet pay one more round trip.
"""

from __future__ import annotations

GATEWAY = "169.254.0.1"  # link-local, never on the wire: every node's next hop is its router
PREFIX_LENGTH = 16  # of a site's subnet


def router_namespace(site: str) -> str:
    """Return the namespace name of a site's router (a dot cannot occur in a node's name)."""
    return f"site.{site}"


def _mac(kind: int, index: int) -> str:
    octets = (0x02, kind, *index.to_bytes(4, "big"))
    return ":".join(f"{octet:02x}" for octet in octets)


def node_mac(node_index: int) -> str:
    """Return the MAC address of a node's eth0."""
    return _mac(0x01, node_index)


def router_lan_mac(node_index: int) -> str:
    """Return the MAC address of the router's interface towards a node."""
    return _mac(0x02, node_index)


def router_wan_mac(link_index: int, side: str) -> str:
    """Return the MAC address of a router's interface on a WAN link; ``side`` is a or b."""
    return _mac(0x03 if side == "a" else 0x04, link_index)


def router_lan_interface(node_index: int) -> str:
    """Return the name, in the router's namespace, of the interface towards a node."""
    return f"n{node_index}"


def router_wan_interface(link_index: int) -> str:
    """Return the name, in both routers' namespaces, of the interface on a WAN link."""
    return f"w{link_index}"


def splice_interfaces(kind: str, link_index: int) -> tuple[str, str]:
    """Return the two ends of a spliced link in the core namespace.

    ``kind`` is ``wan`` (ends towards site a, site b) or ``lan`` (towards node, router).
    """
    stem = "x" if kind == "wan" else "y"
    return f"{stem}{link_index}a", f"{stem}{link_index}b"


# Interface indexes, so that requests can name an interface before it exists. 1 is the loopback.
#
# The two ends of a veth pair never have the same index. Where they have, linkwatch_urgent_event()
# (net/core/link_watch.c) takes the end for an interface without a peer, and its carrier may come
# a second late: until then it drops whatever is sent, and a bridge does not forward to it.

_WAN_INDEXES = 1 << 24  # above those of LAN links, of which there is one a node
_BRIDGE_INDEXES = 1 << 25

NODE_INTERFACE_INDEX = 2


def router_lan_index(node_index: int) -> int:
    """Return the index of the router's interface towards a node."""
    return 3 + node_index


def router_wan_index(link_index: int, side: str) -> int:
    """Return the index, in the router of side a or b, of the interface on a WAN link."""
    return _WAN_INDEXES + 2 * link_index + (side == "b")


def splice_indexes(kind: str, link_index: int) -> tuple[int, int]:
    """Return the indexes of the two ends of a spliced link in the core namespace."""
    first = (_WAN_INDEXES + 1 if kind == "wan" else 3) + 2 * link_index
    return first, first + 1


def splice_bridge(kind: str, link_index: int) -> tuple[str, int]:
    """Return the name and index of the bridge, in the core namespace, between those two ends."""
    first, _ = splice_indexes(kind, link_index)
    return f"b{kind[0]}{link_index}", _BRIDGE_INDEXES + first
