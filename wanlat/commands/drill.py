"""``wanlat drill``: break a running cluster, and see what becomes of requests and of objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.commands.settings import adopted, settings, trust, use_bobd, with_options
from wanlat.commands.shipped import Kind
from wanlat.output import counted, emit, is_verbose, refuse_to_replace, remark, say
from wanlat.results import show_drills, show_report
from wanlat.running import (
    Reporter,
    carry_out,
    dask_workers,
    demand_complete,
    exit_code,
    heed_interruptions,
    incomplete,
    measure_points,
    reporting,
    with_own_directory,
)
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill
    from wanlat.experiments.drill.points import PreparedDrills, UnfinishedDrills
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


DRILLS = Kind(
    noun="drill",
    files="wanlat.experiments.drill.files",
    loader="wanlat.experiments.drill.prepare",
    row=_row,
    facts=_facts,
    extent=_extent,
    complete=completion.drill,
)
DRILLS.add_to(app)


@app.command()
def run(
    context: typer.Context,
    drill: o.DrillNames = None,
    systems: o.Systems = None,
    topology: o.TopologyChoice = None,
    scale: Annotated[
        float, o.option("X", "Multiply the times of phases and faults, e.g. 0.1")
    ] = 1.0,
    replicates: Annotated[
        int, o.option("N", "Run each N times, with a seed and a cluster of its own", min=1)
    ] = 1,
    jobs: o.Jobs = None,
    engine: o.Engine = None,
    scheduler: o.Scheduler = None,
    shard: o.Shard = None,
    seed: o.Seed = None,
    set_: o.Set = None,
    option: o.SystemOptions = None,
    bobd: o.Bobd = None,
    storage: o.StorageChoice = None,
    max_network_error: o.MaxNetworkError = None,
    claims: Annotated[
        list[Path] | None, o.option("FILE", "Claims besides the shipped ones (repeatable)")
    ] = None,
    backend: o.Backend = None,
    out: o.Out = None,
    resume: o.Resume = None,
    trusted: o.Trust = False,
    capture: o.CaptureWish = False,
    capture_limit: o.CaptureLimit = o.DEFAULT_LIMIT,
    capture_snap: o.CaptureSnap = o.DEFAULT_SNAP,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    _verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Run drills: requests before, during and after faults; then check every object.

    Several drills, systems and replicates are points, as those of a matrix: side by side with
    --jobs, and resumed with --resume. Exit code 1: an object was lost, a claim does not hold, or a
    fault could not be undone.
    """
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.drill.prepare import prepare
    from wanlat.experiments.session import CaptureWanted

    workers = dask_workers(engine, scheduler, jobs)
    unfinished: UnfinishedDrills | None = None
    if resume is not None:
        o.refuse_others(
            context,
            f"--resume {resume} goes on as that run was begun",
            *("resume", "trusted", "systems", "jobs", "engine", "scheduler"),
        )
        from wanlat.experiments.matrix_points import read_unfinished

        trust(systems)
        unfinished = cast(
            "UnfinishedDrills", read_unfinished(resume, "drill run", is_trusted=trusted)
        )
        use_bobd(bobd, unfinished.manifest["how"]["names"])
        every = unfinished.again()
    else:
        own = settings(set_, storage=storage, seed=seed, max_network_error=max_network_error)
        drills, names = _drills(drill, systems, topology, own, option)
        use_bobd(bobd, names)
        how: dict[str, Any] = {
            "claims": claims or (),
            "scale": scale,
            "directory": out,
            "backend": backend,
            "capture": CaptureWanted(capture_limit.bytes, capture_snap.bytes) if capture else None,
        }
        if len(drills) * len(names) * replicates == 1 and shard is None:
            one = prepare(drills[0], system=names[0], **how)
            if dry_run:
                _show_plans([one], as_json=as_json)
                return
            if workers is not None:
                raise UserError("--engine: this is one drill. Name several, or give --replicates.")
            heed_interruptions()
            demand_lab(one.plan, one.backend)
            outcome = _run(with_own_directory(one, out))
            document, passed = _show(outcome)
            if as_json:
                with reporting(outcome.directory):
                    emit(document)
            raise typer.Exit(0 if passed else exit_code(outcome))
        from wanlat.experiments.drill.points import prepare_drills
        from wanlat.experiments.matrix_points import Shard

        # All of them before the first starts: a mistake in the last is reported now.
        part = None if shard is None else Shard.parse(shard)
        more: dict[str, Any] = {"replicates": replicates, "seed": seed, "shard": part}
        every = prepare_drills(drills, names, **how, **more)
    if dry_run:
        _show_plans([every.prepare(each) for each in every.points], as_json=as_json)
        return
    raise typer.Exit(_run_all(every, unfinished, jobs, workers, as_json, out))


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
        say(f"written: {path}")
    if as_json:
        emit(json.loads((out / "matrix.json").read_text(encoding="utf-8")))


def _drills(
    given: str | None,
    systems: str | None,
    topology: str | None,
    own: Mapping[str, Any],
    option: list[str] | None,
) -> tuple[list[Drill], list[str]]:
    """Return the drills that are named, as they are to be run, and on which systems.

    Raises UserError.
    """
    from wanlat.experiments.drill.files import shipped
    from wanlat.experiments.drill.prepare import changed, load, needs_a_leader

    if given is None:
        raise UserError(
            "Name a drill, several with commas, or `all`: `wanlat drill list` has them."
        )
    called = shipped() if given == "all" else given.split(",")
    drills = [changed(load(name.strip(), topology=topology), own) for name in called]
    first = drills[0]
    if systems is None and any(each.systems != first.systems[:1] for each in drills):
        raise UserError(
            f"Drill {first.name} is meant for {listing(first.systems)}. Name one, or several with "
            f"commas: --systems {first.systems[0]}."
        )
    names = first.systems if systems is None else adopted(systems)
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--systems: {show(name)} is given twice; give it once.")
    if option:
        of_each = [with_options(each.options, option, names) for each in drills]
        pairs = zip(drills, of_each, strict=True)
        drills = [each.model_copy(update={"options": options}) for each, options in pairs]
    if given == "all":
        without = {each.name: [n for n in names if needs_a_leader(each, n)] for each in drills}
        for name in filter(without.get, without):
            remark(f"left out: {name}, as there is no leader in {listing(without[name])}")
        drills = [each for each in drills if not without[each.name]]
    return drills, names


def _show_plans(prepared: list[PreparedDrill], *, as_json: bool) -> None:
    from wanlat.commands.dry_run import show_drills

    show_drills(prepared, as_json=as_json)


def _run_all(
    prepared: PreparedDrills,
    unfinished: UnfinishedDrills | None,
    jobs: int | None,
    workers: str | None,
    as_json: bool,
    out: Path | None,
) -> int:
    """Run what is left of several drills; return the exit code."""
    ended = measure_points(prepared, unfinished, jobs, workers, out=out, noun="drill")
    left = demand_complete(ended, "drill run")
    with reporting(ended.directory):
        passed = show_drills(ended.directory, as_json=as_json, verbose=is_verbose())
    say(f"bundle: {ended.directory}")
    return exit_code(ended) if left is not None else int(not passed)


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
        every_s = _LIVE_EVERY_S if report.is_live else runner.TELL_EVERY_S
        return runner.run(prepared, report, tell_every_s=every_s)

    return carry_out(work, "drill", log=True)


def _show(outcome: Outcome) -> tuple[Mapping[str, Any], bool]:
    """Report what came of a drill; return its document, and whether it passed."""
    if outcome.status != "complete":
        progress = f"It got as far as `{outcome.reached or 'nothing'}`. "
        return incomplete(outcome, progress, {"reached": outcome.reached}), False
    with reporting(outcome.directory):
        made = show_report(outcome.directory, as_json=False, verbose=is_verbose())
    document = json.loads(made.summary_path.read_text(encoding="utf-8"))
    say(f"bundle: {outcome.directory}")
    for failure in document["drill"]["failures"]:
        say(f"failed: {failure}", style="bold red")
    passed = document["drill"]["passed"]
    if passed:
        say("passed", style="bold green")
    return document, passed
