"""The program of a store on this machine: where it is, which version, which hash."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wanlat.systems.cache import Cache
from wanlat.systems.errors import SystemMissing
from wanlat.systems.install import find_installed
from wanlat.systems.receipt import sha256_of
from wanlat.systems.recipe import Recipe

_ANSWER_S = 20


@dataclass(frozen=True)
class Companion:
    """A program that runs beside a store's own and is recorded as it is: nginx before MinIO."""

    name: str
    path: Path
    version: str
    sha256: str

    def as_recorded(self) -> dict[str, str]:
        """Return it for a bundle's manifest."""
        return {"name": self.name, "version": self.version, "sha256": self.sha256}


@dataclass(frozen=True)
class Binary:
    """What will run, and what goes into the bundle.

    ``version`` names it without doubt; ``label`` is the short form for a chart; ``beside`` are
    the programs that run with it.
    """

    path: Path
    version: str
    sha256: str
    label: str = ""
    beside: tuple[Companion, ...] = ()

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.version)


def setting(name: str) -> str:
    """Return the environment variable that names another binary of a system."""
    return f"WANLAT_{name.upper()}_BINARY"


def from_setting(name: str, read_version: Callable[[Path], str]) -> Binary | None:
    """Return the binary that the environment names, None when it names none.

    Raises SystemMissing when the variable names something that is not a program.
    """
    variable = setting(name)
    named = os.environ.get(variable)
    if not named:
        return None
    path = Path(named).expanduser().absolute()
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise SystemMissing(
            f"{variable} names {path}, which is not a program. "
            f"Correct it, or remove it from the environment to use the installed {name}."
        )
    return Binary(path, read_version(path), sha256_of(path))


def from_path(program: str, read_version: Callable[[Path], str]) -> Binary | None:
    """Return the program of that name on PATH, None when there is none.

    For what nobody can install from a registry. Its hash, in the bundle, tells which one it was.
    """
    found = shutil.which(program)
    if found is None:
        return None
    path = Path(found).absolute()
    return Binary(path, read_version(path), sha256_of(path))


def from_cache(recipe: Recipe) -> Binary:
    """Return the binary that `wanlat system install` built, its hash verified.

    Raises SystemMissing when it is not there, MachineError when it is not what was built.
    """
    found = find_installed(recipe, Cache.from_environment())
    if found is None:
        raise SystemMissing(
            f"{recipe.title} is not on this machine. Build it (about {recipe.minutes} minutes on "
            f"two cores): wanlat system install {recipe.name}"
        )
    return Binary(found.path, found.receipt.version, found.receipt.sha256)


def first_line(path: Path, *arguments: str) -> str:
    """Run a program that tells its version; return the first line it prints.

    Raises SystemMissing when it cannot be run.
    """
    return next(iter(said(path, *arguments)[0].splitlines()), "")


def said(path: Path, *arguments: str) -> tuple[str, str]:
    """Run a program that tells its version; return what it prints on stdout and on stderr.

    Raises SystemMissing when it cannot be run.
    """
    try:
        done = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SystemMissing(f"{path} does not tell its version: {error}") from error
    return done.stdout, done.stderr
