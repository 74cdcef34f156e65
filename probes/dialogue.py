"""A program that answers line by line: a line in, a line out, over pipes of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import termios
from array import array
from collections.abc import Callable, Sequence

from wanlat.emulator.closing import Closing
from wanlat.emulator.syscalls import wait_readable
from wanlat.probes.process import Process, Spawn
from wanlat.topologies.errors import WanlatError

_POLL_S = 0.2
_GRACE_S = 10.0
_STDERR_LINES = 5


class Dialogue(Closing):
    """A running program. A context manager: the process is gone when it is left."""

    def __init__(self, spawn: Spawn, argv: Sequence[str]) -> None:
        self._read = bytearray()
        self._written = 0
        self._process: Process | None = None
        self._open: set[int] = set()
        try:
            their_stdin, self._stdin = self._own(*os.pipe())
            self._stdout, their_stdout = self._own(*os.pipe())
            # A file without a name: it leaves nothing behind and never blocks who writes to it.
            (self._stderr,) = self._own(os.memfd_create("stderr"))
            self._process = spawn(list(argv), their_stdin, their_stdout, self._stderr)
            self._disown(their_stdin)  # the process holds its own copies
            self._disown(their_stdout)
        except BaseException:
            self.close()
            raise

    @property
    def process(self) -> Process:
        """The process. Raises ValueError when it was closed."""
        if self._process is None:
            raise ValueError("this process was closed")
        return self._process

    def fileno(self) -> int:
        """Return the descriptor on which a line arrives."""
        return self._stdout

    def write(self, data: bytes) -> None:
        """Hand over lines. Raises BrokenPipeError when the program takes no more."""
        self._written = 0
        while data:
            self._written += (sent := os.write(self._stdin, data))
            data = data[sent:]

    def is_unread(self) -> bool:
        """Has it ended, and was nothing read of what was handed over last?

        Of a pipe without a reader the kernel still counts what it holds.
        """
        if self.process.poll() is None:
            return False
        held = array("i", [0])
        fcntl.ioctl(self._stdin, termios.FIONREAD, held)
        return held[0] >= self._written

    def end_input(self) -> None:
        """Close the program's standard input."""
        self._disown(self._stdin)

    def has_line(self) -> bool:
        """Has a whole line been read that `next_line` has not returned?"""
        return b"\n" in self._read

    def next_line(self, is_lost: Callable[[], bool]) -> bytes | None:
        """Wait for the next line; None when the program closed its output, or ``is_lost``."""
        while b"\n" not in self._read:
            if wait_readable([self._stdout], _POLL_S):
                piece = os.read(self._stdout, 65536)
                if not piece:
                    return None
                self._read += piece
            elif is_lost():
                return None
        line, _, self._read = self._read.partition(b"\n")
        return bytes(line)

    def how_it_ended(self, silent_s: float, patience_s: float) -> tuple[str, str]:
        """Return how the program ended, or that it was silent, and its last lines on stderr.

        Its output may be closed a moment before it is known to have ended: ``patience_s``.
        """
        with contextlib.suppress(TimeoutError):
            self.process.wait(patience_s)
        code = self.process.poll()
        if code is None:
            end = f"was silent for {silent_s:.0f} s"
        elif code < 0:
            end = f"was ended by signal {-code}"
        else:
            end = f"ended with exit code {code}"
        lines = os.pread(self._stderr, 65536, 0).decode(errors="replace").strip().splitlines()
        return end, "\n".join(lines[-_STDERR_LINES:]) or "nothing"

    def close(self) -> None:
        """End the process, whatever it is doing, and let go of it. May be called again."""
        process, self._process = self._process, None
        try:
            if process is not None and process.poll() is None:
                # A lab that is gone, and says so, has taken the process with it.
                with contextlib.suppress(WanlatError, TimeoutError):
                    process.kill()
                    process.wait(_GRACE_S)
        finally:
            for fd in tuple(self._open):
                self._disown(fd)

    def _own(self, *fds: int) -> tuple[int, ...]:
        self._open.update(fds)
        return fds

    def _disown(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            os.close(fd)
