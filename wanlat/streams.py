"""Standard streams on which a run does not depend.

What is printed for people is lost where it cannot be written: standard error is full, closed, a
terminal that hung up, or a pipe that is read no more. A reader who is slow is waited for, but not
by what measures. A result that cannot be written to standard output is an error of its own.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from wanlat.topologies.errors import MachineError

_PATIENCE_MS = 1000
"""So long may a reader take who holds up a run; from then on text is left out until he reads."""
_AT_ONCE_BYTES = select.PIPE_BUF  # a pipe that poll() calls writable takes as much, pipe(7)
_waits = {"for readers": True}


class OutputLost(MachineError):
    """A result could not be written to standard output."""

    def __init__(self, error: OSError) -> None:
        self.reader_left = isinstance(error, BrokenPipeError)
        super().__init__(
            f"The result could not be written to standard output: {error.strerror}. Send it to "
            "another file or disk."
        )


def secure() -> None:
    """Have all three standard streams open, and replace what writes to two of them.

    No other file then gets the number of one that was closed. Standard output is opened for
    reading: as in GNU's programs, what is written to it fails. Ctrl-C does nothing once all is
    done: Python would print a traceback of its own end.
    """
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as we live
    is_terminal = os.isatty(1)
    sys.stdout = _text(sys.stdout, io.BufferedWriter(_Results()), line_buffering=is_terminal)
    sys.stderr = _text(sys.stderr, cast("io.BufferedIOBase", _People()), write_through=True)


def _text(before: TextIO | None, binary: io.BufferedIOBase, **how: Any) -> TextIO:
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(
        cast("io.BufferedWriter", binary), encoding=encoding, errors="backslashreplace", **how
    )


@contextmanager
def not_waiting() -> Iterator[None]:
    """Do not wait meanwhile for who reads standard error: leave out what he does not take."""
    before, _waits["for readers"] = _waits["for readers"], False
    try:
        yield
    finally:
        _waits["for readers"] = before


class _Results(io.FileIO):
    """Standard output. The first failure is raised, as OutputLost; what follows is left out."""

    def __init__(self) -> None:
        super().__init__(1, "w", closefd=False)
        self._is_lost = False

    def write(self, data: Any, /) -> int:
        """Write as much as the file takes. Raises OutputLost."""
        if self._is_lost:
            return len(data)
        try:
            while (taken := super().write(data)) is None:  # whoever shares it made it non-blocking
                select.select([], [1], [])
        except OSError as error:
            self._is_lost = True
            raise OutputLost(error) from None
        return taken


class _People(io.RawIOBase):
    """Standard error, which never fails."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._poll.register(2, select.POLLOUT)
        self._is_read = True

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return 2."""
        return 2

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(2)

    def write(self, data: Any, /) -> int:
        """Write what can be written, and claim to have written all."""
        left = memoryview(data).cast("B")
        with suppress(OSError):
            while left and self._takes_more():
                left = left[os.write(2, left[:_AT_ONCE_BYTES]) :]
        return len(data)

    def _takes_more(self) -> bool:
        patience_ms = None if _waits["for readers"] else _PATIENCE_MS if self._is_read else 0
        self._is_read = bool(self._poll.poll(patience_ms))
        return self._is_read
