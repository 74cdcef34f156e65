"""What a run holds of its bundle's directory: the directory itself, and room for its last words."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from wanlat.topologies.errors import UserError

_WAIT_S = 3.0
"""Of a run that was killed, the processes are gone within moments, and the lock with them."""
_LOOK_EVERY_S = 0.1
RESERVED_BYTES = 256 << 10
"""A manifest takes some tens of KiB, and there are two of them while it is replaced."""


class Lock:
    """That nobody else writes to a directory: gone when the process is, however it ends."""

    def __init__(self, directory: Path) -> None:
        """Take it. Raises UserError when another process has it, and OSError."""
        self._fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    self.release()
                    raise UserError(
                        f"Another run is writing to {directory}. Wait for its end, or end it."
                    ) from None
                time.sleep(_LOOK_EVERY_S)

    def release(self) -> None:
        """Let go of it. May be called again."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class Reserve:
    """Room on a disk that is kept, so that a run that fills it can still say that it did."""

    def __init__(self, directory: Path, size_bytes: int = RESERVED_BYTES) -> None:
        """Take the room. Where there is not even so much, go without."""
        self._file = directory / ".reserve"
        # Bytes that no file system makes smaller, in blocks that are really taken.
        with suppress(OSError):
            self._file.write_bytes(os.urandom(size_bytes))

    def release(self) -> None:
        """Give the room back. May be called again."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def is_nearly_full(directory: Path) -> bool:
    """Whether the disk has no room for anything that is worth to be measured."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < 4 * RESERVED_BYTES
