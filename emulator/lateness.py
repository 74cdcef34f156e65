"""How late the packets of a lab were, as what emulates its links reports.

A machine that is busy, or has a host that takes its processors away for a while, makes packets
late, and nothing can prevent that. So it is recorded, in bins of a few milliseconds: of every
direction, and of a sentinel that wakes up regularly whether or not a packet is due. Who measures
looks up the time of each measurement, and leaves out what was spoilt.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from wanlat.bundle.lateness import Instants, Lateness
from wanlat.emulator.backends import LateBin, LatenessReport
from wanlat.topologies.errors import MachineError

_EVERY_S = 1.0


Query = Callable[[int], LatenessReport | None]
"""Returns a backend's bins from a number on; None: it has none."""


class LatenessLog:
    """All that a lab's backend has reported of its lateness. Any thread may call every method.

    Its memory is bounded: who wants to know it all has it `watch`ed.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._known = Lateness()
        self._next = 0
        self._listener: Callable[[LateBin], object] = lambda _: None
        self._lock = threading.Lock()

    def update(self) -> bool:
        """Fetch what is new; return whether the backend knows it. Raises MachineError."""
        with self._lock:
            report = self._query(self._next)
            if report is None:
                return False
            if report.next - len(report.bins) > self._next and self._next:
                raise RuntimeError("the backend forgot how late packets were before it was queried")
            self._next = report.next
            for late_bin in report.bins:
                self._known.add(late_bin.start_ns, late_bin.max_ns)
                self._listener(late_bin)
            return True

    def during(self, begin_ns: int, end_ns: int) -> int | None:
        """Return the greatest lateness between two instants of CLOCK_MONOTONIC up to now, ns.

        None: the backend does not know. Raises MachineError when the lab ends.
        """
        if not self.update():
            return None
        return int(self.of_all(np.array([begin_ns]), np.array([end_ns]))[0])

    def of_all(self, begins_ns: Instants, ends_ns: Instants) -> Instants:
        """Return the same for many, as of the last `update`."""
        with self._lock:
            return self._known.during(begins_ns, ends_ns)

    @contextmanager
    def watched(self, listener: Callable[[LateBin], object]) -> Iterator[None]:
        """Pass every bin to ``listener`` while this is open, from a thread of its own too."""
        over = threading.Event()

        def watch() -> None:
            with contextlib.suppress(MachineError):  # of a lab that has ended, others report
                while self.update() and not over.wait(_EVERY_S):
                    pass

        thread = threading.Thread(target=watch, name="lateness", daemon=True)
        self._listener = listener
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            with contextlib.suppress(MachineError):
                self.update()
            self._listener = lambda _: None


def realtime_offset_ns() -> int:
    """Return what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC."""
    before, real, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return real - (before + after) // 2
