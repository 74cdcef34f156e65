"""What `wanlat system list` and `wanlat system install` do, by the names of systems and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wanlat.systems import grpcurl, registry
from wanlat.systems.base import System
from wanlat.systems.binary import Binary
from wanlat.systems.cache import Cache
from wanlat.systems.errors import SystemMissing
from wanlat.systems.install import Damaged, Installed, install
from wanlat.systems.progress import Reporter, reporter
from wanlat.systems.recipe import Recipe
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing


@dataclass(frozen=True)
class Entry:
    """One system or tool, as it is on this machine. Absent things are None."""

    kind: Literal["system", "tool"]
    """A tool is no store: a client that wanlat can install to check with."""
    name: str
    title: str
    origin: str
    installed: bool
    version: str | None
    pinned: str | None
    """The version that `wanlat system install` builds."""
    sha256: str | None
    path: str | None
    get: str
    """How to get it."""
    problem: str | None
    """Why it cannot be used, where it should be there."""
    beside: tuple[dict[str, str], ...] = ()
    """The programs that run with it, as the bundle has them, and where they are."""

    def as_json(self) -> dict[str, Any]:
        """Return the entry for ``--json``."""
        return asdict(self)


def list_systems() -> list[Entry]:
    """Look for every system's binary on this machine; hashes are computed, not remembered."""
    return [entry_of(system) for system in registry.SYSTEMS.values()]


def list_tools() -> list[Entry]:
    """Look for every tool, likewise."""
    found, problem = _look(grpcurl.find)
    return [
        Entry(
            kind="tool",
            name=grpcurl.NAME,
            title=grpcurl.TITLE,
            origin=grpcurl.ORIGIN,
            pinned=grpcurl.RECIPE.version,
            get=f"wanlat system install {grpcurl.NAME}",
            problem=problem,
            **_facts(found),
        )
    ]


def entry_of(system: System[Any]) -> Entry:
    """Look for one system's binary, likewise."""
    found, problem = _look(system.find)
    return Entry(
        kind="system",
        name=system.name,
        title=system.title,
        origin=system.origin,
        pinned=system.recipe.version if system.recipe else None,
        get=system.how_to_get,
        problem=problem,
        **_facts(found),
    )


def _look(find: Callable[[], Binary]) -> tuple[Binary | None, str | None]:
    try:
        return find(), None
    except (SystemMissing, Damaged) as error:
        return None, str(error)


def _facts(found: Binary | None) -> dict[str, Any]:
    return {
        "installed": found is not None,
        "version": found.version if found else None,
        "sha256": found.sha256 if found else None,
        "path": str(found.path) if found else None,
        "beside": tuple({**each.as_recorded(), "path": str(each.path)} for each in found.beside)
        if found
        else (),
    }


def install_systems(
    names: Sequence[str], reports: Reporter | None = None, cache: Cache | None = None
) -> list[Installed]:
    """Build the named systems from source, in the order given, each once.

    Raises UserError for names that are unknown or not built this way, before anything starts;
    else what `wanlat.systems.install.install` raises.
    """
    recipes = [_recipe(name) for name in _each_once(names)]
    return install(recipes, cache or Cache.from_environment(), reports or reporter())


def _recipe(name: str) -> Recipe:
    if name == grpcurl.NAME:
        return grpcurl.RECIPE
    system = registry.get(name)
    if system.recipe is None:
        able = [each.name for each in registry.SYSTEMS.values() if each.recipe]
        raise UserError(
            f"{system.title} is not installed by this command, which builds "
            f"{listing([*able, grpcurl.NAME])}. To get it: {system.how_to_get}"
        )
    return system.recipe


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
