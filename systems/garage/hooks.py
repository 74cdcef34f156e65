"""What YAML cannot express of Garage: its lists of nodes, and where its copies may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wanlat.systems.engine.scene import Node
from wanlat.systems.placement import near

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan


def addresses(nodes: Iterable[Node], ports: Any) -> list[str]:
    """Return ``id@address:port`` of the nodes with a known identity."""
    known = (node for node in nodes if hasattr(node.facts, "id"))
    return [f"{node.facts.id}@{node.address}:{ports.rpc}" for node in known]


def layout_roles(nodes: Iterable[Node], capacity: int) -> list[dict[str, Any]]:
    """Return every node's part in the layout: its site is its zone."""
    return [
        {"id": node.facts.id, "zone": node.site, "capacity": capacity, "tags": [node.name]}
        for node in nodes
    ]


def may_be_near(plan: Plan, target: str, copies: int) -> frozenset[int]:
    """Return how many of a key's copies may be in the zone of the target node.

    Garage spreads them over as many zones as it can (zone_redundancy `maximum`, its default); which
    of the nodes that leaves is the work of its layout, and differs from partition to partition.
    """
    zones = min(copies, len(plan.sites))
    (here,) = near(plan, target, [[node.name for node in plan.nodes]])
    elsewhere = len(plan.nodes) - here
    most = min(here, copies - (zones - 1))
    least = max(copies - elsewhere, 1 if zones == len(plan.sites) else 0)
    return frozenset({least, most})
