"""Has a cluster done what a prefill left it to do?

A store acknowledges first and tidies up later: it compacts, synchronises tables, deletes what has
been superseded. The more was written, the longer that takes, so that a measurement that began at
once would take it for what a large bucket costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wanlat.emulator.lab import Lab
from wanlat.experiments.resources.processes import ProcessTable, families
from wanlat.systems.base import Cluster

LOOK_EVERY_S = 1.0
WINDOW_S = 2.0
"""A figure is over so long."""
QUIET_CORES = 0.1
"""All nodes together: what is less disturbs nobody."""
AS_BEFORE = 1.5
"""Or so many times what they used before the prefill: a large cluster is never quiet."""


@dataclass(frozen=True)
class Settled:
    """How a cluster came to rest."""

    seconds: float
    """That it was waited for."""
    cores_before: float
    """That all nodes together used, before the prefill."""
    cores: float
    """The same in the end."""
    is_quiet: bool
    """False: the wait was over first."""


class Rest:
    """Looks at the CPU time of a cluster's nodes. A context manager."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self._lab = lab
        self._cluster = cluster
        self._table = ProcessTable(f"/proc/{lab.supervisor_pid}/root/proc")
        self._before = 0.0

    def note_before(self) -> None:
        """Take what the nodes use now for what they use when there is nothing to do."""
        began_s, used_s = time.monotonic(), self._cpu_s()
        time.sleep(LOOK_EVERY_S)
        self._before = (self._cpu_s() - used_s) / (time.monotonic() - began_s)

    def wait(self, limit_s: float, tell: Callable[[float, str], object]) -> Settled:
        """Wait until the nodes use no more than that, for ``limit_s`` at most.

        ``tell`` gets how long it has been, and how busy they are.
        """
        return settle(
            self._cpu_s, self._before, limit_s, tell, clock=time.monotonic, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self._lab.check()
        time.sleep(seconds)

    def _cpu_s(self) -> float:
        processes = self._table.all()
        roots: Iterable[int] = [
            each.pid for each in (*self._cluster.processes.values(), *self._cluster.fronts.values())
        ]
        found = families(processes, roots).values()
        return (
            sum(each.own_cpu_ns + each.reaped_cpu_ns for family in found for each in family) / 1e9
        )

    def __enter__(self) -> Rest:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go."""
        self._table.close()


def settle(
    cpu_s: Callable[[], float],
    before: float,
    limit_s: float,
    tell: Callable[[float, str], object],
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], object],
) -> Settled:
    """Wait until less than ``before`` cores, or hardly any, are used; ``cpu_s`` is CPU time."""
    quiet = max(QUIET_CORES, AS_BEFORE * before)
    began_s = clock()
    looks = [(began_s, cpu_s())]
    while True:
        sleep(LOOK_EVERY_S)
        looks.append((clock(), cpu_s()))
        now_s = looks[-1][0]
        inside = [look for look in looks if look[0] >= now_s - WINDOW_S - LOOK_EVERY_S / 2]
        (from_s, used_s), (to_s, used_to_s) = inside[0], inside[-1]
        cores = (used_to_s - used_s) / max(to_s - from_s, 1e-9)
        waited_s = now_s - began_s
        is_quiet = cores <= quiet and waited_s >= WINDOW_S * 0.9
        if is_quiet or waited_s >= limit_s:
            return Settled(round(waited_s, 1), round(before, 3), round(cores, 3), is_quiet)
        tell(waited_s, f"its nodes use {cores:.2f} cores")
