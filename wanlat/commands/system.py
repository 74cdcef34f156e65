"""``wanlat system``: the stores that can be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wanlat.app import App
from wanlat.commands.completion import names, systems
from wanlat.options import Json
from wanlat.output import emit

if TYPE_CHECKING:
    from wanlat.systems.catalogue import Entry

app = App("List and install the systems under test.")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the systems: what is installed, in which version, and how to get what is not."""
    from wanlat.systems.catalogue import list_systems, list_tools

    found, tools = list_systems(), list_tools()
    if as_json:
        emit([entry.as_json() for entry in (*found, *tools)])
        return
    for entry in found:
        _show(entry)
    typer.echo("\nTools, not measured:\n")
    for entry in tools:
        _show(entry)


def _show(entry: Entry) -> None:
    typer.echo(f"{entry.name:<11} {entry.version or 'not installed'}")
    typer.echo(f"            {entry.origin}")
    if entry.installed:
        typer.echo(f"            {entry.path}\n            sha256 {entry.sha256}")
        for each in entry.beside:
            typer.echo(f"            with {each['name']} {each['version']}: {each['path']}")
            typer.echo(f"            sha256 {each['sha256']}")
    else:
        typer.echo(f"            to get it: {entry.get}")


@app.command()
def install(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM",
            help="Systems or tools, as `wanlat system list` names them",
            autocompletion=names(systems),
        ),
    ],
) -> None:
    """Build systems from the package registries into the cache; safe to repeat."""
    from wanlat.systems.catalogue import install_systems

    for installed in install_systems(systems):
        typer.echo(f"{installed.receipt.name} {installed.receipt.version}: {installed.path}")
