"""``wanlat topology``: the networks that can be emulated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from wanlat.output import emit, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load, origin, shipped
from wanlat.topologies.resolve import Impairment, Plan, resolve
from wanlat.topologies.units import Duration, Fraction, Rate, Size
from wanlat.topologies.wording import listing
from wanlat.topologies.wording import show as shown

if TYPE_CHECKING:
    from rich.table import Table

    from wanlat.topologies.export.exported import Exported

app = typer.Typer(no_args_is_help=True, help="The networks that can be emulated.")

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
_FEW_NODES = 12


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
    for topology in topologies:
        plan = resolve(topology)
        size = f"{len(plan.sites)} sites, {len(plan.nodes)} nodes"
        typer.echo(f"{topology.name:<20} {size:<20} {topology.description}")


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
        return f"{rtt}, sd {plan.deviation_ms(a, b):.3g}"  # it has no bounds worth telling
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
    parts = []
    if way.jitter_ns and way.distribution != "uniform":
        parts.append(f"{way.distribution} jitter")
    if way.correlation:
        parts.append(f"correlation {_part(way.correlation)}")
    if way.jitter_ns and way.reorder:
        parts.append("jitter reorders")
    if way.bursts is not None:
        parts.append(f"loss {_part(way.bursts.loss)} in bursts")
    for what, part in (
        ("overtaking", way.overtake),
        ("loss", way.loss),
        ("duplicates", way.duplicate),
        ("corruption", way.corrupt),
    ):
        if part:
            parts.append(f"{what} {_part(part)}")
    if way.rate_bps is not None:
        parts.append(f"rate {Rate(way.rate_bps)}")
    if way.queue_bytes is not None:
        parts.append(f"queue {Size(way.queue_bytes)}")
    return ", ".join(parts)


def _part(part: float) -> str:
    return str(Fraction(float(f"{part:.4g}")))


@app.command()
def show(name: str, as_json: Json = False) -> None:
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
def validate(file: str) -> None:
    """Check a topology file; every mistake is told, with its line."""
    topology = load(file)
    plan = resolve(topology)
    say(f"{file}: {topology.name} is valid: {len(plan.sites)} sites, {len(plan.nodes)} nodes")


@app.command("import")
def import_(
    matrix: Annotated[Path, typer.Argument(help="CSV: sites × sites, or from,to,rtt_ms.")],
    name: Annotated[str | None, typer.Option(help="Of the topology; default: the file's.")] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes a site.")] = 1,
    jitter: Annotated[
        str | None, typer.Option(help="Of every link between sites: 2ms, or 5% of its figure.")
    ] = None,
    default: Annotated[
        str | None, typer.Option(help="For figures that are missing, such as 150ms.")
    ] = None,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="The figures are one-way delays, not round trips.")
    ] = False,
    unit: Annotated[str, typer.Option(help="Of bare numbers: s, ms, us or ns.")] = "ms",
    asymmetric: Annotated[
        str, typer.Option(help="Which of two different round trips counts: mean, min, max, error.")
    ] = "mean",
    inside: Annotated[
        bool, typer.Option(help="Take the diagonal for what lies inside the places.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="The topology file to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
    as_json: Json = False,
) -> None:
    """Make a topology file of a matrix of round-trip times; what is odd in it is told."""
    from wanlat.topologies.matrix import UNITS
    from wanlat.topologies.matrix_import import Asymmetric, import_matrix

    unit = _one_of("--unit", unit, list(UNITS))
    asymmetric = _one_of("--asymmetric", asymmetric, list(get_args(Asymmetric)))
    imported = import_matrix(
        matrix,
        name=name,
        nodes=nodes,
        jitter=None if jitter is None else _duration_or_part(jitter),
        default=None if default is None else Duration.parse(default),
        one_way=one_way,
        unit=unit,  # type: ignore[arg-type]
        asymmetric=asymmetric,  # type: ignore[arg-type]
        inside=inside,
    )
    for note in imported.notes:
        say(note)
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
    name: str,
    to: Annotated[str, typer.Option("--to", help="mininet, containerlab or chaos-mesh.")],
    out: Annotated[
        str | None, typer.Option(help="A directory, or the file when there is only one.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files.")] = False,
    as_json: Json = False,
) -> None:
    """Write a topology for another tool; what that cannot express is told, here and in it."""
    from wanlat.topologies.export.exported import export as export_to

    exported = export_to(load(name), to)
    for note in exported.notes:
        say(note)
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
            say(f"{listing(others)}: not shown; --out DIRECTORY writes all files")
    else:
        say(f"written: {listing(map(str, written))}")


def _one_of(option: str, given: str, allowed: list[str]) -> str:
    if given not in allowed:
        raise UserError(f"{option} {shown(given)}: allowed are {listing(allowed)}")
    return given


def _duration_or_part(text: str) -> Duration | Fraction:
    return Fraction.parse(text) if text.endswith("%") else Duration.parse(text)


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
        raise UserError(f"{path} is there already; --force writes over it")


def _write(path: Path, text: str, *, force: bool) -> None:
    _refuse_existing(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UserError(f"{path} cannot be written: {problem.strerror}") from None
