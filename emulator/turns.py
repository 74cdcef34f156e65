"""Turns of labs that are beside each other: as many at a time as this machine has processors.

Building a lab and calibrating it keep a processor busy, and a calibration that meets others finds
packets late that are none of its network's fault. So the labs of a user's runs, whichever processes
they belong to, take turns in that. A turn is a locked file in a directory that no other user may
enter; the kernel drops the lock with the process that has it, however it dies.

Turns keep calibrations from being late, and a late one is noticed: no run waits for them without
end. A process that is stopped needs no processor, so that there is one more turn meanwhile; and
where none has changed hands for `LONGEST_S`, a lab goes without.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from wanlat.emulator import family
from wanlat.emulator.closing import Closing
from wanlat.emulator.machine import cores
from wanlat.emulator.own_directories import runtime_directory

LONGEST_S = 300.0
"""Twice as long as any calibration takes."""
_TRY_EVERY_S = 0.1


class Turn(Closing):
    """A turn, which lasts until it is closed; or none, and why."""

    def __init__(self, fd: int | None, remark: str = "") -> None:
        """``remark``: what is unusual about it."""
        self._fd = fd
        self.remark = remark

    def close(self) -> None:
        """End the turn. May be called again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def take(waiting: Callable[[], object], longest_s: float = LONGEST_S) -> Turn:
    """Wait for a turn, calling ``waiting`` meanwhile."""
    directory = runtime_directory()
    if directory is None:
        return Turn(None, "without a turn: no directory of this user's own can be made in /tmp")
    holders, until_s = list[int](), 0.0
    while True:
        try:
            turn, now_held_by = _try(directory)
        except OSError as error:
            return Turn(None, f"without a turn: {directory}: {error.strerror}")
        if turn is not None:
            return turn
        if now_held_by != holders:
            holders, until_s = now_held_by, time.monotonic() + longest_s
        if time.monotonic() > until_s:
            processes = ", ".join(map(str, holders))
            return Turn(None, f"without a turn: held for {longest_s:.0f} s by {processes}")
        waiting()
        time.sleep(_TRY_EVERY_S)


def _try(directory: Path) -> tuple[Turn | None, list[int]]:
    """Take a turn that is free; return it, and else the processes that have them."""
    holders, stopped = list[int](), list[int]()
    while len(holders) < cores() + len(stopped):
        file = directory / f"turn-{len(holders)}"
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held_by = os.pread(fd, 20, 0)
            os.close(fd)
            pid = int(held_by) if held_by.isdigit() else 0
            holders.append(pid)
            stopped += [pid] if is_stopped(pid) else []
            continue
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        except OSError:
            os.close(fd)
            raise
        remark = f"another turn, because stopped: {', '.join(map(str, stopped))}" if stopped else ""
        return Turn(fd, remark), []
    return None, holders


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped: by Ctrl-Z, SIGSTOP or a debugger."""
    fields = family.stat_fields(Path(f"/proc/{pid}/stat"))
    return fields is not None and fields[0] in "tT"
