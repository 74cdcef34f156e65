"""Control groups of our own, in which processes have only a part of a processor's time.

Both versions (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/, scheduler/sched-bwc.rst):

v2 with ``cpu.max``, v1 with ``cpu.cfs_*``. Groups are made below the root of the hierarchy, where
root mostly may; the root is the one group that may have processes beside them.

A group is removed by whoever made it. Should that process be killed, one of its children sees to
it: its lab ends too, so that the group becomes empty, and the kernel removes an empty one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from pathlib import Path

from wanlat.topologies.errors import MachineError
from wanlat.topologies.wording import in_words

_PERIOD_US = 100_000  # in each the quota is there anew; the kernel's default, and containers'
_REMOVAL_S = 5.0
_numbers = itertools.count(1)

_UNAVAILABLE = "This machine does not let us limit the processor time of processes"
_REMEDY = "Run it as root, and not in a container whose groups are read-only."
_KEEPER = """
trap '' INT TERM HUP
read -r _
for _ in $(seq 200); do
    rmdir "$0" 2>/dev/null; [ -d "$0" ] || exit 0
    sleep 0.05
done
"""
"""Ends when its standard input has no other end any more, and the group is gone."""


class CpuGroup:
    """A group with a quota of processor time. Use `remove` at the end."""

    def __init__(self, quota: float) -> None:
        """Make it. ``quota``: part of one processor. Raises MachineError."""
        self._root, self._version = _find()
        self.directory = self._root / f"wanlat-{os.getpid()}-{next(_numbers)}"
        try:
            if self._version == 2:
                (self._root / "cgroup.subtree_control").write_text("+cpu")
            self.directory.mkdir()
        except OSError as error:
            raise MachineError(f"{_UNAVAILABLE}: {in_words(error)}. {_REMEDY}") from error
        # In a process group of its own, since Ctrl-C is for its parent.
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            self.limit(quota)
        except BaseException:
            self.remove()
            raise

    def limit(self, quota: float) -> None:
        """Give it another quota, at once. Raises MachineError."""
        quota_us = round(quota * _PERIOD_US)
        files = {"cpu.cfs_period_us": f"{_PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}
        if self._version == 2:
            files = {"cpu.max": f"{quota_us} {_PERIOD_US}"}
        try:
            for name, text in files.items():
                (self.directory / name).write_text(text)
                if (self.directory / name).read_text().split() != text.split():
                    raise OSError(f"{name} does not keep {text}")
        except OSError as error:
            raise MachineError(f"{_UNAVAILABLE}: {in_words(error)}. {_REMEDY}") from error

    def add(self, pid: int) -> None:
        """Move a process with all its threads in, if it is still there.

        What it starts from then on is in as well. Raises OSError when the kernel refuses.
        """
        _move(pid, self.directory)

    @property
    def members(self) -> set[int]:
        """Return the processes that are in."""
        return {int(word) for word in _words(self.directory / "cgroup.procs")}

    @property
    def throttled_s(self) -> float:
        """For how long processors were made to wait so far, as the kernel counts."""
        lines = (self.directory / "cpu.stat").read_text().splitlines()
        statistics = dict(line.split() for line in lines)
        unit, name = (1e6, "throttled_usec") if self._version == 2 else (1e9, "throttled_time")
        return int(statistics[name]) / unit

    def remove(self) -> None:
        """Move who is in to the root, and remove the group. Safe to repeat.

        Raises OSError when the kernel refuses to.
        """
        deadline = time.monotonic() + _REMOVAL_S
        while self.directory.exists():
            try:
                for pid in self.members - {0}:  # 0: of another namespace
                    _move(pid, self._root)
                self.directory.rmdir()
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # who has just been started or ended is in
        self._keeper.communicate()


def _find() -> tuple[Path, int]:
    """Return below which directory groups can be made, and by which version (proc(5), mountinfo).

    Raises MachineError.
    """
    reasons = []
    for line in sorted(
        _lines(Path("/proc/self/mountinfo")), key=lambda line: " - cgroup2 " in line
    ):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        point = Path(before.split()[4])
        if kind == "cgroup2":
            version, has_cpu = 2, "cpu" in _words(point / "cgroup.controllers")
        elif kind == "cgroup":
            version, has_cpu = 1, "cpu" in options.split(",")
        else:
            continue
        if has_cpu and os.access(point, os.W_OK):
            return point, version
        if has_cpu:
            reasons.append(f"{point} is not ours to write in")
    reason = "; ".join(reasons) or "no control groups with the controller `cpu` are mounted"
    raise MachineError(f"{_UNAVAILABLE}: {reason}. {_REMEDY}")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()


def _move(pid: int, directory: Path) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        (directory / "cgroup.procs").write_text(str(pid))
