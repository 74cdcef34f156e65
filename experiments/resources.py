"""Resource usage of nodes: memory, CPU, files, disk and network, from a cluster's start to its end.

A thread of this program samples: a second process would take memory and a core's cache for the same
calls, which are mostly system calls, and latencies are measured in another process. Its processes
are read from the lab's own /proc, by the numbers that they have there; the owner of the lab's user
namespace may, root or not (cap_capable(), security/commoncap.c).

CPU time comes from the kernel's clock of each process, to the nanosecond: /proc, and so psutil, has
ticks of 10 ms, and a request may take a node a tenth of a millisecond. Anybody may read that clock
who can name the process (clock_getcpuclockid(3); kernel/time/posix-cpu-timers.c, pid_for_clock()).
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

from wanlat.bundle import tables
from wanlat.bundle.write import BundleWriter
from wanlat.emulator.family import outside
from wanlat.emulator.interface_counters import InterfaceCounters
from wanlat.emulator.lab import Lab
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems.base import Cluster
from wanlat.topologies.errors import WanlatError
from wanlat.topologies.wording import in_words

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CPUCLOCK_SCHED = 2
"""Of a whole process, as the scheduler counts it."""
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are (stat(2))
_ENTRIES_A_STEP = 64
_TRASH = "/.minio.sys/tmp/.trash"
"""Where MinIO moves what is removed, until it gets round to freeing it."""
LARGEST_SHARE = 0.008
"""Of one core: what one sample costs, over the time to the next."""
_SPACE_SHARE = 0.003
"""Of one core: what scanning directories costs beside a measurement."""
_END_WITHIN_S = 5.0
_SPACE_WITHIN_S = 30.0
_FIRST_SPACE_WITHIN_S = 3.0

Subject = tuple[Literal["node", "front"], str]
"""A node's store, or what stands before it (nginx), by the node's name."""
_Key = tuple[int, int]
_Counters = tuple[int, int, int]
"""CPU time (ns), bytes read and written."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Columns of a row: memory, threads and files at this instant; the others are counters.

    ``read_bytes`` and ``written_bytes`` are of disks. None: the kernel does not report it.
    """

    rss_bytes: int
    cpu_ns: int
    threads: int
    open_files: int | None
    read_bytes: int | None
    written_bytes: int | None


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A line of /proc/PID/stat (proc(5)). ``key``: what no other process, earlier or later, shares.

    ``reaped_cpu_ns`` is of children that have ended and were waited for.
    """

    key: _Key
    parent: int
    threads: int
    rss_bytes: int
    own_cpu_ns: int
    reaped_cpu_ns: int

    @property
    def pid(self) -> int:
        """Its number in the lab."""
        return self.key[0]


def parse_stat(text: bytes) -> ProcessStat:
    """Read it. The name, in brackets, may hold brackets too: the last one ends it."""
    field = [b"", b"", b"", *text[text.rindex(b")") + 2 :].split()]  # numbered as in proc(5)
    return ProcessStat(
        key=(int(text.partition(b" ")[0]), int(field[22])),
        parent=int(field[4]),
        threads=0 if field[3] == b"Z" else int(field[20]),
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
        self.counts_disk = False
        """Whether the kernel reports what processes read from and wrote to disks."""

    def all(self) -> dict[int, ProcessStat]:
        """Return every process by its number. Raises OSError when the lab has ended."""
        names = [name for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208
        stats = [parse_stat(text) for name in names if (text := self._read(f"{name}/stat"))]
        if new := {stat.key for stat in stats} - self._here.keys():
            outside_pids = outside(self._supervisor_pid, (pid for pid, _ in new))
            self._here |= {key: outside_pids.get(key[0]) for key in new}
        return {stat.pid: stat for stat in stats}

    def counters(self, stat: ProcessStat) -> _Counters:
        """Return what a process and those it waited for have used; in ticks where it has no clock.

        What it wrote and took back before the disk saw it (cancelled) does not count. Bytes are 0,
        where the kernel does not report it.
        """
        own_ns, here = stat.own_cpu_ns, self._here.get(stat.key)
        if here is not None:
            with suppress(OSError):  # it has ended since
                own_ns = time.clock_gettime_ns((~here << 3) | _CPUCLOCK_SCHED)
        lines = map(bytes.split, self._read(f"{stat.pid}/io").splitlines())
        disk = {name: int(number) for name, number in lines}
        self.counts_disk = self.counts_disk or bool(disk)
        written = disk.get(b"write_bytes:", 0) - disk.get(b"cancelled_write_bytes:", 0)
        return own_ns + stat.reaped_cpu_ns, disk.get(b"read_bytes:", 0), max(written, 0)

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


class ClusterProcesses(LabProcesses):
    """What each node of a cluster uses, and each process that stands before one."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        super().__init__(lab.supervisor_pid)
        self._cluster = cluster
        self._meters: defaultdict[Subject, Meter] = defaultdict(Meter)
        self.count = 0
        """How many processes of the lab were there the last time."""

    def usage(self) -> dict[Subject, Usage]:
        """Return what each uses now, one that has ended too. Raises OSError when the lab has."""
        processes, cluster = self.all(), self._cluster
        self.count = len(processes)
        roots: dict[Subject, int] = {("node", name): 0 for name in cluster.nodes}
        roots |= {("node", name): its.pid for name, its in cluster.processes.items()}
        roots |= {("front", name): its.pid for name, its in cluster.fronts.items()}
        trees = families(processes, roots.values())
        return {
            subject: self._meters[subject].take(trees[pid], self) for subject, pid in roots.items()
        }


def families(
    table: Mapping[int, ProcessStat], roots: Iterable[int]
) -> dict[int, list[ProcessStat]]:
    """Return each root with all that descends from it; a root that is gone has none."""
    children: defaultdict[int, list[ProcessStat]] = defaultdict(list)
    for stat in table.values():
        children[stat.parent].append(stat)
    trees = {}
    for root in roots:
        trees[root] = [table[root]] if root in table else []
        for member in trees[root]:  # it grows while it is gone through
            trees[root] += children[member.pid]
    return trees


class Meter:
    """Adds up what one subject's processes use, over restarts: what has ended still counts.

    The kernel hands the CPU time and disk bytes of a process that was waited for to its parent:
    whoever is gone counts here only when its parent is no longer among the subject's.
    """

    def __init__(self) -> None:
        self._seen: dict[_Key, tuple[int, _Counters]] = {}
        """Parent and counters of each process that counts, when it was last seen."""
        self._last: _Counters = (0, 0, 0)

    def take(self, processes: Sequence[ProcessStat], lab: LabProcesses) -> Usage:
        """Return what the subject uses, and has used, now that these are its processes."""
        pids = {stat.pid for stat in processes}
        self._seen = {key: its for key, its in self._seen.items() if its[0] not in pids}
        for stat in processes:
            self._seen[stat.key] = stat.parent, lab.counters(stat)
        now = map(sum, zip((0, 0, 0), *(its for _, its in self._seen.values()), strict=True))
        # Between the end of a child and its parent's wait its share is nobody's for a moment.
        cpu_ns, read, written = map(max, now, self._last)
        self._last = cpu_ns, read, written
        files = [lab.open_files(stat.pid) for stat in processes if stat.threads]
        return Usage(
            rss_bytes=sum(stat.rss_bytes for stat in processes),
            cpu_ns=cpu_ns,
            threads=sum(stat.threads for stat in processes),
            open_files=None if None in files else sum(filter(None, files)),
            read_bytes=read if lab.counts_disk else None,
            written_bytes=written if lab.counts_disk else None,
        )


@dataclass(frozen=True, slots=True)
class Space:
    """Columns of a row: blocks allocated, as a tmpfs reports them too, and not lengths of files.

    ``trash_bytes``: the part of ``space_bytes`` that is to be removed. ``space_began_ns``
    (CLOCK_MONOTONIC): what was written since may be in it, or not.
    """

    space_bytes: int
    files: int
    trash_bytes: int
    space_began_ns: int


class _EndScan(Exception):
    """There is no time to scan on."""


def space_of(root: Path, rest: Callable[[], object] = lambda: None) -> Space:
    """Return what a tree takes, calling ``rest`` after each entry.

    What vanishes meanwhile is left out, and hard links count once.
    """
    began_ns, linked = time.monotonic_ns(), set[tuple[int, int]]()
    taken = trash = files = 0
    for directory, _, names in os.walk(root):
        for name in ("", *names):
            rest()
            with suppress(OSError):  # it may be gone
                status = os.lstat(f"{directory}/{name}")
                files += name != ""
                if name and status.st_nlink > 1:
                    if (status.st_dev, status.st_ino) in linked:
                        continue
                    linked.add((status.st_dev, status.st_ino))
                taken += status.st_blocks * _BLOCK_BYTES
                trash += status.st_blocks * _BLOCK_BYTES if _TRASH in directory else 0
    return Space(taken, files, trash, began_ns)


class Sampler:
    """A context manager around everything that is done with a cluster.

    A sample when it is entered, one every ``every_s`` seconds (or less often, so that they cost
    less than a hundredth of a core), one when it is left. It never ends a run: should it fail, the
    manifest has it under ``resources``, and the run continues without it.

    Scanning directories is dear where there are many files, so beside a measurement another thread
    does it little by little; ``sample_space`` does it at once, for when nothing is being measured.
    """

    def __init__(
        self,
        lab: Lab,
        cluster: Cluster,
        bundle: BundleWriter,
        system: str,
        every_s: float,
        facts: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """``facts`` gives, at the end, more entries for the manifest."""
        self._lab, self._bundle, self._system = lab, bundle, system
        self._nodes = len(cluster.nodes)
        self._every_s, self._interval_ns = every_s, round(every_s * 1e9)
        self._facts = facts
        self._processes = ClusterProcesses(lab, cluster)
        self._directories = {name: lab.node(name).host_directory for name in cluster.nodes}
        self._space: dict[str, Space] = {}
        """Of nodes that were scanned since the last sample."""
        self._traffic: InterfaceCounters | None = None
        """Open sockets keep their namespaces: closed before the lab."""
        self._append: Callable[[dict[str, Any]], None] = lambda _: None
        self._began_ns = time.monotonic_ns()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name="resources", daemon=True),
            threading.Thread(target=self._scan_slowly, name="disk space", daemon=True),
        ]
        self._sampling = threading.Lock()
        self._cpu_ns = 0
        self._late_ns: list[int] = []
        self._longest_ns = (0, 0)
        """The longest wait for a sample, and the CPU time of the one that made it."""
        self._between_s = 0.0
        self._failure: str | None = None

    def sample(self, space_within_s: float = 0.0) -> None:
        """Sample now, where one stage ends and another begins, so that each one's use is known.

        With the disk space of the nodes that are scanned in the time. What this costs
        is no cost of a measurement.
        """
        began = time.monotonic()

        def rest() -> None:
            if time.monotonic() > began + space_within_s:
                raise _EndScan

        if space_within_s:
            self._scan(rest)
        self._take()
        self._between_s += time.monotonic() - began

    def sample_space(self) -> None:
        """Sample now, with the disk space of every node. It may take seconds."""
        self.sample(_SPACE_WITHIN_S)

    def __enter__(self) -> Self:
        """Sample once, so that there is a sample of the idle cluster, and begin."""
        self._began_ns = time.monotonic_ns()
        # A full collection takes more than a hundred samples do, whichever thread it falls to: now,
        # and what is here by now is not gone through again.
        gc.collect()
        gc.freeze()
        try:
            self._append = self._bundle.table("resources", tables.RESOURCES)
            self._traffic = InterfaceCounters(self._lab)
        except (OSError, WanlatError) as error:
            self._failure = in_words(error)
        self.sample(_FIRST_SPACE_WITHIN_S)  # mostly nothing is there yet
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop, and write into the manifest what it cost."""
        self._stop.set()
        gc.unfreeze()
        for thread in self._threads:
            thread.join(_END_WITHIN_S)
        if kind is None:
            self.sample_space()
        if self._traffic is not None:
            self._traffic.close()
        before = (self._bundle.manifest.get("resources") or {}).get("systems", {})
        self._bundle.write_manifest(resources=pooled({**before, self._system: self._report()}))

    def _run(self) -> None:
        due_ns = self._began_ns + self._interval_ns
        while not self._stop.wait(max(due_ns - time.monotonic_ns(), 0) / 1e9):
            now_ns = time.monotonic_ns()
            spent_ns = self._take()
            if self._failure is not None:
                return
            self._cpu_ns += spent_ns
            self._late_ns.append(max(now_ns - due_ns, 0))
            wait_ns = round(spent_ns / LARGEST_SHARE)
            self._longest_ns = max(self._longest_ns, (wait_ns, spent_ns))
            # On a grid, unless a sample came late or was dear.
            due_ns = max(due_ns + self._interval_ns, now_ns + max(wait_ns, self._interval_ns))

    def _scan_slowly(self) -> None:
        """Scan again and again, resting so long that it takes but a small share of a core."""
        entries, began_ns = 0, time.thread_time_ns()

        def rest() -> None:
            nonlocal entries, began_ns
            entries += 1
            if entries % _ENTRIES_A_STEP == 0:
                spent_ns = time.thread_time_ns() - began_ns
                self._cpu_ns += spent_ns
                if self._stop.wait(spent_ns / 1e9 / _SPACE_SHARE):
                    raise _EndScan
                began_ns = time.thread_time_ns()

        while not self._stop.wait(self._every_s):
            self._scan(rest)

    def _scan(self, rest: Callable[[], object]) -> None:
        with suppress(_EndScan):
            for name, directory in self._directories.items():
                self._space[name] = space_of(directory, rest)

    def _take(self) -> int:
        """Sample once, and note why that failed; return the CPU time that it took (ns)."""
        began_ns = time.thread_time_ns()
        with self._sampling:
            if self._traffic is None or self._failure is not None:
                return 0
            try:
                for row in list(self._rows(self._traffic)):
                    name = row["subject"] if row["kind"] == "node" else None
                    own = self._space.pop(name, None) if name else None
                    self._append(row | (asdict(own) if own is not None else {}))
            except (OSError, ValueError, WanlatError) as error:
                self._failure = f"{type(error).__name__}: {in_words(error)}"
        return time.thread_time_ns() - began_ns

    def _rows(self, counters: InterfaceCounters) -> Iterator[dict[str, Any]]:
        """Yield a row for each node, front and link, all of one instant, without disk space."""
        common = {"t_ns": time.monotonic_ns(), "system": self._system}
        usage, traffic = self._processes.usage(), counters.nodes()
        for (kind, name), its in usage.items():
            crossed = asdict(traffic[name]) if kind == "node" and name in traffic else {}
            yield {**common, "kind": kind, "subject": name, **asdict(its), **crossed}
        for way, its_traffic in counters.links().items():
            sent = {"tx_bytes": its_traffic.tx_bytes, "tx_packets": its_traffic.tx_packets}
            yield {**common, "kind": "link", "subject": str(way), **sent}

    def _report(self) -> dict[str, Any]:
        """What the manifest has of one system (`wanlat.bundle.documents.SystemSampling`)."""
        late_ns = sorted(self._late_ns) or [0]
        elapsed_ns = max(time.monotonic_ns() - self._began_ns, 1)
        wait_ns, spent_ns = self._longest_ns
        stretched = (
            f"a sample of {self._nodes} node{'s' * (self._nodes > 1)}, {self._processes.count} "
            f"processes took up to {spent_ns / 1e6:.1f} ms of CPU time, so samples lie up to "
            f"{wait_ns / 1e9:.1f} s apart and not {self._every_s:g} s"
        )
        return {
            "every_s": self._every_s,
            "samples": len(self._late_ns),
            "elapsed_s": round(elapsed_ns / 1e9, 3),
            "cpu_s": round(self._cpu_ns / 1e9, 6),
            "cost_cpu_share": round(self._cpu_ns / elapsed_ns, 6),
            "late_p99_ms": round(late_ns[int((len(late_ns) - 1) * 0.99)] / 1e6, 3),
            "stretched": stretched if wait_ns > self._interval_ns * 1.02 else None,
            "between_s": round(self._between_s, 3),
            "failed": self._failure,
            **self._facts(),
        }


def pooled(systems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's ``resources``: of all systems together, and of each."""
    parts = list(systems.values())

    def joined(key: str) -> str | None:
        return "; ".join(f"{name}: {its[key]}" for name, its in systems.items() if its[key]) or None

    elapsed_s = sum(part["elapsed_s"] for part in parts)
    return {
        "every_s": max(part["every_s"] for part in parts),
        "samples": sum(part["samples"] for part in parts),
        "cost_cpu_share": round(sum(part["cpu_s"] for part in parts) / max(elapsed_s, 1e-9), 6),
        "late_p99_ms": max(part["late_p99_ms"] for part in parts),
        "stretched": joined("stretched"),
        "failed": joined("failed"),
        "systems": dict(systems),
    }


class StoredBytes:
    """Counts objects that were acknowledged and not removed since.

    ``is_known`` is False once a write or a removal had another end: it is unknown then whether it
    is there. (A method that is under no system's `objects` is no write that is known here.)
    """

    def __init__(self) -> None:
        self.is_known = True
        self._bytes: dict[tuple[str | None, str | bytes | None], int] = {}
        self._written_bytes = 0

    def take(self, request: Request, sample: Sample) -> None:
        """Take note of a request that was answered."""
        if request.does not in ("write", "delete"):
            return
        key = (request.bucket, request.key)
        if sample.outcome != "ok":
            self.is_known = False
        elif request.does == "write":
            self._bytes[key] = request.object_bytes or 0
            self._written_bytes += request.object_bytes or 0
        else:
            self._bytes.pop(key, None)

    def facts(self) -> dict[str, int | bool]:
        """Return the manifest's entries."""
        return {
            "stored_objects": len(self._bytes),
            "stored_bytes": sum(self._bytes.values()),
            "stored_is_known": self.is_known,
            "put_bytes": self._written_bytes,
        }
