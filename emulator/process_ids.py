"""Processes of a lab by their numbers outside of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Return whether there is a process of that number."""
    return Path(f"/proc/{pid}").exists()


def outside(supervisor_pid: int, inside: Iterable[int]) -> dict[int, int]:
    """Return the numbers that processes of a lab have outside, by those they have inside.

    ``supervisor_pid``: the lab's first process, by its number outside. Those that have ended are
    missing. (proc(5): NSpid, and the namespace it is of.)
    """
    wanted = set(inside)
    lab = _namespace(supervisor_pid)
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or lab is None:
            continue
        pid = int(entry.name)
        number = _innermost(entry / "status")
        if number in wanted and _namespace(pid) == lab:
            found[number] = pid
    return found


def _innermost(status: Path) -> int | None:
    try:
        text = status.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended
        return None
    for line in text.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None


def _namespace(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116 - follows a link of the kernel
    except OSError:  # it has ended, or is not ours to look at
        return None
