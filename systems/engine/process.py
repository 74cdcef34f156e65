"""One store process on one node, so that it can be started again; and why it gave up.

What an error has of that: the end of its log, and first of all whether its disk is full.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from wanlat.bundle import beneath
from wanlat.emulator.process import how_it_ended
from wanlat.systems.engine.definition import Stop
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.errors import WanlatError

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.process import Process


_WAYS_OUT = (
    "Make room there, write fewer or smaller objects, or keep the nodes' data elsewhere: "
    "--storage memory or disk, WANLAT_LABS for the directory."
)
_END_WITHIN_S = 30.0  # of SIGTERM; after SIGKILL it is milliseconds


@dataclass
class NodeProcess:
    """A store's process on one node, with all that is needed to start it a second time."""

    title: str  # of the system, for messages
    node: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    home: Path | None = field(default=None, init=False)  # its data, as we see them from outside
    process: Process | None = field(default=None, init=False)
    stopped: bool = field(default=True, init=False)  # on purpose, or not started yet
    starts: int = field(default=0, init=False)
    _log_begins: int = field(default=0, init=False)  # of what the process in `process` prints

    def start(self, lab: Lab) -> None:
        """Start the process; what it prints is appended to the log.

        One that was stopped ends first: its ports and the lock on its data are the new one's.
        Raises SystemFailed when it does not.
        """
        if self.process is not None and self.process.poll() is None:
            if not self.stopped:
                raise self.failure("it was to be started, and runs already")
            try:
                self.process.wait(_END_WITHIN_S)
            except TimeoutError:
                raise self.failure(
                    "it was to be started again, and its former process has not ended after "
                    f"{_END_WITHIN_S:g} s"
                ) from None
        with beneath.appended(self.log) as log:
            self._log_begins = log.tell()
            self.process = lab.spawn(
                self.node, list(self.argv), env=dict(self.env), stdout=log, stderr=log
            )
        self.stopped = False
        self.starts += 1

    def stop(self, how: int = signal.SIGKILL) -> None:
        """Send a signal that ends the process, on purpose: `died` does not report it.

        What the process has started gets it too: the program may be a script that starts a store.
        It may not have ended yet when this returns; `Process.ended_ns` is when it has.
        """
        self.stopped = True
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal_to_family(how)

    def end(self, how: Stop) -> None:
        """End the process; one that has not ended after the time-out is killed."""
        self.stop(signal.Signals[f"SIG{how.signal}"])
        if how.timeout.ns and self.process is not None:
            with suppress(TimeoutError):
                self.process.wait(how.timeout.ns / 1e9)
            self.stop()

    def printed(self) -> str:
        """Return what the process that was started last has printed so far."""
        with beneath.opened(self.log) as log:
            log.seek(self._log_begins)
            return log.read().decode("utf-8", "replace")

    def died(self) -> int | None:
        """Return the exit code (negative: the signal) when it ended and was not stopped."""
        if self.stopped or self.process is None:
            return None
        return self.process.poll()

    def failure(self, what: str, remark: str = "") -> SystemFailed:
        """Return the error of what went wrong, with a remark on it, and the end of the log.

        Where the node's disk is full that comes first: the log often does not.
        """
        full = what_is_full([self.home]) if self.home else None
        room = f" {full}. {_WAYS_OUT}" if full else ""
        return SystemFailed(
            f"{self.title}: node {self.node}: {what}.{room}{remark} The last lines of its log:\n"
            f"{last_lines(self.log)}\nThe whole log: {self.log}"
        )

    def check(self) -> None:
        """Raise SystemFailed when the process ended and was not stopped."""
        code = self.died()
        if code is not None:
            raise self.failure(f"its process {how_it_ended(code)}")

    def on_exit(self, report: Callable[[str], object]) -> None:
        """Have ``report`` called, from another thread, with its error once it has died.

        That is what `check` would raise, and nothing when it was stopped.
        """

        def ended(_: Process) -> None:
            try:
                self.check()
            except WanlatError as error:
                report(str(error))

        if self.process is not None:
            self.process.when_ended(ended)


# -- its log ---------------------------------------------------------------------------------

_LINES = 12
_BYTES = 16_384
_WIDTH = 400


def last_lines(log: Path) -> str:
    """Return the last lines of a log, indented; a note when there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        return f"  (the log cannot be read: {error.strerror})"
    kept = [line.rstrip()[:_WIDTH] for line in plain(text).splitlines() if line.strip()][-_LINES:]
    return "\n".join(f"  {line}" for line in kept) if kept else "  (nothing was logged)"


def plain(text: str) -> str:
    """Return a text without the escape sequences that colour or move on a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


# -- its disk --------------------------------------------------------------------------------

_LEAST_BYTES = 1 << 20
_LEAST_SHARE = 0.01
"""Less than a hundredth is what stores refuse to write into, each at a mark of its own."""


def what_is_full(directories: Iterable[Path]) -> str | None:
    """Return a sentence on the first directory on a file system without room, None when all have.

    No room: less than 1 % of it or 1 MiB, or no inodes. A directory that cannot be looked at is
    left out.
    """
    for directory in directories:
        try:
            status = os.statvfs(directory)
        except OSError:
            continue
        within = re.fullmatch(r"/proc/\d+/root(/.*)", str(directory))
        named = f"{within[1]}, which is the lab's own," if within else directory
        size_bytes = status.f_blocks * status.f_frsize
        free_bytes = status.f_bavail * status.f_frsize
        if size_bytes and free_bytes < max(_LEAST_BYTES, size_bytes * _LEAST_SHARE):
            sizes = f"{_rough(free_bytes)} of {_rough(size_bytes)} are left"
            return f"The disk of {named} is full: {sizes}"
        if status.f_files and not status.f_favail:
            return f"The disk of {named} is full: it has no inodes left"
    return None


def _rough(size_bytes: int) -> str:
    number, unit = (size_bytes >> 20, "MiB") if size_bytes < 1 << 34 else (size_bytes >> 30, "GiB")
    return f"{number} {unit}"
