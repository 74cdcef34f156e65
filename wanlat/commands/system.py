"""``wanlat system``: the stores that can be measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.output import emit, inform, remark, show_document, show_list
from wanlat.topologies.errors import RunFailed, UserError, way_out_of_machine
from wanlat.topologies.wording import did_you_mean, listing
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
        str | None,
        o.option(
            "PROTOCOL",
            "What its nodes speak, by the name that definitions have for it (default: theirs)",
            complete=completion.protocol,
        ),
    ] = None,
) -> None:
    """Write a definition to begin with, in a new directory of that name."""
    from wanlat.systems import registry
    from wanlat.systems.engine.definition import FILE, NAME, SHIPPED
    from wanlat.systems.engine.protocols import DEFAULT, PROTOCOLS

    protocol = protocol or DEFAULT
    known = completion.protocol("")
    if protocol not in known:
        raise UserError(
            f"--protocol {show_text(protocol)}: there is no such protocol to begin with"
            f"{did_you_mean(protocol, known)}; there are {listing(known)}."
        )
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
        way_out = way_out_of_machine(error) or (
            "Call from a directory that you may write to, or name one: "
            "`wanlat system new DIR/NAME`."
        )
        raise UserError(
            f"{show_text(str(directory))} cannot be written: {reason}. {way_out}"
        ) from error
    inform(f"{directory / FILE}: adapt it, then `wanlat system check {quote(name)}`")


@app.command()
def check(
    directory: Annotated[str, o.argument("DIR", "A directory with a system.yaml")],
    as_json: o.Json = False,
) -> None:
    """Check a definition: all mistakes at once; then start a cluster and make each request.

    Of three nodes, or of as many more or fewer as its `nodes` has. What its `settings` read back
    is compared with what was configured.
    """
    from wanlat.experiments.check import check as try_out
    from wanlat.experiments.check import endpoints_to_try
    from wanlat.experiments.run import run
    from wanlat.running import exit_code, heed_interruptions, run_with_progress
    from wanlat.systems import registry

    heed_interruptions()  # so that what it wrote goes, too
    system = registry.get(registry.adopt(directory))
    endpoints = endpoints_to_try(system)
    if not endpoints:
        raise UserError(f"{directory}: `endpoints` has no request to try.")
    checked = try_out(
        system,
        endpoints,
        lambda prepared: run_with_progress(lambda report: run(prepared, report)),
    )
    if checked.ended.status == "interrupted":
        raise typer.Exit(exit_code(checked.ended))
    answers = checked.one_of_each(endpoints)
    written = [answer | {"ms": answer["ms"] and f"{answer['ms']:.2f}"} for answer in answers]
    show_list(answers if as_json else written, as_json=as_json)
    if closing := checked.closes_connections():
        remark(
            f"{system.name} closes the connection after each request to {listing(closing)}: a "
            "sample has a handshake in it. Have it keep connections, if it can."
        )
    kept = f"Its bundle is kept, with what it logged in logs: {checked.ended.directory}"
    if not checked.is_answered:
        raise RunFailed(f"{system.name} did not answer every request as it should. {kept}")
    if checked.differing:
        names = listing(setting.name for setting in checked.differing)
        raise RunFailed(f"{system.name} does not run as it was configured: {names}. {kept}")
    if checked.settings:
        inform(f"{len(checked.settings)} settings read back: all in effect as configured")
