"""``wanlat systems``: the stores that can be measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wanlat.options import Json
from wanlat.output import emit

if TYPE_CHECKING:
    from wanlat.systems.catalogue import Entry

app = typer.Typer(no_args_is_help=True, help="The stores that can be measured.")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the systems: what is on this machine, in which version, and how to get the rest."""
    from wanlat.systems.catalogue import list_systems, list_tools

    systems, tools = list_systems(), list_tools()
    if as_json:
        emit([entry.as_json() for entry in (*systems, *tools)])
        return
    for entry in systems:
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
    names: Annotated[list[str], typer.Argument(metavar="NAME...")],
) -> None:
    """Build systems from the package registries into the cache; safe to repeat."""
    from wanlat.systems.catalogue import install_systems

    for installed in install_systems(names):
        typer.echo(f"{installed.receipt.name} {installed.receipt.version}: {installed.path}")
