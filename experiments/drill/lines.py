"""Lines of JSON on disk, each there when the call returns."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wanlat.probes.process import Closing
from wanlat.topologies.errors import DiskFull, MachineError


class Lines(Closing):
    """A file that grows by whole lines. Any thread may append.

    A line is one ``write`` to a file opened with O_APPEND: when ``append`` returns the kernel has
    it, and the end of this process, however sudden, takes nothing of it back. (The machine's end
    may: it is not synced.)
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. Raises MachineError."""
        self._path = path
        self._lock = threading.Lock()
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error

    def append(self, document: Mapping[str, Any]) -> None:
        """Write one line. Raises MachineError when it cannot be written; no part of it stays."""
        line = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        with self._lock:
            left = line
            try:
                while left:  # the kernel takes all of it at once, unless the disk is full
                    left = left[os.write(self._fd, left) :]
            except OSError as error:
                self._take_back(len(line) - len(left))
                raise self._unwritable(error) from error

    def _take_back(self, written: int) -> None:
        """Cut the beginning of a line off again, so that every line is a whole one."""
        if written:
            with suppress(OSError):
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)

    def close(self) -> None:
        """Let go of the file. May be called again."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
            self._fd = -1

    def _unwritable(self, error: OSError) -> MachineError:
        kind = DiskFull if is_full(error) else MachineError
        return kind(
            f"{self._path} cannot be written: {error.strerror}. Without it nobody could say "
            "afterwards what was lost; make room, or name another directory with --out."
        )


def is_full(error: OSError) -> bool:
    """Whether something could not be written because there is no room for it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
