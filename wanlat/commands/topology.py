"""``wanlat topology``: the networks that can be emulated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wanlat.app import App
from wanlat.options import File, Force, Json, Quiet, TopologyName, duration, quantity
from wanlat.output import emit, print_rows, remark, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load, origin, shipped
from wanlat.topologies.resolve import Impairment, Plan, resolve
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from rich.table import Table

    from wanlat.topologies.export.exported import Exported

app = App("List, show, validate, import and export topologies.")

_FEW_NODES = 12


def _duration_or_share(text: str) -> Duration | Fraction:
    return Fraction.parse(text) if text.endswith("%") else Duration.parse(text)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the shipped topologies."""
    topologies = [load(name) for name in shipped()]
    if as_json:
        emit(
            [
                {
                    "name": each.name,
                    "description": each.description,
                    "sites": len(each.sites),
                    "nodes": sum(len(site.node_names) for site in each.sites),
                }
                for each in topologies
            ]
        )
        return
    plans = [resolve(topology) for topology in topologies]
    rows = [
        (topology.name, str(len(plan.sites)), str(len(plan.nodes)), topology.description)
        for topology, plan in zip(topologies, plans, strict=True)
    ]
    print_rows([("TOPOLOGY", "SITES", "NODES", "DESCRIPTION"), *rows])


def _matrix(plan: Plan) -> Table:
    from rich.table import Table

    names = [node.name for node in plan.nodes]
    if len(names) > _FEW_NODES:
        names = [site.nodes[0].name for site in plan.sites]
    table = Table(title="requested RTT between nodes, ms (± jitter)", title_justify="left")
    table.add_column("")
    for name in names:
        table.add_column(f"{name}\n{plan.node(name).site}", justify="right")
    cells = {(a, b): _round_trip(plan, a, b) for a, b in permutations(names, 2)}
    for a in names:
        table.add_row(a, *(cells.get((a, b), "") for b in names))
    return table


def _round_trip(plan: Plan, a: str, b: str) -> str:
    rtt, jitter_ms = f"{plan.rtt_ms(a, b):g}", plan.jitter_ms(a, b)
    if not jitter_ms:
        return rtt
    steps = plan.path(a, b) + plan.path(b, a)
    if any(step.jitter_ns and step.distribution != "uniform" for step in steps):
        return f"{rtt}, sd {plan.deviation_ms(a, b):.3g}"  # it has no bounds worth printing
    return f"{rtt} ± {jitter_ms:g}"


def _besides(plan: Plan) -> Iterator[str]:
    """What links do besides delaying and evenly spread jitter, alike ones together."""
    ways: dict[str, list[str]] = {}
    for lan in plan.lan_links:
        ways.setdefault(_qualities(lan.up), []).append(f"{lan.node} up")
        ways.setdefault(_qualities(lan.down), []).append(f"{lan.node} down")
    for wan in plan.wan_links:
        ways.setdefault(_qualities(wan.forward), []).append(f"{wan.a} to {wan.b}")
        ways.setdefault(_qualities(wan.backward), []).append(f"{wan.b} to {wan.a}")
    for qualities, where in ways.items():
        if qualities:
            yield f"{qualities}: {listing(where, at_most=_FEW_NODES)}"


def _qualities(way: Impairment) -> str:
    """Such as `loss 0.5%, rate 2mbit`; empty when there is nothing to say."""
    from wanlat.emulator.impairment_words import words

    if way.distribution == "uniform":
        way = replace(way, jitter_ns=0)
    rest = replace(way, delay_ns=0)
    return "" if rest == Impairment() else words(way if way.jitter_ns else rest)


@app.command()
def show(name: TopologyName, as_json: Json = False) -> None:
    """Show one topology: its sites, the RTT between its nodes, and where it comes from."""
    topology = load(name)
    plan = resolve(topology)
    if as_json:
        emit(topology.to_dict())
        return
    say(": ".join(filter(None, (topology.name, topology.description))))
    for site in plan.sites:
        nodes = ", ".join(f"{node.name} ({node.address})" for node in site.nodes[:_FEW_NODES])
        more = f" and {len(site.nodes) - _FEW_NODES} more" if len(site.nodes) > _FEW_NODES else ""
        say(f"  site {site.name}: {nodes}{more}")
    from wanlat.output import people

    people.print(_matrix(plan))
    for line in _besides(plan):
        say(line)
    text = origin(name)
    if text:
        say(f"\n{text}")


@app.command()
def validate(file: File) -> None:
    """Check a topology; every mistake is reported with its line."""
    topology = load(file)
    plan = resolve(topology)
    say(f"{file}: {topology.name} is valid: {len(plan.sites)} sites, {len(plan.nodes)} nodes")


@app.command("import")
def import_(
    matrix: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: sites × sites, or from,to,rtt_ms")
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the topology (default: the file's)"),
    ] = None,
    nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Nodes per site")] = 1,
    jitter: Annotated[
        Any,
        typer.Option(
            parser=quantity(_duration_or_share),
            metavar="TIME|PERCENT",
            help="Jitter of every WAN link: 2ms, or 5% of its RTT",
        ),
    ] = None,
    default: Annotated[
        Duration | None,
        typer.Option(parser=duration, metavar="TIME", help="RTT where the file has none"),
    ] = None,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="The file has one-way delays, not RTTs")
    ] = False,
    unit: Annotated[
        Literal["s", "ms", "us", "ns"],
        typer.Option(metavar="[s|ms|us|ns]", help="Unit of bare numbers"),
    ] = "ms",
    asymmetric: Annotated[
        Literal["mean", "min", "max", "error"],
        typer.Option(
            metavar="[mean|min|max|error]",
            help="RTT of two sites for which the file has two different ones",
        ),
    ] = "mean",
    inside: Annotated[
        bool, typer.Option(help="Take the diagonal for the RTT inside each site")
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Topology file to write (default: stdout)"
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    _quiet: Quiet = False,
) -> None:
    """Convert a matrix of RTTs to a topology; what is odd in it is reported."""
    from wanlat.topologies.matrix_import import import_matrix

    imported = import_matrix(
        matrix,
        name=name,
        nodes=nodes,
        jitter=jitter,
        default=default,
        one_way=one_way,
        unit=unit,
        asymmetric=asymmetric,
        inside=inside,
    )
    for note in imported.notes:
        remark(note)
    if out is not None:
        _write(out, imported.text, force=force)
        topology = imported.topology
        say(f"{out}: {topology.name}: {len(topology.sites)} sites, {nodes} nodes each")
    if as_json:
        emit(
            {
                "topology": imported.topology.to_dict(),
                "notes": list(imported.notes),
                "file": None if out is None else str(out),
            }
        )
    elif out is None:
        typer.echo(imported.text, nl=False)


@app.command("export")
def export(
    topology: TopologyName,
    to: Annotated[
        str,
        typer.Option("--to", metavar="[mininet|containerlab|chaos-mesh]", help="The other tool"),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Output directory, or the file where there is only one (default: stdout)",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    _quiet: Quiet = False,
) -> None:
    """Convert a topology for another tool; what that cannot express is reported."""
    from wanlat.topologies.export.exported import export as export_to

    exported = export_to(load(topology), to)
    for note in exported.notes:
        remark(note)
    written = [] if out is None else _write_all(exported, out, force=force)
    if as_json:
        emit(
            {
                "target": to,
                "files": dict(exported.files),
                "notes": list(exported.notes),
                "written": [str(path) for path in written],
            }
        )
    elif out is None:
        main, *others = exported.files
        typer.echo(exported.files[main], nl=False)
        if others:
            remark(f"{listing(others)}: not shown; --out DIR writes all files")
    else:
        say(f"written: {listing(map(str, written))}")


def _write_all(exported: Exported, out: str, *, force: bool) -> list[Path]:
    if len(exported.files) > 1 or Path(out).is_dir() or out.endswith(os.sep):
        paths = [Path(out) / each for each in exported.files]
    else:
        paths = [Path(out)]
    for path in paths:  # before any is written
        _refuse_existing(path, force=force)
    for path, text in zip(paths, exported.files.values(), strict=True):
        _write(path, text, force=True)
        if path.suffix == ".sh":
            path.chmod(0o755)
    return paths


def _refuse_existing(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise UserError(f"{path} exists; --force overwrites it")


def _write(path: Path, text: str, *, force: bool) -> None:
    _refuse_existing(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UserError(f"{path} cannot be written: {problem.strerror}") from None
