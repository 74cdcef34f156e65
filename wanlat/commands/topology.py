"""``wanlat topology``: the networks that can be emulated."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.commands.shipped import Kind
from wanlat.output import emit, inform, print_table, refuse_to_replace, remark, unwritable
from wanlat.topologies import load
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.topologies.model import Topology
    from wanlat.topologies.resolve import Plan

app = App("List, show, validate, import and export topologies.")

_FEW_NODES = 12


def _row(topology: Topology) -> dict[str, Any]:
    nodes = sum(len(site.node_names) for site in topology.sites)
    return {"sites": len(topology.sites), "nodes": nodes}


def _facts(topology: Topology) -> list[str]:
    from wanlat.topologies.resolve import resolve

    plan = resolve(topology)
    shown = list(plan.nodes)
    if len(shown) > _FEW_NODES:
        shown = [site.nodes[0] for site in plan.sites]
    names = [node.name for node in shown]
    rows = [
        (a.name, a.site, a.address, *(_round_trip(plan, a.name, b) for b in names)) for a in shown
    ]
    lines = ["", "requested RTT between nodes, ms (± jitter, or sd: its standard deviation):"]
    print_table(("NODE", "SITE", "ADDRESS", *names), rows, to=lines.append)
    return lines


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


def _extent(topology: Topology) -> str:
    from wanlat.topologies.resolve import resolve

    plan = resolve(topology)
    return f"{len(plan.sites)} sites, {len(plan.nodes)} nodes"


def _files() -> ModuleType:
    return load


TOPOLOGIES = Kind(
    noun="topology",
    files=_files,
    loader=_files,
    row=_row,
    facts=_facts,
    extent=_extent,
    complete=completion.topologies,
)
TOPOLOGIES.add_to(app)


def _duration_or_share(text: str) -> Duration | Fraction:
    return Fraction.parse(text) if text.endswith("%") else Duration.parse(text)


def _places(text: str) -> int | list[str]:
    """A number of places, or their names; one with a comma is in quotation marks."""
    if text.isdecimal():
        return int(text)
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


@app.command("import")
def import_(
    source: Annotated[
        str,
        o.argument(
            "FILE",
            "CSV: sites × sites, or from,to,rtt_ms. GML, GraphML, Kollaps, containerlab, "
            "NetworkChaos. Or Mininet's: topo.py:NAME",
        ),
    ],
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
        Literal["s", "ms", "us", "ns"] | None,
        o.option("[s|ms|us|ns]", "Unit of bare numbers (default: the column's, or ms)"),
    ] = None,
    column: Annotated[
        str | None, o.option("NAME", "Column that has the figures, where several may")
    ] = None,
    decimal: Annotated[
        Literal[".", ","] | None,
        o.option("[.|,]", "What decimals follow (default: what the figures show)"),
    ] = None,
    places: Annotated[
        Any, o.option("N|A,B,C", "Take the first N places, or these", parse=_places)
    ] = None,
    inside: Annotated[bool, o.flag("Take the diagonal for the RTT inside each site")] = True,
    out: Annotated[
        Path | None, o.option("FILE", "Topology file to write (default: stdout)", "--out", "-o")
    ] = None,
    force: o.Force = False,
    as_json: o.Json = False,
    _quiet: o.Quiet = False,
) -> None:
    """Convert a matrix of RTTs, a graph, or another tool's network; what is odd in it is reported.

    --one-way, --column and --decimal are for matrices; of a script of Mininet's only --name counts.
    """
    from wanlat.topologies.formats.detection import reader
    from wanlat.topologies.formats.network import Options

    if ".py:" in source or source.endswith(".py"):
        from wanlat.topologies.mininet_import import import_mininet

        imported = import_mininet(source, name=name)
    elif (read := reader(Path(source))) is not None:
        imported = read(Path(source), Options(name, nodes, jitter, default, unit, inside, places))
    else:
        from wanlat.topologies.matrix_import import import_matrix

        imported = import_matrix(
            source,
            name=name,
            nodes=nodes,
            jitter=jitter,
            default=default,
            one_way=one_way,
            unit=unit,
            inside=inside,
            column=column,
            decimal=decimal,
            places=places,
        )
    made = imported.topology
    for note in imported.notes:
        remark(note)
    if out is not None:
        _write({out: imported.text}, force=force)
        inform(f"{out}: {made.name}: {_extent(made)}")
    if as_json:
        file = out and str(out)
        emit({"topology": made.to_dict(), "notes": list(imported.notes), "file": file})
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
    from wanlat.topologies.export.targets import export as export_to

    exported = export_to(load.load(topology), to)
    texts, notes = dict(exported.files), list(exported.notes)
    for note in notes:
        remark(note)
    written = {}
    if out is not None:
        has_many = len(texts) > 1 or Path(out).is_dir() or out.endswith(os.sep)
        written = {Path(out, name) if has_many else Path(out): texts[name] for name in texts}
        _write(written, force=force)
    paths = [str(path) for path in written]
    if as_json:
        emit({"target": to, "files": texts, "notes": notes, "written": paths})
    elif out is not None:
        inform(f"written: {listing(paths)}")
    else:
        first, *others = texts
        typer.echo(texts[first], nl=False)
        if others:
            remark(f"{listing(others)}: not shown; --out DIR writes all files")


def _write(texts: Mapping[Path, str], *, force: bool) -> None:
    """Write files, of which scripts can be run. Raises UserError, before the first if one exists
    that must not be overwritten.
    """
    refuse_to_replace(texts, force=force)
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as problem:
            raise unwritable(path, problem) from problem
        if path.suffix == ".sh":
            path.chmod(0o755)
