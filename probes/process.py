"""How the probe's process is started: inside a lab, or right here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Protocol


class Process(Protocol):
    """A running program, as ``wanlat.emulator.lab.Process`` is one."""

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or None while it runs."""

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit code. Raises TimeoutError."""

    def kill(self) -> object:
        """Send SIGKILL."""


Spawn = Callable[[list[str], int, int, int], Process]
"""Starts ``argv`` with these file descriptors as its stdin, stdout and stderr, and returns at
once. The descriptors stay the caller's."""


class Here:
    """A process on this machine, in no lab."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.poll = process.poll
        self.kill = process.kill

    def wait(self, timeout_s: float | None = None) -> int:
        """Return the exit code. Raises TimeoutError."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from error


def spawn_here(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
    """Start a program on this machine, in no lab: a ``Spawn``."""
    return Here(subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr))
