"""Processes of a cluster and what they use, read from the lab's own /proc.

That /proc shows the lab's processes only, by the numbers they have there, and its owner may read
it from outside, root or not (he owns the user namespace: cap_capable(), security/commoncap.c).

CPU time comes from the kernel's clock of each process, to the nanosecond: /proc has ticks of 10 ms,
and a request may take a node a tenth of a millisecond. Anybody may read that clock who can name the
process (clock_getcpuclockid(3); kernel/time/posix-cpu-timers.c, pid_for_clock()), by the number
that it has in the reader's own PID namespace, which is an ancestor of the lab's.

psutil has ticks only, and one sample of 24 nodes takes it 6 ms of CPU time where this takes 1.7 ms.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from wanlat.emulator.family import outside
from wanlat.emulator.lab import Lab
from wanlat.systems.base import Cluster

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CPUCLOCK_SCHED = 2
"""Of a whole process, as the scheduler counts it."""

Subject = tuple[Literal["node", "front"], str]
"""A node's store, or what stands before it (nginx), by the node's name."""
_Key = tuple[int, int]
_Counters = tuple[int, int, int]
"""CPU time (ns), bytes read and written."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Columns of a row: memory, threads and files at this instant; the others are counters.

    ``read_bytes`` and ``written_bytes`` are of disks. None: the kernel does not tell.
    """

    rss_bytes: int
    cpu_ns: int
    threads: int
    open_files: int | None
    read_bytes: int | None
    written_bytes: int | None


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A line of /proc/PID/stat (proc(5)). ``begun``: a number that a later PID does not share.

    ``reaped_cpu_ns`` is of children that have ended and were waited for.
    """

    pid: int
    parent: int
    begun: int
    threads: int
    rss_bytes: int
    own_cpu_ns: int
    reaped_cpu_ns: int

    @property
    def key(self) -> _Key:
        """What no other process shares."""
        return self.pid, self.begun


def parse_stat(text: bytes) -> ProcessStat:
    """Read it. The name, in brackets, may hold brackets too: the last one ends it."""
    pid, _, _ = text.partition(b" ")
    field = [b"", b"", b"", *text[text.rindex(b")") + 2 :].split()]  # numbered as in proc(5)
    is_zombie = field[3] == b"Z"
    return ProcessStat(
        pid=int(pid),
        parent=int(field[4]),
        begun=int(field[22]),
        threads=0 if is_zombie else int(field[20]),
        rss_bytes=int(field[24]) * _PAGE_BYTES,
        own_cpu_ns=(int(field[14]) + int(field[15])) * _TICK_NS,
        reaped_cpu_ns=(int(field[16]) + int(field[17])) * _TICK_NS,
    )


class LabProcesses:
    """The processes of a lab, by their numbers in it."""

    def __init__(self, supervisor_pid: int) -> None:
        """``supervisor_pid``: the process that leads the lab, by its number outside."""
        self._supervisor_pid = supervisor_pid
        self._proc = f"/proc/{supervisor_pid}/root/proc"
        self._here: dict[_Key, int | None] = {}
        """What processes are called outside of the lab."""

    def all(self) -> dict[int, ProcessStat]:
        """Return every process by its number. Raises OSError when the lab has ended."""
        names = [name for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208
        stats = [parse_stat(text) for name in names if (text := self._read(f"{name}/stat"))]
        keys = {stat.key for stat in stats}
        if new := keys - self._here.keys():
            found = outside(self._supervisor_pid, (pid for pid, _ in new))
            self._here |= {key: found.get(key[0]) for key in new}
        self._here = {key: self._here[key] for key in keys}
        return {stat.pid: stat for stat in stats}

    def cpu_ns(self, stat: ProcessStat) -> int:
        """Return what a process has used itself; in ticks where it has no clock here."""
        here = self._here.get(stat.key)
        if here is not None:
            with suppress(OSError):  # it has ended since
                return time.clock_gettime_ns((~here << 3) | _CPUCLOCK_SCHED)
        return stat.own_cpu_ns

    def disk_bytes(self, pid: int) -> tuple[int, int] | None:
        """Return what a process, and children it has waited for, read from and wrote to disks.

        What it wrote and took back before the disk saw it (cancelled) does not count. None where
        the kernel does not tell.
        """
        text = self._read(f"{pid}/io")
        if not text:
            return None
        values = {name: int(number) for name, number in map(bytes.split, text.splitlines())}
        written = values[b"write_bytes:"] - values[b"cancelled_write_bytes:"]
        return values[b"read_bytes:"], max(written, 0)

    def open_files(self, pid: int) -> int | None:
        """Return how many descriptors a process has open; None where that may not be known."""
        files = f"{self._proc}/{pid}/fd"
        with suppress(OSError):
            # From Linux 6.2 on the directory's size is their number.
            return os.stat(files).st_size or len(os.listdir(files))  # noqa: PTH116, PTH208
        return None

    def _read(self, path: str) -> bytes:
        with suppress(OSError), open(f"{self._proc}/{path}", "rb", buffering=0) as file:
            return file.read(4096)
        return b""  # it has ended, or is not ours to look at


class ClusterProcesses:
    """What each node of a cluster uses, and each process that stands before one."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self._cluster = cluster
        self._processes = LabProcesses(lab.supervisor_pid)
        self._meters: defaultdict[Subject, Meter] = defaultdict(Meter)
        self.count = 0
        """How many processes of the lab were there the last time."""

    def usage(self) -> dict[Subject, Usage]:
        """Return what each uses now, one that has ended too. Raises OSError when the lab has."""
        processes, cluster = self._processes.all(), self._cluster
        self.count = len(processes)
        roots: dict[Subject, int] = {("node", name): 0 for name in cluster.nodes}
        roots |= {("node", name): its.pid for name, its in cluster.processes.items()}
        roots |= {("front", name): its.pid for name, its in cluster.fronts.items()}
        found = families(processes, roots.values())
        return {
            subject: self._meters[subject].take(found[pid], self._processes)
            for subject, pid in roots.items()
        }


def families(
    table: Mapping[int, ProcessStat], roots: Iterable[int]
) -> dict[int, list[ProcessStat]]:
    """Return each root with all that descends from it; a root that is gone has nobody."""
    children: defaultdict[int, list[ProcessStat]] = defaultdict(list)
    for stat in table.values():
        children[stat.parent].append(stat)
    found = {}
    for root in roots:
        found[root] = [table[root]] if root in table else []
        for member in found[root]:  # it grows while it is gone through
            found[root] += children[member.pid]
    return found


class Meter:
    """Adds up what one subject's processes use, over restarts: what has ended still counts.

    The kernel hands the CPU time and disk bytes of a process that was waited for to its parent:
    whoever is gone counts here only when its parent is no longer among the subject's.
    """

    def __init__(self) -> None:
        self._seen: dict[_Key, tuple[int, _Counters]] = {}
        """Parent and counters of each process, when it was last seen."""
        self._gone: _Counters = (0, 0, 0)
        self._last: _Counters = (0, 0, 0)
        self._tells_disk = False

    def take(self, processes: Sequence[ProcessStat], lab: LabProcesses) -> Usage:
        """Return what the subject uses, and has used, now that these are its processes."""
        seen: dict[_Key, tuple[int, _Counters]] = {}
        for stat in processes:
            _, (_, *before) = self._seen.get(stat.key, (0, (0, 0, 0)))
            disk = lab.disk_bytes(stat.pid)
            self._tells_disk = self._tells_disk or disk is not None
            read, written = disk or before
            seen[stat.key] = stat.parent, (lab.cpu_ns(stat) + stat.reaped_cpu_ns, read, written)
        pids = {pid for pid, _ in seen}
        ended = (its for key, its in self._seen.items() if key not in seen)
        self._gone = _sum([self._gone, *(its for parent, its in ended if parent not in pids)])
        self._seen = seen
        now = _sum([self._gone, *(its for _, its in seen.values())])
        # Between the end of a child and its parent's wait its share is nobody's for a moment.
        cpu_ns, read, written = map(max, now, self._last)
        self._last = cpu_ns, read, written
        files = [lab.open_files(stat.pid) for stat in processes if stat.threads]
        return Usage(
            rss_bytes=sum(stat.rss_bytes for stat in processes),
            cpu_ns=cpu_ns,
            threads=sum(stat.threads for stat in processes),
            open_files=None if None in files else sum(filter(None, files)),
            read_bytes=read if self._tells_disk else None,
            written_bytes=written if self._tells_disk else None,
        )


def _sum(counters: Iterable[_Counters]) -> _Counters:
    cpu_ns, read, written = (sum(column) for column in zip(*counters, strict=True))
    return cpu_ns, read, written
