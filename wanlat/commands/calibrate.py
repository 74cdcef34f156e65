"""``wanlat calibrate``: does the emulated network do what it was asked for?"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.options import (
    Backend,
    Jitter,
    Json,
    Quiet,
    Rtt,
    Seed,
    TopologyName,
    Verbose,
    topology_of,
)
from wanlat.output import emit, remark, reporter, say
from wanlat.topologies.errors import MachineError, UserError

if TYPE_CHECKING:
    from rich.table import Table

_FORMATS = (".png", ".svg", ".pdf")
_FEWEST_JITTER_SAMPLES = 300  # show a distribution where a few probes would show a delay


def table_of(document: dict[str, Any]) -> Table:
    """Return the pairs of a calibration as a table for people."""
    from rich import box
    from rich.table import Table

    title = f"{document['topology']} on {document['backend']}: round trips, ms"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    pairs = document["pairs"]
    table.add_column("pair")
    for column in ("requested", "bare", "median", "min", "max", "error p50", "error p99"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("jitter p", justify="right", no_wrap=True)
    rated = any(pair["rate"] for pair in pairs)
    if rated:
        table.add_column("rate Mbit/s", justify="right", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    table.add_column("verdict")
    for pair in pairs:
        good = pair["verdict"] == "pass"
        table.add_row(
            f"{pair['from']} → {pair['to']}",
            *_times(pair),
            _p_value(pair),
            *([_rate(pair)] if rated else []),
            str(pair["lost"] + (pair["delivery"]["lost"] if pair["delivery"] else 0)),
            "[green]pass[/]" if good else "[red]fail[/]",
        )
    return table


def _times(pair: dict[str, Any]) -> list[str]:
    rtt, error, bare = pair["rtt_ms"], pair["error_ms"], pair["bare_rtt_ms"]
    requested = f"{pair['requested_rtt_ms']:g}"
    if pair["requested_jitter_ms"]:
        requested += f" ± {pair['requested_jitter_ms']:g}"
    figures = (
        [f"{rtt[key]:.3f}" for key in ("p50", "min", "max")]
        + [f"{error[key]:.3f}" for key in ("p50", "p99")]
        if rtt
        else ["–"] * 5
    )
    return [requested, f"{bare['p50']:.3f}" if bare else "–", *figures]


def _p_value(pair: dict[str, Any]) -> str:
    there = (pair["jitter"] or {}).get("there")
    return f"{there['p_value']:.2g}" if there else "–"


def _rate(pair: dict[str, Any]) -> str:
    rate = pair["rate"]
    if rate is None:
        return "–"
    if rate["measured_bps"] is None:
        return "?"
    return f"{rate['measured_bps'] / 1e6:.4g} of {rate['requested_bps'] / 1e6:g}"


def calibrate(
    topology: TopologyName,
    backend: Backend = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=20, max=100_000, help="Probes per pair of nodes")
    ] = 200,
    applied: Annotated[
        str | None,
        typer.Option(
            metavar="TOPOLOGY",
            help="Build this topology, and compare it with the other: shows that a wrong network "
            "is detected",
        ),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Chart of requested and measured RTTs, .png, .svg or .pdf "
            "(default: results/calibration-TOPOLOGY.png)",
        ),
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
    _verbose: Verbose = False,
    _quiet: Quiet = False,
) -> None:
    """Compare an emulated network with its topology.

    Every pair of nodes is measured. Exit code 1: a pair is not what the topology says.
    """
    from wanlat.topologies.resolve import resolve

    requested = resolve(topology_of(topology, rtt, jitter))
    if chart is not None:
        _check(chart)  # before anything slow starts
    built = resolve(topology_of(applied)) if applied else requested
    for node in built.nodes:
        requested.node(node.name)  # both must have the same nodes

    from wanlat.emulator.calibration import blame
    from wanlat.emulator.calibration import calibrate as measure
    from wanlat.emulator.lab import Lab
    from wanlat.output import people

    chance = secrets.randbits(32) if seed is None else seed
    with reporter() as report, Lab(built, backend=backend, seed=chance) as lab:
        document = measure(
            lab,
            against=requested,
            samples=samples,
            jitter_samples=max(samples, _FEWEST_JITTER_SAMPLES),
            on_progress=lambda stage, part: report(f"measuring {stage}", round(part * 100), 100),
        )
    people.print(table_of(document))
    for pair in document["pairs"]:
        for reason in pair["reasons"]:
            say(f"{pair['from']} → {pair['to']}: {reason}")
    if failed := [pair for pair in document["pairs"] if pair["verdict"] != "pass"]:
        say(blame(failed))
    if document["overflows"]:
        say(f"{document['overflows']} packets were dropped by queues of the emulation itself")
    _draw(document, chart)
    passed = document["verdict"] == "pass"
    say(f"verdict: {document['verdict']}", style="green" if passed else "bold red")
    if as_json:
        emit(document)
    raise typer.Exit(0 if passed else 1)


def _check(chart: Path) -> None:
    """Raise UserError for a file that cannot be a chart."""
    if chart.suffix.lower() not in _FORMATS:
        raise UserError(
            f"--chart {chart}: the name must end in {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}."
        )
    if chart.is_dir():
        raise UserError(f"--chart {chart}: it is a directory, not a file.")
    directory = chart.parent
    if not directory.is_dir() or not os.access(directory, os.W_OK):
        raise UserError(f"--chart {chart}: {directory} is no directory that you may write to.")


def _draw(document: dict[str, Any], chart: Path | None) -> None:
    """Draw the chart. Where nobody asked for it, it is left out if it cannot be written."""
    from wanlat.analysis.charts import style
    from wanlat.analysis.charts.calibration_picture import draw
    from wanlat.bundle.errors import BundleError

    name = re.sub(r"[^\w.-]+", "-", document["topology"])
    path = chart or Path("results", f"calibration-{name}.png")
    try:
        style.save_as(draw(document), path)
    except BundleError as error:
        if chart is not None:
            raise MachineError(f"--chart {chart}: {error}") from error
        remark(f"no chart: {error}")
        return
    say(f"chart: {path}")
