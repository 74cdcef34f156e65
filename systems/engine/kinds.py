"""Where programs come from: for each kind of package, the commands that put one into a directory.

Running them, resuming and placing the result is `wanlat.systems.engine.install`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from wanlat.emulator.interpreter import which
from wanlat.emulator.process import how_it_ended
from wanlat.emulator.reaper import run
from wanlat.systems.engine.definition import Install
from wanlat.systems.engine.text import numbers
from wanlat.systems.errors import SystemMissing
from wanlat.topologies.errors import MachineError
from wanlat.topologies.wording import printable

_ANSWER_S = 30
_MOST_SHOWN = 200


@dataclass(frozen=True)
class Place:
    """Directories a build may use: ``out`` is kept, ``work`` survives interruption."""

    out: Path
    work: Path


def version_output(
    path: Path | str, *arguments: str, environment: dict[str, str] | None = None
) -> str:
    """Run a program that prints its version; return all it prints. Raises SystemMissing."""
    call = shlex.join([str(path), *arguments])
    try:
        # stdin closed and a limit: a shim that asks questions must not hang the command.
        done = run(
            [path, *arguments],
            timeout_s=_ANSWER_S,
            check=True,
            cwd="/",  # cargo and others run what a file where the user stands names
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | environment if environment else None,
        )
    except OSError as error:
        why = str(error.strerror)
    except subprocess.TimeoutExpired:
        why = f"`{call}` did not end within {_ANSWER_S} s"
    except subprocess.CalledProcessError as error:
        printed = printable(" ".join(str(error.output).split()))[-_MOST_SHOWN:]
        why = f"`{call}` {how_it_ended(error.returncode)}{f': {printed}' if printed else ''}"
    else:
        return done.stdout
    raise SystemMissing(f"{path} does not tell its version: {why}")


_ESSENTIAL = "on Debian and Ubuntu `sudo apt install build-essential`."
TOOLS = {
    "cargo": "Install Rust with rustup (https://rustup.rs); one that is too old: `rustup update`.",
    "go": "Install Go from https://go.dev/dl, or a newer one beside it.",
    "cc": f"Install a C compiler: {_ESSENTIAL}",
    "make": f"Install make: {_ESSENTIAL}",
    **dict.fromkeys(
        ("apt-get", "dpkg"), "On Debian and Ubuntu, whose packages these are, it is there."
    ),
    "mvn": "Install Maven: on Debian and Ubuntu `sudo apt install maven`.",
}
"""Programs that builds need, and how to get them."""


def check_tool(name: str, purpose: str, oldest: str | None = None) -> str:
    """Return the first line a program prints about its version.

    Raises MachineError when it is absent, does not run, or is too old.
    """
    needs, way_out = f"{purpose} needs `{name}`", TOOLS[name]
    program = which(name)
    if program is None:
        raise MachineError(f"{needs}, which is not on PATH. {way_out}")
    try:
        output = version_output(program, "version" if name == "go" else "--version")
    except SystemMissing as error:
        raise MachineError(f"{needs}, and {error}. {way_out}") from error
    line = next(iter(output.strip().splitlines()), "")
    if oldest and numbers(line) < numbers(oldest):
        raise MachineError(f"{needs} {oldest} or newer; this machine has: {line}. {way_out}")
    return line


@dataclass(frozen=True)
class Kind:
    """How one kind of package is brought here, as data and three small functions."""

    tools: tuple[str, ...]
    what: str
    commands: Callable[[Install, Place], list[list[str]]]
    environment: Callable[[Install, Place], dict[str, str]] = lambda _, __: {}
    at: str = "bin"
    """Where in ``out`` the program is, as a pattern before its name."""
    needed: Callable[[Path], dict[str, str]] = lambda _: {}
    """What its environment needs where it was put."""
    exact: Callable[[Install, Path], str] = lambda install, _: install.version
    """Which version it is, where the requested one leaves that open (`15.*`)."""
    packages: Callable[[Path], dict[str, str]] = lambda _: {}
    """The versions of all packages that were installed, by their names."""


def _cargo(install: Install, place: Place) -> list[list[str]]:
    pinned = [install.source, "--version", install.version, "--locked"]
    features = ["--features", ",".join(install.features)] if install.features else []
    return [["cargo", "install", *pinned, *features, "--root", str(place.out)]]


def _go(install: Install, _: Place) -> list[list[str]]:
    build = Path(__file__).with_name("go_build.py")
    return [[sys.executable, "-I", str(build), install.source, install.version]]


def _go_environment(install: Install, place: Place) -> dict[str, str]:
    # Without cgo the binary is static.
    return {"GOBIN": str(place.out / "bin"), "CGO_ENABLED": str(int("cc" in install.needs))}


_PACKAGES = "packages"
"""What was unpacked, in which versions."""


def _debian(install: Install, place: Place) -> list[list[str]]:
    packages = [f"{install.source}={install.version}", *install.also]
    unpack = (
        'for each in *.deb; do dpkg -x "$each" "$0"; '
        f'dpkg -f "$each" Package Version >> "$0/{_PACKAGES}"; done'
    )
    # What an interrupted install left may be of another version: that of `15.*` moves on.
    download = ["sh", "-ec", 'rm -f ./*.deb; exec apt-get download "$@"', "apt-get"]
    return [[*download, *packages], ["sh", "-ec", unpack, str(place.out)]]


def _debian_packages(out: Path) -> dict[str, str]:
    words = re.findall(r"^(?:Package|Version): (.*)$", (out / _PACKAGES).read_text(), re.MULTILINE)
    return dict(zip(words[::2], words[1::2], strict=True))


def _debian_version(install: Install, out: Path) -> str:
    return _debian_packages(out)[install.source]


def _debian_needs(out: Path) -> dict[str, str]:
    libraries = {file.parent for file in out.glob("usr/lib/**/*.so*")}
    libraries |= set(out.glob("lib/*-linux-*"))
    return {"LD_LIBRARY_PATH": ":".join(sorted(map(str, libraries)))} if libraries else {}


def _pypi(install: Install, place: Place) -> list[list[str]]:
    packages = [f"{install.source}=={install.version}", *install.also]
    pip = [sys.executable, "-P", "-m", "pip", "install", "--disable-pip-version-check"]
    return [[*pip, "--target", str(place.out / "site"), *packages]]


def _pypi_packages(out: Path) -> dict[str, str]:
    packages = {its.name: its.version for its in distributions(path=[str(out / "site")])}
    return dict(sorted(packages.items()))


def unpinned(install: Install, packages: Mapping[str, str]) -> list[str]:
    """Return the packages that came with one of Python's and may be others the next time, as `also`
    would name them. (Debian has one version of each at a time.)
    """
    if install.pypi is None:
        return []
    pinned = {_plain(pin.partition("==")[0]) for pin in install.also if "==" in pin}
    pinned.add(_plain(install.pypi))
    others = {name: version for name, version in packages.items() if _plain(name) not in pinned}
    return [f"{name}=={version}" for name, version in others.items()]


def _plain(name: str) -> str:
    """Return a package's name as PEP 503 compares it, without extras."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0].strip()).lower()


def _maven(install: Install, place: Place) -> list[list[str]]:
    jars = [f"{install.source}:{install.version}", *install.also]
    copy = ["mvn", "-B", "dependency:copy", f"-DoutputDirectory={place.out / 'jars'}"]
    return [[*copy, f"-Dartifact={jar}"] for jar in jars]


KINDS: dict[str, Kind] = {
    "cargo": Kind(
        tools=("cargo",),
        what="crate {0.source} {0.version}",
        commands=_cargo,
        # Compiled crates stay where an interrupted build left them.
        environment=lambda _, place: {
            "CARGO_TARGET_DIR": str(place.work / "target"),
            "CARGO_TERM_COLOR": "never",
        },
    ),
    "go": Kind(
        tools=("go",),
        what="Go module {0.source}@{0.version}",
        commands=_go,
        environment=_go_environment,  # Go's own build cache survives interruption
    ),
    "debian": Kind(
        tools=("apt-get", "dpkg"),
        what="Debian package {0.source} {0.version}",
        commands=_debian,
        at="**/*bin",
        needed=_debian_needs,
        exact=_debian_version,
        packages=_debian_packages,
    ),
    "pypi": Kind(
        tools=(),
        what="Python package {0.source} {0.version}",
        commands=_pypi,
        at="site/bin",
        needed=lambda out: {"PYTHONPATH": str(out / "site")},
        packages=_pypi_packages,
    ),
    "maven": Kind(
        tools=("mvn",),
        what="Maven artifact {0.source}:{0.version}",
        commands=_maven,
        at="jars",
        needed=lambda out: {"CLASSPATH": f"{out}/jars/*"},
    ),
}
