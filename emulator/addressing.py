"""Names, MAC addresses and interface names: all derived from a plan, none chosen at run time.

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
