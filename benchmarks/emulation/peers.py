"""The emulators of others that take part: which versions, and how they are built."""

from __future__ import annotations

from pathlib import Path

from wanlat.systems.engine.cache import Cache
from wanlat.systems.engine.definition import Install, Program, Version
from wanlat.systems.engine.install import install
from wanlat.systems.engine.program import Binary
from wanlat.systems.engine.program import find as find_program
from wanlat.systems.engine.progress import Reporter
from wanlat.systems.engine.system import recipe_of
from wanlat.topologies.units import Size

RATTAN = Program(
    name="rattan",
    install=Install(
        cargo="rattan", version="0.1.1", path_too=True, minutes=6, disk=Size(1_500_000_000)
    ),
)
TOXIPROXY = Program(
    name="toxiproxy",
    install=Install(
        go="github.com/Shopify/toxiproxy/v2/cmd/server", version="v2.5.0", path_too=True
    ),
    version=Version(match="(?!)"),  # only the linker's record tells it
)


def build() -> None:
    """Build both into the user's cache, where they are not yet. Raises MachineError."""
    recipes = [recipe_of(peer, peer.name) for peer in (RATTAN, TOXIPROXY)]
    install([each for each in recipes if each], Cache.from_environment(), Reporter())


def find(peer: Program) -> Binary:
    """Return the one the environment names, else the one on PATH, else the built one.

    Raises SystemMissing when there is none.
    """
    return find_program(peer, Path())
