"""``wanlat run``: measure what a study describes, and show it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from wanlat import options as o
from wanlat.commands import completion
from wanlat.commands.measuring import Common, is_one, measure, with_common
from wanlat.commands.settings import adopted, axes, settings, timeouts, use_bobd, with_options
from wanlat.commands.study import STUDIES
from wanlat.output import inform, remark
from wanlat.remaining import Remaining
from wanlat.results import show_report
from wanlat.running import demand_complete, incomplete, leave, reporting, run_with_progress
from wanlat.suggested import given, next_step
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size

if TYPE_CHECKING:
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.prepare import Prepared
    from wanlat.experiments.session import CaptureWanted, Outcome
    from wanlat.topologies.model import Topology


@with_common
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
    rtt: o.Rtt = None,
    jitter: o.Jitter = None,
    samples: o.Samples = None,
    client: o.Client = None,
    matrix: o.Matrix = None,
    advise: o.Advise = None,
    *,
    common: Common,
) -> None:
    """Run a study: measure the latency of each endpoint.

    The emulated network is calibrated, each system is started on it and sampled, and tables and
    charts are written.
    """
    if study is None and common.resume is None:
        STUDIES.show_list(as_json=common.as_json)
        return
    if unfinished := common.unfinished(context, "run"):
        batch, how = unfinished.batch, unfinished.how
    else:
        wanted = _changed(STUDIES.load(str(study)), common, samples, client, matrix, advise)
        from wanlat.experiments.matrix_points import StudyPoints

        batch = StudyPoints(wanted)
        how = common.how(batch, _capture(wanted, common))
        how["topologies"] = _overridden(wanted, rtt, jitter)
        if common.dry_run:
            from wanlat.commands.dry_run import show_study

            show_study(wanted, how, as_json=common.as_json)
            return
    from wanlat.experiments.matrix import MatrixOutcome

    ended = measure(batch, how, common, unfinished, _run)
    if isinstance(ended, MatrixOutcome):
        document = demand_complete(ended, batch.command, given(context))
    elif ended.status != "complete":
        taken = f"{ended.measured} of {ended.planned} samples were taken. "
        document = incomplete(ended, taken if ended.planned else "")
    else:
        document = None
    if document is not None:
        leave(ended, document, common.as_json)
    with reporting(ended.directory):
        made = show_report(ended.directory, as_json=common.as_json, verbose=common.verbose)
    inform(f"bundle: {ended.directory}")
    if study is not None and is_one(batch, unfinished):
        with suppress(Exception):  # that there is no hint says nothing of the run
            step = next_step(made, study, wanted.topology, given(context))
            if step is not None:
                remark(step)


def _run(prepared: Prepared) -> Outcome:
    from wanlat.experiments.run import estimate
    from wanlat.experiments.run import run as run_study

    estimates = {subject.name: estimate(prepared, subject) for subject in prepared.subjects}
    left = Remaining({name: made["takes_s"]["total"][0] for name, made in estimates.items()})
    return run_with_progress(lambda report: run_study(prepared, report), left=left)


def _changed(
    read: Study,
    common: Common,
    samples: int | None,
    client: str | None,
    matrix: list[str] | None,
    advise: list[str] | None,
) -> Study:
    """Return a study with what the command line changes of it. Raises UserError."""
    from wanlat.experiments.config.study import changed

    names = None if common.systems is None else adopted(common.systems)
    use_bobd(common.bobd, names or read.systems)
    options = common.option and with_options(read.options, common.option, names or read.systems)
    own = settings(
        common.set_,
        systems=names,
        options=options or None,
        topology=common.topology,
        samples=samples,
        replicates=common.replicates,
        seed=common.seed,
        client=client,
        storage=common.storage,
        max_network_error=common.max_network_error,
    )
    wanted = changed(read, own, axes(matrix))
    if advise is None:
        return wanted
    from wanlat.experiments.envelope.advice import advised

    return advised(wanted, timeouts(advise))


def _overridden(
    study: Study, rtt: Duration | None, jitter: Duration | None
) -> dict[str, Topology] | None:
    """Return the topologies of a study's points with `--rtt` and `--jitter`. Raises UserError."""
    if rtt is None and jitter is None:
        return None
    from wanlat.experiments.matrix_points import points_of

    points = [point.study for point in points_of(study)]
    option = "rtt" if rtt else "jitter"
    for own in filter(None, (point.kind.instead.get(option) for point in points)):
        raise UserError(
            f"--{option}: study {study.name} changes the RTT of the WAN links itself. Give it "
            f"other values with `--set {own}`."
        )
    return {name: o.topology_of(name, rtt, jitter) for name in {point.topology for point in points}}


def _capture(study: Study, common: Common) -> CaptureWanted | None:
    """Return what is to be recorded. The packets of a study of round trips are half its answer,
    unless the backend is to be netem, which records none.
    """
    is_half = study.kind.records_packets
    wanted = is_half and common.backend != "netem" if common.capture is None else common.capture
    return common.recorded(Size(1 << 30) if is_half else o.DEFAULT_LIMIT) if wanted else None
