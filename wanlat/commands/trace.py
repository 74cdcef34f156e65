"""``wanlat trace``: one request, message by message, as a sequence diagram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wanlat.commands import completion
from wanlat.commands.settings import use_bobd, with_options
from wanlat.interruption import exit_code, heed_interruptions, show_ending
from wanlat.options import (
    Backend,
    Bobd,
    Client,
    Json,
    Out,
    Quiet,
    Rtt,
    Seed,
    StorageChoice,
    SystemOptions,
    Verbose,
    size,
)
from wanlat.output import emit, reporter, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Size
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.summary import Group
    from wanlat.experiments.session import Outcome
    from wanlat.experiments.trace import PreparedTrace, Wish

_DEFAULT_SAMPLES = 20


def trace(
    topology: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPOLOGY",
            help="A shipped topology, or the path of a YAML file; none with --bundle",
            autocompletion=completion.names(completion.topologies),
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="The system under test",
            autocompletion=completion.names(completion.systems),
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="E", help="The endpoint, e.g. PutObject or Get")
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE", help="Take the request from this bundle; measure nothing"),
    ] = None,
    rtt: Rtt = None,
    object_size: Annotated[
        Size | None,
        typer.Option(parser=size, metavar="SIZE", help="Size of the object (default: 1KiB)"),
    ] = None,
    placement: Annotated[
        Literal["local", "remote"] | None,
        typer.Option(
            metavar="[local|remote]",
            help="Whether the target node holds a replica (default: remote, where there is one)",
        ),
    ] = None,
    client: Client = None,
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Requests of which the typical one is drawn (default: 20)"
        ),
    ] = None,
    slowest: Annotated[
        bool, typer.Option("--slowest", help="Draw the slowest request, not the typical one")
    ] = False,
    option: SystemOptions = None,
    bobd: Bobd = None,
    storage: StorageChoice = None,
    seed: Seed = None,
    backend: Backend = None,
    out: Out = None,
    as_json: Json = False,
    _verbose: Verbose = False,
    _quiet: Quiet = False,
) -> None:
    """Draw the messages and the critical path of one request."""
    _check_needed(topology, system, endpoint, bundle)
    if bundle is not None:
        measuring = {
            "--rtt": rtt,
            "--object-size": object_size,
            "--client": client,
            "--samples": samples,
            "--option": option,
            "--bobd": bobd,
            "--storage": storage,
            "--seed": seed,
            "--backend": backend,
        }
        _refuse(measuring)
        stem = None if out is None else out / "trace"
        _draw(bundle, str(system), str(endpoint), placement, slowest, stem, as_json)
        return
    from wanlat.experiments.trace import Wish, prepare_trace

    if bobd is not None:
        use_bobd(bobd, [str(system)])
    wish = Wish(
        topology=str(topology),
        system=str(system),
        endpoint=str(endpoint),
        samples=samples or _DEFAULT_SAMPLES,
        rtt=rtt,
        object_size=object_size,
        placement=placement,
        client=client,
        options=with_options({}, option, [str(system)]) if option else None,
        storage=storage,
        seed=seed,
        backend=backend,
        directory=out,
    )
    _measured(prepare_trace(wish), wish, slowest, as_json)


def _check_needed(
    topology: str | None, system: str | None, endpoint: str | None, bundle: Path | None
) -> None:
    if topology is None and bundle is None:
        raise UserError(
            "Which request? `wanlat trace TOPOLOGY --system S --endpoint E` measures it; "
            "`wanlat trace --bundle BUNDLE --system S --endpoint E` takes it from a run."
        )
    if topology is not None and bundle is not None:
        raise UserError("A bundle has its own topology: give TOPOLOGY or --bundle, not both.")
    for name, value in (("--system", system), ("--endpoint", endpoint)):
        if value is None:
            raise UserError(f"{name} is missing: a trace is of one endpoint of one system.")


def _refuse(measuring: dict[str, Any]) -> None:
    given = [name for name, value in measuring.items() if value is not None]
    if given:
        raise UserError(f"With --bundle nothing is measured, so {listing(given)} cannot count.")


def _measured(wanted: PreparedTrace, wish: Wish, slowest: bool, as_json: bool) -> None:
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.trace import run_trace

    heed_interruptions()
    demand_lab(wanted.prepared.plan, wanted.prepared.backend)
    with reporter() as report:
        outcome = run_trace(wanted, report)
    show_ending(outcome)
    if outcome.status != "complete":
        _failed(outcome, as_json)
    directory = wanted.prepared.directory
    _draw(
        directory,
        wish.system,
        wanted.endpoint,
        wanted.placement,
        slowest,
        directory / "trace",
        as_json,
    )
    say(f"bundle: {directory}")


def _failed(outcome: Outcome, as_json: bool) -> None:
    say(f"What there is of it is in {outcome.directory}.")
    if as_json:
        emit({"bundle": str(outcome.directory), "status": outcome.status, "reason": outcome.reason})
    raise typer.Exit(exit_code(outcome))


def _draw(
    directory: Path,
    system: str,
    endpoint: str,
    placement: str | None,
    slowest: bool,
    stem: Path | None,
    as_json: bool,
) -> None:
    """Draw a bundle's request, print its critical path, and say where the files are."""
    from wanlat.analysis.bundle import read_bundle
    from wanlat.analysis.charts import sequence
    from wanlat.analysis.trace import trace_of
    from wanlat.analysis.trace_files import told, write_trace
    from wanlat.bundle.errors import BundleError

    try:
        bundle = read_bundle(directory)
        group = _group(bundle, system, endpoint, placement)
        traced = trace_of(bundle, group, slowest=slowest)
        files = write_trace(traced, stem or directory / "charts" / sequence.stem(traced))
    except BundleError as error:
        raise UserError(str(error)) from error
    for line in told(traced):
        say(line)
    for file in files:
        say(f"trace: {file}")
    if as_json:
        document = traced.to_json()
        emit({**document, "bundle": str(directory), "files": [str(file) for file in files]})


def _group(bundle: Bundle, system: str, endpoint: str, placement: str | None) -> Group:
    """The group of requests that is meant. Raises UserError, with what there is."""
    from wanlat.analysis.trace_files import choose, groups_of

    groups = groups_of(bundle)
    systems = list(dict.fromkeys(group.series.system for group in groups))
    if system not in systems:
        raise UserError(
            f"{bundle.directory} has no requests to system {show(system)}"
            f"{did_you_mean(system, systems)}; it has {listing(systems)}."
        )
    mine = [group for group in groups if group.series.system == system]
    endpoints = list(dict.fromkeys(group.endpoint for group in mine))
    if endpoint not in endpoints:
        raise UserError(
            f"{bundle.directory} has no requests to {show(endpoint)} of {system}"
            f"{did_you_mean(endpoint, endpoints)}; it has {listing(endpoints)}."
        )
    there = [group for group in mine if group.endpoint == endpoint]
    chosen = choose(there, placement)
    if chosen is None:
        has = listing([group.placement for group in there])
        raise UserError(
            f"--placement {show(placement)}: the requests to {endpoint} of {system} in "
            f"{bundle.directory} have placement {has}."
        )
    return chosen
