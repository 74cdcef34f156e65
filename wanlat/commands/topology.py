"""``wanlat topology``: the networks that can be emulated."""

from __future__ import annotations

from itertools import permutations
from typing import Annotated

import typer
from rich.table import Table

from topologies.load import load, shipped
from topologies.resolve import Plan, resolve
from wanlat.output import emit, people, say

app = typer.Typer(no_args_is_help=True, help="The networks that can be emulated.")

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
_FEW_NODES = 12


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the shipped topologies."""
    topologies = [load(name) for name in shipped()]
    if as_json:
        emit([{"name": each.name, "description": each.description} for each in topologies])
        return
    for topology in topologies:
        plan = resolve(topology)
        size = f"{len(plan.sites)} sites, {len(plan.nodes)} nodes"
        typer.echo(f"{topology.name:<20} {size:<20} {topology.description}")


def _matrix(plan: Plan) -> Table:
    names = [node.name for node in plan.nodes]
    if len(names) > _FEW_NODES:
        names = [site.nodes[0].name for site in plan.sites]
    table = Table(title="requested RTT between nodes, ms (± jitter)", title_justify="left")
    table.add_column("")
    for name in names:
        table.add_column(f"{name}\n{plan.node(name).site}", justify="right")
    cells = {
        (a, b): f"{plan.rtt_ms(a, b):g}"
        + (f" ± {plan.jitter_ms(a, b):g}" if plan.jitter_ms(a, b) else "")
        for a, b in permutations(names, 2)
    }
    for a in names:
        table.add_row(a, *(cells.get((a, b), "") for b in names))
    return table


@app.command()
def show(name: str, as_json: Json = False) -> None:
    """Show one topology: its sites, and the RTT between its nodes."""
    topology = load(name)
    plan = resolve(topology)
    if as_json:
        emit(topology.to_dict())
        return
    say(f"{topology.name}: {topology.description}")
    for site in plan.sites:
        nodes = ", ".join(f"{node.name} ({node.address})" for node in site.nodes[:_FEW_NODES])
        more = f" and {len(site.nodes) - _FEW_NODES} more" if len(site.nodes) > _FEW_NODES else ""
        say(f"  site {site.name}: {nodes}{more}")
    people.print(_matrix(plan))


@app.command()
def validate(file: str) -> None:
    """Check a topology file; every mistake is told, with its line."""
    topology = load(file)
    plan = resolve(topology)
    say(f"{file}: {topology.name} is valid: {len(plan.sites)} sites, {len(plan.nodes)} nodes")
