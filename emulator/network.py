"""Namespaces, cables, splices and routes of a plan. Used inside the sandbox only.

    node n1 ── LAN link ── router site.dc1 ── WAN link ── router site.dc2 ── LAN link ── node n2

A link is one veth pair ("cabled") or two that meet in the core namespace ("spliced"), where a
backend stands between them. Impairments never sit on the interface that a store sends from:
that would feed back into TCP small queues and change what the store does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator import addressing
from emulator.links import Link, links_of
from emulator.namespaces import CORE, Namespaces
from topologies.resolve import Impairment, Node, Plan, Site

_PERMANENT = 0x80  # NUD_PERMANENT, linux/neighbour.h


@dataclass(frozen=True)
class Interface:
    """One interface, by its namespace and name."""

    namespace: str
    name: str


@dataclass(frozen=True)
class End:
    """Where one end of a link is: a namespace, an interface name and a MAC address."""

    namespace: str
    name: str
    mac: str

    def as_peer(self, namespaces: Namespaces) -> dict[str, Any]:
        """Return this end in the form in which a veth request names its peer."""
        return {
            "ifname": self.name,
            "address": self.mac,
            "net_ns_fd": namespaces.fd(self.namespace),
        }


def wants_single_segments(impairment: Impairment) -> bool:
    """Tell whether packets must cross a link one by one.

    A 64 KiB segment that the kernel has yet to cut up would be lost, or queued, as one packet.
    """
    return (
        impairment.loss_probability > 0
        or impairment.duplicate > 0
        or impairment.corrupt > 0
        or impairment.overtake > 0
        or impairment.rate_bps is not None
    )


class Network:
    """A plan's network. Building it leaves every interface up and every route set."""

    def __init__(
        self,
        namespaces: Namespaces,
        plan: Plan,
        *,
        splice_wan: bool,
        splice_every_lan: bool,
    ) -> None:
        self.namespaces = namespaces
        self.plan = plan
        self.links = links_of(plan)
        self._splice_wan = splice_wan
        self._splice_every_lan = splice_every_lan
        self._node_index = {node.name: index for index, node in enumerate(plan.nodes)}
        self._sites = {site.name: site for site in plan.sites}

    def build(self) -> None:
        """Make namespaces, interfaces and routes."""
        for site in self.plan.sites:
            self.namespaces.create(addressing.router_namespace(site.name), router=True)
        for node in self.plan.nodes:
            self.namespaces.create(node.name, router=False)
        with self.namespaces.netlink(CORE) as core:
            for link in self.links:
                self._lay(core, link)
        for node in self.plan.nodes:
            self._configure_node(node)
        for site in self.plan.sites:
            self._configure_router(site)

    def is_spliced(self, link: Link) -> bool:
        """Tell whether a link passes through the core namespace."""
        if link.kind == "wan":
            return self._splice_wan
        return self._splice_every_lan or not (link.ab.is_noop and link.ba.is_noop)

    def ends(self, link: Link) -> tuple[End, End]:
        """Return both ends of a link: node and router, or the routers of sites a and b."""
        if link.kind == "lan":
            index = self._node_index[link.a]
            router = addressing.router_namespace(link.b)
            return (
                End(link.a, "eth0", addressing.node_mac(index)),
                End(
                    router,
                    addressing.router_lan_interface(index),
                    addressing.router_lan_mac(index),
                ),
            )
        name = addressing.router_wan_interface(link.index)
        return (
            End(
                addressing.router_namespace(link.a),
                name,
                addressing.router_wan_mac(link.index, "a"),
            ),
            End(
                addressing.router_namespace(link.b),
                name,
                addressing.router_wan_mac(link.index, "b"),
            ),
        )

    def send_single_segments(self, link: Link) -> None:
        """Have the kernel cut TCP's large segments up before they reach ``link``.

        On a splice that is the interface which sends into it. On a cable the queueing
        discipline sits on that interface and comes before the cut, so there it has to be done
        where the packets are made: at the nodes of both sites.
        """
        targets: list[Interface] = []
        for end in self.ends(link):
            targets.append(Interface(end.namespace, end.name))
        if not self.is_spliced(link):
            for site in (link.a, link.b):
                targets += [Interface(node.name, "eth0") for node in self._sites[site].nodes]
        for target in targets:
            with self.namespaces.netlink(target.namespace) as netlink:
                index = netlink.link_lookup(ifname=target.name)[0]
                netlink.link("set", index=index, gso_max_segs=1)

    def _lay(self, core: Any, link: Link) -> None:
        a, b = self.ends(link)
        if not self.is_spliced(link):
            core.link(
                "add",
                kind="veth",
                ifname=a.name,
                address=a.mac,
                net_ns_fd=self.namespaces.fd(a.namespace),
                peer=b.as_peer(self.namespaces),
            )
            return
        for name, end in zip(
            addressing.splice_interfaces(link.kind, link.index), (a, b), strict=True
        ):
            core.link("add", kind="veth", ifname=name, peer=end.as_peer(self.namespaces))
            core.link("set", index=core.link_lookup(ifname=name)[0], state="up")

    def _configure_node(self, node: Node) -> None:
        index = self._node_index[node.name]
        with self.namespaces.netlink(node.name) as netlink:
            eth0 = netlink.link_lookup(ifname="eth0")[0]
            netlink.addr("add", index=eth0, address=node.address, prefixlen=32)
            netlink.link("set", index=eth0, state="up")
            netlink.neigh(
                "add",
                ifindex=eth0,
                dst=addressing.GATEWAY,
                lladdr=addressing.router_lan_mac(index),
                state=_PERMANENT,
            )
            netlink.route(
                "add", dst="default", oif=eth0, gateway=addressing.GATEWAY, flags=["onlink"]
            )

    def _configure_router(self, site: Site) -> None:
        with self.namespaces.netlink(addressing.router_namespace(site.name)) as netlink:
            netlink.addr("add", index=1, address=site.router_address, prefixlen=32)
            for node in site.nodes:
                index = self._node_index[node.name]
                interface = netlink.link_lookup(ifname=addressing.router_lan_interface(index))[0]
                netlink.link("set", index=interface, state="up")
                netlink.neigh(
                    "add",
                    ifindex=interface,
                    dst=node.address,
                    lladdr=addressing.node_mac(index),
                    state=_PERMANENT,
                )
                netlink.route("add", dst=f"{node.address}/32", oif=interface)
            for link in self.links:
                if link.kind == "wan" and site.name in (link.a, link.b):
                    self._configure_wan_end(netlink, site, link)

    def _configure_wan_end(self, netlink: Any, site: Site, link: Link) -> None:
        other = self._sites[link.b if site.name == link.a else link.a]
        other_side = "b" if site.name == link.a else "a"
        interface = netlink.link_lookup(ifname=addressing.router_wan_interface(link.index))[0]
        netlink.link("set", index=interface, state="up")
        netlink.neigh(
            "add",
            ifindex=interface,
            dst=other.router_address,
            lladdr=addressing.router_wan_mac(link.index, other_side),
            state=_PERMANENT,
        )
        netlink.route(
            "add",
            dst=other.subnet,
            oif=interface,
            gateway=other.router_address,
            flags=["onlink"],
        )
