"""``wanlat trace``: one request, message by message, as a sequence diagram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat.commands.settings import use_bobd, with_options
from wanlat.interruption import INTERRUPTED, heed_interruptions
from wanlat.options import (
    Backend,
    Bobd,
    Json,
    Rtt,
    Seed,
    StorageChoice,
    SystemOptions,
    backend_name,
    check_storage,
)
from wanlat.output import emit, reporter, say
from wanlat.topologies.errors import UserError
from wanlat.topologies.units import Duration, Size
from wanlat.topologies.wording import did_you_mean, listing, show

if TYPE_CHECKING:
    from wanlat.analysis.bundle import Bundle
    from wanlat.analysis.summary import Group
    from wanlat.experiments.system_run import Outcome
    from wanlat.experiments.trace import PreparedTrace, Wish

_DEFAULT_SAMPLES = 20


def trace(
    topology: Annotated[
        str | None,
        typer.Argument(metavar="[TOPOLOGY]", help="A shipped topology or the path of a YAML file."),
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="S", help="The system.")] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="E", help="The endpoint, such as PutObject or Get.")
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Take the request from this bundle; measure nothing."),
    ] = None,
    rtt: Rtt = None,
    object_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Size of the object. Default: 1KiB.")
    ] = None,
    placement: Annotated[
        str | None,
        typer.Option(
            metavar="local|remote",
            help="Whether the node that is asked holds a replica. Default: remote, where there is.",
        ),
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="The node or site where the client stands.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Requests to choose the typical one from. [20]")
    ] = None,
    slowest: Annotated[
        bool, typer.Option("--slowest", help="The slowest of them, not the typical one.")
    ] = False,
    option: SystemOptions = None,
    bobd: Bobd = None,
    storage: StorageChoice = None,
    seed: Seed = None,
    backend: Backend = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write. Default: results/trace-TIME."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw one request: which messages cross the WAN links, and which of them it waits for."""
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
        _from_bundle(bundle, str(system), str(endpoint), placement, slowest, out, as_json)
        return
    from wanlat.experiments.trace import Wish, prepare_trace

    check_storage(storage)
    if bobd is not None:
        use_bobd(bobd, [str(system)])
    wish = Wish(
        topology=str(topology),
        system=str(system),
        endpoint=str(endpoint),
        samples=samples or _DEFAULT_SAMPLES,
        rtt=_parsed("--rtt", rtt, Duration),
        object_size=_parsed("--object-size", object_size, Size),
        placement=placement,
        client=client,
        options=with_options({}, option, [str(system)]) if option else None,
        storage=storage,
        seed=seed,
        backend=backend_name(backend),
        directory=out,
    )
    _measured(prepare_trace(wish), wish, slowest, as_json)


def _check_needed(
    topology: str | None, system: str | None, endpoint: str | None, bundle: Path | None
) -> None:
    if topology is None and bundle is None:
        raise UserError(
            "What is to be traced? `wanlat trace TOPOLOGY --system S --endpoint E` measures it; "
            "`wanlat trace --bundle DIR --system S --endpoint E` takes it from a run."
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


def _parsed(option: str, text: str | None, kind: Any) -> Any:
    if text is None:
        return None
    try:
        return kind.parse(text)
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def _measured(wanted: PreparedTrace, wish: Wish, slowest: bool, as_json: bool) -> None:
    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.trace import run_trace

    heed_interruptions()
    demand_lab(wanted.prepared.plan, wanted.prepared.backend)
    with reporter() as report:
        outcome = run_trace(wanted, report)
    for warning in outcome.warnings:
        say(f"warning: {warning}", style="yellow")
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
    if outcome.status == "interrupted":
        say("Interrupted.", style="bold yellow")
    else:
        say(f"The run failed: {outcome.reason}", style="bold red")
    say(f"What there is of it is in {outcome.directory}.")
    if as_json:
        directory = str(outcome.directory)
        emit({"bundle": directory, "status": outcome.status, "reason": outcome.reason})
    raise typer.Exit(INTERRUPTED if outcome.status == "interrupted" else 1)


def _from_bundle(
    bundle: Path,
    system: str,
    endpoint: str,
    placement: str | None,
    slowest: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    stem = None if out is None else out / "trace"
    _draw(bundle, system, endpoint, placement, slowest, stem, as_json)


def _draw(
    directory: Path,
    system: str,
    endpoint: str,
    placement: str | None,
    slowest: bool,
    stem: Path | None,
    as_json: bool,
) -> None:
    """Draw a bundle's request, tell its chain, and say where the files are."""
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
