"""What an export yields, and what the heads of its files state.

`TARGET.notes.j2` has what a target cannot express or does differently: a sentence a line, each
under its condition, which is one on the plan and on `every` impairment in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from wanlat.topologies.model import Topology
from wanlat.topologies.resolve import Plan

_PACKET_BITS = 1514 * 8


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of an export, by name; the first is the one that the tool is given.

    `notes` state, a sentence each, what the tool cannot express or does differently. They are in
    the files too.
    """

    files: Mapping[str, str]
    notes: tuple[str, ...]


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
