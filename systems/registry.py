"""The systems that wanlat knows: shipped, from a user's directory, or from a package."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from wanlat.systems.engine.defined import Messages
from wanlat.systems.engine.definition import FILE, SHIPPED, Program, read
from wanlat.systems.engine.program import Binary, find
from wanlat.systems.engine.system import System
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_lines import load_yaml_model

_FIRST = ("quorum", "garage", "minio", "minio-nginx", "bob")
_ADOPTED: dict[str, Path] = {}
"""Where systems of the user's own were read from, by name."""


@cache
def _directories() -> dict[str, Path]:
    shipped = {file.parent.name: file.parent for file in sorted(SHIPPED.glob(f"*/{FILE}"))}
    ranked = {name: shipped.pop(name) for name in _FIRST}
    for point in entry_points(group="wanlat.systems"):
        # It names a module or a function that says where a directory with a system.yaml is.
        loaded = point.load()
        place = Path(loaded() if callable(loaded) else loaded.__path__[0])
        shipped.setdefault(point.name, place)
    return ranked | shipped


def names() -> list[str]:
    """Return the names of all systems."""
    return list(_directories() | _ADOPTED)


@cache
def _system(directory: Path) -> System:
    definition, hooks = read(directory)
    return System(definition, directory, hooks)


def get(name: str) -> System:
    """Return a system by name. UserError names those that exist."""
    directory = (_directories() | _ADOPTED).get(name)
    if directory is None:
        raise UserError(
            f"There is no system {show(name)}{did_you_mean(name, names())}. "
            f"wanlat knows {listing(names())}; one of your own is given by its directory, "
            "such as ./mystore/."
        )
    return _system(directory)


def every() -> list[System]:
    """Return all systems."""
    return [get(name) for name in names()]


def adopt(given: str) -> str:
    """Return the name of a system that is given by name, or by the path of its directory.

    Raises UserError: every mistake in its definition, or a name that another system has.
    """
    directory = Path(given)
    if "/" not in given and not os.path.isfile(directory / FILE):  # noqa: PTH113 - no OSError
        return given
    system = _system(directory.absolute())
    known = (_directories() | _ADOPTED).get(system.name)
    if known is not None and known.resolve() != directory.resolve():
        raise UserError(f"{given}: there is a system {show(system.name)} already, {known}.")
    _ADOPTED[system.name] = directory.absolute()
    return system.name


def adopted(names: Iterable[str]) -> dict[str, str]:
    """Return the directories of those systems that were given by one: for `adopt` elsewhere."""
    return {name: str(_ADOPTED[name]) for name in names if name in _ADOPTED}


def messages_of(name: str) -> type[Messages] | None:
    """Return what labels the messages of a system's nodes in traces, where it has something."""
    return get(name).messages if name in names() else None


@cache
def tools() -> dict[str, Program]:
    """Return the programs that are no stores: clients to check with."""
    files = sorted((SHIPPED / "tools").glob("*.yaml"))
    return {file.stem: load_yaml_model(file, Program) for file in files}


def find_tool(name: str) -> Binary:
    """Return a tool's program. Raises SystemMissing."""
    return find(tools()[name], SHIPPED)
