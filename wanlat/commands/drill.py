"""``wanlat drill``: break a running cluster, and see what becomes of requests and of objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.prepare import PreparedDrill
    from wanlat.experiments.drill.record import Outcome

_LIVE_EVERY_S = 0.5


def drill(
    drill: Annotated[
        str | None,
        typer.Argument(
            metavar="[DRILL]",
            help="A shipped drill or the path of a YAML file. Without one: which are shipped.",
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(metavar="S", help="The system; several with commas, one after another."),
    ] = None,
    topology: TopologyChoice = None,
    scale: Annotated[
        float, typer.Option(metavar="X", help="Make phases and faults that much longer, as 0.1.")
    ] = 1.0,
    seed: Seed = None,
    option: SystemOptions = None,
    bobd: Bobd = None,
    storage: StorageChoice = None,
    backend: Backend = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The bundle's directory; of several systems, the one of their bundles. "
            "Default: results/DRILL-SYSTEM-TIME.",
        ),
    ] = None,
    capture: CaptureWish = False,
    capture_limit: CaptureLimit = "256MiB",
    capture_snap: CaptureSnap = "256B",
    as_json: Json = False,
) -> None:
    """Run a drill: requests before, during and after faults; then look for every object.

    Exit code 1: an object was lost, a claim does not hold, or a fault could not be undone.
    """
    from wanlat.experiments.drill.files import load

    if drill is None:
        _list(as_json)
        return
    check_storage(storage)
    read = load(drill, topology=topology)

    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.drill.prepare import prepare
    from wanlat.experiments.runner import CaptureWanted

    names = _systems(read, system)
    if bobd is not None:
        use_bobd(bobd, names)
    options = with_options(read.options, option or [], names)
    wanted = None
    if capture:
        wanted = CaptureWanted(
            size_of("--capture-limit", capture_limit), size_of("--capture-snap", capture_snap)
        )
    # All of them before the first starts: a mistake in the last is told now, not in an hour.
    prepared = [
        prepare(
            read,
            system=name,
            scale=scale,
            seed=seed,
            options=options.get(name),
            storage=storage,
            backend=backend_name(backend),
            capture=wanted,
            directory=out if out is None or len(names) == 1 else out / name,
        )
        for name in names
    ]
    heed_interruptions()
    for each in prepared:
        demand_lab(each.plan, each.backend)
    _run_all(prepared, as_json)


def _systems(drill: Drill, given: str | None) -> list[str]:
    """Return the systems to run it on. Raises UserError."""
    if given is None:
        if len(drill.systems) == 1:
            return drill.systems
        raise UserError(
            f"Drill {drill.name} is meant for {listing(drill.systems)}. Name one, or several with "
            f"commas: --system {drill.systems[0]}."
        )
    names = [name.strip() for name in given.split(",")]
    for index, name in enumerate(names):
        if name not in drill.systems:
            raise UserError(
                f"--system {show(name)}: drill {drill.name} is not meant for it"
                f"{did_you_mean(name, drill.systems)}; its `systems` are {listing(drill.systems)}."
            )
        if name in names[:index]:
            raise UserError(f"--system: {show(name)} is given twice; give it once.")
    return names


def _run_all(prepared: Sequence[PreparedDrill], as_json: bool) -> None:
    """Run one drill after another; raises Exit unless every one passed."""
    documents: list[Mapping[str, Any]] = []
    code = 0
    for each in prepared:
        outcome = _run(each)
        document, passed = _show(outcome)
        documents.append(document)
        if outcome.status == "interrupted":
            code = INTERRUPTED
            break
        if not passed:
            code = 1
    if as_json:
        emit(documents[0] if len(prepared) == 1 else {"drills": documents})
    raise typer.Exit(code)


def _run(prepared: PreparedDrill) -> Outcome:
    from wanlat.experiments.drill import runner

    _introduce(prepared)
    with reporter(log=True) as report:
        every_s = _LIVE_EVERY_S if report.is_live else runner.TELL_EVERY_S
        return runner.run(prepared, report, tell_every_s=every_s)


def _introduce(prepared: PreparedDrill) -> None:
    from wanlat.systems.progress import elapsed

    drill, phases = prepared.drill, prepared.drill.phases
    measured_s = phases.before.s + phases.during.s + phases.after.s
    say(
        f"{drill.name} on {prepared.system.name}: requests for {elapsed(measured_s)}, all of it "
        f"within {prepared.stated}."
    )
    cast = ", ".join(f"{name}: {listing(nodes)}" for name, nodes in prepared.cast.items())
    say(f"{cast}{'; ' if cast else ''}seed {prepared.seed}")


def _show(outcome: Outcome) -> tuple[Mapping[str, Any], bool]:
    """Tell what came of a drill; return its document, and whether it passed."""
    for warning in outcome.warnings:
        say(f"warning: {warning}", style="yellow")
    if outcome.status == "complete":
        return _report(outcome)
    if outcome.status == "interrupted":
        say("Interrupted.", style="bold yellow")
    else:
        say(f"The drill failed: {outcome.reason}", style="bold red")
    # No charts now: who interrupts a drill wants it to end, and a failed one is no result.
    say(
        f"It got as far as `{outcome.reached or 'nothing'}`; what was recorded is kept in "
        f"{outcome.directory}, and `wanlat report {outcome.directory}` shows it."
    )
    bundle = {
        "directory": str(outcome.directory),
        "status": outcome.status,
        "reason": outcome.reason,
        "reached": outcome.reached,
    }
    return {"bundle": bundle, "endpoints": []}, False


def _report(outcome: Outcome) -> tuple[Mapping[str, Any], bool]:
    """Show the table and the charts of a drill that ran to its end, and why it did not pass."""
    from wanlat.analysis.drill.read import read_drill
    from wanlat.results import show_report

    made = show_report(outcome.directory, as_json=False)
    drill = getattr(made, "drill", None) or read_drill(outcome.directory)
    say(f"bundle: {outcome.directory}")
    for failure in drill.failures:
        say(f"failed: {failure}", style="bold red")
    if drill.passed:
        say("passed", style="bold green")
    return json.loads(made.summary_path.read_text(encoding="utf-8")), drill.passed


def _list(as_json: bool) -> None:
    """Show which drills are shipped, and how long each takes at most."""
    from rich.table import Table

    from wanlat.experiments.drill.files import load, shipped
    from wanlat.experiments.drill.timing import stated
    from wanlat.output import people

    drills = [load(name) for name in shipped()]
    if as_json:
        emit(
            {
                "drills": [
                    {
                        "name": each.name,
                        "description": each.description,
                        "topology": each.topology,
                        "systems": each.systems,
                        "stated_time_s": stated(each).total_s,
                        "claims": len(each.claims),
                    }
                    for each in drills
                ]
            }
        )
        return
    table = Table("drill", "topology", "systems", "at most", "", box=None, pad_edge=False)
    for each in drills:
        table.add_row(
            *(each.name, each.topology, ", ".join(each.systems)),
            *(str(stated(each)), each.description),
        )
    people.print(table)
    say("\nwanlat drill DRILL --system SYSTEM runs one.")
