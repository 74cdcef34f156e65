"""A file without a name that takes all the space a file system has left.

Nobody on it can see the file or remove it, and it is gone when this process is, however it ends
(O_TMPFILE, open(2)).
"""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path
from weakref import WeakKeyDictionary

from wanlat.emulator.faults.fault import FaultFailed
from wanlat.emulator.lab import Lab

_CHUNKS_BYTES = (1 << 20, 4096)  # the last: a block, so that none is left
_LONGEST_S = 20.0
_PROOF = bytes(1 << 16)


class Ballast:
    """Fills the file system of ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd: int | None = None
        self.size_bytes = 0

    def fill(self) -> int:
        """Take all that is left; return the instant at which the kernel said that nothing was.

        Raises OSError, TimeoutError when others free space as fast as it is taken.
        """
        self._fd = _unnamed(self._directory)
        free = os.statvfs(self._directory)
        size = free.f_bavail * free.f_frsize
        if size:
            try:
                os.posix_fallocate(self._fd, 0, size)
                self.size_bytes = size
            except OSError as error:  # somebody was faster: what is left is written
                if error.errno != errno.ENOSPC:
                    raise
        deadline = time.monotonic() + _LONGEST_S
        for chunk_bytes in _CHUNKS_BYTES:
            self._write_all(chunk_bytes, deadline)
        return time.monotonic_ns()

    def _write_all(self, chunk_bytes: int, deadline: float) -> None:
        """Write chunks until the kernel refuses one whole."""
        assert self._fd is not None
        chunk = bytes(chunk_bytes)
        while time.monotonic() < deadline:
            try:
                self.size_bytes += os.pwrite(self._fd, chunk, self.size_bytes)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return
        raise TimeoutError(f"it is not full after {_LONGEST_S:.0f} s: others free what is taken")

    def release(self) -> int:
        """Give it all back; return the instant at which it could be written on again.

        Raises OSError, with ENOSPC when others have taken what was given back.
        """
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                os.ftruncate(fd, 0)  # a process that is just being started may hold it open, too
            finally:
                os.close(fd)
            self.size_bytes = 0
        proof = _unnamed(self._directory)
        try:
            left = memoryview(_PROOF)
            while left:
                left = left[os.write(proof, left) :]
            return time.monotonic_ns()
        finally:
            os.close(proof)


def _unnamed(directory: Path) -> int:
    return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)


class _Full:
    """The one ballast of a node, and how many faults want it there."""

    def __init__(self, lab: Lab, node: str) -> None:
        self.ballast = Ballast(lab.node(node).host_directory)
        self.wanted = 0
        self.since_ns = 0


_lock = threading.Lock()
_full: WeakKeyDictionary[Lab, dict[str, _Full]] = WeakKeyDictionary()


def fill(lab: Lab, node: str) -> int:
    """Have a node's volume full until as many have said ``release``; return since when it is.

    Raises FaultFailed.
    """
    with _lock:
        full = _full.setdefault(lab, {}).setdefault(node, _Full(lab, node))
        full.wanted += 1
        if full.wanted > 1:
            return time.monotonic_ns()
        try:
            return full.ballast.fill()
        except (OSError, TimeoutError) as error:
            raise FaultFailed(f"The disk of {node} could not be filled: {error}") from error


def release(lab: Lab, node: str) -> int:
    """Take back one ``fill``; return the instant from which that was in force.

    Raises FaultFailed when nothing can be written on the volume then.
    """
    with _lock:
        full = _full[lab][node]
        full.wanted -= 1
        if full.wanted:
            return time.monotonic_ns()
        del _full[lab][node]
        try:
            return full.ballast.release()
        except OSError as error:
            raise FaultFailed(
                f"On the disk of {node} nothing can be written although it was given back what "
                f"the fault had taken: {error}. {lab.fate}".rstrip()
            ) from error
