"""The program of a worker: runs the points of a matrix that it is told, until its input ends.

See `experiments.workers`, which starts it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from wanlat.experiments.matrix import read_unfinished, run_point
from wanlat.experiments.matrix_points import PointEnded

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
    prepared = read_unfinished(bundle).prepared()
    (point,) = (each for each in prepared.points if each.name == name)
    next_s = time.monotonic()

    def report(stage: str, done: float = 0, total: float | None = None, detail: str = "") -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _PROGRESS_EVERY_S
            _say(lines, {"progress": [stage, done, total, detail]})

    return run_point(prepared, point, report)


def _say(lines: IO[str], what: dict[str, Any]) -> None:
    print(json.dumps(what), file=lines, flush=True)


if __name__ == "__main__":
    main()
