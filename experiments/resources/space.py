"""Disk space that directories take, and the bytes that were stored in it.

Space is blocks allocated, not lengths of files; a tmpfs tells its blocks as well, page by page. A
tree is scanned in small steps, so that it can be done beside a measurement without taking a core
for long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from wanlat.probes.plan import Request
from wanlat.probes.records import Sample

_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are (stat(2))
_ENTRIES_A_STEP = 64
_TRASH = "/.minio.sys/tmp/.trash"
"""Where MinIO moves what is removed, until it gets round to freeing it."""
_PUTS = ("PutObject", "Put")
_REMOVES = ("RemoveObject", "Delete")


@dataclass(frozen=True, slots=True)
class Space:
    """Columns of a row. ``trash_bytes``: the part of ``space_bytes`` that is to be removed.

    ``space_began_ns`` (CLOCK_MONOTONIC): what was written since may be in it, or not.
    """

    space_bytes: int
    files: int
    trash_bytes: int
    space_began_ns: int


_Scan = Iterator[tuple[str, Space | None]]


def _scan(directories: Iterable[tuple[str, Path]]) -> _Scan:
    """Scan trees, one after another; yield None after each step, and each one's space in the end.

    What vanishes meanwhile is left out, and hard links count once.
    """
    for name, root in directories:
        began_ns = time.monotonic_ns()
        taken = trash = files = entries = 0
        with suppress(OSError):
            taken = root.stat().st_blocks * _BLOCK_BYTES
        linked: set[tuple[int, int]] = set()
        waiting = [os.fspath(root)]
        while waiting:
            directory = waiting.pop()
            is_trash = _TRASH in directory
            with suppress(OSError), os.scandir(directory) as listing:  # it may be gone
                for entry in listing:
                    entries += 1
                    if entries % _ENTRIES_A_STEP == 0:
                        yield name, None
                    with suppress(OSError):
                        found = entry.stat(follow_symlinks=False)
                        identity = found.st_dev, found.st_ino
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        else:
                            files += 1
                            if found.st_nlink > 1 and identity in linked:
                                continue
                            linked |= {identity} if found.st_nlink > 1 else set()
                        taken += found.st_blocks * _BLOCK_BYTES
                        trash += found.st_blocks * _BLOCK_BYTES if is_trash else 0
        yield name, Space(taken, files, trash, began_ns)


class SpaceScanner:
    """Scans the directories of nodes again and again, a little at a time."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = dict(directories)
        self._again_and_again = _scan(cycle(self._directories.items()))

    def advance(self, budget_ns: int) -> dict[str, Space]:
        """Continue for so much CPU time of this thread; return the nodes that were finished.

        At most one round is finished a call: small trees are not scanned over and over.
        """
        return self._go_through(self._again_and_again, time.thread_time_ns, budget_ns)

    def all(self, limit_ns: int) -> dict[str, Space]:
        """Scan every directory from its beginning; return those done within the limit."""
        self._again_and_again = _scan(cycle(self._directories.items()))
        return self._go_through(_scan(self._directories.items()), time.monotonic_ns, limit_ns)

    def _go_through(self, scan: _Scan, clock: Callable[[], int], limit_ns: int) -> dict[str, Space]:
        finished: dict[str, Space] = {}
        end_ns = clock() + limit_ns
        for name, found in scan:
            if found is not None:
                finished[name] = found
            if len(finished) == len(self._directories) or clock() >= end_ns:
                break
        return finished


class StoredBytes:
    """Counts objects that were acknowledged and not removed since.

    ``is_known`` is False once a write or a removal had another end: nobody knows then whether it
    is there. (A method of somebody's own gRPC service is no write that is known here.)
    """

    def __init__(self) -> None:
        self.is_known = True
        self._bytes: dict[tuple[str | None, str | bytes | None], int] = {}
        self._written_bytes = 0

    def take(self, request: Request, sample: Sample) -> None:
        """Take note of a request that was answered."""
        if request.endpoint not in (*_PUTS, *_REMOVES):
            return
        key = (request.bucket, request.key)
        if sample.outcome != "ok":
            self.is_known = False
        elif request.endpoint in _PUTS:
            self._bytes[key] = request.object_bytes or 0
            self._written_bytes += request.object_bytes or 0
        else:
            self._bytes.pop(key, None)

    def facts(self) -> dict[str, int | bool]:
        """Return the manifest's entries."""
        return {
            "stored_objects": len(self._bytes),
            "stored_bytes": sum(self._bytes.values()),
            "stored_is_known": self.is_known,
            "put_bytes": self._written_bytes,
        }
