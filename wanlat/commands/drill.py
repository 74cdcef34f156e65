"""``wanlat drill``: break a running cluster, and see what becomes of requests and of objects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.commands.measuring import Common, measure, with_common
from wanlat.commands.settings import adopted, settings, use_bobd, with_options
from wanlat.commands.shipped import Kind
from wanlat.output import counted, emit, inform, is_verbose, refuse_to_replace, remark
from wanlat.remaining import Remaining
from wanlat.results import show_drills, show_report
from wanlat.running import (
    Reporter,
    demand_complete,
    exit_code,
    incomplete,
    reporting,
    run_with_progress,
)
from wanlat.suggested import given
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.points import Drills
    from wanlat.experiments.drill.prepare import PreparedDrill
    from wanlat.experiments.session import Outcome

_LIVE_EVERY_S = 0.5

app = App("Run drills: inject faults, then check every object.")


def _row(drill: Drill) -> dict[str, Any]:
    from wanlat.experiments.drill.claims import claims_on

    return {
        "topology": drill.topology,
        "systems": drill.systems,
        "stated_time_s": _stated(drill).total_s,
        "claims": sum(len(claims_on(drill, name)) for name in drill.systems),
    }


def _facts(drill: Drill) -> list[str]:
    return [f"on {drill.topology}, of {listing(drill.systems)}; takes at most {_stated(drill)}"]


def _extent(drill: Drill) -> str:
    return f"{counted(len(drill.faults), 'fault')}; takes at most {_stated(drill)}"


def _stated(drill: Drill) -> Any:
    from wanlat.experiments.drill.timeline import stated

    return stated(drill)


def _files() -> ModuleType:
    from wanlat.experiments.drill import files

    return files


def _loader() -> ModuleType:
    from wanlat.experiments.drill import prepare

    return prepare


DRILLS = Kind(
    noun="drill",
    files=_files,
    loader=_loader,
    row=_row,
    facts=_facts,
    extent=_extent,
    complete=completion.drill,
)
DRILLS.add_to(app)


@app.command()
@with_common
def run(
    context: typer.Context,
    drill: o.DrillNames = None,
    scale: Annotated[
        float, o.option("X", "Multiply the times of phases and faults, e.g. 0.1")
    ] = 1.0,
    claims: Annotated[
        list[Path] | None, o.option("FILE", "Claims besides the shipped ones (repeatable)")
    ] = None,
    *,
    common: Common,
) -> None:
    """Run drills: requests before, during and after faults; then check every object.

    Several drills, systems and replicates are points, as those of a matrix: side by side with
    --jobs, and resumed with --resume. Exit code 1: an object was lost, a claim does not hold, or a
    fault could not be undone.
    """
    from wanlat.experiments.session import Outcome

    if unfinished := common.unfinished(context, "drill run"):
        batch, how = unfinished.batch, unfinished.how
    else:
        batch = _drills(drill, common, scale, claims or ())
        how = common.how(batch, common.recorded() if common.capture else None)
    if common.dry_run:
        from wanlat.commands.dry_run import show_drills as show_plans

        show_plans(batch, how, as_json=common.as_json)
        return
    ended = measure(batch, how, common, unfinished, _run)
    if isinstance(ended, Outcome):
        document, passed = _show(ended)
        if common.as_json:
            with reporting(ended.directory):
                emit(document)
        raise typer.Exit(0 if passed else exit_code(ended))
    left = demand_complete(ended, batch.command, given(context))
    with reporting(ended.directory):
        passed = show_drills(ended.directory, as_json=common.as_json, verbose=is_verbose())
    inform(f"bundle: {ended.directory}")
    raise typer.Exit(int(not passed) if left is None else exit_code(ended))


@app.command()
def matrix(
    bundles: Annotated[
        list[Path], o.argument("BUNDLE", "Bundles of drills, or directories that hold such")
    ],
    out: Annotated[Path, o.option("DIR", "Output directory; made if missing", "--out", "-o")],
    force: o.Force = False,
    as_json: o.Json = False,
    _quiet: o.Quiet = False,
) -> None:
    """Compare many drills on many systems in one picture and two tables.

    That is matrix.png and .svg, matrix.json, drills.md (a row per drill and system) and claims.md
    (claims × systems). Of several runs of one drill on one version of a system the newest complete
    one is shown, with their number, and with the worst of their durability verdicts, so that no
    newer run hides a loss; matrix.json lists them all. Drills on another topology or at
    another --scale are rows of their own. No verdict changes the exit code: `drill run` gave it.
    """
    from wanlat.analysis.report.drill import MATRIX_FILES, matrix_report

    refuse_to_replace([out / name for name in MATRIX_FILES], force=force)
    for path in matrix_report(bundles, out):
        inform(f"written: {path}")
    if as_json:
        emit(json.loads((out / "matrix.json").read_text(encoding="utf-8")))


def _drills(given: str | None, common: Common, scale: float, claims: Sequence[Path]) -> Drills:
    """Return the drills that are named, as they are to be run, and on which systems.

    Raises UserError.
    """
    from wanlat.experiments.drill.points import Drills
    from wanlat.experiments.drill.prepare import load

    if given is None:
        raise UserError(
            "Name a drill, several with commas, or `all`: `wanlat drill list` has them."
        )
    chosen = () if common.systems is None else adopted(common.systems)
    own = settings(
        common.set_,
        storage=common.storage,
        seed=common.seed,
        max_network_error=common.max_network_error,
    )
    called = _fitting(common, chosen) if given == "all" else given.split(",")
    drills = [
        load(name.strip(), topology=common.topology, systems=chosen, settings=own)
        for name in called
    ]
    first = drills[0]
    if not chosen and any(other.systems != first.systems[:1] for other in drills):
        raise UserError(
            f"Drill {first.name} is meant for {listing(first.systems)}. Name one, or several with "
            f"commas: --systems {first.systems[0]}."
        )
    names = chosen or first.systems
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--systems: {show(name)} is given twice; give it once.")
    use_bobd(common.bobd, names)
    if common.option:
        drills = [
            drill.model_copy(update={"options": with_options(drill.options, common.option, names)})
            for drill in drills
        ]
    return Drills(drills, names, common.replicates or 1, scale, claims)


def _fitting(common: Common, systems: Sequence[str]) -> list[str]:
    """Return the shipped drills that all these systems can be put to, and print the others."""
    from wanlat.experiments.drill.files import shipped
    from wanlat.experiments.drill.model import scenario
    from wanlat.experiments.drill.prepare import needs_a_leader, on_systems

    fitting = []
    for name in shipped():
        drill = on_systems(scenario(name), systems)
        options = with_options(drill.options, common.option, systems)
        topology = common.topology or drill.topology
        drill = drill.model_copy(update={"options": options, "topology": topology})
        if without := [system for system in systems if needs_a_leader(drill, system)]:
            remark(f"left out: {name}, as there is no leader in {listing(without)}")
        else:
            fitting.append(name)
    return fitting


def _run(prepared: PreparedDrill) -> Outcome:
    from wanlat.experiments.drill import runner
    from wanlat.systems.engine.progress import elapsed

    phases = prepared.drill.phases
    measured_s = phases.before.s + phases.during.s + phases.after.s
    remark(
        f"{prepared.drill.name} on {prepared.system.name}: requests for {elapsed(measured_s)}, "
        f"all of it within {prepared.stated}."
    )
    roles = [f"{name}: {listing(nodes)}" for name, nodes in prepared.roles.items()]
    remark("; ".join([*roles, f"seed {prepared.seed}"]))

    def work(report: Reporter) -> Outcome:
        every_s = _LIVE_EVERY_S if report.is_live else runner.REPORT_INTERVAL_S
        return runner.run(prepared, report, report_interval_s=every_s)

    left = Remaining({prepared.system.name: prepared.stated.total_s}, bound="at most")
    return run_with_progress(work, "drill", log=True, left=left)


def _show(outcome: Outcome) -> tuple[Mapping[str, Any], bool]:
    """Report what came of a drill; return its document, and whether it passed."""
    if outcome.status != "complete":
        progress = f"It got as far as `{outcome.reached or 'nothing'}`. "
        return incomplete(outcome, progress, {"reached": outcome.reached}), False
    with reporting(outcome.directory):
        made = show_report(outcome.directory, as_json=False, verbose=is_verbose())
    document = json.loads(made.summary_path.read_text(encoding="utf-8"))
    inform(f"bundle: {outcome.directory}")
    for failure in document["drill"]["failures"]:
        inform(f"failed: {failure}", style="bold red")
    passed = document["drill"]["passed"]
    if passed:
        inform("passed", style="bold green")
    return document, passed
