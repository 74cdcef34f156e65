"""What YAML cannot express of Bob: where its vdisks lie, and what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wanlat.systems.placement import Layout, layout_of
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.systems.engine.cluster import Cluster
    from wanlat.topologies.resolve import Plan

layout = layout_of


def longest_ms(plan: Plan) -> float:
    """Return the longest round trip between two nodes, in milliseconds."""
    names = [node.name for node in plan.nodes]
    return max(plan.rtt_ms(a, b) + plan.jitter_ms(a, b) for a in names for b in names)


def disks(count: int) -> list[str]:
    """Return the names of a node's disks, which are those of their directories."""
    return ["disk", *(f"disk{number}" for number in range(2, count + 1))]


def replicas(scene: dict[str, Any], key: bytes) -> tuple[str, ...]:
    """Return the nodes that hold a key: the vdisks are laid out here, so they are known."""
    vdisks: Layout = scene["layout"]
    return vdisks.replicas(key)


def remarks(cluster: Cluster) -> list[str]:
    """Report blobs that nodes keep for others which did not take them."""
    aliens = {node.name: node.home / "disk" / "alien" for node in cluster.scene["nodes"]}
    keepers = [name for name, directory in aliens.items() if any(directory.rglob("*.blob"))]
    if not keepers:
        return []
    return [
        "Replicas did not take some blobs within operation_timeout "
        f"({cluster.options['operation_timeout']}), so {listing(keepers)} kept them instead. "
        "Where that cost a Put its quorum, it was acknowledged all the same, but late. With "
        "large objects, raise the option operation_timeout."
    ]
