"""Where a lab with ``storage="disk"`` keeps its nodes' directories: in one of its own, which ends
with the lab.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wanlat.emulator.own_directories import cache_home, is_marked, make_private, mark, remove_marked
from wanlat.topologies.errors import UserError


@dataclass
class LabDirectory:
    """One lab's data on disk. The lock shows other labs that this one lives."""

    path: Path
    nodes: Path
    """What the lab's programs may write, and no more: not the marker, without which data stays."""
    lock: int
    """A descriptor, locked as long as the lab lives."""
    foreign: tuple[Path, ...]
    """What lies beside it and is not of a lab: it is never removed."""

    def remove(self) -> None:
        """Remove the data and let go of the lock."""
        remove_marked(self.path)
        os.close(self.lock)


def make_directory() -> LabDirectory:
    """Make a directory for one lab's data and lock it; remove what dead labs left.

    ``WANLAT_LABS`` names where: a directory of wanlat's own is made there, and nothing beside it is
    touched. Raises UserError.

    The guard and the caller both remove it. Only if both are killed at the same instant does
    it stay, unlocked, for the next lab to remove.
    """
    given = os.environ.get("WANLAT_LABS")
    parent = Path(given).absolute() if given else cache_home() / "wanlat"
    store = parent / f"wanlat-labs-{os.geteuid()}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        make_private(store)
        foreign = tuple(_reclaim(store))
        made = Path(tempfile.mkdtemp(prefix="lab-", dir=store))
        lock = _lock(made)
        assert lock is not None, f"{made} is new"
        mark(made)  # only now may another lab find it: it is locked
        nodes = made / "nodes"
        nodes.mkdir()
    except OSError as error:
        raise UserError(
            f"The lab's data cannot be kept under {store}: {error.strerror}. "
            "Name another directory with WANLAT_LABS, or use --storage memory."
        ) from error
    return LabDirectory(made, nodes, lock, foreign)


def _reclaim(store: Path) -> Iterator[Path]:
    """Remove the directories of dead labs; yield what is there and was not made by a lab."""
    for path in sorted(store.iterdir()):
        if not is_marked(path):
            if not _may_be_new(path):
                yield path
            continue
        with suppress(OSError):
            lock = _lock(path)
            if lock is not None:
                remove_marked(path)
                os.close(lock)


def _may_be_new(path: Path) -> bool:
    """Whether it may be another lab's that is about to be marked."""
    with suppress(OSError):
        return path.name.startswith("lab-") and not any(path.iterdir())
    return not path.exists()


def _lock(directory: Path) -> int | None:
    """Lock a directory and return the descriptor; None where a living lab has it."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd
