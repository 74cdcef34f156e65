"""Processes that compute and do nothing else."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType
from typing import Self

_LOOP = "while True: sum(range(1000))"


class Busy:
    """So many busy processes, for as long as a ``with`` block lasts.

    Each is a session of its own, as programs of different terminals or services are: where the
    kernel groups processes by session (sched_autogroup), that decides what share they get.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        for _ in range(self._count):
            self._processes.append(
                subprocess.Popen([sys.executable, "-c", _LOOP], start_new_session=True)
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
