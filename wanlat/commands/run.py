"""``wanlat run``: measure what a study asks for, and show it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wanlat.commands.settings import use_bobd, with_options
from wanlat.interruption import INTERRUPTED, heed_interruptions
from wanlat.options import (
    Backend,
    Bobd,
    CaptureLimit,
    CaptureSnap,
    CaptureWish,
    Json,
    Seed,
    StorageChoice,
    SystemOptions,
    TopologyChoice,
    backend_name,
    check_storage,
    size_of,
)
from wanlat.output import emit, reporter, say
from wanlat.results import show_report

if TYPE_CHECKING:
    from experiments.runner import Outcome


def run(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A shipped study or the path of a YAML file.")
    ],
    systems: Annotated[
        str | None, typer.Option(metavar="A,B", help="Systems, one after another.")
    ] = None,
    topology: TopologyChoice = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples an endpoint (and placement).")
    ] = None,
    seed: Seed = None,
    client: Annotated[
        str | None, typer.Option(help="The node or site where the client stands.")
    ] = None,
    storage: StorageChoice = None,
    option: SystemOptions = None,
    bobd: Bobd = None,
    backend: Backend = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The bundle's directory. Default: results/STUDY-TIME."),
    ] = None,
    capture: CaptureWish = False,
    capture_limit: CaptureLimit = "256MiB",
    capture_snap: CaptureSnap = "256B",
    as_json: Json = False,
) -> None:
    """Run a study: calibrate, start each system, take the samples, draw the chart."""
    from experiments import runner
    from experiments.study import load

    check_storage(storage)
    read = load(study)
    names = read.systems if systems is None else [name.strip() for name in systems.split(",")]
    if bobd is not None:
        use_bobd(bobd, names)
    changed = runner.check_study_options(
        read,
        {
            "systems": names,
            "options": with_options(read.options, option, names) if option else None,
            "topology": topology,
            "samples": samples,
            "seed": seed,
            "client": client,
            "storage": storage,
        },
    )
    prepared = runner.prepare(
        changed,
        directory=out,
        backend=backend_name(backend),
        capture=runner.CaptureWanted(
            size_of("--capture-limit", capture_limit), size_of("--capture-snap", capture_snap)
        )
        if capture
        else None,
    )
    heed_interruptions()
    with reporter() as report:
        outcome = runner.run(prepared, report)
    _show(outcome, as_json)


def _show(outcome: Outcome, as_json: bool) -> None:
    for warning in outcome.warnings:
        say(f"warning: {warning}", style="yellow")
    if outcome.status == "complete":
        show_report(outcome.directory, as_json=as_json)
        say(f"bundle: {outcome.directory}")
        return
    if outcome.status == "interrupted":
        say("Interrupted.", style="bold yellow")
    else:
        say(f"The run failed: {outcome.reason}", style="bold red")
    # No charts now: who interrupts a run wants it to end, and half a study is no result.
    say(
        f"{outcome.measured} of {outcome.planned} samples were taken and are kept in "
        f"{outcome.directory}; `wanlat report {outcome.directory}` shows them."
    )
    if as_json:
        emit(
            {
                "bundle": {
                    "directory": str(outcome.directory),
                    "status": outcome.status,
                    "reason": outcome.reason,
                },
                "endpoints": [],
            }
        )
    raise typer.Exit(INTERRUPTED if outcome.status == "interrupted" else 1)
