"""Processes of this machine, by what the kernel says of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def said(pid: int, file: str) -> bytes:
    """What a file of a process in /proc says; nothing once it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/{file}").read_bytes()
    return b""


def fields(pid: int) -> list[str]:
    """What stands behind the name in /proc/PID/stat: state, parent and so on."""
    return said(pid, "stat").decode().rpartition(")")[2].split()


def every() -> list[int]:
    """All processes."""
    return [int(each.name) for each in Path("/proc").glob("[0-9]*")]


def children(*pids: int) -> list[int]:
    """The processes that these have started."""
    parents = [[str(pid)] for pid in pids]
    return [pid for pid in every() if fields(pid)[1:2] in parents]


def descendants(root: int) -> list[int]:
    """The processes below ``root``, itself included, as the host numbers them."""
    parents = {pid: fields(pid)[1:2] for pid in every()}
    family = [root]
    for pid in family:
        family += [child for child, of in parents.items() if of == [str(pid)]]
    return family


def alive(pids: list[int]) -> list[int]:
    """What is left of ``pids``, zombies whose parent is this test not counted."""
    return [pid for pid in pids if fields(pid)[:1] not in ([], ["Z"])]
