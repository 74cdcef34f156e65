"""Namespaces, cables, splices and routes of a plan. Used inside the sandbox only.

    node n1 ── LAN link ── router site.dc1 ── WAN link ── router site.dc2 ── LAN link ── node n2

A link is one veth pair ("cabled") or two that meet in the core namespace ("spliced"), where a
backend stands between them. Impairments never sit on the interface that a store sends from:
that would feed back into TCP small queues and change what the store does.

Everything that a namespace needs goes to the kernel in one message. That is possible because
nothing is looked up: names, addresses and indexes follow from the plan (``emulator.addressing``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from wanlat.emulator import addressing, rtnetlink
from wanlat.emulator.addressing import CORE, GATEWAY, End, router_namespace
from wanlat.emulator.links import Link, links_of
from wanlat.emulator.namespaces import Namespaces
from wanlat.emulator.rtnetlink import Request
from wanlat.topologies.resolve import Plan, Site

_LOOPBACK = (1, "lo")


class Network:
    """A plan's network. Building it leaves every interface up and every route set."""

    def __init__(
        self, namespaces: Namespaces, plan: Plan, *, splice_wan: bool, splice_every_lan: bool
    ) -> None:
        self.namespaces = namespaces
        self.plan = plan
        self.links = links_of(plan)
        self._splice_wan = splice_wan
        self._splice_every_lan = splice_every_lan
        self._places = {node.name: place for place, node in enumerate(plan.nodes)}
        self._sites = {site.name: site for site in plan.sites}
        self._lan = {link.a: link for link in self.links if link.kind == "lan"}
        self._wan: dict[str, list[tuple[Link, int]]] = {site.name: [] for site in plan.sites}
        """WAN links by their sites, each with the side (0 or 1) at which the site is."""
        for link in self.links:
            if link.kind == "wan":
                self._wan[link.a].append((link, 0))
                self._wan[link.b].append((link, 1))
        self._single_segments: set[End] = set()

    def build(self) -> None:
        """Make namespaces, interfaces and routes. Raises MachineError."""
        routers = [router_namespace(site.name) for site in self.plan.sites]
        for router in routers:
            self.namespaces.create(router, router=True)
        with self.namespaces.opened([CORE, *routers]) as descriptors:
            for node in self.plan.nodes:
                requests = list(self._node_requests(node.name, node.address, descriptors))
                self.namespaces.create(node.name, requests, router=False)
            self.namespaces.finish()
            for site in self.plan.sites:
                pairs = list(self._router_pairs(site, descriptors))
                self.namespaces.send(router_namespace(site.name), pairs)
        for site in self.plan.sites:
            # After the pairs of all routers: a cabled WAN link is made from one of its ends.
            self.namespaces.send(router_namespace(site.name), list(self._router_requests(site)))
        self.namespaces.send(CORE, list(self._core_requests()))
        for namespace, indexes in self._near_ends().items():
            self.namespaces.await_operating(namespace, indexes)

    def is_spliced(self, link: Link) -> bool:
        """Return whether a link passes through the core namespace."""
        if link.kind == "wan":
            return self._splice_wan
        return self._splice_every_lan or not (link.ab.is_noop and link.ba.is_noop)

    def ends(self, link: Link) -> tuple[End, End]:
        """Return both ends of a link: node and router, or the routers of sites a and b."""
        if link.kind == "lan":
            place = self._places[link.a]
            return addressing.node_end(link.a, place), addressing.router_lan_end(link.b, place)
        a, b = (
            addressing.router_wan_end(site, link.index, side)
            for site, side in ((link.a, "a"), (link.b, "b"))
        )
        return a, b

    def splice(self, link: Link) -> tuple[End, End]:
        """Return both ends, in the core namespace, of a spliced link: towards ends a and b."""
        return addressing.splice(link.kind, link.index)

    def send_single_segments(self, links: Iterable[Link]) -> None:
        """Have the kernel cut TCP's large segments up before they reach any of ``links``.

        On a splice that is the interface which sends into it. On a cable the queueing
        discipline sits on that interface and comes before the cut, so there it has to be done
        where the packets are made: at the nodes of both sites.
        """
        targets: dict[End, None] = {}
        for link in links:
            targets.update(dict.fromkeys(self.ends(link)))
            if not self.is_spliced(link):
                for site in (link.a, link.b):
                    for node in self._sites[site].nodes:
                        targets[self.ends(self._lan[node.name])[0]] = None
        requests: dict[str, list[Request]] = {}
        for end in targets.keys() - self._single_segments:
            requests.setdefault(end.namespace, []).append(
                rtnetlink.single_segments(end.index, end.name)
            )
        for namespace, batch in requests.items():
            self.namespaces.send(namespace, batch)
        self._single_segments |= targets.keys()

    def _node_requests(
        self, name: str, address: str, descriptors: Mapping[str, int]
    ) -> Iterator[Request]:
        link = self._lan[name]
        eth0, router = self.ends(link)
        other = self.splice(link)[0] if self.is_spliced(link) else router
        yield rtnetlink.veth(eth0, other, descriptors[other.namespace])
        yield rtnetlink.address(eth0.index, eth0.name, address)
        yield rtnetlink.neighbour(eth0.index, eth0.name, GATEWAY, router.mac)
        yield rtnetlink.route(eth0.index, eth0.name, "0.0.0.0/0", GATEWAY)

    def _router_pairs(self, site: Site, descriptors: Mapping[str, int]) -> Iterator[Request]:
        """Make what a router's links still lack."""
        for node in site.nodes:
            link = self._lan[node.name]
            if self.is_spliced(link):
                yield rtnetlink.veth(self.ends(link)[1], self.splice(link)[1], descriptors[CORE])
        for link, side in self._wan[site.name]:
            here, there = self.ends(link)[side], self.ends(link)[1 - side]
            if self.is_spliced(link):
                there = self.splice(link)[side]
            elif side == 1:
                continue  # the other router makes both ends of a cable
            yield rtnetlink.veth(here, there, descriptors[there.namespace])

    def _router_requests(self, site: Site) -> Iterator[Request]:
        yield rtnetlink.address(*_LOOPBACK, site.router_address)
        for node in site.nodes:
            eth0, router = self.ends(self._lan[node.name])
            interface = (router.index, router.name)
            yield rtnetlink.link_up(*interface)
            yield rtnetlink.neighbour(*interface, node.address, eth0.mac)
            yield rtnetlink.route(*interface, f"{node.address}/32")
        for link, side in self._wan[site.name]:
            here, there = self.ends(link)[side], self.ends(link)[1 - side]
            other = self._sites[link.b if side == 0 else link.a]
            interface = (here.index, here.name)
            yield rtnetlink.link_up(*interface)
            yield rtnetlink.neighbour(*interface, other.router_address, there.mac)
            yield rtnetlink.route(*interface, other.subnet, other.router_address)

    def _near_ends(self) -> dict[str, list[int]]:
        """Return the indexes, by namespace, of the interfaces that came up before their peers."""
        indexes: dict[str, list[int]] = {}
        for link in self.links:
            a, b = self.ends(link)
            for end in (a, b) if self.is_spliced(link) else (a,):
                indexes.setdefault(end.namespace, []).append(end.index)
        return indexes

    def _core_requests(self) -> Iterator[Request]:
        for link in self.links:
            if self.is_spliced(link):
                for end in self.splice(link):
                    yield rtnetlink.link_up(end.index, end.name)
