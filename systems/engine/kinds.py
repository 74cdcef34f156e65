"""Where programs come from: for each kind of package, the commands that put one into a directory.

What they print is read for progress. Running them, resuming and placing the result is
`wanlat.systems.engine.install`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wanlat.systems.engine.definition import Install
from wanlat.systems.engine.text import numbers
from wanlat.topologies.errors import MachineError

_ANSWER_S = 30
_DEBIAN = "Debian's packages are unpacked with it: on Debian and Ubuntu it is there."


@dataclass(frozen=True)
class Step:
    """How far a build is: units done, units in all (None when unknown), and what it does now."""

    done: int | None
    total: int | None
    doing: str


@dataclass(frozen=True)
class Place:
    """Directories a build may use: ``out`` is kept, ``work`` survives interruption."""

    out: Path
    work: Path


@dataclass(frozen=True)
class Tool:
    """A program a build needs: what prints its version, and how to get it."""

    version_command: tuple[str, ...]
    way_out: str

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.version_command[0]

    def check(self, purpose: str, oldest: str | None = None) -> str:
        """Return the first line the program prints about its version.

        Raises MachineError when it is absent, does not run, or is too old.
        """
        needs = f"{purpose} needs `{self.name}`"
        if shutil.which(self.name) is None:
            raise MachineError(f"{needs}, which is not on PATH. {self.way_out}")
        try:
            # stdin closed and a limit: a shim that asks questions must not hang the command.
            done = subprocess.run(
                self.version_command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_ANSWER_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MachineError(f"{needs}, and it does not run: {error}. {self.way_out}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise MachineError(
                f"{needs}, and `{' '.join(self.version_command)}` failed: "
                f"{said[0] if said else f'exit code {done.returncode}'}. {self.way_out}"
            )
        line = next(iter(done.stdout.strip().splitlines()), "")
        if oldest and numbers(line) < numbers(oldest):
            raise MachineError(
                f"{needs} {oldest} or newer; this machine has: {line}. {self.way_out}"
            )
        return line


_ESSENTIAL = "on Debian and Ubuntu `sudo apt install build-essential`."
TOOLS = {
    "cargo": Tool(
        ("cargo", "--version"),
        "Install Rust with rustup (https://rustup.rs); one that is too old: `rustup update`.",
    ),
    "go": Tool(("go", "version"), "Install Go from https://go.dev/dl, or a newer one beside it."),
    "cc": Tool(("cc", "--version"), f"Install a C compiler: {_ESSENTIAL}"),
    "make": Tool(("make", "--version"), f"Install make: {_ESSENTIAL}"),
    "apt-get": Tool(("apt-get", "--version"), _DEBIAN),
    "dpkg": Tool(("dpkg", "--version"), _DEBIAN),
    "mvn": Tool(
        ("mvn", "--version"), "Install Maven: on Debian and Ubuntu `sudo apt install maven`."
    ),
}


@dataclass(frozen=True)
class Kind:
    """How one kind of package is brought here, as data and three small functions."""

    tools: tuple[str, ...]
    what: str
    commands: Callable[[Install, Place], list[list[str]]]
    environment: Callable[[Place], dict[str, str]] = lambda _: {}
    progress: Callable[[str, Step], Step | None] = lambda _line, _before: None
    at: str = "bin"
    """Where in ``out`` the program is, as a pattern before its name."""
    needed: Callable[[Path], dict[str, str]] = lambda _: {}
    """What its environment needs where it was put."""


def _cargo(install: Install, place: Place) -> list[list[str]]:
    pinned = [install.source, "--version", install.version, "--locked"]
    return [["cargo", "install", *pinned, "--root", str(place.out)]]


def _cargo_progress(line: str, before: Step) -> Step | None:
    """Read cargo's status lines and its progress bar."""
    bar = re.search(r"Building \[.*\] (\d+)/(\d+)(?:: (.*))?", line)
    if bar:
        doing = f"compiling {bar[3]}" if bar[3] else before.doing
        return Step(int(bar[1]), int(bar[2]), doing)
    status = re.match(r"\s+(Updating|Downloading|Downloaded|Installing) (.*)", line)
    if status:
        return Step(before.done, before.total, f"{status[1].lower()} {status[2]}")
    return None


def _go(install: Install, _: Place) -> list[list[str]]:
    return [["go", "install", "-v", "-trimpath", f"{install.source}@{install.version}"]]


def _go_progress(line: str, before: Step) -> Step | None:
    """Count the packages that `-v` names; how many there will be is not known."""
    if line.startswith("go: downloading "):
        return Step(before.done, None, line.removeprefix("go: "))
    if re.fullmatch(r"[A-Za-z0-9_.~/@-]+", line):
        return Step((before.done or 0) + 1, None, f"compiling {line}")
    return None


def _debian(install: Install, place: Place) -> list[list[str]]:
    packages = [f"{install.source}={install.version}", *install.also]
    unpack = 'for each in *.deb; do dpkg -x "$each" "$0"; done'
    return [["apt-get", "download", *packages], ["sh", "-ec", unpack, str(place.out)]]


def _debian_needs(out: Path) -> dict[str, str]:
    found = {each.parent for each in out.glob("usr/lib/**/*.so*")} | set(out.glob("lib/*-linux-*"))
    return {"LD_LIBRARY_PATH": ":".join(sorted(map(str, found)))} if found else {}


def _pypi(install: Install, place: Place) -> list[list[str]]:
    packages = [f"{install.source}=={install.version}", *install.also]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    return [[*pip, "--target", str(place.out / "site"), *packages]]


def _maven(install: Install, place: Place) -> list[list[str]]:
    jars = [f"{install.source}:{install.version}", *install.also]
    copy = ["mvn", "-B", "dependency:copy", f"-DoutputDirectory={place.out / 'jars'}"]
    return [[*copy, f"-Dartifact={jar}"] for jar in jars]


KINDS: dict[str, Kind] = {
    "cargo": Kind(
        tools=("cargo",),
        what="crate {0.source} {0.version}",
        commands=_cargo,
        # Compiled crates stay where an interrupted build left them. Cargo counts its units itself;
        # it only has to be told that somebody is looking.
        environment=lambda place: {
            "CARGO_TARGET_DIR": str(place.work / "target"),
            "CARGO_TERM_PROGRESS_WHEN": "always",
            "CARGO_TERM_PROGRESS_WIDTH": "100",
            "CARGO_TERM_COLOR": "never",
        },
        progress=_cargo_progress,
    ),
    "go": Kind(
        tools=("go",),
        what="Go module {0.source}@{0.version}",
        commands=_go,
        # Go's own build cache survives interruption; without cgo the binary is static.
        environment=lambda place: {"GOBIN": str(place.out / "bin"), "CGO_ENABLED": "0"},
        progress=_go_progress,
    ),
    "debian": Kind(
        tools=("apt-get", "dpkg"),
        what="Debian package {0.source} {0.version}",
        commands=_debian,
        at="**/*bin",
        needed=_debian_needs,
    ),
    "pypi": Kind(
        tools=(),
        what="Python package {0.source} {0.version}",
        commands=_pypi,
        at="site/bin",
        needed=lambda out: {"PYTHONPATH": str(out / "site")},
    ),
    "maven": Kind(
        tools=("mvn",),
        what="Maven artifact {0.source}:{0.version}",
        commands=_maven,
        at="jars",
        needed=lambda out: {"CLASSPATH": f"{out}/jars/*"},
    ),
}
