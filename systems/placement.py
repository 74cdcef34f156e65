"""Which nodes hold which part of the keys: virtual disks laid out over nodes and sites.

Bob places blobs by such a table, which is its configuration; the reference store, where it speaks
Bob's API, is given the same one. So it is known beforehand whether a key is held by a node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wanlat.systems.least import BOB_READS, BOB_WRITES, NO_REPLICA, Answers, Least

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Node, Plan


@dataclass(frozen=True)
class Layout:
    """The vdisks of a cluster. ``vdisks`` has the nodes of each one's replicas, by its number."""

    replication_factor: int
    quorum: int
    vdisks: tuple[tuple[str, ...], ...]

    def replicas(self, key: bytes) -> tuple[str, ...]:
        """Return the nodes that hold a key, the first one first."""
        return self.vdisks[vdisk_of(key, len(self.vdisks))]

    def least_round_trips(
        self, plan: Plan, target: str, endpoint: str, placement: str
    ) -> Least | None:
        """Return what no store can beat that keeps Bob's promise with these vdisks.

        A write needs the quorum. A read needs one replica that holds the blob, which is all that
        Bob promises of reads. Of ``placement`` local the vdisks of the node that is asked count,
        of remote the others.
        """
        if endpoint == "Ping":
            return NO_REPLICA
        held = [
            nodes
            for nodes in self.vdisks
            if placement == "unknown" or (target in nodes) == (placement == "local")
        ]
        if endpoint not in BOB_READS | BOB_WRITES or not held:
            return None
        needed = self.quorum if endpoint in BOB_WRITES else 1
        return Answers.among(plan, target, needed, held).least()

    def promised_round_trips(
        self, plan: Plan, target: str, endpoint: str, placement: str
    ) -> float | None:
        """Return what a store takes that asks all replicas at once, where all keys are alike."""
        least = self.least_round_trips(plan, target, endpoint, placement)
        if least is None or endpoint == "Ping":
            return least.round_trips if least else None
        each = {
            replace(self, vdisks=(nodes,)).least_round_trips(plan, target, endpoint, placement)
            for nodes in self.vdisks
        }
        numbers = {one.round_trips for one in each if one is not None}
        return numbers.pop() if len(numbers) == 1 else None


def vdisks(
    plan: Plan, replication_factor: int, count: int | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return the nodes of each vdisk's replicas, by the vdisk's number.

    ``count`` is how many vdisks there are; None: as many as nodes. The replicas of a vdisk are on
    different nodes, and over as many sites as there are, as evenly as the sites' sizes allow. The
    first replicas go round over all nodes: vdisk 0 begins on the first node, vdisk 1 on the
    second. Nodes share the rest so that those of a site hold equally many, give or take one, and
    all nodes exactly equally many where the sites are of one size, no more replicas than sites
    are asked for, and the number of vdisks is a multiple of the number of nodes.

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
    fits = copies <= len(plan.nodes)
    return Layout(copies, options.quorum, vdisks(plan, copies, options.vdisks) if fits else ())
