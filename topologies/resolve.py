"""A topology made explicit: every node with its address, every link with its impairments.

This is what an emulator builds. Rounding is to whole nanoseconds, so a path's delays sum to the
requested round trip within 4 ns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from wanlat.topologies import shapes
from wanlat.topologies.errors import UserError
from wanlat.topologies.shapes import Distribution
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    # Not at run time: it takes longer to import than a lab of 100 nodes takes to build, and a
    # lab's first process, which is given a Plan, has no use for it.
    from wanlat.topologies import model
    from wanlat.topologies.model import Link, OneWay, Topology, Way


# The queue in front of a rate that is given none: long enough to keep TCP going over 100 ms, as
# routers' are, and at slow rates long enough for a window of TCP.
QUEUE_NS = 100 * 10**6
LEAST_QUEUE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """Loss in bursts: a chain of two states, which takes one step for every packet.

    `p` is the probability of the step from good to bad, `r` of that from bad to good; a packet is
    delivered with probability `h` in the bad state and `k` in the good one. Letters as in
    Hasslinger and Hohlfeld, "The Gilbert-Elliott Model for Packet Loss in Real Time Services on
    the Internet" (2008).
    """

    p: float
    r: float
    h: float = 0.0
    k: float = 1.0

    @property
    def loss(self) -> float:
        """The part of all packets that is lost, in the long run."""
        if self.p + self.r == 0:  # it never leaves the good state, in which it starts
            return 1 - self.k
        bad = self.p / (self.p + self.r)
        return bad * (1 - self.h) + (1 - bad) * (1 - self.k)


@dataclass(frozen=True, slots=True)
class Impairment:
    """What one direction of a link does to packets.

    A packet is delayed by `delay_ns` + `jitter_ns` × a draw from the distribution: for `uniform`
    from −1 to 1, for the others of mean 0 and standard deviation 1 (`topologies.shapes`); `table`
    holds that of an empirical sample. `reorder`: whether jitter may let a packet overtake;
    `overtake`: the part of the packets that leaves at once, ahead of those on their way. `loss`,
    `duplicate`, `corrupt` are probabilities; `bursts` stands in the place of `loss`. None is
    unlimited (rate) or `room_bytes` (queue).
    """

    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: Distribution = "uniform"
    table: tuple[float, ...] = ()
    reorder: bool = False
    overtake: float = 0.0
    loss: float = 0.0
    bursts: GilbertElliott | None = None
    duplicate: float = 0.0
    corrupt: float = 0.0
    rate_bps: int | None = None
    queue_bytes: int | None = None

    @property
    def is_noop(self) -> bool:
        """Whether packets pass untouched. (Without a delay there is nothing to overtake.)"""
        kinds = (self.delay_ns, self.jitter_ns, self.loss, self.duplicate, self.corrupt)
        return not (any(kinds) or self.bursts or self.rate_bps)

    @property
    def loss_probability(self) -> float:
        """The part of the packets that is lost, in the long run, however it is spread."""
        return self.loss if self.bursts is None else self.bursts.loss

    @property
    def room_bytes(self) -> int | None:
        """How much may wait for the rate before what comes is dropped; None without a rate.

        `queue_bytes`, or else what the rate sends in 100 ms and at least 64 KiB.
        """
        if self.rate_bps is None:
            return None
        if self.queue_bytes is not None:
            return self.queue_bytes
        return max(LEAST_QUEUE_BYTES, self.rate_bps * QUEUE_NS // (8 * 10**9))

    @property
    def counts_packets(self) -> bool:
        """Whether large segments have to be cut into packets before they meet it."""
        parts = (self.loss_probability, self.duplicate, self.corrupt, self.overtake)
        return any(parts) or bool(self.rate_bps)

    @property
    def range_ns(self) -> tuple[int, int]:
        """The shortest and the longest delay of a packet: it overtakes, or draws the extremes."""
        low, high = shapes.extent(self.distribution, self.table)
        shortest, longest = (self.delay_ns + round(self.jitter_ns * end) for end in (low, high))
        return (0 if self.overtake else max(0, shortest), longest)

    @property
    def deviation_ns(self) -> float:
        """The standard deviation of the delay, of the packets that do not overtake."""
        return self.jitter_ns * shapes.deviation(self.distribution)


@dataclass(frozen=True, slots=True)
class Node:
    """One host: its name, its site's name, its IPv4 address."""

    name: str
    site: str
    address: str


@dataclass(frozen=True, slots=True)
class Site:
    """One datacenter. `index` counts from 1 and is the second byte of its addresses."""

    name: str
    index: int
    subnet: str
    router_address: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class LanLink:
    """The link of a node to its site's router: `up` to the router, `down` to the node."""

    node: str
    site: str
    up: Impairment
    down: Impairment


@dataclass(frozen=True, slots=True)
class WanLink:
    """The link between two sites, `a` the earlier in the file: `forward` a→b, `backward` b→a."""

    a: str
    b: str
    forward: Impairment
    backward: Impairment


@dataclass(frozen=True)
class Plan:
    """A resolved topology. Sites, nodes, links in file order; WAN links for every two sites."""

    name: str
    sites: tuple[Site, ...]
    nodes: tuple[Node, ...]
    lan_links: tuple[LanLink, ...]
    wan_links: tuple[WanLink, ...]

    def node(self, name: str) -> Node:
        """The node of that name. UserError when there is none."""
        return self._node(name)[0]

    def site(self, name: str) -> Site:
        """The site of that name. UserError when there is none."""
        if name not in self._sites:
            raise self._unknown("site", name, list(self._sites))
        return self._sites[name]

    def path(self, src: str, dst: str) -> tuple[Impairment, ...]:
        """What a packet from node to node passes, in order: up, WAN (if sites differ), down.

        Empty from a node to itself. UserError for an unknown node.
        """
        (start, up), (end, down) = self._node(src), self._node(dst)
        if start.name == end.name:
            return ()
        if start.site == end.site:
            return (up.up, down.down)
        return (up.up, self._ways[start.site, end.site], down.down)

    def impairments(self) -> Iterator[Impairment]:
        """Every direction's impairment, LAN links first."""
        for lan in self.lan_links:
            yield from (lan.up, lan.down)
        for wan in self.wan_links:
            yield from (wan.forward, wan.backward)

    def rtt_ms(self, a: str, b: str) -> float:
        """The requested round-trip time between two nodes: the delays of both ways, summed."""
        return sum(step.delay_ns for step in self._there_and_back(a, b)) / 10**6

    def jitter_ms(self, a: str, b: str) -> float:
        """The jitters of both ways, summed: how far an evenly drawn RTT may lie from `rtt_ms`."""
        return sum(step.jitter_ns for step in self._there_and_back(a, b)) / 10**6

    def range_ms(self, a: str, b: str) -> tuple[float, float]:
        """The shortest and the longest requested RTT between two nodes, whatever is drawn."""
        ranges = [step.range_ns for step in self._there_and_back(a, b)]
        return sum(low for low, _ in ranges) / 10**6, sum(high for _, high in ranges) / 10**6

    def deviation_ms(self, a: str, b: str) -> float:
        """The standard deviation of the requested RTT: every link draws for itself."""
        steps = self._there_and_back(a, b)
        return math.sqrt(sum(step.deviation_ns**2 for step in steps)) / 10**6

    def _there_and_back(self, a: str, b: str) -> tuple[Impairment, ...]:
        return self.path(a, b) + self.path(b, a)

    @cached_property
    def _nodes(self) -> dict[str, tuple[Node, LanLink]]:
        links = {link.node: link for link in self.lan_links}
        return {node.name: (node, links[node.name]) for node in self.nodes}

    @cached_property
    def _sites(self) -> dict[str, Site]:
        return {site.name: site for site in self.sites}

    @cached_property
    def _ways(self) -> dict[tuple[str, str], Impairment]:
        ways = {(link.a, link.b): link.forward for link in self.wan_links}
        return ways | {(link.b, link.a): link.backward for link in self.wan_links}

    def _node(self, name: str) -> tuple[Node, LanLink]:
        if name not in self._nodes:
            raise self._unknown("node", name, list(self._nodes))
        return self._nodes[name]

    def _unknown(self, what: str, name: str, known: list[str]) -> UserError:
        return UserError(
            f"topology {self.name} has no {what} {show(name)}{did_you_mean(name, known)};"
            f" its {what}s are {listing(known, at_most=20)}"
        )


def resolve(topology: Topology) -> Plan:
    """Every node with its address, every link with its impairments, in file order."""
    sites = tuple(_site(index, site) for index, site in enumerate(topology.sites, start=1))
    return Plan(
        name=topology.name,
        sites=sites,
        nodes=tuple(node for site in sites for node in site.nodes),
        lan_links=tuple(_lan_links(topology)),
        wan_links=tuple(_wan_links(topology)),
    )


def _site(index: int, site: model.Site) -> Site:
    nodes = tuple(
        # 254 to a third byte: no address ends in 0 or 255.
        Node(name, site.name, f"10.{index}.{position // 254}.{position % 254 + 1}")
        for position, name in enumerate(site.node_names)
    )
    return Site(site.name, index, f"10.{index}.0.0/16", f"10.{index}.255.254", nodes)


def _lan_links(topology: Topology) -> Iterator[LanLink]:
    for site in topology.sites:
        up = down = Impairment()
        if site.lan is not None:
            # Both directions of one node's link: a round trip between two nodes passes four.
            whole = _impairment(site.lan, site.lan.rtt.ns // 4, site.lan.jitter.ns // 4)
            parts: dict[str, Any] = {
                part: _of_two(getattr(whole, part))
                for part in ("overtake", "loss", "duplicate", "corrupt")
            }
            down = replace(whole, **parts)
            # Bursts cannot be shared out: two chains of states are not one.
            up = replace(down, bursts=None)
        elif site.access is not None:
            up, down = (one_way(way) for way in (site.access.up, site.access.down))
        for name in site.node_names:
            yield LanLink(name, site.name, up=up, down=down)


def _of_two(part: float) -> float:
    """What each of two legs does, so that together they do `part`: 1 - (1 - leg)² = part."""
    return -math.expm1(math.log1p(-part) / 2) if part < 1 else 1.0  # without cancellation


def _wan_links(topology: Topology) -> Iterator[WanLink]:
    from wanlat.topologies.model import Both

    given: dict[tuple[str, str], Impairment] = {}
    for pair in topology.links.pairs:
        if isinstance(pair, Both):
            a, b = pair.between
            given[a, b] = given[b, a] = _half(pair)
        else:
            given[pair.from_, pair.to] = one_way(pair)
    default = topology.links.default
    otherwise = None if default is None else _half(default)
    for first, second in combinations(topology.sites, 2):
        a, b = first.name, second.name
        forward, backward = given.get((a, b), otherwise), given.get((b, a), otherwise)
        # The model refuses a topology with a direction that nothing gives.
        assert forward is not None and backward is not None
        yield WanLink(a, b, forward, backward)


def _half(link: Link) -> Impairment:
    return _impairment(link, link.rtt.ns // 2, link.jitter.ns // 2)


def one_way(link: OneWay | Way) -> Impairment:
    """What a direction that is given alone does to packets."""
    return _impairment(link, link.delay.ns, link.jitter.ns)


def _impairment(link: Link | OneWay | Way, delay_ns: int, jitter_ns: int) -> Impairment:
    from wanlat.topologies.model import Bursts

    loss, bursts = link.loss, None
    if isinstance(loss, Bursts):
        bursts = GilbertElliott(*(float(part) for part in (loss.p, loss.r, loss.h, loss.k)))
        loss = None
    return Impairment(
        delay_ns=delay_ns,
        jitter_ns=jitter_ns,
        distribution=link.distribution or "uniform",
        table=link.table.quantiles if link.table is not None else (),
        reorder=link.reorder is True,
        overtake=0.0 if isinstance(link.reorder, bool) else link.reorder.value,
        loss=float(loss or 0),
        bursts=bursts,
        duplicate=float(link.duplicate or 0),
        corrupt=float(link.corrupt or 0),
        rate_bps=link.rate.bps if link.rate is not None else None,
        queue_bytes=link.queue.bytes if link.queue is not None else None,
    )
