"""Where replicas are, and the fewest round trips that this leaves to a request.

Bob places blobs by a table of virtual disks, which is its configuration; the reference store, where
it speaks Bob's API, is given the same one. So it is known beforehand whether a node holds a key.

A request is answered once enough replicas have answered: a write when as many have it as it is
acknowledged for, a read when it must have met every such write. Those in the site of the target
node answer without crossing a WAN link; all others can be reached at once, which is one round
trip. So the lower bound is 0 where enough are near, and 1 where they are not. What a store pays
beyond that (a lock, a leader elsewhere, an index that is read before the data) is its own choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Node, Plan

_GROUPS: dict[str, set[str | None]] = {
    "listings": {"list", "ListObjectsPage"},
    "reads": {"read", "exists", "list", "ListObjectsPage", "ListBuckets"},
    "writes": {"write", "delete"},
}
"""Names for several endpoints, in a definition's `lower_bounds`: by what they do to objects."""

_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def meanings_of(endpoint: str, does: str | None) -> set[str]:
    """Return the names that mean an endpoint that does so to objects: its own, and groups'."""
    return {endpoint, *(name for name, members in _GROUPS.items() if members & {endpoint, does})}


@dataclass(frozen=True)
class Least:
    """What no store can beat that has as many replicas, at these places, and keeps the promise."""

    round_trips: float
    """Over WAN links, one after the other, from the request's arrival to its answer. Where keys of
    a kind lie differently, that of the luckiest: no request of the kind can cost less."""
    why: str
    """A sentence, without its full stop: what is needed, and how much of it is near."""

    def from_client(self, plan: Plan, client: str, target: str) -> Least:
        """Return what a client at another node sees: one more, if that is in another site."""
        if plan.node(client).site == plan.node(target).site:
            return self
        way = "one to the site of the target node and back"
        if not self.round_trips:
            return Least(1, f"{way}; beyond that none, as {self.why}")
        return Least(self.round_trips + 1, f"{way}, and there {self.why}")


def least_of(needed: int, replicas: int, near: Iterable[int], what: str = "replica") -> Least:
    """Return the lower bound of a request that waits for so many of these replicas.

    ``near`` has how many are in the site of the target node, for every place that a key's
    replicas may have; ``what`` is how one is called: a replica, a drive, a node.
    """
    counts = set(near)
    most = max(counts)
    needs = f"{_count(needed)} of {_count(replicas, what)} must answer"
    if most < needed:
        only = f"only {_count(most)} {_is(most)}" if most else "none is"
        return Least(1, f"{needs}, and {only} in the target node's site")
    if min(counts) < needed:
        return Least(0, f"{needs}, and of some keys that many are in the target node's site")
    return Least(0, f"{needs}, and {_count(most)} {_is(most)} in the target node's site")


def near(plan: Plan, target: str, held: Iterable[Iterable[str]]) -> list[int]:
    """Return, for each list of nodes, how many are in the site of the target node."""
    site = plan.node(target).site
    return [sum(plan.node(name).site == site for name in nodes) for nodes in held]


def largest_rtt_ms(plan: Plan) -> float:
    """Return the largest requested RTT between two nodes, ms; 0 for one node."""
    lans: dict[str, list[int]] = {site.name: [] for site in plan.sites}
    for link in plan.lan_links:
        lans[plan.node(link.node).site].append(link.up.delay_ns + link.down.delay_ns)
    within = [sum(sorted(ways)[-2:]) for ways in lans.values() if len(ways) > 1]
    between = [
        link.forward.delay_ns + link.backward.delay_ns + max(lans[link.a]) + max(lans[link.b])
        for link in plan.wan_links
        if lans[link.a] and lans[link.b]
    ]
    return max([*within, *between], default=0) / 10**6


def nearest(count: int, distances: Sequence[Any]) -> Any:
    """Return how far the last of so many is, of those that are the nearest; 0 for none.

    Distances are numbers, or arrays of one shape, of as many networks. LookupError where there are
    not so many.
    """
    import numpy as np  # which what only lists systems does without

    if not count:
        return 0
    if count > len(distances):
        raise LookupError(f"{count} others are to answer, and there are {len(distances)}")
    return np.sort(distances, axis=0)[count - 1]


def _count(number: int, what: str = "") -> str:
    word = _WORDS[number] if number < len(_WORDS) else str(number)
    return f"{word} {what}{'' if number == 1 else 's'}" if what else word


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


# -- virtual disks ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The vdisks of a cluster. ``vdisks`` has the nodes of each one's replicas, by its number."""

    vdisks: tuple[tuple[str, ...], ...]

    def replicas(self, key: bytes) -> tuple[str, ...]:
        """Return the nodes that hold a key, the first one first."""
        return self.vdisks[vdisk_of(key, len(self.vdisks))]

    def held(self, target: str, placement: str) -> list[tuple[str, ...]]:
        """Return those vdisks that the target has (local), has not (remote), or all (unknown)."""
        return [
            nodes
            for nodes in self.vdisks
            if placement == "unknown" or (target in nodes) == (placement == "local")
        ]


def vdisks(
    plan: Plan, replication_factor: int, count: int | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the nodes of each vdisk's replicas, by the vdisk's number.

    ``count`` is how many vdisks there are; None: as many as nodes. The replicas of a vdisk are on
    different nodes, and over as many sites as there are, as evenly as the sites' sizes allow. The
    first replicas go round over all nodes: vdisk 0 begins on the first node, vdisk 1 on the
    second. Nodes share the rest so that those of a site hold equally many, give or take one, and
    all nodes exactly equally many where the sites are of one size, no more replicas than sites
    are wanted, and the number of vdisks is a multiple of the number of nodes.

    Sites come before balance: a site of one node among larger ones holds more, because that is
    what it takes to have a replica there.
    """
    nodes = plan.nodes
    count = len(nodes) if count is None else count
    # What each node is going to hold as the first one is known, so the others leave room for it.
    load = Counter({node.name: 0 for node in nodes})
    load.update(nodes[number % len(nodes)].name for number in range(count))
    table = []
    for number in range(count):
        begin = number % len(nodes)
        ring = [*nodes[begin:], *nodes[:begin]]
        chosen = [ring[0]]
        while len(chosen) < replication_factor:
            chosen.append(_next(ring, chosen, load))
            load[chosen[-1].name] += 1
        table.append(tuple(node.name for node in ring if node in chosen))
    return tuple(table)


def vdisk_of(key: bytes, count: int) -> int:
    """Return the vdisk of a key: the key, read as a little-endian number, modulo their count."""
    return int.from_bytes(key, "little") % count


def _next(ring: list[Node], chosen: list[Node], load: Counter[str]) -> Node:
    """Return the node of the site least used by this vdisk; of those the one that holds least."""
    used = Counter(node.site for node in chosen)
    free = [node for node in ring if node not in chosen]
    return min(free, key=lambda node: (used[node.site], load[node.name]))


def layout_of(plan: Plan, options: Any) -> Layout:
    """Return what options in effect come to; no vdisks where there are too few nodes for it."""
    copies = options.replication_factor
    return Layout(vdisks(plan, copies, options.vdisks) if copies <= len(plan.nodes) else ())
