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
    CaptureChoice,
    CaptureSnap,
    Json,
    Seed,
    StorageChoice,
    SystemOptions,
    Tolerate,
    TopologyChoice,
    backend_name,
    check_storage,
    size_of,
)
from wanlat.output import emit, reporter, say
from wanlat.results import show_report

if TYPE_CHECKING:
    from experiments.runner import CaptureWanted, Outcome
    from experiments.study import Study


def run(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A shipped study or the path of a YAML file.")
    ],
    systems: Annotated[
        str | None, typer.Option(metavar="A,B", help="Systems, one after another.")
    ] = None,
    topology: TopologyChoice = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples an endpoint (and placement, and visit).")
    ] = None,
    seed: Seed = None,
    client: Annotated[
        str | None, typer.Option(help="The node or site where the client stands.")
    ] = None,
    storage: StorageChoice = None,
    tolerate: Tolerate = None,
    option: SystemOptions = None,
    bobd: Bobd = None,
    backend: Backend = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The bundle's directory. Default: results/STUDY-TIME."),
    ] = None,
    capture: CaptureChoice = None,
    capture_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The packet record does not grow beyond this. Default: 256MiB; of round trips "
            "1GiB.",
        ),
    ] = None,
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
            "tolerate": tolerate,
        },
    )
    prepared = runner.prepare(
        changed,
        directory=out,
        backend=backend_name(backend),
        capture=_capture(changed, capture, capture_limit, capture_snap),
    )
    heed_interruptions()
    with reporter() as report:
        outcome = runner.run(prepared, report)
    _show(outcome, as_json)


def _capture(study: Study, wish: bool | None, limit: str | None, snap: str) -> CaptureWanted | None:
    """Return what is to be recorded. The packets of a study of round trips are half its answer."""
    from experiments.runner import CaptureWanted

    of_round_trips = study.round_trips is not None
    if not (of_round_trips if wish is None else wish):
        return None
    text = limit or ("1GiB" if of_round_trips else "256MiB")
    return CaptureWanted(size_of("--capture-limit", text), size_of("--capture-snap", snap))


def _show(outcome: Outcome, as_json: bool) -> None:
    for remark in outcome.remarks:
        say(remark)
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
