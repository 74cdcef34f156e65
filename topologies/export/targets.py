"""The tools that a topology can be exported to: a module each."""

from __future__ import annotations

from collections.abc import Callable

from wanlat.topologies.errors import UserError
from wanlat.topologies.export.chaos_mesh import chaos_mesh
from wanlat.topologies.export.containerlab import containerlab
from wanlat.topologies.export.exported import Exported
from wanlat.topologies.export.mininet_plan import mininet_plan
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import did_you_mean, listing, show

TARGETS: dict[str, Callable[[Topology], Exported]] = {
    "mininet": mininet_plan,
    "containerlab": containerlab,
    "chaos-mesh": chaos_mesh,
}
"""The function of every target, by the name that `--to` takes."""


def export(topology: Topology, target: str) -> Exported:
    """Write a topology for another tool. UserError for an unknown target."""
    if target not in TARGETS:
        names = list(TARGETS)
        near = did_you_mean(target, names)
        raise UserError(f"cannot export to {show(target)}{near}; known are {listing(names)}")
    return TARGETS[target](topology)
