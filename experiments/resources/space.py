"""Disk space that directories take: blocks allocated, not lengths of files.

A tmpfs tells its blocks as well, page by page. A tree is gone through in small steps, so that it
can be done beside a measurement without taking a core for long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are (stat(2))
_ENTRIES_A_STEP = 64
_TRASH = "/.minio.sys/tmp/.trash"
"""Where MinIO moves what is removed, until it gets round to freeing it."""


@dataclass(frozen=True, slots=True)
class Space:
    """Of a tree. ``trash_bytes``: the part of ``bytes`` that is set aside to be removed.

    ``began_ns`` (CLOCK_MONOTONIC): what was written since may be in it, or not.
    """

    bytes: int
    files: int
    trash_bytes: int
    began_ns: int


class Walk:
    """One going-through of a tree, step by step; ``space`` is there once it is done.

    What vanishes meanwhile is left out, and hard links count once.
    """

    def __init__(self, root: Path) -> None:
        self.space: Space | None = None
        self._steps = self._walk(root)

    def step(self) -> bool:
        """Look at some more; return whether all has been seen."""
        return next(self._steps, None) is None

    def _walk(self, root: Path) -> Iterator[bool]:
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
                        yield True
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
        self.space = Space(taken, files, trash, began_ns)


def space_of(root: Path) -> Space:
    """Return the space of a tree, looked at in one go."""
    walk = Walk(root)
    while not walk.step():
        pass
    assert walk.space is not None
    return walk.space


class SpaceWatch:
    """Goes through the directories of nodes again and again, a little at a time."""

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = dict(directories)
        self._turns: Iterator[tuple[str, Path]] = iter(())
        self._name = ""
        self._walk: Walk | None = None

    def go_on(self, budget_ns: int) -> dict[str, Space]:
        """Go on for so much CPU time of this thread; return the nodes that were finished.

        At most one round is finished a call: small trees are not looked at over and over.
        """
        finished: dict[str, Space] = {}
        end_ns = time.thread_time_ns() + budget_ns
        while len(finished) < len(self._directories):
            if self._walk is None:
                self._name, directory = self._next()
                if self._name in finished:
                    break
                self._walk = Walk(directory)
            if self._walk.step():
                assert self._walk.space is not None
                finished[self._name] = self._walk.space
                self._walk = None
            if time.thread_time_ns() >= end_ns:
                break
        return finished

    def all(self, limit_ns: int) -> dict[str, Space]:
        """Go through every directory from its beginning; return those done within the limit."""
        found: dict[str, Space] = {}
        end_ns = time.monotonic_ns() + limit_ns
        for name, directory in self._directories.items():
            walk = Walk(directory)
            while not walk.step():
                if time.monotonic_ns() >= end_ns:
                    return found
            assert walk.space is not None
            found[name] = walk.space
        self._turns, self._walk = iter(()), None
        return found

    def _next(self) -> tuple[str, Path]:
        turn = next(self._turns, None)
        if turn is None:
            self._turns = iter(self._directories.items())
            turn = next(self._turns)
        return turn
