"""What `wanlat system list` and `wanlat system install` do, by the names of systems and tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from wanlat.systems import registry
from wanlat.systems.engine.cache import Cache
from wanlat.systems.engine.defined import recipe_of
from wanlat.systems.engine.definition import Program
from wanlat.systems.engine.install import Installed, Recipe, install
from wanlat.systems.engine.program import Binary, how_to_get
from wanlat.systems.engine.progress import Reporter
from wanlat.systems.engine.system import System
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.wording import listing


@dataclass(frozen=True)
class Entry:
    """One system, or a tool to check with, as it is on this machine. Absent things are None.

    ``pinned`` is the version that `wanlat system install` builds, ``get`` how to get it,
    ``problem`` why it cannot be used where it should be there, ``beside`` the programs that run
    with it.
    """

    kind: Literal["system", "tool"]
    name: str
    title: str
    origin: str
    installed: bool
    version: str | None
    pinned: str | None
    sha256: str | None
    path: str | None
    get: str
    problem: str | None
    beside: tuple[dict[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the entry for ``--json``."""
        return asdict(self)


def list_systems() -> list[Entry]:
    """Look for every system's binary on this machine; hashes are computed, not remembered."""
    return [entry_of(system) for system in registry.every()]


def list_tools() -> list[Entry]:
    """Look for every tool, likewise."""
    return [
        _entry("tool", tool, partial(registry.find_tool, name), how_to_get(tool))
        for name, tool in registry.tools().items()
    ]


def entry_of(system: System) -> Entry:
    """Look for one system's binary, likewise."""
    return _entry("system", system.definition, system.find, system.how_to_get)


def _entry(
    kind: Literal["system", "tool"], program: Program, find: Callable[[], Binary], get: str
) -> Entry:
    binary, problem = None, None
    try:
        binary = find()
    except MachineError as error:
        problem = str(error)
    recipe, beside = recipe_of(program, program.name), binary.beside if binary else ()
    return Entry(
        kind=kind,
        name=program.name,
        title=program.title or program.name,
        origin=program.origin,
        installed=binary is not None,
        version=binary.version if binary else None,
        pinned=recipe.version if recipe else None,
        sha256=binary.sha256 if binary else None,
        path=str(binary.path) if binary else None,
        get=get,
        problem=problem,
        beside=tuple({**its.as_recorded(), "path": str(its.path)} for its in beside),
    )


def install_systems(names: Sequence[str], reports: Reporter | None = None) -> list[Installed]:
    """Build the named systems from source, in the order given, each once; and what stands before.

    A user's own is named by its directory. Raises UserError for names that are unknown or not
    built this way, before anything starts; else what `wanlat.systems.engine.install.install`
    raises.
    """
    recipes = {recipe.name: recipe for name in names for recipe in _recipes(name)}
    return install([*recipes.values()], Cache.from_environment(), reports or Reporter())


def _recipes(name: str) -> list[Recipe]:
    tools = registry.tools()
    system = None if name in tools else registry.get(registry.adopt(name))
    recipe = system.recipe if system else recipe_of(tools[name], name)
    if recipe is None:
        assert system is not None
        able = [known.name for known in registry.every() if known.recipe]
        raise UserError(
            f"{system.title} is not installed by this command, which builds "
            f"{listing([*able, *tools])}. To get it: {system.how_to_get}"
        )
    front = system.front_recipe if system else None
    return [recipe, *([front] if front else [])]
