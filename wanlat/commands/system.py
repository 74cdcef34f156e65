"""``wanlat system``: the stores that can be measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wanlat import options as o
from wanlat.app import App
from wanlat.commands import completion
from wanlat.output import show_document, show_list

if TYPE_CHECKING:
    from wanlat.systems.base import System

app = App("List, show and install the systems under test.")


@app.command("list")
def list_(as_json: o.Json = False) -> None:
    """List the systems: what is installed, in which version, and how to get what is not."""
    from wanlat.systems.catalogue import list_systems, list_tools

    found = [*list_systems(), *list_tools()]
    rows = [
        {
            "name": each.name,
            "kind": each.kind,
            "version": each.version or "not installed",
            "sha256": each.sha256 and each.sha256[:12],
            "program, or how to get it": each.path or each.get,
        }
        for each in found
    ]
    show_list([each.as_json() for each in found] if as_json else rows, as_json=as_json)


@app.command()
def show(
    name: Annotated[str, o.argument("SYSTEM", "The system's name", completion.system)],
    as_json: o.Json = False,
) -> None:
    """Show one system: its API, versions, options, how many nodes it takes, and its program."""
    from wanlat.systems import registry
    from wanlat.systems.catalogue import entry_of

    system = registry.get(name)
    entry = entry_of(system)
    document = entry.as_json()
    document["apis"] = _apis(system)
    document["nodes"] = {"min": system.min_nodes, "max": system.max_nodes}
    document["options"] = list(_options(system))
    show_document(document, as_json=as_json)


def _apis(system: System[Any]) -> list[str]:
    """Return what can be measured of a system: its API, or those that option `api` chooses."""
    field = system.options_model.model_json_schema()["properties"].get("api", {})
    return list(field.get("enum") or [system.api(system.parse_options())])


def _options(system: System[Any]) -> Iterator[dict[str, Any]]:
    """Yield the options of a system, as its model has them."""
    defaults = system.options_model.model_construct().model_dump(mode="json")
    for name, field in system.options_model.model_json_schema()["properties"].items():
        kinds = [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]
        types = ["|".join(each.get("enum") or [each.get("type", "text")]) for each in kinds]
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
            "SYSTEM", "Systems or tools, as `wanlat system list` names them", completion.system
        ),
    ],
) -> None:
    """Build systems from the package registries into the cache; safe to repeat."""
    from wanlat.systems.catalogue import install_systems

    for installed in install_systems(systems):
        typer.echo(f"{installed.receipt.name} {installed.receipt.version}: {installed.path}")
