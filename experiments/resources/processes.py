"""Processes of a lab and what they use, read from the lab's own /proc.

That /proc shows the lab's processes only, by the numbers they have there, and its owner may read
it from outside, root or not (he owns the user namespace: cap_capable(), security/commoncap.c).

CPU time comes from the kernel's clock of each process, to the nanosecond: /proc has ticks of 10 ms,
and a request may take a node a tenth of a millisecond. Anybody may read that clock who can name the
process (clock_getcpuclockid(3); kernel/time/posix-cpu-timers.c, pid_for_clock()), by the number
that it has in the reader's own PID namespace, which is an ancestor of the lab's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SHORT = 4096
_ZOMBIE = "Z"
_CPUCLOCK_SCHED = 2
"""Of a whole process, as the scheduler counts it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Columns of a row: memory, threads and files at this instant; the others are counters.

    ``read_bytes`` and ``written_bytes`` are of disks, and None where the kernel does not tell.
    """

    rss_bytes: int = 0
    cpu_ns: int = 0
    threads: int = 0
    open_files: int | None = 0
    read_bytes: int | None = None
    written_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A line of /proc/PID/stat (proc(5)). ``begun``: a number that a later PID does not share."""

    pid: int
    state: str
    parent: int
    begun: int
    threads: int
    rss_bytes: int
    own_cpu_ns: int
    reaped_cpu_ns: int
    """Of children that have ended and were waited for."""


def parse_stat(text: bytes) -> ProcessStat:
    """Read it. The name, in brackets, may hold brackets too: the last one ends it."""
    rest = text[text.rindex(b")") + 2 :].split()
    return ProcessStat(
        pid=int(text[: text.index(b"(")]),
        state=rest[0].decode(),
        parent=int(rest[1]),
        begun=int(rest[19]),
        threads=int(rest[17]),
        rss_bytes=int(rest[21]) * _PAGE_BYTES,
        own_cpu_ns=(int(rest[11]) + int(rest[12])) * _TICK_NS,
        reaped_cpu_ns=(int(rest[13]) + int(rest[14])) * _TICK_NS,
    )


class ProcessTable:
    """A /proc directory, kept open."""

    def __init__(self, path: str) -> None:
        """Open it. Raises OSError."""
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of it. May be called again."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def all(self) -> dict[int, ProcessStat]:
        """Return every process by its number. Raises OSError when the lab has ended."""
        found = {}
        for name in os.listdir(self._fd):  # noqa: PTH208 - a descriptor
            if name.isdigit() and (stat := self.stat(name)) is not None:
                found[stat.pid] = stat
        return found

    def stat(self, name: str | int) -> ProcessStat | None:
        """Return one process; None when it has ended."""
        text = self._read(f"{name}/stat")
        return parse_stat(text) if text else None

    def seen_inside(
        self, wanted: Collection[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield the processes, by their number in their own namespace and when they began, with
        their number here.
        """
        numbers = {pid for pid, _ in wanted}
        for name in os.listdir(self._fd):  # noqa: PTH208 - a descriptor
            inside = _innermost_pid(self._read(f"{name}/status")) if name.isdigit() else None
            if inside not in numbers or (stat := self.stat(name)) is None:
                continue
            if (inside, stat.begun) in wanted:
                yield (inside, stat.begun), stat.pid

    def disk_bytes(self, name: str | int) -> tuple[int, int] | None:
        """Return what a process, and children it has waited for, read from and wrote to disks.

        What it wrote and took back before the disk saw it (cancelled) does not count. None where
        the kernel does not tell.
        """
        text = self._read(f"{name}/io")
        if not text:
            return None
        values = dict(line.split(b": ") for line in text.splitlines())
        written = int(values[b"write_bytes"]) - int(values[b"cancelled_write_bytes"])
        return int(values[b"read_bytes"]), max(written, 0)

    def open_files(self, name: str | int) -> int | None:
        """Return how many descriptors a process has open; None where that may not be known."""
        try:
            # From Linux 6.2 on the directory's size is their number.
            size = os.stat(f"{name}/fd", dir_fd=self._fd).st_size
            if size:
                return size
            fd = os.open(f"{name}/fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._fd)
        except OSError:
            return None
        try:
            return len(os.listdir(fd))  # noqa: PTH208
        except OSError:
            return None
        finally:
            os.close(fd)

    def _read(self, path: str) -> bytes:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError:
            return b""
        try:
            return os.read(fd, _SHORT)
        except OSError:
            return b""
        finally:
            os.close(fd)


def _innermost_pid(status: bytes) -> int | None:
    """Return the number that a process has in its innermost PID namespace, from its status."""
    for line in status.splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return None


class CpuClocks:
    """Finds out what processes of a lab are called here, and asks their clocks."""

    def __init__(self, host: ProcessTable) -> None:
        """``host`` is this program's own /proc."""
        self._host = host
        self._here: dict[tuple[int, int], int | None] = {}

    def learn(self, processes: dict[int, ProcessStat]) -> None:
        """Find what the processes of a lab, by their numbers there, are called here."""
        wanted = {(stat.pid, stat.begun) for stat in processes.values()}
        new = wanted - self._here.keys()
        if new:
            # When a process began is the same wherever it is read.
            found = dict(self._host.seen_inside(new))
            self._here.update({key: found.get(key) for key in new})
        for gone in self._here.keys() - wanted:
            del self._here[gone]

    def own_cpu_ns(self, stat: ProcessStat) -> int:
        """Return what a process has used itself; from /proc where it has no clock here."""
        here = self._here.get((stat.pid, stat.begun))
        if here is None:
            return stat.own_cpu_ns
        try:
            return time.clock_gettime_ns((~here << 3) | _CPUCLOCK_SCHED)
        except OSError:  # it has ended since
            return stat.own_cpu_ns


def families(
    table: Mapping[int, ProcessStat], roots: Iterable[int]
) -> dict[int, list[ProcessStat]]:
    """Return each root with all that descends from it; a root that is gone has nobody."""
    children: dict[int, list[ProcessStat]] = {}
    for stat in table.values():
        children.setdefault(stat.parent, []).append(stat)
    found = {}
    for root in roots:
        family = [table[root]] if root in table else []
        for member in family:  # it grows while it is gone through
            family += children.get(member.pid, [])
        found[root] = family
    return found


@dataclass
class _Known:
    """What was last seen of a process."""

    parent: int
    cpu_ns: int = 0
    disk: tuple[int, int] | None = None


@dataclass
class Meter:
    """Adds up what one subject's processes use, over restarts: what has ended still counts.

    The kernel hands the CPU time and disk bytes of a process that was waited for to its parent:
    whoever is gone counts here only when its parent is no longer among the subject's.
    """

    _known: dict[tuple[int, int], _Known] = field(default_factory=dict)
    _gone_cpu_ns: int = 0
    _gone_read: int = 0
    _gone_written: int = 0
    _tells_disk: bool = False
    _last: Usage = field(default_factory=Usage)

    def take(
        self,
        processes: Iterable[ProcessStat],
        table: ProcessTable,
        clocks: CpuClocks | None = None,
    ) -> Usage:
        """Return what the subject uses, and has used, now that these are its processes."""
        rss = threads = files = 0
        tells_files = True
        present: dict[tuple[int, int], _Known] = {}
        for stat in processes:
            own_cpu_ns = clocks.own_cpu_ns(stat) if clocks else stat.own_cpu_ns
            known = _Known(stat.parent, own_cpu_ns + stat.reaped_cpu_ns)
            before = self._known.get((stat.pid, stat.begun))
            known.disk = table.disk_bytes(stat.pid) or (before.disk if before else None)
            present[stat.pid, stat.begun] = known
            if stat.state == _ZOMBIE:
                continue
            rss += stat.rss_bytes
            threads += stat.threads
            its_files = table.open_files(stat.pid)
            tells_files = tells_files and its_files is not None
            files += its_files or 0
        self._bury(present)
        self._known = present
        self._last = self._total(rss, threads, files if tells_files else None)
        return self._last

    def _bury(self, present: Mapping[tuple[int, int], _Known]) -> None:
        alive = {pid for pid, _ in present}
        for key, known in self._known.items():
            if key in present or known.parent in alive:
                continue
            self._gone_cpu_ns += known.cpu_ns
            if known.disk:
                self._gone_read += known.disk[0]
                self._gone_written += known.disk[1]

    def _total(self, rss: int, threads: int, files: int | None) -> Usage:
        disks = [known.disk for known in self._known.values() if known.disk]
        self._tells_disk = self._tells_disk or bool(disks)
        cpu_ns = self._gone_cpu_ns + sum(known.cpu_ns for known in self._known.values())
        read = self._gone_read + sum(each[0] for each in disks)
        written = self._gone_written + sum(each[1] for each in disks)
        # Between the end of a child and its parent's wait its share is nobody's for a moment.
        return Usage(
            rss_bytes=rss,
            cpu_ns=max(cpu_ns, self._last.cpu_ns),
            threads=threads,
            open_files=files,
            read_bytes=max(read, self._last.read_bytes or 0) if self._tells_disk else None,
            written_bytes=max(written, self._last.written_bytes or 0) if self._tells_disk else None,
        )
