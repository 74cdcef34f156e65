"""Processes that run points of a matrix, and how many of them may at once.

What runs points beside each other is an `Engine`: processes of this machine (`Jobs`), or Dask's
workers (`experiments.dask_engine`).

A worker (this module as a program) reads `{"bundle": …, "point": …}` from its standard input, runs
that point of the matrix in that bundle, and writes lines of JSON: progress, and at the end how it
ended. It is told no code and no study: both are its own, from the bundle. So whatever can start a
command can be a worker. When its standard input ends it is gone at once, and the kernel takes its
lab away.
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
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Protocol

from wanlat.emulator.machine import cores
from wanlat.experiments.matrix_points import (
    Point,
    PointEnded,
    PreparedMatrix,
    read_unfinished,
    run_point,
)
from wanlat.experiments.session import Report
from wanlat.topologies.errors import MachineError

_ENDS_WITHIN_S = 30.0
"""So long may a worker take that was interrupted: labs are taken down, and bundles closed."""
MOST_JOBS = 32
LOOK_EVERY_S = 2.0
"""The processors' business is its mean over so long."""
_CALM, _BUSY = 0.6, 0.85
"""Of all processors: below, there is room for one more; above, there is one too many."""
_OF_A_CORE = 8
"""A study mostly waits, but a lab is memory too."""


class Runner(Protocol):
    """Runs points, one at a time. Of use to one thread, and `interrupt` to any."""

    def run(self, bundle: Path, point: str, report: Report) -> PointEnded:
        """Run a point of the matrix in a bundle. Raises MachineError where nobody knows how it
        ended.
        """

    @property
    def is_alive(self) -> bool:
        """Whether it can be told another point."""

    def interrupt(self) -> None:
        """Have it end its point, and say so."""

    def close(self) -> None:
        """End it."""


class Engine(Protocol):
    """Where points are run, and how many of them at once."""

    most: int
    """No more than so many, ever."""

    @property
    def allowed(self) -> int:
        """How many may run now."""

    @property
    def history(self) -> Sequence[dict[str, float]]:
        """When, in seconds, how many were allowed."""

    def look(self, running: int) -> None:
        """Allow more or fewer, where ``running`` are at work; wait while none is allowed.

        Raises MachineError where no point can be run any more.
        """

    def runner(self) -> Runner:
        """Return what runs one point beside the others."""


class Worker:
    """A process that runs points: a `Runner`."""

    def __init__(self) -> None:
        """Start it; away from the terminal's process group, whose Ctrl-C is for its parent."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wanlat.experiments.workers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, bundle: Path, point: str, report: Report) -> PointEnded:
        """Run a point of the matrix in a bundle. Raises MachineError where the worker died."""
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps({"bundle": str(bundle), "point": point}), file=self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._died(point) from error
        for line in self._process.stdout:
            told = json.loads(line)
            if "ended" in told:
                return PointEnded(**told["ended"])
            report(*told["progress"])
        raise self._died(point)

    @property
    def is_alive(self) -> bool:
        """Whether it can be told another point."""
        return self._process.poll() is None

    def interrupt(self) -> None:
        """Have it end its point, and say so."""
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


class Jobs:
    """How many points may run at once: a number, or as many as the processors carry (`auto`).

    `auto` begins with one, adds one while the processors are calm, and starts none while they are
    too busy until one has ended. What runs goes on: a point that is cut short is lost.
    """

    def __init__(self, wanted: int | None) -> None:
        """``wanted``: None is `auto`."""
        self._wanted, self.most = wanted, wanted or MOST_JOBS
        self._began_s = time.monotonic()
        self.allowed = wanted or 1
        self.history: list[dict[str, float]] = []
        """When, in seconds, how many were allowed, and how busy the processors were (0..1)."""
        self._next_s = self._began_s + LOOK_EVERY_S
        self._note(0.0)
        self._spent = _spent()

    def look(self, running: int) -> None:
        """Look at the processors, and allow more or fewer; ``running`` are at work."""
        if self._wanted or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + LOOK_EVERY_S
        spent, self._spent = self._spent, _spent()
        whole, idle = (now - then for now, then in zip(self._spent, spent, strict=True))
        busy = 1 - idle / max(whole, 1)
        before = self.allowed
        if busy < _CALM and running >= before and before < min(MOST_JOBS, _OF_A_CORE * cores()):
            self.allowed = before + 1
        elif busy > _BUSY and before > 1 and running <= before:
            self.allowed = before - 1
        if self.allowed != before:
            self._note(busy)

    def runner(self) -> Runner:
        """Return a process of its own."""
        return Worker()

    def _note(self, busy: float) -> None:
        at_s = round(time.monotonic() - self._began_s, 1)
        self.history.append({"at_s": at_s, "jobs": self.allowed, "busy": round(busy, 2)})


def _spent() -> tuple[int, int]:
    """Return the time of all processors and their idle time, in ticks since the machine booted."""
    fields = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


_PROGRESS_EVERY_S = 0.2


def main() -> None:
    """Run points as they are told."""
    asked: queue.Queue[dict[str, str]] = queue.Queue()
    threading.Thread(target=_read, args=(sys.stdin, asked), daemon=True).start()
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints must not stand among the lines
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while True:
        try:
            told = asked.get()
        except KeyboardInterrupt:  # between two points there is nothing to end
            continue
        try:
            ended = _run(Path(told["bundle"]), told["point"], lines)
        except KeyboardInterrupt:
            ended = PointEnded("interrupted", "interrupted by the user")
        _say(lines, {"ended": asdict(ended)})


def _read(lines: IO[str], asked: queue.Queue[dict[str, str]]) -> None:
    for line in lines:
        asked.put(json.loads(line))
    os._exit(0)  # nobody wants to know how the point ends; the kernel takes its lab away


def _run(bundle: Path, name: str, lines: IO[str]) -> PointEnded:
    prepared, points = _prepared(bundle)
    next_s = time.monotonic()

    def report(stage: str, done: float = 0, total: float | None = None, detail: str = "") -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _PROGRESS_EVERY_S
            _say(lines, {"progress": [stage, done, total, detail]})

    return run_point(prepared, points[name], report)


@lru_cache(maxsize=1)
def _prepared(bundle: Path) -> tuple[PreparedMatrix, dict[str, Point]]:
    """Return a matrix and its points by name; reading a thousand takes a quarter of a second."""
    prepared = read_unfinished(bundle).prepared()
    return prepared, {each.name: each for each in prepared.points}


def _say(lines: IO[str], what: dict[str, Any]) -> None:
    print(json.dumps(what), file=lines, flush=True)


if __name__ == "__main__":
    main()
