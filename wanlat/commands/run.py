"""``wanlat run``: measure what a study asks for, and show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.commands import completion
from wanlat.commands.settings import axes, settings, use_bobd, with_options
from wanlat.commands.study import show_studies
from wanlat.interruption import document, exit_code, heed_interruptions, show_ending
from wanlat.options import (
    DEFAULT_LIMIT,
    DEFAULT_SNAP,
    Backend,
    Bobd,
    CaptureChoice,
    CaptureSnap,
    Client,
    DryRun,
    Jitter,
    Json,
    Matrix,
    MaxP99Error,
    Out,
    Quiet,
    Resume,
    Rtt,
    Samples,
    Seed,
    Set,
    StorageChoice,
    SystemOptions,
    Systems,
    TopologyChoice,
    Verbose,
    size,
    topology_of,
)
from wanlat.output import emit, remark, reporter, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size

if TYPE_CHECKING:
    from wanlat.analysis.report import Report
    from wanlat.analysis.sweep_report import SweepReport
    from wanlat.emulator.lab import BackendName
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.matrix import MatrixOutcome
    from wanlat.experiments.matrix_resume import Unfinished
    from wanlat.experiments.session import CaptureWanted, Outcome
    from wanlat.topologies.model import Topology

_MOST_FAILURES = 20


@dataclass(frozen=True)
class _Wanted:
    """What is to be run, as both kinds of runs take it."""

    study: Study
    directory: Path | None
    backend: BackendName | None
    capture: CaptureWanted | None
    topologies: Mapping[str, Topology] | None = None
    """In place of those that the study names."""
    unfinished: Unfinished | None = None
    verbose: bool = False
    named: str | None = None
    """The study, as the command line names it."""
    is_topology_chosen: bool = False
    is_dry: bool = False
    """Whether to say what would run, and not run it."""


def run(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A shipped study, or the path of a YAML file; none lists the shipped ones",
            autocompletion=completion.names(completion.studies),
        ),
    ] = None,
    systems: Systems = None,
    topology: TopologyChoice = None,
    rtt: Rtt = None,
    jitter: Jitter = None,
    samples: Samples = None,
    seed: Seed = None,
    client: Client = None,
    storage: StorageChoice = None,
    max_p99_error: MaxP99Error = None,
    option: SystemOptions = None,
    set_: Set = None,
    matrix: Matrix = None,
    bobd: Bobd = None,
    backend: Backend = None,
    out: Out = None,
    resume: Resume = None,
    capture: CaptureChoice = None,
    capture_limit: Annotated[
        Size | None,
        typer.Option(
            parser=size,
            metavar="SIZE",
            help="Largest size of the packet record (default: 256MiB; of round trips 1GiB)",
        ),
    ] = None,
    capture_snap: CaptureSnap = DEFAULT_SNAP,
    dry_run: DryRun = False,
    as_json: Json = False,
    verbose: Verbose = False,
    _quiet: Quiet = False,
) -> None:
    """Run a study: measure the latency of each endpoint.

    The emulated network is calibrated, each system is started on it and sampled, and tables and
    charts are written.
    """
    if study is None and resume is None:
        show_studies(as_json=as_json)
        return
    if resume is not None and (dry_run or rtt is not None or jitter is not None):
        raise UserError("--dry-run, --rtt and --jitter are for new runs: leave --resume out.")
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
        "max_p99_error": max_p99_error,
    }
    changed = _changed(read, changes, settings(set_), axes(matrix))
    if unfinished is None:
        packets = _capture(changed, capture, capture_limit, capture_snap)
        topologies = _overridden(changed, rtt, jitter)
        wanted = _Wanted(changed, out, backend, packets, topologies)
    else:
        wanted = _going_on(unfinished, changed, seed, is_named=study is not None)
        if unfinished.is_complete:
            say(f"{unfinished.directory} is complete: nothing is left to measure.")
            show_report(unfinished.directory, as_json=as_json, verbose=verbose)
            return
    wanted = replace(
        wanted,
        verbose=verbose,
        named=study,
        is_topology_chosen=topology is not None,
        is_dry=dry_run,
    )
    if wanted.study.matrix is not None:
        _run_matrix(wanted, as_json)
    else:
        _run_systems(wanted, as_json)


def _read(name: str | None, unfinished: Unfinished | None) -> Study:
    from wanlat.experiments.config.files import find

    if name is not None:
        find(name)  # a mistyped name is answered before all that reads a study is imported
        from wanlat.experiments.config.study import load

        return load(name)
    from wanlat.experiments.matrix_resume import study_of

    assert unfinished is not None

    return study_of(unfinished)


def _changed(
    study: Study, options: dict[str, Any], given: dict[str, Any], varied: dict[str, list[Any]]
) -> Study:
    """Return the study with what the command line says of it."""
    from wanlat.experiments.config.overrides import changed

    named = {name: value for name, value in options.items() if value is not None}
    for name in named:
        if name in given or name in varied:
            how = "set" if name in given else "varied"
            raise UserError(
                f"--{name.replace('_', '-')} is given, and `{name}` is {how}; do one of them."
            )
    return changed(study, {**named, **given}, varied)


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
    from wanlat.experiments.matrix_resume import read_unfinished

    return read_unfinished(resume)


def _going_on(unfinished: Unfinished, study: Study, seed: int | None, *, is_named: bool) -> _Wanted:
    from wanlat.experiments import matrix_resume as same
    from wanlat.topologies.load import load

    same.check_same_study(unfinished, study, seed)
    if is_named:
        now = {name: load(name) for name in same.topologies_of(unfinished)}
        same.check_same_topologies(unfinished, now)
    requested = unfinished.manifest.get("requested") or {}
    return _Wanted(
        same.study_of(unfinished),
        unfinished.directory,
        requested.get("backend"),
        same.capture_of(unfinished),
        same.topologies_of(unfinished),
        unfinished,
    )


def _run_systems(wanted: _Wanted, as_json: bool) -> None:
    from wanlat.commands.dry_run import show_study
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.prepare import prepare
    from wanlat.experiments.run import run as run_study

    prepared = prepare(
        wanted.study,
        directory=wanted.directory,
        backend=wanted.backend,
        capture=wanted.capture,
        topologies=wanted.topologies,
    )
    if wanted.is_dry:
        show_study(
            [(None, prepared)],
            backend=prepared.backend,
            directory=prepared.directory,
            as_json=as_json,
        )
        return
    heed_interruptions()
    demand_lab(prepared.plan, prepared.backend)
    with reporter() as report:
        outcome = run_study(prepared, report)
    _show(outcome, as_json, wanted)


def _run_matrix(wanted: _Wanted, as_json: bool) -> None:
    from wanlat.commands.dry_run import prepared_points, show_study
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.matrix import prepare_matrix, run_matrix

    unfinished = wanted.unfinished
    prepared = prepare_matrix(
        wanted.study,
        directory=wanted.directory,
        backend=wanted.backend,
        capture=wanted.capture,
        seed=unfinished.manifest["seed"] if unfinished else None,
        topologies=wanted.topologies,
    )
    if wanted.is_dry:
        show_study(
            prepared_points(prepared),
            backend=prepared.backend,
            directory=prepared.directory,
            as_json=as_json,
        )
        return
    heed_interruptions()
    demand_lab(backend=prepared.backend)  # a point that is too large fails by itself
    remark(f"{len(prepared.points)} points; bundle: {prepared.directory}")
    with reporter() as report:
        outcome = run_matrix(prepared, report, unfinished=unfinished)
    _show_matrix(outcome, as_json, wanted)


def _overridden(
    study: Study, rtt: Duration | None, jitter: Duration | None
) -> dict[str, Topology] | None:
    """Return the topologies of a study's points with `--rtt` and `--jitter`. Raises UserError."""
    if rtt is None and jitter is None:
        return None
    from wanlat.experiments.matrix_points import points_of

    points = [point.study for point in points_of(study)]
    if any(point.round_trips is not None for point in points):
        option, key = ("--rtt", "rtts=[0ms,50ms,100ms]") if rtt else ("--jitter", "jitter=1ms")
        raise UserError(
            f"{option}: study {study.name} changes the RTT of the WAN links itself. Give it other "
            f"values with `--set round_trips.{key}`."
        )
    return {name: topology_of(name, rtt, jitter) for name in {each.topology for each in points}}


def _capture(
    study: Study, wish: bool | None, limit: Size | None, snap: Size
) -> CaptureWanted | None:
    """Return what is to be recorded. The packets of a study of round trips are half its answer."""
    from wanlat.experiments.session import CaptureWanted

    of_round_trips = study.round_trips is not None
    if not (of_round_trips if wish is None else wish):
        return None
    largest = limit or (Size(1 << 30) if of_round_trips else DEFAULT_LIMIT)
    return CaptureWanted(largest.bytes, snap.bytes)


def _show(outcome: Outcome, as_json: bool, wanted: _Wanted) -> None:
    show_ending(outcome)
    if outcome.status == "complete":
        made = show_report(outcome.directory, as_json=as_json, verbose=wanted.verbose)
        say(f"bundle: {outcome.directory}")
        _say_next(made, wanted)
        return
    # No charts now: who interrupts a run wants it to end, and half a study is no result.
    taken = f"{outcome.measured} of {outcome.planned} samples were taken and are"
    say(
        f"{taken if outcome.planned else 'What was measured is'} kept in {outcome.directory}; "
        f"`wanlat report {outcome.directory}` shows it."
    )
    if as_json:
        emit({"bundle": document(outcome), "endpoints": []})
    raise typer.Exit(exit_code(outcome))


def _show_matrix(outcome: MatrixOutcome, as_json: bool, wanted: _Wanted) -> None:
    show_ending(outcome)
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
        emit({"bundle": document(outcome), "points": points})
    raise typer.Exit(exit_code(outcome))


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
        remark(step)


def _way_on(outcome: Outcome | MatrixOutcome) -> str:
    room = "Make room: then " if outcome.is_disk_full else ""
    return f"{room}`wanlat run --resume {outcome.directory}` resumes it."
