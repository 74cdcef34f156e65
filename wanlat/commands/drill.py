"""``wanlat drill``: break a running cluster, and see what becomes of requests and of objects."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.commands.settings import adopted, settings, use_bobd, with_options
from wanlat.commands.shipped import Kind
from wanlat.output import counted, emit, is_verbose, remark, say
from wanlat.results import show_report
from wanlat.running import Reporter, carry_out, exit_code, heed_interruptions, incomplete
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.experiments.drill.model import Drill
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
    complete=completion.drills,
)
DRILLS.add_to(app)


@app.command()
def run(
    drill: o.DrillName,
    systems: o.Systems = None,
    topology: o.TopologyChoice = None,
    scale: Annotated[
        float, o.option("X", "Multiply the times of phases and faults, e.g. 0.1")
    ] = 1.0,
    replicates: Annotated[
        int, o.option("N", "Run it N times, each with a seed and a cluster of its own", min=1)
    ] = 1,
    seed: o.Seed = None,
    set_: o.Set = None,
    option: o.SystemOptions = None,
    bobd: o.Bobd = None,
    storage: o.StorageChoice = None,
    claims: Annotated[
        list[Path] | None, o.option("FILE", "Claims besides the shipped ones (repeatable)")
    ] = None,
    backend: o.Backend = None,
    out: o.Out = None,
    capture: o.CaptureWish = False,
    capture_limit: o.CaptureLimit = o.DEFAULT_LIMIT,
    capture_snap: o.CaptureSnap = o.DEFAULT_SNAP,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    _verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Run a drill: requests before, during and after faults; then check every object.

    Exit code 1: an object was lost, a claim does not hold, or a fault could not be undone.
    """
    from wanlat.experiments.drill.prepare import changed, load

    read = changed(load(drill, topology=topology), settings(set_, storage=storage, seed=seed))

    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.drill.prepare import prepare
    from wanlat.experiments.session import CaptureWanted

    names = _systems(read, systems)
    use_bobd(bobd, names)
    options = with_options(read.options, option, names)
    wanted = CaptureWanted(capture_limit.bytes, capture_snap.bytes) if capture else None
    # All of them before the first starts: a mistake in the last is reported now, not in an hour.
    prepared = [
        prepare(
            read,
            system=name,
            scale=scale,
            seed=seed_,
            options=options.get(name),
            claims=claims or (),
            backend=backend,
            capture=wanted,
            directory=directory,
        )
        for name, seed_, directory in _runs(read, names, replicates, out)
    ]
    if dry_run:
        from wanlat.commands.dry_run import show_drills

        show_drills(prepared, as_json=as_json)
        return
    heed_interruptions()
    for each in prepared:
        demand_lab(each.plan, each.backend)
    documents: list[Mapping[str, Any]] = []
    code = 0
    for each in prepared:
        outcome = _run(each)
        document, passed = _show(outcome)
        documents.append(document)
        code = code if passed else exit_code(outcome)
        if outcome.status == "interrupted":
            break
    if as_json:
        emit(documents[0] if len(prepared) == 1 else {"drills": documents})
    raise typer.Exit(code)


@app.command()
def matrix(
    bundles: Annotated[
        list[Path], o.argument("BUNDLE", "Bundles of drills, or directories that hold such")
    ],
    out: Annotated[Path, o.option("DIR", "Output directory; made if missing", "--out", "-o")],
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
    from wanlat.analysis.report.drill_matrix import matrix_report

    for path in matrix_report(bundles, out):
        say(f"written: {path}")
    if as_json:
        emit(json.loads((out / "matrix.json").read_text(encoding="utf-8")))


def _systems(drill: Drill, given: str | None) -> list[str]:
    """Return the systems to run it on. Raises UserError."""
    if given is None and len(drill.systems) > 1:
        raise UserError(
            f"Drill {drill.name} is meant for {listing(drill.systems)}. Name one, or several with "
            f"commas: --systems {drill.systems[0]}."
        )
    names = drill.systems if given is None else adopted(given)
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--systems: {show(name)} is given twice; give it once.")
    return names


def _runs(
    drill: Drill, names: list[str], replicates: int, out: Path | None
) -> Iterator[tuple[str, int | None, Path | None]]:
    """Yield each replicate of each system, its seed, and where its bundle goes."""
    from wanlat.bundle.write import default_directory

    for replicate in range(1, replicates + 1):
        text = f"{drill.seed}/replicates/{replicate}"
        is_drawn = drill.seed is None or replicates == 1
        seed = None if is_drawn else random.Random(text).getrandbits(32)
        number = [f"replicate-{replicate}"] if replicates > 1 else []
        for name in names:
            if out is not None:
                directory = out.joinpath("-".join([*([name] if len(names) > 1 else []), *number]))
            else:
                directory = default_directory("-".join([drill.name, name, *number]))
            yield name, seed, directory


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
    made = show_report(outcome.directory, as_json=False, verbose=is_verbose())
    document = json.loads(made.summary_path.read_text(encoding="utf-8"))
    say(f"bundle: {outcome.directory}")
    for failure in document["drill"]["failures"]:
        say(f"failed: {failure}", style="bold red")
    passed = document["drill"]["passed"]
    if passed:
        say("passed", style="bold green")
    return document, passed
