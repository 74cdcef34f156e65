"""What an export yields, and the targets there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.wording import did_you_mean, listing, show


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of an export, by name; the first is the one that the tool is given.

    `notes` say, a sentence each, what the tool cannot express or does differently. They are in
    the files too.
    """

    files: Mapping[str, str]
    notes: tuple[str, ...]


def targets() -> dict[str, Callable[[Topology], Exported]]:
    """Return every target's function, by the name that `--to` takes."""
    from wanlat.topologies.export.chaos_mesh import chaos_mesh
    from wanlat.topologies.export.containerlab import containerlab
    from wanlat.topologies.export.mininet_plan import mininet_plan

    return {"mininet": mininet_plan, "containerlab": containerlab, "chaos-mesh": chaos_mesh}


def export(topology: Topology, target: str) -> Exported:
    """Write a topology for another tool. UserError for a target that there is not."""
    known = targets()
    if target not in known:
        names = list(known)
        near = did_you_mean(target, names)
        raise UserError(f"cannot export to {show(target)}{near}; known are {listing(names)}")
    return known[target](topology)


def commented(text: str) -> str:
    """Return the text as lines of a comment that YAML and shells read as one."""
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())
