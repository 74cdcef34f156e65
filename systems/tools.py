"""The programs that a build needs, checked before anything slow starts."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

from wanlat.topologies.errors import MachineError

_ANSWER_S = 30


@dataclass(frozen=True)
class Tool:
    """A program a build needs.

    ``version_command`` prints a version; ``minimum`` is compared with the first dotted number in
    what it prints, or not at all when empty. ``way_out`` tells how to get it.
    """

    version_command: tuple[str, ...]
    way_out: str
    minimum: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.version_command[0]

    def check(self, purpose: str) -> str:
        """Return the first line the program prints about its version.

        Raises MachineError when it is absent, does not run, or is too old.
        """
        if shutil.which(self.name) is None:
            raise MachineError(
                f"{purpose} needs `{self.name}`, which is not on PATH. {self.way_out}"
            )
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
            raise MachineError(
                f"{purpose} needs `{self.name}`, and it does not run: {error}. {self.way_out}"
            ) from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise MachineError(
                f"{purpose} needs `{self.name}`, and `{' '.join(self.version_command)}` failed: "
                f"{said[0] if said else f'exit code {done.returncode}'}. {self.way_out}"
            )
        line = next(iter(done.stdout.strip().splitlines()), "")
        if self.minimum and numbers(line) < self.minimum:
            wanted = ".".join(map(str, self.minimum))
            raise MachineError(
                f"{purpose} needs `{self.name}` {wanted} or newer; this machine has: {line}. "
                f"{self.way_out}"
            )
        return line


def numbers(text: str) -> tuple[int, ...]:
    """Return the first dotted number in a text as a tuple, () when there is none."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


CARGO = Tool(
    ("cargo", "--version"),
    "Install Rust with rustup (https://rustup.rs), or bring it up to date with `rustup update`.",
    (1, 89),  # the highest rust-version among the crates that Garage 2.5.0 locks
)
C_COMPILER = Tool(
    ("cc", "--version"),
    "Install a C compiler: on Debian and Ubuntu `sudo apt install build-essential`.",
)
MAKE = Tool(
    ("make", "--version"),
    "Install make: on Debian and Ubuntu `sudo apt install build-essential`.",
)
GO = Tool(
    ("go", "version"),
    "Install Go from https://go.dev/dl, or a newer one beside it.",
    (1, 24),  # the go line of MinIO's go.mod
)
