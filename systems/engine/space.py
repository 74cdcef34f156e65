"""Whether the disk below a directory is full: the first thing to know when a store gives up."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

_LEAST_BYTES = 1 << 20
_LEAST_SHARE = 0.01
"""Less than a hundredth is what stores refuse to write into, each at a mark of its own."""


def what_is_full(directories: Iterable[Path]) -> str | None:
    """Return a sentence on the first directory whose file system has no room, None when all have.

    No room: less than 1 % of it or 1 MiB, or no inodes. A directory that cannot be looked at has
    nothing to say.
    """
    for directory in directories:
        try:
            found = os.statvfs(directory)
        except OSError:
            continue
        size_bytes = found.f_blocks * found.f_frsize
        free_bytes = found.f_bavail * found.f_frsize
        if size_bytes and free_bytes < max(_LEAST_BYTES, size_bytes * _LEAST_SHARE):
            return (
                f"The disk of {_named(directory)} is full: {_rough(free_bytes)} of "
                f"{_rough(size_bytes)} are left"
            )
        if found.f_files and not found.f_favail:
            return f"The disk of {_named(directory)} is full: it has no inodes left"
    return None


def _named(directory: Path) -> str:
    """Return a directory as a message names it: what only the lab sees, as the lab does."""
    within = _IN_A_LAB.fullmatch(str(directory))
    return f"{within[1]}, which is the lab's own," if within else str(directory)


def _rough(size_bytes: int) -> str:
    number, unit = (size_bytes >> 20, "MiB") if size_bytes < 1 << 34 else (size_bytes >> 30, "GiB")
    return f"{number} {unit}"


_IN_A_LAB = re.compile(r"/proc/\d+/root(/.*)")
