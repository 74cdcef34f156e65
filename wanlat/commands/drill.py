"""``wanlat drill``: break a running cluster, and see what becomes of requests and of objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.app import App
from wanlat.commands.settings import use_bobd, with_options
from wanlat.interruption import document, exit_code, heed_interruptions, show_ending
from wanlat.options import (
    DEFAULT_LIMIT,
    DEFAULT_SNAP,
    Backend,
    Bobd,
    CaptureLimit,
    CaptureSnap,
    CaptureWish,
    DrillName,
    DryRun,
    File,
    Json,
    Out,
    Quiet,
    Seed,
    StorageChoice,
    SystemOptions,
    Systems,
    TopologyChoice,
    Verbose,
)
from wanlat.output import counted, emit, is_verbose, print_rows, remark, reporter, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.prepare import PreparedDrill
    from wanlat.experiments.session import Outcome

_LIVE_EVERY_S = 0.5

app = App("Run drills: inject faults, then check every object.")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the shipped drills, and how long each takes at most."""
    from wanlat.experiments.drill.claim import claims_on
    from wanlat.experiments.drill.files import load, shipped
    from wanlat.experiments.drill.timing import stated

    drills = [load(name) for name in shipped()]
    if as_json:
        emit(
            [
                {
                    "name": each.name,
                    "description": each.description,
                    "topology": each.topology,
                    "systems": each.systems,
                    "stated_time_s": stated(each).total_s,
                    "claims": sum(len(claims_on(each, name)) for name in each.systems),
                }
                for each in drills
            ]
        )
        return
    titles = ("DRILL", "TOPOLOGY", "SYSTEMS", "AT MOST", "DESCRIPTION")
    rows = [
        (each.name, each.topology, ",".join(each.systems), str(stated(each)), each.description)
        for each in drills
    ]
    print_rows([titles, *rows])


@app.command("show")
def show_(drill: DrillName, as_json: Json = False, _quiet: Quiet = False) -> None:
    """Print the YAML of a drill, and how long it takes at most."""
    from wanlat.experiments.drill.files import find, load

    path = find(drill)
    read = load(drill)
    if as_json:
        emit(read.to_dict())
        return
    from wanlat.experiments.drill.timing import stated

    typer.echo(path.read_text(encoding="utf-8-sig").rstrip("\n"))
    remark(f"on {read.topology}, of {listing(read.systems)}; takes at most {stated(read)}")


@app.command()
def validate(file: File) -> None:
    """Check a drill on its topology; every mistake is reported with its line."""
    from wanlat.experiments.drill.files import load
    from wanlat.experiments.drill.timing import stated

    drill = load(file)
    faults = counted(len(drill.faults), "fault")
    say(f"{file}: {drill.name} is valid: {faults}; takes at most {stated(drill)}")


@app.command()
def run(
    drill: DrillName,
    systems: Systems = None,
    topology: TopologyChoice = None,
    scale: Annotated[
        float, typer.Option(metavar="X", help="Multiply the times of phases and faults, e.g. 0.1")
    ] = 1.0,
    seed: Seed = None,
    option: SystemOptions = None,
    bobd: Bobd = None,
    storage: StorageChoice = None,
    claims: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Claims besides the shipped ones (repeatable)"),
    ] = None,
    backend: Backend = None,
    out: Out = None,
    capture: CaptureWish = False,
    capture_limit: CaptureLimit = DEFAULT_LIMIT,
    capture_snap: CaptureSnap = DEFAULT_SNAP,
    dry_run: DryRun = False,
    as_json: Json = False,
    _verbose: Verbose = False,
    _quiet: Quiet = False,
) -> None:
    """Run a drill: requests before, during and after faults; then check every object.

    Exit code 1: an object was lost, a claim does not hold, or a fault could not be undone.
    """
    from wanlat.experiments.drill.files import load

    read = load(drill, topology=topology)

    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.drill.prepare import prepare
    from wanlat.experiments.session import CaptureWanted

    names = _systems(read, systems)
    if bobd is not None:
        use_bobd(bobd, names)
    options = with_options(read.options, option or [], names)
    wanted = CaptureWanted(capture_limit.bytes, capture_snap.bytes) if capture else None
    # All of them before the first starts: a mistake in the last is reported now, not in an hour.
    prepared = [
        prepare(
            read,
            system=name,
            scale=scale,
            seed=seed,
            options=options.get(name),
            storage=storage,
            claims=claims or (),
            backend=backend,
            capture=wanted,
            directory=out if out is None or len(names) == 1 else out / name,
        )
        for name in names
    ]
    if dry_run:
        from wanlat.commands.dry_run import show_drills

        show_drills(prepared, as_json=as_json)
        return
    heed_interruptions()
    for each in prepared:
        demand_lab(each.plan, each.backend)
    _run_all(prepared, as_json)


@app.command()
def matrix(
    bundles: Annotated[
        list[Path],
        typer.Argument(metavar="BUNDLE", help="Bundles of drills, or directories that hold such"),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Output directory; made if missing")
    ],
    as_json: Json = False,
    _quiet: Quiet = False,
) -> None:
    """Compare many drills on many systems in one picture and two tables.

    That is matrix.png and .svg, matrix.json, drills.md (a row per drill and system) and claims.md
    (claims × systems). Of several runs of one drill on one version of a system the newest complete
    one is shown, with their number, and with the worst of their durability verdicts, so that no
    newer run hides a loss; matrix.json lists them all. Drills on another topology or at
    another --scale are rows of their own. No verdict changes the exit code: `drill run` gave it.
    """
    from wanlat.analysis.drill.matrix_report import matrix_report
    from wanlat.bundle.errors import BundleError

    try:
        made = matrix_report(bundles, out)
    except BundleError as error:
        raise UserError(str(error)) from error
    for path in made:
        say(f"written: {path}")
    if as_json:
        emit(json.loads((out / "matrix.json").read_text(encoding="utf-8")))


def _systems(drill: Drill, given: str | None) -> list[str]:
    """Return the systems to run it on. Raises UserError."""
    if given is None:
        if len(drill.systems) == 1:
            return drill.systems
        raise UserError(
            f"Drill {drill.name} is meant for {listing(drill.systems)}. Name one, or several with "
            f"commas: --systems {drill.systems[0]}."
        )
    names = [name.strip() for name in given.split(",")]
    for index, name in enumerate(names):
        if name not in drill.systems:
            raise UserError(
                f"--systems {show(name)}: drill {drill.name} is not meant for it"
                f"{did_you_mean(name, drill.systems)}; its `systems` are {listing(drill.systems)}."
            )
        if name in names[:index]:
            raise UserError(f"--systems: {show(name)} is given twice; give it once.")
    return names


def _run_all(prepared: Sequence[PreparedDrill], as_json: bool) -> None:
    """Run one drill after another; raises Exit unless every one passed."""
    documents: list[Mapping[str, Any]] = []
    code = 0
    for each in prepared:
        outcome = _run(each)
        document, passed = _show(outcome)
        documents.append(document)
        if not passed:
            code = exit_code(outcome)
        if outcome.status == "interrupted":
            break
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
    remark(
        f"{drill.name} on {prepared.system.name}: requests for {elapsed(measured_s)}, all of it "
        f"within {prepared.stated}."
    )
    roles = ", ".join(f"{name}: {listing(nodes)}" for name, nodes in prepared.roles.items())
    remark(f"{roles}{'; ' if roles else ''}seed {prepared.seed}")


def _show(outcome: Outcome) -> tuple[Mapping[str, Any], bool]:
    """Report what came of a drill; return its document, and whether it passed."""
    show_ending(outcome, "drill")
    if outcome.status == "complete":
        return _report(outcome)
    # No charts now: who interrupts a drill wants it to end, and a failed one is no result.
    say(
        f"It got as far as `{outcome.reached or 'nothing'}`; what was recorded is kept in "
        f"{outcome.directory}, and `wanlat report {outcome.directory}` shows it."
    )
    return {"bundle": {**document(outcome), "reached": outcome.reached}, "endpoints": []}, False


def _report(outcome: Outcome) -> tuple[Mapping[str, Any], bool]:
    """Show the table and the charts of a drill that ran to its end, and why it did not pass."""
    from wanlat.analysis.drill.read import read_drill
    from wanlat.results import show_report

    made = show_report(outcome.directory, as_json=False, verbose=is_verbose())
    drill = getattr(made, "drill", None) or read_drill(outcome.directory)
    say(f"bundle: {outcome.directory}")
    for failure in drill.failures:
        say(f"failed: {failure}", style="bold red")
    if drill.passed:
        say("passed", style="bold green")
    return json.loads(made.summary_path.read_text(encoding="utf-8")), drill.passed
