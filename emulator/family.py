"""A process and what it has started: found through /proc, signalled all at once.

A store may be a script that starts a program, or a program that starts others. Whoever means the
store means all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROUNDS = 100  # each finds what was started while the one before looked


def members(proc: Path, pid: int) -> list[int]:
    """Return a process and its descendants, itself first; those of its session besides.

    ``proc``: the /proc in which ``pid`` has that number. What made itself a session of its own
    and outlived its parent belongs to nobody any more, and is not found.
    """
    parents: dict[int, list[int]] = {}
    session: list[int] = []
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        found = _stat(entry / "stat")
        if found is None or found[0] == "Z":
            continue
        parents.setdefault(int(found[1]), []).append(int(entry.name))
        if int(found[3]) == pid:
            session.append(int(entry.name))
    result = dict.fromkeys([pid, *session])
    for each in _down(parents, list(result)):
        result[each] = None
    return list(result)


def left(proc: Path, pid: int) -> list[int]:
    """Return who is left of a process's session once it has ended itself."""
    return [each for each in members(proc, pid) if each != pid]


def send(proc: Path, pid: int, number: int) -> None:
    """Signal a process, its group and all its descendants.

    Before SIGKILL they are stopped, so that none starts another while the rest are looked for.
    The group is signalled first: mostly it is all there is, and this takes microseconds.
    """
    if number in (signal.SIGKILL, signal.SIGSTOP):
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
        return
    _signal_each(members(proc, pid), number)


def states(proc: Path, pid: int) -> set[str]:
    """Return the states (proc(5): ``R``, ``S``, ``T``, …) of all threads of the family."""
    found: set[str] = set()
    for member in members(proc, pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for thread in (proc / str(member) / "task").iterdir():
                stat = _stat(thread / "stat")
                if stat is not None and stat[0] not in "ZX":
                    found.add(stat[0])
    return found


def _stat(path: Path) -> list[str] | None:
    """Return the fields of a stat file from the state on: state, ppid, pgrp, session, …"""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return None
    return text.rpartition(")")[2].split()  # the name before it may have spaces and brackets


def _down(parents: dict[int, list[int]], roots: list[int]) -> Iterator[int]:
    seen = set(roots)
    waiting = list(roots)
    while waiting:
        for child in parents.get(waiting.pop(), []):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def _signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
