"""What an export yields, the targets there are, and what their files' heads say.

`TARGET.notes.j2` has what a target cannot express or does differently: a sentence a line, each
under its condition, which is one on the plan and on `every` impairment in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from wanlat.topologies.errors import UserError
from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import did_you_mean, listing, show

_PACKET_BITS = 1514 * 8


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


def notes(target: str, plan: Plan, **facts: Any) -> tuple[str, ...]:
    """Return the sentences of `TARGET.notes.j2` that are true of this plan."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template(f"{target}.notes.j2")
    return tuple(template.render(plan=plan, every=list(plan.impairments()), **facts).splitlines())


def full_from_mbps(packets: int, longest_ns: int) -> float:
    """Return the rate from which a queue of so many packets is full, each held so long."""
    return packets * _PACKET_BITS * 10**3 / longest_ns if longest_ns else 0.0


def head(topology: Topology, target: str, usage: str, tool: str, notes: tuple[str, ...]) -> str:
    """Return the comment at the top of a file, which YAML and shells read as one."""
    text = (
        f"{topology.name}: {topology.description}\n"
        f"Written by `wanlat topology export {topology.name} --to {target}`.\n\n"
        f"{usage}\nWhat {tool} cannot express, or does differently:\n"
    )
    text += "".join(f"- {note}\n" for note in notes)
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())
