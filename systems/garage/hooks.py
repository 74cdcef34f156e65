"""What YAML cannot say of Garage: its lists of nodes, and the least its requests can cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wanlat.systems.engine.scene import Node
from wanlat.systems.least import S3_READS, S3_WRITES, Answers, Least, near, to_meet

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan


def addresses(nodes: Iterable[Node], ports: Any) -> list[str]:
    """Return ``id@address:port`` of the nodes whose identity is known."""
    known = (node for node in nodes if hasattr(node.facts, "id"))
    return [f"{node.facts.id}@{node.address}:{ports.rpc}" for node in known]


def layout_roles(nodes: Iterable[Node], capacity: int) -> list[dict[str, Any]]:
    """Return every node's part in the layout: its site is its zone."""
    return [
        {"id": node.facts.id, "zone": node.site, "capacity": capacity, "tags": [node.name]}
        for node in nodes
    ]


def least_round_trips(
    scene: dict[str, Any],
    target: str,
    endpoint: str,
    placement: str,  # noqa: ARG001 - which nodes hold a key is not told
) -> Least | None:
    """That of Garage's own quorums (garage_rpc's replication_mode.rs).

    The names of buckets are on every node (TableFullReplication); an object, its metadata and its
    bucket's list are each on as many nodes as there are copies. That a key may do what it asks
    for, and where a bucket's name leads, is taken to be known at the node that is asked.
    """
    if endpoint not in S3_READS | S3_WRITES:
        return None
    plan, options = scene["plan"], scene["options"]
    nodes = [node.name for node in plan.nodes]
    everywhere = endpoint == "ListBuckets"
    holders = len(nodes) if everywhere else options.replication_factor
    needed = quorum(options.consistency_mode, holders, writes=endpoint in S3_WRITES)
    if everywhere:
        return Answers.among(plan, target, needed, [nodes], "node").least()
    return Answers(needed, holders, may_be_near(plan, target, holders)).least()


def quorum(consistency_mode: str, holders: int, *, writes: bool) -> int:
    """Return how many of so many nodes that hold something answer a read of it, or a write."""
    reads = -(-holders // 2)
    if writes:
        return 1 if consistency_mode == "dangerous" else to_meet(reads, holders)
    return reads if consistency_mode == "consistent" else 1


def may_be_near(plan: Plan, target: str, copies: int) -> frozenset[int]:
    """Return how many of a key's copies may be in the zone of the node that is asked.

    Garage spreads them over as many zones as it can (zone_redundancy `maximum`, its default); which
    of the nodes that leaves is the work of its layout, and differs from partition to partition.
    """
    zones = min(copies, len(plan.sites))
    here = near(plan, target, (node.name for node in plan.nodes))
    elsewhere = len(plan.nodes) - here
    most = min(here, copies - (zones - 1))
    least = max(copies - elsewhere, 1 if zones == len(plan.sites) else 0)
    return frozenset({least, most})
