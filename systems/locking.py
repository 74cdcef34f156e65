"""One build of one version at a time, also across processes.

flock(2): the kernel drops the lock when its holder dies, however it dies, so a lock file that was
left behind never blocks anybody.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_POLL_S = 0.1


@contextmanager
def exclusive(path: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file at ``path``; while another process holds it, wait.

    ``on_wait`` gets the holder's process id as text ("?" when it cannot be read), once a wait.
    """
    # The file is never removed: removing it would let two processes lock two files of one name.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _try_lock(descriptor):
            on_wait(_holder(descriptor))
            while not _try_lock(descriptor):
                time.sleep(_POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return text if text.isdigit() else "?"
