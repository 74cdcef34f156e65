"""How one version of a store is built from a package registry.

A recipe is data and four small answers: the command, its environment, what a line of its output
says about progress, and how to ask the finished binary for its version. Running it, resuming it
and placing the result is `wanlat.systems.install`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wanlat.systems.tools import C_COMPILER, CARGO, GO, MAKE, Tool


@dataclass(frozen=True)
class Step:
    """How far a build is: units done, units in all (None when unknown), and what it does now."""

    done: int | None
    total: int | None
    doing: str


@dataclass(frozen=True)
class Place:
    """Directories a build may use: ``out/bin`` gets the binary, ``work`` survives interruption."""

    out: Path
    work: Path


@dataclass(frozen=True)
class Recipe(ABC):
    """One version of a store and how to build it."""

    name: str
    version: str
    binary: str
    read_version: Callable[[Path], str]
    minutes: int  # about, on two cores; for the message only
    disk_bytes: int  # while building
    tools: tuple[Tool, ...] = field(default=(), kw_only=True)

    @property
    def title(self) -> str:
        """Name and version, as messages say it."""
        return f"{self.name} {self.version}"

    @property
    @abstractmethod
    def source(self) -> str:
        """Where the source comes from, for people."""

    @abstractmethod
    def command(self, place: Place) -> list[str]:
        """Return the command that builds into ``place.out / "bin"``."""

    @abstractmethod
    def environment(self, place: Place) -> dict[str, str]:
        """Return what to add to the environment of the command."""

    @abstractmethod
    def progress(self, line: str, before: Step) -> Step | None:
        """Return how far the build is after one more line of its output, None for no news."""


@dataclass(frozen=True)
class CargoInstall(Recipe):
    """A program from the Rust package registry, with the dependency versions its author locked."""

    crate: str = field(kw_only=True)
    tools: tuple[Tool, ...] = field(default=(CARGO, C_COMPILER, MAKE), kw_only=True)

    @property
    def source(self) -> str:
        """The crate."""
        return f"crate {self.crate} {self.version}"

    def command(self, place: Place) -> list[str]:
        """Return ``cargo install --locked`` of the pinned version."""
        pinned = [self.crate, "--version", self.version, "--locked"]
        return ["cargo", "install", *pinned, "--root", str(place.out)]

    def environment(self, place: Place) -> dict[str, str]:
        """Keep compiled crates in ``place.work``, so that an interrupted build goes on."""
        return {
            "CARGO_TARGET_DIR": str(place.work / "target"),
            # Cargo counts its units itself, also those that are compiled already; it only has
            # to be told that somebody is looking.
            "CARGO_TERM_PROGRESS_WHEN": "always",
            "CARGO_TERM_PROGRESS_WIDTH": "100",
            "CARGO_TERM_COLOR": "never",
        }

    def progress(self, line: str, before: Step) -> Step | None:
        """Read cargo's status lines and its progress bar."""
        bar = re.search(r"Building \[.*\] (\d+)/(\d+)(?:: (.*))?", line)
        if bar:
            crates = bar[3] or before.doing
            return Step(int(bar[1]), int(bar[2]), f"compiling {crates}" if bar[3] else crates)
        status = re.match(r"\s+(Updating|Downloading|Downloaded|Installing) (.*)", line)
        if status:
            return Step(before.done, before.total, f"{status[1].lower()} {status[2]}")
        return None


@dataclass(frozen=True)
class GoInstall(Recipe):
    """A program from a Go module, at a pinned version."""

    module: str = field(kw_only=True)
    tools: tuple[Tool, ...] = field(default=(GO,), kw_only=True)

    @property
    def source(self) -> str:
        """The module."""
        return f"Go module {self.module}@{self.version}"

    def command(self, place: Place) -> list[str]:  # noqa: ARG002 - GOBIN says where
        """Return ``go install`` of the pinned version, naming packages as they are compiled."""
        return ["go", "install", "-v", "-trimpath", f"{self.module}@{self.version}"]

    def environment(self, place: Place) -> dict[str, str]:
        """Go keeps compiled packages in its own build cache, which survives interruption."""
        return {
            "GOBIN": str(place.out / "bin"),
            # As the makers' own Makefile: a static binary, no C compiler needed.
            "CGO_ENABLED": "0",
        }

    def progress(self, line: str, before: Step) -> Step | None:
        """Count the packages that `-v` names; how many there will be is not known."""
        if line.startswith("go: downloading "):
            return Step(before.done, None, line.removeprefix("go: "))
        if re.fullmatch(r"[A-Za-z0-9_.~/@-]+", line):
            return Step((before.done or 0) + 1, None, f"compiling {line}")
        return None
