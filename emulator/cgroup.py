"""Control groups of our own, in which processes have only a part of a processor's time.

Both versions (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/, scheduler/sched-bwc.rst):

- v2, where the caller's group has been delegated to it (systemd: Delegate=yes) with the controller
  ``cpu``: ``cpu.max``;
- v1, where the caller may write in the hierarchy of ``cpu``, as root mostly may: ``cpu.cfs_*``.

A group is removed by whoever made it. Should that process be killed, one of its children sees to
it: its lab ends too, so that the group becomes empty, and the kernel removes an empty one. Should
both be killed, an empty group stays until the next is made.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wanlat.topologies.errors import MachineError

PERIOD_US = 100_000
"""In each of these the quota is there anew; the kernel's default, and containers'."""

_PREFIX = "wanlat-"
_REST = "wanlat-rest"
_REMOVAL_S = 5.0
_numbers = itertools.count(1)

_UNAVAILABLE = "This machine does not let us limit the processor time of processes"
_REMEDY = (
    "Have a group delegated: `systemd-run --user --scope -p Delegate=yes -- COMMAND` (as root "
    "without --user), which needs cgroup v2 with the controller `cpu`; or run it as root."
)
_KEEPER = """
trap '' INT TERM HUP
read -r _
for _ in $(seq 200); do
    rmdir "$0" 2>/dev/null; [ -d "$0" ] || exit 0
    sleep 0.05
done
"""
"""Ends when nobody has the other end of its standard input any more, and the group is gone."""


@dataclass(frozen=True)
class Usage:
    """What the kernel counted: periods with processes that wanted to run, and those cut short."""

    periods: int
    throttled: int
    throttled_s: float

    def since(self, earlier: Usage) -> Usage:
        """Return what came after an earlier count."""
        return Usage(
            self.periods - earlier.periods,
            self.throttled - earlier.throttled,
            self.throttled_s - earlier.throttled_s,
        )


class CpuGroup:
    """A group with a quota of processor time. Use `remove` at the end."""

    def __init__(self, quota: float) -> None:
        """Make it. ``quota``: part of one processor. Raises MachineError."""
        self._base, self._version = _find()
        self._home = self._base  # where processes go back to
        self.quota = quota
        self.directory = self._base / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        try:
            _remove_stale(self._base)
            if self._version == 2:
                self._enable()
            self.directory.mkdir()
        except OSError as error:
            self._disable()
            raise MachineError(f"{_UNAVAILABLE}: {error}. {_REMEDY}") from error
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
        quota_us = round(quota * PERIOD_US)
        files = {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}
        if self._version == 2:
            files = {"cpu.max": f"{quota_us} {PERIOD_US}"}
        try:
            for name, text in files.items():
                (self.directory / name).write_text(text)
                if (self.directory / name).read_text().split() != text.split():
                    raise OSError(f"{name} does not keep {text}")
        except OSError as error:
            raise MachineError(f"{_UNAVAILABLE}: {error}. {_REMEDY}") from error
        self.quota = quota

    def _enable(self) -> None:
        """Give groups below ours a ``cpu`` controller. (v2)

        A group that does so may have no processes itself, so they move into one below.
        """
        control, rest = self._base / "cgroup.subtree_control", self._base / _REST
        if "cpu" in control.read_text().split():
            if rest.is_dir():  # an earlier group of ours has done it
                self._home = rest
            return
        if (self._base / "cgroup.type").exists():  # the root has none, and may have processes
            rest.mkdir(exist_ok=True)
            self._home = rest
            _move_all(self._base, rest)
        control.write_text("+cpu")

    def _disable(self) -> None:
        """Undo `_enable`, unless another group of ours needs it."""
        if self._home == self._base or any(self._base.glob(f"{_PREFIX}[0-9]*")):
            return
        with contextlib.suppress(OSError):
            (self._base / "cgroup.subtree_control").write_text("-cpu")
            _move_all(self._home, self._base)
            self._home.rmdir()

    def add(self, pid: int) -> bool:
        """Move a process with all its threads in; return whether it was there to be moved.

        What it starts from then on is in as well. Raises OSError when the kernel refuses.
        """
        return _move(pid, self.directory)

    @property
    def members(self) -> set[int]:
        """Return the processes that are in."""
        return set(_members(self.directory))

    @property
    def usage(self) -> Usage:
        """Return what the kernel has counted so far."""
        lines = (self.directory / "cpu.stat").read_text().splitlines()
        found = dict(line.split() for line in lines)
        unit, name = (1e6, "throttled_usec") if self._version == 2 else (1e9, "throttled_time")
        return Usage(int(found["nr_periods"]), int(found["nr_throttled"]), int(found[name]) / unit)

    def remove(self) -> None:
        """Move who is in back to where it was, and remove the group. Safe to repeat.

        Raises OSError when the kernel refuses to.
        """
        deadline = time.monotonic() + _REMOVAL_S
        while self.directory.exists():
            try:
                _move_all(self.directory, self._home)
                self.directory.rmdir()
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # who has just ended is in for a moment longer
        self._disable()
        self._keeper.communicate()


def _find() -> tuple[Path, int]:
    """Return where groups can be made, and by which version. Raises MachineError."""
    reasons = []
    for version, root, point in sorted(_hierarchies(), reverse=True):
        directory = _own(version, root, point)
        reason = _obstacle(directory, version)
        if reason is None:
            return directory, version
        reasons.append(f"{directory} ({reason})")
    found = "; ".join(reasons) or "no control groups are mounted"
    raise MachineError(f"{_UNAVAILABLE}: {found}. {_REMEDY}")


def _hierarchies() -> Iterator[tuple[int, str, Path]]:
    """Yield version, root and mount point of those that may limit (proc(5), mountinfo)."""
    for line in _lines(Path("/proc/self/mountinfo")):
        before, _, after = line.partition(" - ")
        _, _, _, root, point, *_ = before.split()
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            yield 2 if kind == "cgroup2" else 1, root, Path(point)


def _obstacle(directory: Path, version: int) -> str | None:
    """Return why no group can be made there; None when nothing is known to be against it."""
    if not directory.is_dir():
        return "it cannot be seen from here"
    if not os.access(directory, os.W_OK):
        return "it is not ours to write in"
    if version == 1:
        return None
    if "cpu" not in " ".join(_lines(directory / "cgroup.controllers")).split():
        return "it has no controller `cpu`"
    is_root = not (directory / "cgroup.type").exists()
    enabled = " ".join(_lines(directory / "cgroup.subtree_control")).split()
    if is_root or "cpu" in enabled or _is_delegated(directory):
        return None
    return "it has not been delegated to us"


def _is_delegated(directory: Path) -> bool:
    """Return whether systemd marked it as given away (systemd.resource-control(5), Delegate=)."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(directory, name) == b"1":
                return True
    return False


def _own(version: int, root: str, point: Path) -> Path:
    """Return the directory of the group that this process is in."""
    path = "/"
    for line in _lines(Path("/proc/self/cgroup")):
        number, controllers, found = line.split(":", 2)
        if (version == 2 and number == "0") or (version == 1 and "cpu" in controllers.split(",")):
            path = found
    if root != "/" and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    own = point / path.lstrip("/")
    # What an earlier group of ours made us move into is not where groups are made.
    return own.parent if own.name == _REST else own


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _members(directory: Path) -> list[int]:
    return [int(line) for line in _lines(directory / "cgroup.procs")]


def _move(pid: int, directory: Path) -> bool:
    try:
        (directory / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:  # it has ended
        return False
    return True


def _move_all(source: Path, target: Path) -> None:
    """Move everybody, also who is started meanwhile. Raises OSError."""
    for _ in range(100):
        members = [pid for pid in _members(source) if pid != 0]  # 0: of another namespace
        if not members:
            return
        for pid in members:
            _move(pid, target)


def _remove_stale(base: Path) -> None:
    """Remove what is left of makers that were killed together with their keepers."""
    for stale in base.glob(f"{_PREFIX}[0-9]*-[0-9]*"):
        maker = stale.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", maker).exists():
            with contextlib.suppress(OSError):  # the kernel keeps one that somebody is in
                stale.rmdir()
