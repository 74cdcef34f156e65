"""Disk space that directories take, and the bytes that were stored in it.

Space is blocks allocated, not lengths of files; a tmpfs tells its blocks as well, page by page. A
tree is scanned in small steps, so that it can be done beside a measurement without taking a core
for long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
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
    """Of a tree. ``trash_bytes``: the part of ``bytes`` that is set aside to be removed.

    ``began_ns`` (CLOCK_MONOTONIC): what was written since may be in it, or not.
    """

    bytes: int
    files: int
    trash_bytes: int
    began_ns: int


def _scan(root: Path) -> Generator[None, None, Space]:
    """Scan a tree in steps, and return its space in the end.

    What vanishes meanwhile is left out, and hard links count once.
    """
    began_ns = time.monotonic_ns()
    taken = trash = files = entries = 0
    with suppress(OSError):
        taken = root.stat().st_blocks * _BLOCK_BYTES
    linked: set[tuple[int, int]] = set()
    waiting = [(os.fspath(root), False)]
    while waiting:
        directory, is_trash = waiting.pop()
        try:
            listing = os.scandir(directory)
        except OSError:  # gone meanwhile
            continue
        with listing:
            for entry in listing:
                entries += 1
                if entries % _ENTRIES_A_STEP == 0:
                    yield
                try:
                    found = entry.stat(follow_symlinks=False)
                    is_directory = entry.is_dir(follow_symlinks=False)
                except OSError:
                    continue
                if is_directory:
                    waiting.append((entry.path, is_trash or entry.path.endswith(_TRASH)))
                else:
                    files += 1
                    if found.st_nlink > 1:
                        if (found.st_dev, found.st_ino) in linked:
                            continue
                        linked.add((found.st_dev, found.st_ino))
                its = found.st_blocks * _BLOCK_BYTES
                taken += its
                trash += its if is_trash else 0
    return Space(taken, files, trash, began_ns)


def _step(scan: Generator[None, None, Space]) -> Space | None:
    """Continue for one step; return the space once all has been seen."""
    try:
        next(scan)
    except StopIteration as end:
        found: Space = end.value
        return found
    return None


def space_of(root: Path) -> Space:
    """Return the space of a tree, scanned in one go."""
    scan = _scan(root)
    while (space := _step(scan)) is None:
        pass
    return space


class SpaceScanner:
    """Scans the directories of nodes again and again, a little at a time."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = dict(directories)
        self._scans = self._all_scans()
        self._current = next(self._scans, None)

    def advance(self, budget_ns: int) -> dict[str, Space]:
        """Continue for so much CPU time of this thread; return the nodes that were finished.

        At most one round is finished a call: small trees are not scanned over and over.
        """
        finished: dict[str, Space] = {}
        end_ns = time.thread_time_ns() + budget_ns
        while self._current is not None and len(finished) < len(self._directories):
            name, scan = self._current
            if (space := _step(scan)) is not None:
                finished[name] = space
                self._current = next(self._scans)
            if time.thread_time_ns() >= end_ns:
                break
        return finished

    def all(self, limit_ns: int) -> dict[str, Space]:
        """Scan every directory from its beginning; return those done within the limit."""
        found: dict[str, Space] = {}
        end_ns = time.monotonic_ns() + limit_ns
        for name, directory in self._directories.items():
            scan = _scan(directory)
            while (space := _step(scan)) is None:
                if time.monotonic_ns() >= end_ns:
                    return found
            found[name] = space
        self._scans = self._all_scans()
        self._current = next(self._scans, None)
        return found

    def _all_scans(self) -> Iterator[tuple[str, Generator[None, None, Space]]]:
        return ((name, _scan(root)) for name, root in cycle(self._directories.items()))


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
        key = (request.bucket, request.key)
        if request.endpoint in _PUTS:
            if sample.outcome == "ok":
                self._bytes[key] = request.object_bytes or 0
                self._written_bytes += request.object_bytes or 0
        elif request.endpoint in _REMOVES:
            if sample.outcome == "ok":
                self._bytes.pop(key, None)
        else:
            return
        self.is_known = self.is_known and sample.outcome == "ok"

    def facts(self) -> dict[str, int | bool]:
        """Return the manifest's entries."""
        return {
            "stored_objects": len(self._bytes),
            "stored_bytes": sum(self._bytes.values()),
            "stored_is_known": self.is_known,
            "put_bytes": self._written_bytes,
        }
