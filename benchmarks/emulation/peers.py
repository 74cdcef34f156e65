"""The emulators of others that take part: which versions, and how they are built."""

from __future__ import annotations

import re
from pathlib import Path

from wanlat.systems.binary import Binary, from_cache, from_path, from_setting, said
from wanlat.systems.cache import Cache
from wanlat.systems.errors import SystemMissing
from wanlat.systems.gobuildinfo import main_module_version
from wanlat.systems.install import install
from wanlat.systems.progress import reporter
from wanlat.systems.recipe import CargoInstall, GoInstall, Recipe


def _rattan_version(binary: Path) -> str:
    printed, complained = said(binary, "--version")
    found = re.search(r"([0-9]+\.[0-9]+\.[0-9]+\S*)", printed + complained)
    if found is None:
        raise SystemMissing(f"{binary} does not look like rattan: it says {printed[:80]!r}.")
    return found[1]


def _toxiproxy_version(binary: Path) -> str:
    return main_module_version(binary) or "unknown"


RATTAN = CargoInstall(
    name="rattan",
    version="0.1.1",
    binary="rattan",
    read_version=_rattan_version,
    minutes=6,
    disk_bytes=1_500_000_000,
    crate="rattan",
)
TOXIPROXY = GoInstall(
    name="toxiproxy",
    version="v2.5.0",
    # `go install` names the binary after the package's directory.
    binary="server",
    read_version=_toxiproxy_version,
    minutes=1,
    disk_bytes=300_000_000,
    module="github.com/Shopify/toxiproxy/v2/cmd/server",
)


def build() -> None:
    """Build both into the user's cache, where they are not yet. Raises MachineError."""
    install([RATTAN, TOXIPROXY], Cache.from_environment(), reporter())


def find(recipe: Recipe) -> Binary:
    """Return the one the environment names, else the one on PATH, else the built one.

    Raises SystemMissing when there is none.
    """
    named = from_setting(recipe.name, recipe.read_version)
    on_path = from_path(recipe.name, recipe.read_version)
    return named or on_path or from_cache(recipe)
