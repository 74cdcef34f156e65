"""``wanlat run``: measure what a study asks for, and show it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.commands import completion
from wanlat.commands.settings import (
    adopted,
    axes,
    settings,
    timeouts,
    trust,
    use_bobd,
    with_options,
)
from wanlat.commands.study import STUDIES
from wanlat.output import remark, say
from wanlat.results import next_step, show_report
from wanlat.running import (
    carry_out,
    dask_workers,
    demand_complete,
    heed_interruptions,
    incomplete,
    leave,
    measure_points,
    reporting,
    with_own_directory,
)
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.matrix_points import Unfinished
    from wanlat.experiments.session import CaptureWanted
    from wanlat.topologies.model import Topology


def run(
    context: typer.Context,
    study: Annotated[
        str | None,
        o.argument(
            "STUDY",
            "A shipped study, or the path of a YAML file; none lists the shipped ones",
            completion.studies,
        ),
    ] = None,
    systems: o.Systems = None,
    topology: o.TopologyChoice = None,
    rtt: o.Rtt = None,
    jitter: o.Jitter = None,
    samples: o.Samples = None,
    replicates: o.Replicates = None,
    seed: o.Seed = None,
    client: o.Client = None,
    storage: o.StorageChoice = None,
    max_network_error: o.MaxNetworkError = None,
    option: o.SystemOptions = None,
    set_: o.Set = None,
    matrix: o.Matrix = None,
    advise: o.Advise = None,
    bobd: o.Bobd = None,
    backend: o.Backend = None,
    out: o.Out = None,
    resume: o.Resume = None,
    trusted: o.Trust = False,
    capture: o.CaptureChoice = None,
    capture_limit: Annotated[
        Size | None,
        o.option(
            "SIZE",
            "Largest size of the packet record (default: 256MiB; of round trips 1GiB)",
            parse=Size.parse,
        ),
    ] = None,
    capture_snap: o.CaptureSnap = o.DEFAULT_SNAP,
    jobs: o.Jobs = None,
    engine: o.Engine = None,
    scheduler: o.Scheduler = None,
    shard: o.Shard = None,
    dry_run: o.DryRun = False,
    as_json: o.Json = False,
    verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Run a study: measure the latency of each endpoint.

    The emulated network is calibrated, each system is started on it and sampled, and tables and
    charts are written.
    """
    if study is None and resume is None:
        STUDIES.show_list(as_json=as_json)
        return
    workers = dask_workers(engine, scheduler, jobs)
    unfinished = None
    if resume is not None:
        o.refuse_others(
            context,
            f"--resume {resume} goes on as that run was begun",
            *("resume", "trusted", "systems", "jobs", "engine", "scheduler"),
        )
        from wanlat.experiments.matrix_points import read_unfinished

        trust(systems)
        unfinished = read_unfinished(resume, "run", is_trusted=trusted)
    read = unfinished.study if unfinished else STUDIES.load(str(study))
    names = None if systems is None or unfinished else adopted(systems)
    use_bobd(bobd, names or read.systems)

    from wanlat.experiments.config.study import changed

    own = settings(
        set_,
        systems=names,
        options=with_options(read.options, option, names or read.systems) if option else None,
        topology=topology,
        samples=samples,
        replicates=replicates,
        seed=seed,
        client=client,
        storage=storage,
        max_network_error=max_network_error,
    )
    wanted = changed(read, own, axes(matrix))
    if advise is not None:
        from wanlat.experiments.envelope.advice import advised

        wanted = advised(wanted, timeouts(advise))
    if unfinished is not None and unfinished.is_complete:
        say(f"{unfinished.directory} is complete: nothing is left to measure.")
        show_report(unfinished.directory, as_json=as_json, verbose=verbose)
        return
    how = (
        unfinished.how
        if unfinished
        else {
            "directory": out,
            "backend": backend,
            "capture": _capture(wanted, capture, capture_limit, capture_snap, backend),
            "topologies": _overridden(wanted, rtt, jitter),
            **_part(wanted, shard),
        }
    )
    if dry_run:
        from wanlat.commands.dry_run import show_study

        show_study(wanted, how, as_json=as_json)
        return
    if wanted.has_points:
        bundle = _measure_matrix(wanted, how, unfinished, jobs, workers, as_json)
    elif workers is not None:
        raise UserError("--engine: this study has one point. Give it a --matrix or --replicates.")
    else:
        bundle = _measure(wanted, how, as_json)
    with reporting(bundle):
        made = show_report(bundle, as_json=as_json, verbose=verbose)
    say(f"bundle: {bundle}")
    if study is not None and not wanted.has_points:
        with suppress(Exception):  # that there is no hint says nothing of the run
            step = next_step(made, study, wanted.topology, is_chosen=topology is not None)
            if step is not None:
                remark(step)


def _measure(study: Study, how: dict[str, Any], as_json: bool) -> Path:
    """Run a study and return its bundle; what is not complete ends the command."""
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.prepare import prepare
    from wanlat.experiments.run import run as run_study

    prepared = prepare(study, **how)
    heed_interruptions()
    demand_lab(prepared.plan, prepared.backend)
    prepared = with_own_directory(prepared, how["directory"])
    ended = carry_out(lambda report: run_study(prepared, report))
    if ended.status != "complete":
        taken = f"{ended.measured} of {ended.planned} samples were taken. "
        leave(ended, incomplete(ended, taken if ended.planned else ""), as_json)
    return ended.directory


def _measure_matrix(
    study: Study,
    how: dict[str, Any],
    unfinished: Unfinished | None,
    jobs: int | None,
    workers: str | None,
    as_json: bool,
) -> Path:
    """Run the points of a matrix that are left, likewise."""
    from wanlat.experiments.matrix_points import prepare_matrix

    prepared = prepare_matrix(study, **how)
    ended = measure_points(prepared, unfinished, jobs, workers, out=how["directory"])
    document = demand_complete(ended, "run")
    if document is not None:
        leave(ended, document, as_json)
    return ended.directory


def _overridden(
    study: Study, rtt: Duration | None, jitter: Duration | None
) -> dict[str, Topology] | None:
    """Return the topologies of a study's points with `--rtt` and `--jitter`. Raises UserError."""
    if rtt is None and jitter is None:
        return None
    from wanlat.experiments.matrix_points import points_of

    points = [point.study for point in points_of(study)]
    option, key = ("--rtt", "rtts=[0ms,50ms,100ms]") if rtt else ("--jitter", "jitter=1ms")
    if any(point.envelope is not None for point in points):
        way = f"envelope.{option[2:]}.high=500ms"
    elif any(point.round_trips is not None for point in points):
        way = f"round_trips.{key}"
    else:
        way = ""
    if way:
        raise UserError(
            f"{option}: study {study.name} changes the RTT of the WAN links itself. Give it other "
            f"values with `--set {way}`."
        )
    return {name: o.topology_of(name, rtt, jitter) for name in {each.topology for each in points}}


def _part(study: Study, shard: str | None) -> dict[str, Any]:
    """Return which of a study's points are to be measured. Raises UserError."""
    from wanlat.experiments.matrix_points import Shard

    if shard is None:
        return {}
    if not study.has_points:
        raise UserError("--shard: this study has one point. Give it a --matrix or --replicates.")
    return {"shard": Shard.parse(shard)}


def _capture(
    study: Study, wish: bool | None, limit: Size | None, snap: Size, backend: str | None = None
) -> CaptureWanted | None:
    """Return what is to be recorded. The packets of a study of round trips are half its answer,
    unless the backend is to be netem, which records none.
    """
    from wanlat.experiments.session import CaptureWanted

    of_round_trips = study.round_trips is not None
    if not (of_round_trips and backend != "netem" if wish is None else wish):
        return None
    largest = limit or (Size(1 << 30) if of_round_trips else o.DEFAULT_LIMIT)
    return CaptureWanted(largest.bytes, snap.bytes)
