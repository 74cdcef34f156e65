"""Processes through /proc: what one has started, and its number outside of its lab.

A store may be a script that starts a program, or a program that starts others. Whoever means the
store means all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROUNDS = 100  # each finds what was started while the one before looked
_GONE = ["Z", "0", "0", "0"]


def members(proc: Path, pid: int) -> list[int]:
    """Return a process and its descendants, itself first; those of its session besides.

    ``proc``: the /proc in which ``pid`` has that number. What made itself a session of its own
    and outlived its parent has no owner any more, and is not found.
    """
    children: dict[int, list[int]] = defaultdict(list)
    result = {pid: None}
    for candidate in _all(proc):
        state, parent, _, session, *_ = stat_fields(proc / str(candidate) / "stat") or _GONE
        if state != "Z":
            children[int(parent)].append(candidate)
            if int(session) == pid:
                result[candidate] = None
    waiting = list(result)
    while waiting:
        new = [child for child in children[waiting.pop()] if child not in result]
        result.update(dict.fromkeys(new))
        waiting += new
    return list(result)


def left(proc: Path, pid: int) -> list[int]:
    """Return who is left of a process's session once it has ended itself."""
    return [member for member in members(proc, pid) if member != pid]


def send(proc: Path, pid: int, number: int) -> None:
    """Signal a process, its group and all its descendants.

    Before SIGKILL they are stopped, so that none starts another while the rest are looked for.
    The group is signalled first: mostly it is all there is, and this takes microseconds.
    """
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        _signal_each(members(proc, pid), number)
        return
    _signal_each([-pid], signal.SIGSTOP)
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        fresh = set(members(proc, pid)) - stopped
        if not fresh:
            break
        _signal_each(fresh, signal.SIGSTOP)
        stopped |= fresh
    if number == signal.SIGKILL:
        _signal_each([-pid, *stopped], signal.SIGKILL)


def outside(supervisor_pid: int, inside: Iterable[int]) -> dict[int, int]:
    """Return the numbers that processes of a lab have outside, by those they have inside.

    ``supervisor_pid``: the lab's first process, by its number outside. Those that have ended are
    missing. (proc(5): NSpid, and the namespace it is of.)
    """
    wanted = set(inside)
    lab = _namespace(supervisor_pid)
    numbers: dict[int, int] = {}
    for pid in _all(Path("/proc")):
        with contextlib.suppress(OSError):  # it has ended
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
            number = int(status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1])
            if number in wanted and lab is not None and _namespace(pid) == lab:
                numbers[number] = pid
    return numbers


def _all(proc: Path) -> Iterator[int]:
    return (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def stat_fields(path: Path) -> list[str] | None:
    """Return the fields of a stat file from the state on: state, ppid, pgrp, session, …"""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return None
    return text.rpartition(")")[2].split()  # the name before it may have spaces and brackets


def _namespace(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116 - follows a link of the kernel
    except OSError:  # it has ended, or is not ours to look at
        return None


def _signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
