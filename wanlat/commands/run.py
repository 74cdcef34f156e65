"""``wanlat run``: measure what a study asks for, and show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.commands.settings import axes, settings, use_bobd, with_options
from wanlat.interruption import INTERRUPTED, heed_interruptions
from wanlat.options import (
    Backend,
    Bobd,
    CaptureChoice,
    CaptureSnap,
    Json,
    Resume,
    Seed,
    Set,
    StorageChoice,
    Sweep,
    SystemOptions,
    Tolerate,
    TopologyChoice,
    Verbose,
    backend_name,
    check_storage,
    size_of,
)
from wanlat.output import emit, reporter, say
from wanlat.topologies.errors import UserError

if TYPE_CHECKING:
    from wanlat.analysis.report import Report
    from wanlat.analysis.sweep_report import SweepReport
    from wanlat.emulator.lab import BackendName
    from wanlat.experiments.resumed import Unfinished
    from wanlat.experiments.runner import CaptureWanted, Outcome
    from wanlat.experiments.study import Study
    from wanlat.experiments.sweep.run import SweepOutcome

DEFAULT_SNAP = "256B"
_MOST_FAILURES = 20


@dataclass(frozen=True)
class _Wanted:
    """What is to be run, as both kinds of runs take it."""

    study: Study
    directory: Path | None
    backend: BackendName | None
    capture: CaptureWanted | None
    unfinished: Unfinished | None = None
    verbose: bool = False
    named: str | None = None
    """The study, as the command line names it."""
    is_topology_chosen: bool = False


def run(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A shipped study or the path of a YAML file. With --resume it may be left out.",
        ),
    ] = None,
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
    set_: Set = None,
    sweep: Sweep = None,
    bobd: Bobd = None,
    backend: Backend = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The bundle's directory. Default: results/STUDY-TIME."),
    ] = None,
    resume: Resume = None,
    capture: CaptureChoice = None,
    capture_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The packet record does not grow beyond this. Default: 256MiB; of round trips "
            "1GiB.",
        ),
    ] = None,
    capture_snap: CaptureSnap = DEFAULT_SNAP,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a study: calibrate, start each system, take the samples, draw the chart."""
    check_storage(storage)
    unfinished = _unfinished(resume, out, backend, (capture, capture_limit, capture_snap))
    read = _read(study, unfinished)
    names = None if systems is None else [name.strip() for name in systems.split(",")]
    measured = names or read.systems
    if bobd is not None:
        use_bobd(bobd, measured)
    changes: dict[str, Any] = {
        "systems": names,
        "options": with_options(read.options, option, measured) if option else None,
        "topology": topology,
        "samples": samples,
        "seed": seed,
        "client": client,
        "storage": storage,
        "tolerate": tolerate,
    }
    changed = _changed(read, changes, settings(set_), axes(sweep))
    if unfinished is None:
        packets = _capture(changed, capture, capture_limit, capture_snap)
        wanted = _Wanted(changed, out, backend_name(backend), packets)
    else:
        wanted = _going_on(unfinished, changed, seed, is_named=study is not None)
        if unfinished.is_complete:
            say(f"{unfinished.directory} is complete: nothing is left to measure.")
            show_report(unfinished.directory, as_json=as_json, verbose=verbose)
            return
    wanted = replace(wanted, verbose=verbose, named=study, is_topology_chosen=topology is not None)
    if wanted.study.sweep is not None:
        _run_sweep(wanted, as_json)
    else:
        _run_systems(wanted, as_json)


def _read(name: str | None, unfinished: Unfinished | None) -> Study:
    from wanlat.experiments.study_files import find

    if name is not None:
        find(name)  # a mistyped name is answered before all that reads a study is imported
        from wanlat.experiments.study import load

        return load(name)
    if unfinished is None:
        raise UserError("Which STUDY? Name a shipped one, a YAML file, or --resume BUNDLE.")
    from wanlat.experiments.same import study_of

    return study_of(unfinished)


def _changed(
    study: Study, options: dict[str, Any], given: dict[str, Any], swept: dict[str, list[Any]]
) -> Study:
    """Return the study with what the command line says of it."""
    from wanlat.experiments.changed import changed

    named = {name: value for name, value in options.items() if value is not None}
    for name in named:
        if name in given or name in swept:
            how = "set" if name in given else "swept"
            raise UserError(f"--{name} is given, and `{name}` is {how}; do one of them.")
    return changed(study, {**named, **given}, swept)


def _unfinished(
    resume: Path | None, out: Path | None, backend: str | None, packets: tuple[Any, ...]
) -> Unfinished | None:
    """Return the bundle to go on with. How it is measured is no longer to be chosen."""
    if resume is None:
        return None
    if out is not None:
        raise UserError(f"--resume {resume} goes on in that bundle; leave --out out.")
    if backend is not None or packets != (None, None, DEFAULT_SNAP):
        raise UserError(
            f"--resume {resume} goes on with the backend and the record of packets that the "
            "bundle was begun with; leave --backend and --capture… out."
        )
    from wanlat.experiments.resumed import read_unfinished

    return read_unfinished(resume)


def _going_on(unfinished: Unfinished, study: Study, seed: int | None, *, is_named: bool) -> _Wanted:
    from wanlat.experiments import same
    from wanlat.topologies.load import load

    same.check_same_study(unfinished, study, seed)
    if is_named:
        now = {name: load(name) for name in same.topologies_of(unfinished)}
        same.check_same_topologies(unfinished, now)
    requested = unfinished.manifest.get("requested") or {}
    return _Wanted(
        same.study_of(unfinished),
        unfinished.directory,
        backend_name(requested.get("backend")),
        same.capture_of(unfinished),
        unfinished,
    )


def _run_systems(wanted: _Wanted, as_json: bool) -> None:
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments import runner, same

    unfinished = wanted.unfinished
    prepared = runner.prepare(
        wanted.study,
        directory=wanted.directory,
        backend=wanted.backend,
        capture=wanted.capture,
        seed=unfinished.manifest["seed"] if unfinished else None,
        topologies=same.topologies_of(unfinished) if unfinished else None,
        resumed=unfinished is not None,
    )
    heed_interruptions()
    demand_lab(prepared.plan, prepared.backend)
    with reporter() as report:
        outcome = runner.run(prepared, report, unfinished=unfinished)
    _show(outcome, as_json, wanted)


def _run_sweep(wanted: _Wanted, as_json: bool) -> None:
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments import same
    from wanlat.experiments.sweep.prepared import prepare_sweep
    from wanlat.experiments.sweep.run import run_sweep

    unfinished = wanted.unfinished
    prepared = prepare_sweep(
        wanted.study,
        directory=wanted.directory,
        backend=wanted.backend,
        capture=wanted.capture,
        seed=unfinished.manifest["seed"] if unfinished else None,
        topologies=same.topologies_of(unfinished) if unfinished else None,
    )
    heed_interruptions()
    demand_lab(backend=prepared.backend)  # a point that is too large fails by itself
    say(f"{len(prepared.points)} points; bundle: {prepared.directory}")
    with reporter() as report:
        outcome = run_sweep(prepared, report, unfinished=unfinished)
    _show_sweep(outcome, as_json, wanted)


def _capture(study: Study, wish: bool | None, limit: str | None, snap: str) -> CaptureWanted | None:
    """Return what is to be recorded. The packets of a study of round trips are half its answer."""
    from wanlat.experiments.runner import CaptureWanted

    of_round_trips = study.round_trips is not None
    if not (of_round_trips if wish is None else wish):
        return None
    text = limit or ("1GiB" if of_round_trips else "256MiB")
    return CaptureWanted(size_of("--capture-limit", text), size_of("--capture-snap", snap))


def _show(outcome: Outcome, as_json: bool, wanted: _Wanted) -> None:
    _tell(outcome)
    if outcome.status == "complete":
        made = show_report(outcome.directory, as_json=as_json, verbose=wanted.verbose)
        say(f"bundle: {outcome.directory}")
        _say_next(made, wanted)
        return
    # No charts now: who interrupts a run wants it to end, and half a study is no result.
    taken = f"{outcome.measured} of {outcome.planned} samples were taken and are"
    say(
        f"{taken if outcome.planned else 'What was measured is'} kept in {outcome.directory}; "
        f"`wanlat report {outcome.directory}` shows it. {_way_on(outcome)}"
    )
    if as_json:
        emit({"bundle": _of_bundle(outcome), "endpoints": []})
    _exit(outcome)


def _show_sweep(outcome: SweepOutcome, as_json: bool, wanted: _Wanted) -> None:
    _tell(outcome)
    if outcome.status == "complete":
        show_report(outcome.directory, as_json=as_json, verbose=wanted.verbose)
        say(f"bundle: {outcome.directory}")
        return
    for name, reason in [*outcome.failures.items()][:_MOST_FAILURES]:
        say(f"failed: {name}: {reason}", style="red")
    left = outcome.points - outcome.complete
    say(
        f"{outcome.complete} of {outcome.points} points are complete and {left} are left, "
        f"{outcome.failed} of which failed. All that was measured is in {outcome.directory}; "
        f"`wanlat report {outcome.directory}` shows it. {_way_on(outcome)}"
    )
    if as_json:
        points = {"planned": outcome.points, "complete": outcome.complete, "failed": outcome.failed}
        emit({"bundle": _of_bundle(outcome), "points": points})
    _exit(outcome)


def show_report(directory: Path, *, as_json: bool, verbose: bool) -> Report | SweepReport:
    """Show the report of a bundle that is complete. Raises UserError."""
    from wanlat import results

    return results.show_report(directory, as_json=as_json, verbose=verbose)


def _say_next(made: Report | SweepReport, wanted: _Wanted) -> None:
    """Say which command to try next, where one follows from what was run."""
    from wanlat.analysis.report import Report
    from wanlat.next_step import next_step

    if not isinstance(made, Report) or wanted.named is None:
        return
    on = wanted.study.topology
    step = next_step(made, wanted.named, on, is_chosen=wanted.is_topology_chosen)
    if step is not None:
        say(step)


def _tell(outcome: Outcome | SweepOutcome) -> None:
    for remark in outcome.remarks:
        say(remark)
    for warning in outcome.warnings:
        say(f"warning: {warning}", style="yellow")
    if outcome.status == "interrupted":
        say("Interrupted.", style="bold yellow")
    elif outcome.status != "complete":
        say(f"The run failed: {outcome.reason}", style="bold red")


def _way_on(outcome: Outcome | SweepOutcome) -> str:
    room = "Make room: then " if outcome.is_disk_full else ""
    return f"{room}`wanlat run --resume {outcome.directory}` goes on with it."


def _of_bundle(outcome: Outcome | SweepOutcome) -> dict[str, Any]:
    return {
        "directory": str(outcome.directory),
        "status": outcome.status,
        "reason": outcome.reason,
    }


def _exit(outcome: Outcome | SweepOutcome) -> None:
    raise typer.Exit(INTERRUPTED if outcome.status == "interrupted" else 1)
