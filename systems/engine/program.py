"""The program of a store on this machine: where it is, which version, which hash."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanlat.emulator.binaries import binary as built_program
from wanlat.emulator.interpreter import which
from wanlat.systems.engine.cache import Cache, Receipt, sha256_of, state_of
from wanlat.systems.engine.definition import SHIPPED, Program
from wanlat.systems.engine.install import find_installed
from wanlat.systems.engine.kinds import version_output
from wanlat.systems.engine.text import numbers
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.errors import MachineError
from wanlat.topologies.wording import in_words, listing, printable


@dataclass(frozen=True)
class Binary:
    """What will run, and what goes into the bundle.

    ``version`` names it without doubt; ``label`` is the short form for a chart; ``beside`` are
    the programs that run with it; ``environment`` is what it needs to run where it was put.
    """

    path: Path
    version: str
    sha256: str
    label: str = ""
    beside: tuple[Companion, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    receipt: Receipt | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.version)

    def as_recorded(self, name: str) -> dict[str, Any]:
        """Return it for a bundle's manifest, under the name of the system."""
        return _recorded(name, self.version, self.sha256, self.receipt)


@dataclass(frozen=True)
class Companion:
    """A program that runs beside a store's own and is recorded as it is: nginx before MinIO."""

    name: str
    path: Path
    version: str
    sha256: str
    environment: tuple[tuple[str, str], ...] = ()
    receipt: Receipt | None = field(default=None, compare=False, repr=False)

    def as_recorded(self) -> dict[str, Any]:
        """Return it for a bundle's manifest."""
        return _recorded(self.name, self.version, self.sha256, self.receipt)


def _recorded(name: str, version: str, sha256: str, receipt: Receipt | None) -> dict[str, Any]:
    program: dict[str, Any] = {"name": name, "version": version, "sha256": sha256}
    if receipt is not None:
        program |= {"files_sha256": receipt.files_sha256, "packages": receipt.packages}
        program |= {"toolchain": receipt.toolchain}
    return program


def setting(name: str) -> str:
    """Return the environment variable that names another binary of a system."""
    return f"WANLAT_{name.upper().replace('-', '_')}_BINARY"


def how_to_get(program: Program, directory: Path = SHIPPED) -> str:
    """Return the command, or what else to do, that brings a program to this machine.

    ``directory`` is its definition's.
    """
    own = setting(program.name)
    if program.get:
        return program.get.format(setting=own)
    if program.install and program.install.kind == "path":
        return f"put it on PATH or into {directory}, or name it with {own}"
    return _install_command(program.name, directory)


def _install_command(name: str, directory: Path) -> str:
    is_shipped = SHIPPED in (directory, directory.parent)
    return f"wanlat system install {name if is_shipped else directory}"


_NOT_ON_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where services are put, and not everybody looks."""


def find(program: Program, directory: Path, name: str | None = None) -> Binary:
    """Return the binary that the environment names, else the one that is there or was installed.

    ``directory`` is the definition's; ``name`` that of the system with this program, if another's.
    Raises SystemMissing with how to get it, and MachineError when it was changed.
    """
    install, title = program.install, program.title or program.name
    known = name or program.name
    if named := os.environ.get(setting(known)):
        path = Path(named).expanduser().absolute()
        if path.is_file() and os.access(path, os.X_OK):
            return of_file(program, path)
        raise SystemMissing(
            f"{setting(known)} names {path}, which is not a program. "
            f"Correct it, or remove it from the environment to use the installed {known}."
        )
    if install is None:
        way_out = how_to_get(program, directory)
        raise SystemMissing(f"{title} is not on this machine. To get it: {way_out}.")
    if install.kind == "checkout":
        try:
            return of_file(program, built_program(install.source))
        except MachineError as error:
            raise SystemMissing(str(error)) from error
    if install.kind == "path":
        own = directory / install.source
        place = str(own) if own.is_file() else which(install.source)
        place = place or next((other for other in install.also if Path(other).is_file()), None)
        if place is None:
            places = listing([f"there is no `{install.source}` on PATH", *install.also], "nor")
            way_out = how_to_get(program, directory)
            raise SystemMissing(f"{title} is not on this machine: {places}. To get it: {way_out}.")
        return of_file(program, Path(place).absolute())
    on_path = which(install.file) or shutil.which(install.file, path=_NOT_ON_PATH)
    if install.path_too and on_path:
        return of_file(program, Path(on_path).absolute())
    there = find_installed(known, install, Cache.from_environment())
    if there is None:
        raise SystemMissing(
            f"{known} {install.version} is not on this machine. Build it "
            f"({install.takes}): {_install_command(known, directory)}"
        )
    version = there.receipt.version
    its = there.receipt
    return Binary(
        there.path,
        version,
        its.sha256,
        label(program, version),
        environment=there.environment,
        receipt=its,
    )


_KNOWN: dict[tuple[object, ...], Binary] = {}


def of_file(program: Program, path: Path) -> Binary:
    """Return a binary with its version, read again where its file was changed since.

    Raises SystemMissing.
    """
    try:
        as_it_is = state_of(path)
    except OSError as error:
        raise SystemMissing(f"{path} does not tell its version: {in_words(error)}") from error
    key = (program.name, repr(program.version), path, *as_it_is)
    if key not in _KNOWN:
        version = read_version(program, path)
        _KNOWN[key] = Binary(path, version, sha256_of(path), label(program, version))
    return _KNOWN[key]


def label(program: Program, version: str) -> str:
    """Return what a chart calls a version."""
    match = program.version.label and re.search(program.version.label, version)
    return "-".join(match.groups()) if match else version


def read_version(program: Program, path: Path, environment: dict[str, str] | None = None) -> str:
    """Run a program for its version; where a Go program prints none, read the linker's record.

    Raises SystemMissing when it cannot be run, is another program, or is too old.
    """
    if program.version.is_:
        return program.version.is_
    go = program.install.go if program.install else None
    record = go_version(path, go) if go else None
    title = program.title or program.name
    way_out = "Correct `version` of its definition; of a program that never tells, `is:` says it."
    try:
        output = version_output(path, *program.version.run, environment=environment)
    except SystemMissing as error:
        if record is None:
            raise SystemMissing(f"{error}. {way_out}") from error
        output = ""
    match = re.search(program.version.match, output, re.MULTILINE)
    version = match[1] if match else record
    if not version:
        line = printable(next(iter(output.strip().splitlines()), ""))
        raise SystemMissing(
            f"{path} does not look like {title}: its version is {line!r}. {way_out}"
        )
    oldest = program.version.oldest
    if oldest and numbers(version) < numbers(oldest):
        raise SystemMissing(
            f"{path} is {title} {version}; {oldest} is the oldest that will do. Install a newer "
            f"one, or name it with {setting(program.name)}."
        )
    return version


def go_version(path: Path, package: str) -> str | None:
    """Return the version of the module that a binary was made from, if that has the package.

    Such as ``v1.2.3``; None when Go's linker left no record (src/debug/buildinfo in Go's source),
    or it is of another module.
    """
    modules = re.findall(rb"\n(?:mod|dep)\t(\S+)\t(\S+)", path.read_bytes())
    versions = {str(mod, "utf-8", "replace"): str(version, "utf-8") for mod, version in modules}
    having = [mod for mod in versions if f"{package}/".startswith(f"{mod}/")]
    version = versions[max(having, key=len)] if having else "(devel)"
    return None if version == "(devel)" else version
