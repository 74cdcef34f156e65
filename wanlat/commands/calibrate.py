"""``wanlat calibrate``: is the emulated network what was requested?"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from wanlat import options as o
from wanlat.output import emit, inform, print_table, refuse_to_replace, remark
from wanlat.running import reporter
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import in_words, listing

_FORMATS = (".png", ".svg", ".pdf")
_TITLES = (
    *("pair", "requested", "median", "error p50", "error p99"),
    *("jitter p", "Mbit/s", "lost", "verdict"),
)


def _writable(text: str) -> Path:
    """Read the name of a chart's file, before anything slow starts. Raises UserError."""
    chart = Path(text)
    if chart.is_dir():
        raise UserError(f"{chart} is a directory.")
    if chart.suffix.lower() not in _FORMATS:
        raise UserError(f"the name must end in {listing(_FORMATS, 'or')}.")
    if not os.access(chart.parent, os.W_OK | os.X_OK):
        raise UserError(f"{chart.parent} is no directory that you may write to.")
    return chart


def calibrate(
    topology: o.TopologyName,
    backend: o.Backend = None,
    rtt: o.Rtt = None,
    jitter: o.Jitter = None,
    samples: Annotated[
        int | None,
        o.option(
            "N",
            "Probes per pair of nodes (default: as many as the verdict needs)",
            min=20,
            max=100_000,
        ),
    ] = None,
    applied: Annotated[
        str | None,
        o.option(
            "TOPOLOGY",
            "Build this topology, and compare it with the other: shows that a wrong network "
            "is detected",
        ),
    ] = None,
    chart: Annotated[
        Path | None,
        o.option(
            "FILE",
            "Chart of requested and measured RTTs, .png, .svg or .pdf "
            "(default: results/calibration-TOPOLOGY.png, or the next free name)",
            parse=_writable,
        ),
    ] = None,
    force: o.Force = False,
    seed: o.Seed = None,
    as_json: o.Json = False,
    _verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Compare an emulated network with its topology.

    Every pair of up to 12 nodes is measured, of more one for every two sites. Exit code 1: a pair
    differs from the topology.
    """
    from wanlat.topologies.resolve import resolve

    refuse_to_replace([] if chart is None else [chart], force=force)
    requested = resolve(o.topology_of(topology, rtt, jitter))
    built = resolve(o.topology_of(applied)) if applied else requested
    for node in built.nodes:
        requested.node(node.name)  # both must have the same nodes

    from wanlat.emulator.calibration import blame
    from wanlat.emulator.calibration import calibrate as measure
    from wanlat.emulator.lab import Lab

    chance = secrets.randbits(32) if seed is None else seed
    with reporter() as report, Lab(built, backend=backend, seed=chance) as lab:
        document = measure(
            lab,
            against=requested,
            samples=samples,
            on_progress=lambda stage, part: report(f"measuring {stage}", round(part * 100), 100),
        )
    inform(f"{document['topology']} on {document['backend']}: round trips, ms")
    print_table(_TITLES, map(_row, document["pairs"]), to=inform)
    for pair in document["pairs"]:
        for reason in pair["reasons"]:
            inform(f"{pair['from']} → {pair['to']}: {reason}")
    if failed := [pair for pair in document["pairs"] if pair["verdict"] != "pass"]:
        inform(blame(failed))
    if document["overflows"]:
        inform(f"{document['overflows']} packets were dropped by queues of the emulation itself")
    _draw(document, chart, force=force)
    passed = document["verdict"] == "pass"
    inform(f"verdict: {document['verdict']}", style="green" if passed else "bold red")
    if as_json:
        emit(document)
    raise typer.Exit(0 if passed else 1)


def _row(pair: dict[str, Any]) -> tuple[object, ...]:
    """Return a pair's cells under `_TITLES`."""
    rtt, error = pair["rtt_ms"] or {}, pair["error_ms"] or {}
    jitter_ms, rate = pair["requested_jitter_ms"], pair["rate"] or {}
    there = (pair["jitter"] or {}).get("there")
    figures = [rtt.get("p50"), error.get("p50"), error.get("p99")]
    rates = [rate.get("measured_bps"), rate.get("requested_bps")]
    return (
        f"{pair['from']} → {pair['to']}",
        f"{pair['requested_rtt_ms']:g}" + (f" ± {jitter_ms:g}" if jitter_ms else ""),
        *("–" if figure is None else f"{figure:.3f}" for figure in figures),
        f"{there['p_value']:.2g}" if there else "–",
        " of ".join("?" if bps is None else f"{bps / 1e6:.4g}" for bps in rates) if rate else "–",
        pair["lost"] + (pair["delivery"] or {"lost": 0})["lost"],
        pair["verdict"],
    )


def _draw(document: dict[str, Any], chart: Path | None, *, force: bool) -> None:
    """Draw the chart. One that was not requested is left out if it cannot be written."""
    from wanlat.analysis.charts import style
    from wanlat.analysis.charts.calibration import draw
    from wanlat.bundle.documents import Titles
    from wanlat.bundle.errors import BundleError

    name = re.sub(r"[^\w.-]+", "-", document["topology"])
    try:
        figure = draw(document, Titles())
        path = chart if chart is not None and force else _claimed(chart, name)
        style.save_as(figure, path)
    except (BundleError, OSError) as error:
        if chart is not None:
            raise MachineError(f"--chart {chart}: {in_words(error)}") from error
        remark(f"no chart: {in_words(error)}")
        return
    inform(f"chart: {path}")


def _claimed(chart: Path | None, name: str) -> Path:
    """Take a name for the chart, which no file has: one may have come during the measurement.

    Raises OSError, UserError for ``chart``.
    """
    if chart is not None:
        try:
            chart.open("xb").close()
        except FileExistsError:
            refuse_to_replace([chart], force=False)
        return chart
    base = Path("results", f"calibration-{name}.png")
    base.parent.mkdir(exist_ok=True)
    for number in count(1):
        path = base if number == 1 else base.with_stem(f"{base.stem}-{number}")
        with suppress(FileExistsError):
            path.open("xb").close()
            return path
    raise AssertionError("there is always another number")
