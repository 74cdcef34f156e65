"""CPU time of processes to the nanosecond, where /proc has ticks of 10 ms.

A request may cost a node a tenth of a millisecond, and a measurement may be over in half a second.
The kernel has a clock for each process's CPU time that anybody may read who can name the process
(clock_getcpuclockid(3); kernel/time/posix-cpu-timers.c, pid_for_clock()), by the number that it
has in the reader's own PID namespace, which is an ancestor of the lab's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wanlat.experiments.resources.processes import ProcessStat, ProcessTable

_CPUCLOCK_SCHED = 2
"""Of a whole process, as the scheduler counts it."""


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


def own_number(status: bytes) -> int | None:
    """Return the number that a process has in its innermost PID namespace, from its status."""
    for line in status.splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return None
