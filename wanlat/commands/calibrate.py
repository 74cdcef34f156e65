"""``wanlat calibrate``: does the emulated network do what it was asked for?"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from emulator.lab import Lab
from topologies.resolve import resolve
from wanlat.options import Backend, Jitter, Json, Rtt, Seed, TopologyName, backend_name, topology_of
from wanlat.output import emit, people, reporter, say


def table_of(document: dict[str, Any]) -> Table:
    """Return the pairs of a calibration as a table for people."""
    title = f"{document['topology']} on {document['backend']}: round trips, ms"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("pair")
    for column in ("asked", "median", "min", "max", "error p50", "error p99", "lost"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict")
    for pair in document["pairs"]:
        rtt, error = pair["rtt_ms"], pair["error_ms"]
        asked = f"{pair['requested_rtt_ms']:g}"
        if pair["requested_jitter_ms"]:
            asked += f" ± {pair['requested_jitter_ms']:g}"
        figures = (
            [f"{rtt[key]:.3f}" for key in ("p50", "min", "max")]
            + [f"{error[key]:.3f}" for key in ("p50", "p99")]
            if rtt
            else ["–"] * 5
        )
        good = pair["verdict"] == "pass"
        table.add_row(
            f"{pair['from']} → {pair['to']}",
            asked,
            *figures,
            str(pair["lost"]),
            "[green]pass[/]" if good else "[red]fail[/]",
        )
    return table


def calibrate(
    topology: TopologyName,
    backend: Backend = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
    samples: Annotated[int, typer.Option(min=20, max=100_000, help="Probes a pair.")] = 200,
    applied: Annotated[
        str | None,
        typer.Option(
            metavar="TOPOLOGY",
            help="Build this one instead, and hold it against TOPOLOGY: "
            "shows that a wrong network is found out.",
        ),
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Build a topology and measure every pair of nodes against what it asks for."""
    from emulator.calibration import calibrate as measure

    requested = resolve(topology_of(topology, rtt, jitter))
    built = resolve(topology_of(applied)) if applied else requested
    chosen = backend_name(backend)
    for node in built.nodes:
        requested.node(node.name)  # both must have the same nodes
    with (
        reporter() as report,
        Lab(built, backend=chosen, seed=seed or secrets.randbits(32)) as lab,
    ):
        document = measure(
            lab,
            against=requested,
            samples=samples,
            jitter_samples=samples,
            on_progress=lambda stage, part: report(f"measuring {stage}", round(part * 100), 100),
        )
    people.print(table_of(document))
    for pair in document["pairs"]:
        for reason in pair["reasons"]:
            say(f"{pair['from']} → {pair['to']}: {reason}")
    if document["overflows"]:
        say(f"{document['overflows']} packets were dropped by queues of the emulation itself")
    passed = document["verdict"] == "pass"
    say(f"verdict: {document['verdict']}", style="green" if passed else "bold red")
    if as_json:
        emit(document)
    raise typer.Exit(0 if passed else 1)
