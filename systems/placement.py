"""Which nodes hold which part of the keys: virtual disks laid out over nodes and sites.

Bob places blobs by such a table, which is its configuration; the reference store, where it speaks
Bob's API, is given the same one. So it is known beforehand whether a key is held by a node.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topologies.resolve import Node, Plan


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
