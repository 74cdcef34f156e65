"""Processes that run points of a matrix, or drills, and how many of them may at once.

What runs points beside each other is an `Engine`: processes of this machine (`Jobs`), or Dask's
workers (`experiments.dask_engine`).

A worker (`main`, in a process of its own) reads `{"bundle": …, "point": …}` from its standard
input, runs that point of the matrix in that bundle, and writes lines of JSON: progress, and at the
end how it ended. It gets no code and no study: both are its own, from the bundle. So whatever
can start a command can be a worker. When its standard input ends it is gone at once, and the kernel
takes its lab away.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import IO, Any

from wanlat.emulator import interpreter
from wanlat.emulator.machine import cores
from wanlat.experiments.matrix_points import (
    AnyPoint,
    PointEnded,
    PreparedPoints,
    run_point,
)
from wanlat.experiments.resume import read_unfinished
from wanlat.experiments.session import Report
from wanlat.systems import registry
from wanlat.topologies.errors import MachineError, WanlatError
from wanlat.topologies.unforeseen import summary

_ENDS_WITHIN_S = 30.0
"""So long may a worker take that was interrupted: labs are taken down, and bundles closed."""
MOST_JOBS = 32
ADJUST_INTERVAL_S = 2.0
"""The processors' business, and the lateness of networks, is that of so long."""
_CALM, _BUSY = 0.6, 0.85
"""Of all processors: below, there is room for one more; above, there is one too many."""
_PUNCTUAL, _LATE = 0.1, 0.3
"""Likewise of the share of time in which networks were too late."""
_SLICE_NS = 500_000_000
"""Some requests' length: lateness spoils all of those in it."""
_OF_A_CORE = 8
"""A study mostly waits, but a lab is memory too."""
_OF_A_CORE_AT_FIRST = 3
"""How busy a point is at its busiest is not known before one has ended: a drill waits for minutes,
and then reads every object from every node."""


class Runner(ABC):
    """Runs points, one at a time. Of use to one thread, and `interrupt` to any."""

    @abstractmethod
    def run(self, bundle: Path, point: str, report: Report) -> PointEnded:
        """Run a point of the matrix in a bundle. Raises MachineError where it is unknown how it
        ended.
        """

    @property
    def is_alive(self) -> bool:
        """Whether it can get another point."""
        return True

    @abstractmethod
    def interrupt(self) -> None:
        """Have it end its point, and report that."""

    @abstractmethod
    def close(self) -> None:
        """End it."""


class Engine(ABC):
    """Where points are run, and how many of them at once."""

    def __init__(self, most: int, allowed: int) -> None:
        self.most = most
        """No more than so many, ever."""
        self.allowed = allowed
        """How many may run now."""
        self.history: list[dict[str, float]] = []
        """When, in seconds, how many were allowed; and what else was known then."""
        self._began_s = time.monotonic()

    def note(self, **known: float) -> None:
        """Have it in the history how many are allowed now."""
        at_s = round(time.monotonic() - self._began_s, 1)
        self.history.append({"at_s": at_s, "jobs": self.allowed, **known})

    @abstractmethod
    def adjust(self, running: Mapping[Path, float]) -> bool:
        """Allow more or fewer, from time to time; wait while none is allowed and none runs.

        ``running``: the bundles of the points that run, and what the network of each may be late
        by, ms. Returns whether it was time. Raises MachineError where no point can be run any more.
        """

    @abstractmethod
    def runner(self) -> Runner:
        """Return what runs one point beside the others."""


class Worker(Runner):
    """A process that runs points."""

    def __init__(self) -> None:
        """Start it, outside the terminal's process group: Ctrl-C there is for its parent."""
        self._process = subprocess.Popen(
            interpreter.command("from wanlat.experiments.workers import main; main()"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=interpreter.environment(),
            start_new_session=True,
        )

    def run(self, bundle: Path, point: str, report: Report) -> PointEnded:
        """Run a point of the matrix in a bundle. Raises MachineError where the worker died."""
        assert self._process.stdin and self._process.stdout
        try:
            adopted = [*registry.adopted(registry.names()).values()]
            wanted = {"bundle": str(bundle), "point": point, "adopted": adopted}
            print(json.dumps(wanted), file=self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._died(point) from error
        for line in self._process.stdout:
            if not line.startswith('{"'):  # of a module that prints when Python starts
                continue
            message = json.loads(line)
            if "ended" in message:
                return PointEnded(**message["ended"])
            report(*message["progress"])
        raise self._died(point)

    @property
    def is_alive(self) -> bool:
        """Whether it can get another point."""
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Have it end its point, and report that."""
        self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _died(self, point: str) -> MachineError:
        code = self._process.wait()
        return MachineError(
            f"The worker of point {point} ended with exit code {code}. Was it killed, or is the "
            "machine out of memory? `wanlat run --resume` measures the point again."
        )


class Jobs(Engine):
    """How many points may run at once: a number, or as many as the machine carries (`auto`).

    `auto` begins with one, adds one while the processors are calm and the networks keep time, and
    starts none while there are too many until one has ended. Before any has ended there are at most
    three for each processor, and then one more for each that has. What runs goes on: a point that
    is cut short is lost.
    """

    def __init__(self, wanted: int | None) -> None:
        """``wanted``: None is `auto`."""
        super().__init__(wanted or MOST_JOBS, wanted or 1)
        self._wanted = wanted
        self._watch = LatenessWatch()
        self._seen: set[Path] = set()
        self._next_s = self._began_s + ADJUST_INTERVAL_S
        self.note(busy=0.0, late=0.0)
        self._spent = _spent()

    def adjust(self, running: Mapping[Path, float]) -> bool:
        """Allow more or fewer, every few seconds."""
        if time.monotonic() < self._next_s:
            return False
        self._next_s, late = time.monotonic() + ADJUST_INTERVAL_S, self._watch.late_share(running)
        spent, self._spent = self._spent, _spent()
        whole, idle = (now - then for now, then in zip(self._spent, spent, strict=True))
        busy, before = 1 - idle / max(whole, 1), self.allowed
        if self._wanted:
            return True
        self._seen |= running.keys()
        at_first = _OF_A_CORE_AT_FIRST * cores() + len(self._seen - running.keys())
        is_calm, most = busy < _CALM and late < _PUNCTUAL, min(MOST_JOBS, _OF_A_CORE * cores())
        most = min(most, at_first)
        if is_calm and before <= len(running) and before < most:
            self.allowed = before + 1
        elif (busy > _BUSY or late > _LATE) and before > 1 and len(running) <= before:
            self.allowed = before - 1
        if self.allowed != before:
            # How busy the processors were, and in which share of the time networks were too late.
            self.note(busy=round(busy, 2), late=round(late, 2))
        return True

    def runner(self) -> Runner:
        """Return a process of its own."""
        return Worker()


class LatenessWatch:
    """How late the networks of running points are, as they write it into their bundles."""

    def __init__(self) -> None:
        self._read: Counter[tuple[Path, int]] = Counter()
        """Bytes, by file and its inode: that of a point that is started again is another one."""
        self._read_ns = time.monotonic_ns()

    def late_share(self, allowed_ms: Mapping[Path, float]) -> float:
        """Return the share of slices since the last call in which a network was later than that.

        ``allowed_ms``: by the bundles of the points that run.
        """
        since_ns, self._read_ns = self._read_ns, time.monotonic_ns()
        late = 0
        for bundle, most_ms in allowed_ms.items():
            late += len({at // _SLICE_NS for at, ms in self._news(bundle) if ms > most_ms})
        slices = len(allowed_ms) * (self._read_ns - since_ns) / _SLICE_NS
        return min(1.0, late / max(slices, 1.0))

    def _news(self, bundle: Path) -> Iterator[tuple[int, float]]:
        """Yield when bins begin that are new, and the greatest lateness in each, ms."""
        path = bundle / "lateness.jsonl"
        with suppress(OSError), path.open("rb") as file:  # not yet there, or no longer
            which = path, os.fstat(file.fileno()).st_ino
            file.seek(self._read[which])
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written: what follows would be the rest of it
                self._read[which] += len(line)
                line_bin = json.loads(line)
                yield line_bin["start_ns"], line_bin["max_ns"] / 1e6


def _spent(stat: Path = Path("/proc/stat")) -> tuple[int, int]:
    """Return the time of all processors and their idle time, in ticks since the machine booted.

    What is niced counts as idle: it gives way.
    """
    fields = [int(field) for field in stat.read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[1] + fields[3] + fields[4]  # nice, idle, waiting for a disk


_PROGRESS_EVERY_S = 0.2
WITH_ITS_RUN = "interrupted with its run"
"""Why a point was that another process measured."""


def main() -> None:
    """Run points as they come."""
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(sys.stdin, jobs), daemon=True).start()
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints must not stand among the lines
    signal.signal(signal.SIGINT, _interrupt)
    while True:
        try:
            job = jobs.get()
        except KeyboardInterrupt:  # between two points there is nothing to end
            continue
        try:
            for path in job["adopted"]:
                registry.adopt(path)
            ended = _run(Path(job["bundle"]), job["point"], lines)
        except KeyboardInterrupt as interrupt:
            ended = PointEnded("interrupted", str(interrupt))
        except Exception as error:  # in reading the matrix: of points `run_point` says it
            is_ours = isinstance(error, WanlatError)
            why = str(error) if is_ours else f"an error in wanlat itself: {summary(error)}"
            ended = PointEnded("failed", why)
        _write(lines, {"ended": asdict(ended)})


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Interrupt a point. The manifest of its run has which signal that got."""
    raise KeyboardInterrupt(WITH_ITS_RUN)


def _read(lines: IO[str], jobs: queue.Queue[dict[str, Any]]) -> None:
    for line in lines:
        jobs.put(json.loads(line))
    os._exit(0)  # nobody wants to know how the point ends; the kernel takes its lab away


def _run(bundle: Path, name: str, lines: IO[str]) -> PointEnded:
    prepared, points = _prepared(bundle)
    next_s = time.monotonic()

    def report(stage: str, done: float = 0, total: float | None = None, detail: str = "") -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _PROGRESS_EVERY_S
            _write(lines, {"progress": [stage, done, total, detail]})

    return run_point(prepared, points[name], report)


@lru_cache(maxsize=1)
def _prepared(bundle: Path) -> tuple[PreparedPoints, dict[str, AnyPoint]]:
    """Return a matrix and its points by name; reading a thousand takes a quarter of a second."""
    prepared = read_unfinished(bundle, is_trusted=True).prepared()
    return prepared, {point.name: point for point in prepared.selected}


def _write(lines: IO[str], what: dict[str, Any]) -> None:
    print(json.dumps(what), file=lines, flush=True)
