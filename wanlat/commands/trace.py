"""``wanlat trace``: one request, message by message, as a sequence diagram."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wanlat import options as o
from wanlat.commands import completion
from wanlat.commands.settings import adopted_one, use_bobd, with_options
from wanlat.output import emit, inform, refuse_to_replace
from wanlat.results import messages_of
from wanlat.running import (
    heed_interruptions,
    incomplete,
    leave,
    reporting,
    run_with_progress,
    with_own_directory,
)
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Size
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.analysis.groups import Group
    from wanlat.bundle.run import Run


def trace(
    context: typer.Context,
    topology: Annotated[
        str | None,
        o.argument(
            "TOPOLOGY",
            "A shipped topology, or the path of a YAML file; none with --bundle",
            completion.topologies,
        ),
    ] = None,
    system: Annotated[
        str | None, o.option("S", "The system under test", complete=completion.system)
    ] = None,
    endpoint: Annotated[str | None, o.option("E", "The endpoint, e.g. PutObject or Get")] = None,
    bundle: Annotated[
        Path | None, o.option("BUNDLE", "Take the request from this bundle; measure nothing")
    ] = None,
    rtt: o.Rtt = None,
    object_size: Annotated[
        Size | None, o.option("SIZE", "Size of the object (default: 1KiB)", parse=Size.parse)
    ] = None,
    placement: Annotated[
        Literal["local", "remote"] | None,
        o.option(
            "[local|remote]",
            "Whether the target node holds a replica (default: remote, where there is one)",
        ),
    ] = None,
    client: o.Client = None,
    samples: Annotated[
        int, o.option("N", "Requests of which the typical one is drawn", min=1)
    ] = 20,
    slowest: Annotated[
        bool, o.flag("Draw the slowest request, not the typical one", "--slowest")
    ] = False,
    option: o.SystemOptions = None,
    bobd: o.Bobd = None,
    storage: o.StorageChoice = None,
    seed: o.Seed = None,
    backend: o.Backend = None,
    out: o.Out = None,
    force: o.Force = False,
    as_json: o.Json = False,
    _verbose: o.Verbose = False,
    _quiet: o.Quiet = False,
) -> None:
    """Draw the messages and the critical path of one request."""
    if topology is None and bundle is None:
        raise UserError(
            "Which request? `wanlat trace TOPOLOGY --system S --endpoint E` measures it; "
            "`wanlat trace --bundle BUNDLE --system S --endpoint E` takes it from a run."
        )
    if system is None or endpoint is None:
        missing = "--system" if system is None else "--endpoint"
        raise UserError(f"{missing} is missing: a trace is of one endpoint of one system.")
    if bundle is not None:
        fitting = ("bundle", "system", "endpoint", "placement", "slowest", "out", "force")
        o.refuse_others(context, "With --bundle nothing is measured", *fitting)
        stem = None if out is None else out / "trace"
        if stem is not None:
            files = [stem.with_suffix(suffix) for suffix in (".svg", ".png", ".json")]
            refuse_to_replace(files, force=force)
        from wanlat.bundle.errors import refusing

        with refusing(bundle):
            _draw(bundle, system, endpoint, placement, slowest, stem, as_json)
        return
    system = adopted_one(system)
    use_bobd(bobd, [system])

    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.trace import Wish, prepare_trace, run_trace

    wish = Wish(
        topology=str(topology),
        system=system,
        endpoint=endpoint,
        samples=samples,
        rtt=rtt,
        object_size=object_size,
        placement=placement,
        client=client,
        options=with_options({}, option, [system]) if option else None,
        storage=storage,
        seed=seed,
        backend=backend,
        directory=out,
    )
    wanted = prepare_trace(wish)
    heed_interruptions()
    demand_lab(wanted.prepared.plan, backend)
    wanted = replace(wanted, prepared=with_own_directory(wanted.prepared, out))
    ended = run_with_progress(lambda report: run_trace(wanted, report))
    if ended.status != "complete":
        leave(ended, incomplete(ended), as_json)
    place = ended.directory
    with reporting(place):
        _draw(place, system, endpoint, wanted.placement, slowest, place / "trace", as_json)

        from wanlat.analysis.report import report

        inform(f"report: {report(place, messages_of=messages_of).page_path}")
    inform(f"bundle: {place}")


def _draw(
    directory: Path,
    system: str,
    endpoint: str,
    placement: str | None,
    slowest: bool,
    stem: Path | None,
    as_json: bool,
) -> None:
    """Draw a bundle's request, print its critical path and where the files are."""
    from wanlat.analysis.charts.sequence import stem as stem_of
    from wanlat.analysis.charts.sequence import write_trace
    from wanlat.analysis.trace import trace_of
    from wanlat.analysis.trace_words import description
    from wanlat.bundle.run import read_run

    bundle = read_run(directory, messages_of)
    traced = trace_of(bundle, _group(bundle, system, endpoint, placement), slowest=slowest)
    files = write_trace(traced, stem or directory / "charts" / stem_of(traced))
    for line in [*description(traced), *(f"trace: {file}" for file in files)]:
        inform(line)
    if as_json:
        emit({**traced, "bundle": str(directory), "files": [str(file) for file in files]})


def _group(bundle: Run, system: str, endpoint: str, placement: str | None) -> Group:
    """The group of requests that is meant. Raises UserError, with what there is."""
    from wanlat.analysis.groups import grouped
    from wanlat.analysis.trace import choose

    wanted, groups = f"{endpoint} of {system}", list(grouped(bundle.measured))
    names = {group: f"{group.endpoint} of {group.series.system}" for group in groups}
    fitting = [group for group in groups if names[group] == wanted]
    known = list(dict.fromkeys(names.values()))
    if not fitting:
        raise UserError(
            f"{bundle.directory} has no requests to {show(wanted)}{did_you_mean(wanted, known)}; "
            f"it has {listing(known)}."
        )
    chosen = choose(fitting, placement)
    if chosen is None:
        raise UserError(
            f"--placement {show(placement)}: the requests to {wanted} in {bundle.directory} have "
            f"placement {listing([group.placement for group in fitting])}."
        )
    return chosen
