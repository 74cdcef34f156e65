"""What `wanlat systems list` and `wanlat systems install` do, by the names of systems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from systems import registry
from systems.base import System
from systems.cache import Cache
from systems.errors import SystemMissing
from systems.install import Damaged, Installed, install
from systems.progress import Reporter, reporter
from topologies.errors import UserError
from topologies.wording import listing


@dataclass(frozen=True)
class Entry:
    """One system, as it is on this machine. Absent things are None."""

    name: str
    title: str
    origin: str
    installed: bool
    version: str | None
    pinned: str | None
    """The version that `wanlat systems install` builds."""
    sha256: str | None
    path: str | None
    get: str
    """How to get it."""
    problem: str | None
    """Why it cannot be used, where it should be there."""

    def as_json(self) -> dict[str, Any]:
        """Return the entry for ``--json``."""
        return asdict(self)


def list_systems() -> list[Entry]:
    """Look for every system's binary on this machine; hashes are computed, not remembered."""
    return [_entry(system) for system in registry.SYSTEMS.values()]


def _entry(system: System[Any]) -> Entry:
    found, problem = None, None
    try:
        found = system.find()
    except (SystemMissing, Damaged) as error:
        problem = str(error)
    return Entry(
        name=system.name,
        title=system.title,
        origin=system.origin,
        installed=found is not None,
        version=found.version if found else None,
        pinned=system.recipe.version if system.recipe else None,
        sha256=found.sha256 if found else None,
        path=str(found.path) if found else None,
        get=system.how_to_get,
        problem=problem,
    )


def install_systems(
    names: Sequence[str], reports: Reporter | None = None, cache: Cache | None = None
) -> list[Installed]:
    """Build the named systems from source, in the order given, each once.

    Raises UserError for names that are unknown or not built this way, before anything starts;
    else what `systems.install.install` raises.
    """
    recipes = []
    for name in _each_once(names):
        system = registry.get(name)
        if system.recipe is None:
            able = listing(s.name for s in registry.SYSTEMS.values() if s.recipe)
            raise UserError(
                f"{system.title} is not installed by this command, which builds {able}. "
                f"To get it: {system.how_to_get}"
            )
        recipes.append(system.recipe)
    return install(recipes, cache or Cache.from_environment(), reports or reporter())


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
