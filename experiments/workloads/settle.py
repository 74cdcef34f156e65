"""Has a cluster done what a prefill left it to do?

A store acknowledges first and tidies up later: it compacts, synchronises tables, deletes what has
been superseded. The more was written, the longer that takes, so that a measurement that began at
once would take it for what a large bucket costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from wanlat.bundle.documents import Settled
from wanlat.emulator.lab import Lab
from wanlat.experiments.resources.processes import ClusterProcesses
from wanlat.systems.base import Cluster

SAMPLE_EVERY_S = 1.0
WINDOW_S = 2.0
"""A figure is over so long."""
IDLE_CORES = 0.1
"""All nodes together: what is less disturbs nobody."""
AS_BEFORE = 1.5
"""Or so many times what they used before the prefill: a large cluster is never idle."""


class IdleWatch:
    """Watches the CPU time of a cluster's nodes."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        """Take what the nodes use now, in a second, for what they use with nothing to do."""
        self._lab = lab
        self._processes = ClusterProcesses(lab, cluster)
        began_s, used_s = time.monotonic(), self._cpu_s()
        self._sleep(SAMPLE_EVERY_S)
        self._before = (self._cpu_s() - used_s) / (time.monotonic() - began_s)

    def wait(self, limit_s: float, tell: Callable[[float, str], object]) -> Settled:
        """Wait until the nodes use no more than that, for ``limit_s`` at most.

        ``tell`` gets how long it has been, and how busy they are.
        """
        clock = time.monotonic
        return settle(self._cpu_s, self._before, limit_s, tell, clock=clock, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self._lab.check()
        time.sleep(seconds)

    def _cpu_s(self) -> float:
        return sum(each.cpu_ns for each in self._processes.usage().values()) / 1e9


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
    allowed = max(IDLE_CORES, AS_BEFORE * before)
    began_s = clock()
    samples = [(began_s, cpu_s())]
    while True:
        sleep(SAMPLE_EVERY_S)
        samples.append((clock(), cpu_s()))
        now_s, used_s = samples[-1]
        inside = [each for each in samples if each[0] >= now_s - WINDOW_S - SAMPLE_EVERY_S / 2]
        cores = (used_s - inside[0][1]) / max(now_s - inside[0][0], 1e-9)
        waited_s = now_s - began_s
        is_idle = cores <= allowed and waited_s >= WINDOW_S * 0.9
        if is_idle or waited_s >= limit_s:
            return Settled(
                seconds=round(waited_s, 1),
                cores_before=round(before, 3),
                cores=round(cores, 3),
                is_idle=is_idle,
            )
        tell(waited_s, f"its nodes use {cores:.2f} cores")
