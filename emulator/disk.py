"""Where a lab with ``storage="disk"`` keeps its nodes' directories: in one of its own, which ends
with the lab.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wanlat.topologies.errors import UserError


@contextlib.contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def make_directory() -> tuple[Path, int]:
    """Make a directory for one lab's data and lock it; remove what dead labs left.

    Returns its path and the descriptor that holds the lock. Raises UserError.

    The guard and the caller both remove it. Only if both are killed at the same instant does
    it stay, unlocked, for the next lab to remove.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    store = Path(os.environ.get("WANLAT_LABS") or Path(cache, "wanlat", "labs"))
    try:
        store.mkdir(parents=True, exist_ok=True)
        with _locked(store, fcntl.LOCK_EX):  # else another lab finds ours before it is locked
            for stale in store.iterdir():
                with (
                    contextlib.suppress(OSError),
                    _locked(stale, fcntl.LOCK_EX | fcntl.LOCK_NB),
                ):
                    shutil.rmtree(stale, ignore_errors=True)
            made = Path(tempfile.mkdtemp(prefix="lab-", dir=store))
            fd = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        raise UserError(
            f"The lab's data cannot be kept under {store}: {error.strerror}. "
            "Name another directory with WANLAT_LABS, or use --storage memory."
        ) from error
    return made, fd
