"""``wanlat topology``: the networks that can be emulated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.output import emit, print_table, remark, say, show_document, show_list
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load, origin, shipped
from wanlat.topologies.resolve import Plan, resolve
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.topologies.export.exported import Exported

app = App("List, show, validate, import and export topologies.")

_FEW_NODES = 12


@app.command("list")
def list_(as_json: o.Json = False) -> None:
    """List the shipped topologies."""
    entries = []
    for topology in map(load, shipped()):
        nodes = sum(len(site.node_names) for site in topology.sites)
        counts = {"sites": len(topology.sites), "nodes": nodes}
        entries.append({"name": topology.name, **counts, "description": topology.description})
    show_list(entries, as_json=as_json)


@app.command()
def show(name: o.TopologyName, as_json: o.Json = False) -> None:
    """Show one topology: its sites, the RTT between its nodes, and where it comes from."""
    topology = load(name)
    show_document(topology.to_dict(), as_json=as_json)
    if as_json:
        return
    plan = resolve(topology)
    shown = list(plan.nodes)
    if len(shown) > _FEW_NODES:
        shown = [site.nodes[0] for site in plan.sites]
    names = [node.name for node in shown]
    rows = [
        (a.name, a.site, a.address, *(_round_trip(plan, a.name, b) for b in names)) for a in shown
    ]
    say("\nrequested RTT between nodes, ms (± jitter, or sd: its standard deviation):")
    print_table(("NODE", "SITE", "ADDRESS", *names), rows, to=say)
    text = origin(name)
    if text:
        say(f"\n{text}")


def _round_trip(plan: Plan, a: str, b: str) -> str:
    if a == b:
        return ""
    rtt, jitter_ms = f"{plan.rtt_ms(a, b):g}", plan.jitter_ms(a, b)
    if not jitter_ms:
        return rtt
    steps = plan.path(a, b) + plan.path(b, a)
    if any(step.jitter_ns and step.distribution != "uniform" for step in steps):
        return f"{rtt}, sd {plan.deviation_ms(a, b):.3g}"  # it has no bounds worth printing
    return f"{rtt} ± {jitter_ms:g}"


@app.command()
def validate(file: o.File) -> None:
    """Check a topology; every mistake is reported with its line."""
    topology = load(file)
    plan = resolve(topology)
    say(f"{file}: {topology.name} is valid: {len(plan.sites)} sites, {len(plan.nodes)} nodes")


def _duration_or_share(text: str) -> Duration | Fraction:
    return Fraction.parse(text) if text.endswith("%") else Duration.parse(text)


@app.command("import")
def import_(
    matrix: Annotated[Path, o.argument("FILE", "CSV: sites × sites, or from,to,rtt_ms")],
    name: Annotated[
        str | None, o.option("NAME", "Name of the topology (default: the file's)")
    ] = None,
    nodes: Annotated[int, o.option("N", "Nodes per site", min=1)] = 1,
    jitter: Annotated[
        Any,
        o.option(
            "TIME|PERCENT",
            "Jitter of every WAN link: 2ms, or 5% of its RTT",
            parse=_duration_or_share,
        ),
    ] = None,
    default: Annotated[
        Duration | None, o.option("TIME", "RTT where the file has none", parse=Duration.parse)
    ] = None,
    one_way: Annotated[bool, o.flag("The file has one-way delays, not RTTs", "--one-way")] = False,
    unit: Annotated[
        Literal["s", "ms", "us", "ns"], o.option("[s|ms|us|ns]", "Unit of bare numbers")
    ] = "ms",
    asymmetric: Annotated[
        Literal["mean", "min", "max", "error"],
        o.option(
            "[mean|min|max|error]",
            "RTT of two sites for which the file has two different ones",
        ),
    ] = "mean",
    inside: Annotated[bool, o.flag("Take the diagonal for the RTT inside each site")] = True,
    out: Annotated[
        Path | None, o.option("FILE", "Topology file to write (default: stdout)", "--out", "-o")
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    _quiet: o.Quiet = False,
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
        _refuse_existing(out, force=force)
        _write(out, imported.text)
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


@app.command()
def export(
    topology: o.TopologyName,
    to: Annotated[str, o.option("[mininet|containerlab|chaos-mesh]", "The other tool")],
    out: Annotated[
        str | None,
        o.option(
            "DIR",
            "Output directory, or the file where there is only one (default: stdout)",
            *("--out", "-o"),
        ),
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    _quiet: o.Quiet = False,
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
        _write(path, text)
        if path.suffix == ".sh":
            path.chmod(0o755)
    return paths


def _refuse_existing(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise UserError(f"{path} exists; --force overwrites it")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UserError(f"{path} cannot be written: {problem.strerror}") from None
