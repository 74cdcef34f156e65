"""``wanlat system``: the stores that can be measured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.output import emit, inform, remark, show_document, show_list
from wanlat.topologies.errors import RunFailed, UserError
from wanlat.topologies.wording import listing
from wanlat.topologies.wording import show as show_text

if TYPE_CHECKING:
    from wanlat.systems.base import System

app = App("List, show and install the systems under test.")


@app.command("list")
def list_(as_json: o.Json = False) -> None:
    """List the systems: what is installed, in which version, and how to get what is not."""
    from wanlat.systems.catalogue import list_systems, list_tools

    entries = [*list_systems(), *list_tools()]
    rows = [
        {
            "name": entry.name,
            "kind": entry.kind,
            "version": entry.version or "not installed",
            "sha256": entry.sha256 and entry.sha256[:12],
            "program, or how to get it": entry.path or entry.get,
        }
        for entry in entries
    ]
    show_list([entry.as_json() for entry in entries] if as_json else rows, as_json=as_json)


@app.command()
def show(
    name: Annotated[str, o.argument("SYSTEM", "Its name, or its directory", completion.system)],
    as_json: o.Json = False,
) -> None:
    """Show one system: its API, versions, options, timeouts, how many nodes, and its program."""
    from wanlat.systems import registry
    from wanlat.systems.catalogue import entry_of

    system = registry.get(registry.adopt(name))
    entry = entry_of(system)
    document = entry.as_json()
    document["apis"] = _apis(system)
    document["nodes"] = {"min": system.min_nodes, "max": system.max_nodes}
    document["options"] = list(option_rows(system))
    document["timeouts"] = system.timeouts(system.parse_options())
    show_document(document, as_json=as_json)


def _apis(system: System) -> list[str]:
    """Return what can be measured of a system: its API, or those that option `api` chooses."""
    field = system.options_model.model_json_schema()["properties"].get("api", {})
    return list(field.get("enum") or [system.api(system.parse_options())])


def option_rows(system: System) -> Iterator[dict[str, Any]]:
    """Yield the options of a system, as its model has them."""
    defaults = system.options_model.model_construct().model_dump(mode="json")
    for name, field in system.options_model.model_json_schema()["properties"].items():
        kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
        types = ["|".join(kind.get("enum") or [kind.get("type", "text")]) for kind in kinds]
        yield {
            "name": name,
            "type": " or ".join(types),
            "default": defaults.get(name),
            "description": " ".join(field.get("description", "").split()),
        }


@app.command()
def install(
    systems: Annotated[
        list[str],
        o.argument(
            "SYSTEM", "As `wanlat system list` names them, or directories", completion.system
        ),
    ],
) -> None:
    """Build systems from the package registries into the cache; safe to repeat."""
    from wanlat.systems.catalogue import install_systems

    for installed in install_systems(systems):
        typer.echo(f"{installed.receipt.name} {installed.receipt.version}: {installed.path}")


@app.command()
def schema() -> None:
    """Print the JSON schema of a definition, `system.yaml`."""
    from wanlat.schemas import schemas

    emit(dict(schemas())["system-1.json"])


@app.command()
def new(
    name: Annotated[str, o.argument("NAME", "The system's name: a new directory gets it")],
    protocol: Annotated[
        Literal["s3", "grpc", "http", "exec"],
        o.option("[s3|grpc|http|exec]", "What its nodes speak; exec: a program asks them"),
    ] = "s3",
) -> None:
    """Write a definition to begin with, in a new directory of that name."""
    from wanlat.systems import registry
    from wanlat.systems.engine.definition import FILE, NAME, SHIPPED
    from wanlat.systems.engine.protocols import PROTOCOLS

    directory = Path(name)
    shown = show_text(directory.name)
    if not re.match(NAME, directory.name):
        raise UserError(
            f"{shown} cannot be the name of a system: that is at most 40 lower-case letters, "
            "digits and hyphens, a letter first."
        )
    if directory.name in registry.names():
        raise UserError(f"There is a system {shown} already; choose another name.")
    if directory.exists():
        raise UserError(f"{directory} is there already; choose another name.")
    templates = PROTOCOLS[protocol].templates
    files = {file: (SHIPPED / "engine" / source).read_text("utf-8") for file, source in templates}
    files[FILE] = files[FILE].replace("NAME", directory.name)
    try:
        directory.mkdir(parents=True)
        for file, content in files.items():
            (directory / file).write_text(content, "utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"{show_text(str(directory))} cannot be written: {reason}. Call from a directory that "
            "you may write to, or name one: `wanlat system new DIR/NAME`."
        ) from error
    inform(f"{directory / FILE}: adapt it, then `wanlat system check {directory}`")


@app.command()
def check(
    directory: Annotated[str, o.argument("DIR", "A directory with a system.yaml")],
    as_json: o.Json = False,
) -> None:
    """Check a definition: all mistakes at once; then start three nodes and make each request.

    What `settings` of the definition reads back is compared with what was configured.
    """
    import json
    import tempfile

    from pyarrow import parquet

    from wanlat.emulator.doctor import demand_lab
    from wanlat.experiments.config.endpoints import endpoints_of
    from wanlat.experiments.config.study import Study
    from wanlat.experiments.prepare import prepare
    from wanlat.experiments.run import run as run_study
    from wanlat.probes.protocols import PLANNERS
    from wanlat.running import heed_interruptions, run_with_progress
    from wanlat.systems import registry

    heed_interruptions()  # so that the directory below goes, too
    system = registry.get(registry.adopt(directory))
    known = PLANNERS[system.api(system.parse_options())].endpoints
    every: list[Any] = [*(known or endpoints_of(system))]
    if not every:
        raise UserError(f"{directory}: `endpoints` has no request to try.")
    with tempfile.TemporaryDirectory(prefix="wanlat-check-") as place:
        study = Study(
            name="check",
            topology="one-site",
            systems=[system.name],
            endpoints=every,
            samples=2,
            warmup=0,
        )
        prepared = prepare(study, directory=Path(place) / "bundle")
        demand_lab(prepared.plan, prepared.backend)
        ended = run_with_progress(lambda report: run_study(prepared, report))
        rows = parquet.read_table(ended.directory / "samples.parquet").to_pylist()
        manifest = json.loads((ended.directory / "manifest.json").read_text("utf-8"))
    order = known or list(system.definition.endpoints)
    keys = ("endpoint", "outcome", "ms", "error")
    shown = _one_of_each(rows, order)
    ms = [row["total_ns"] and round(row["total_ns"] / 1e6, 2) for row in shown]
    answers = [
        {key: {**row, "ms": its}[key] for key in keys} for row, its in zip(shown, ms, strict=True)
    ]
    written = [answer | {"ms": answer["ms"] and f"{answer['ms']:.2f}"} for answer in answers]
    show_list(answers if as_json else written, as_json=as_json)
    if closing := closes_connections(rows):
        remark(
            f"{system.name} closes the connection after each request to {listing(closing)}: a "
            "sample has a handshake in it. Have it keep connections, if it can."
        )
    differing = [
        s for s in manifest.get("settings", {}).get(system.name, []) if not s["as_expected"]
    ]
    for setting in differing:
        inform(_difference(setting))
    if ended.status != "complete" or any(answer["outcome"] != "ok" for answer in answers):
        raise RunFailed(f"{system.name} did not answer every request as it should.")
    if differing:
        names = listing(setting["name"] for setting in differing)
        raise RunFailed(f"{system.name} does not run as it was configured: {names}.")


def _one_of_each(rows: Sequence[dict[str, Any]], order: Sequence[str]) -> list[dict[str, Any]]:
    """Return a request of each endpoint and placement, in that order: one that failed, if any."""

    def rank(row: Mapping[str, Any]) -> tuple[int, bool, int]:
        place = order.index(row["endpoint"]) if row["endpoint"] in order else -1
        return place, row["outcome"] == "ok", row["start_ns"]

    first: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(rows, key=rank):
        first.setdefault((row["endpoint"], row["placement"]), row)
    return list(first.values())


def closes_connections(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the endpoints of which each request after the first of all needed a new connection."""
    later = sorted(rows, key=lambda row: row["start_ns"])[1:]
    made: dict[str, bool] = {}
    for row in later:
        made[row["endpoint"]] = made.get(row["endpoint"], True) and bool(row["new_connection"])
    return [endpoint for endpoint, always in made.items() if always]


def _difference(setting: Mapping[str, Any]) -> str:
    where = f"{setting['name']} on {listing(setting['nodes'], at_most=5)}"
    if setting["error"] is not None:
        return f"{where} could not be read back: {setting['error']}"
    return f"{where}: {setting['value']}, and {setting['expected']} was configured"
