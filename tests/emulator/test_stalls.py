"""A machine that stands still makes no packet late: a processor is taken away, and given back."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.bundle.stalls import Stalls
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Prober

_STILL_S = 0.15
_RTT_MS = 40.0


def _take_away(processor: int) -> None:
    """Leave one processor to nobody else for a moment, as a host does that needs it itself."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setaffinity(0, {processor})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
            until = time.monotonic() + _STILL_S
            while time.monotonic() < until:
                pass
        finally:
            os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes a processor away, which only root may")
def test_packets_are_as_late_as_requested_by_the_time_the_machine_ran() -> None:
    plan = mesh(2, wan=ms(_RTT_MS / 2))
    processor = min(os.sched_getaffinity(0))
    with Lab(plan, backend="wire", seed=1) as lab:
        pair = (lab.plan.nodes[0].name, lab.plan.nodes[1].name)
        with Prober(lab, pair) as prober:
            began_ns = time.monotonic_ns()
            thief = threading.Timer(0.3, _take_away, [processor])
            thief.start()
            echoes = prober.measure([pair], 100, 0.01, 1.0)[pair]
            thief.join()
        stalls = Stalls(lab.stalls())
    here = np.array([began_ns]), np.array([time.monotonic_ns()])
    assert int(stalls.within(*here)[0]) > 0.8 * _STILL_S * 1e9
    assert stalls.longest_ns > 0.8 * _STILL_S * 1e9
    rtt_ms = echoes.rtt_ns / 1e6
    assert echoes.lost == 0
    assert rtt_ms.min() > _RTT_MS - 0.1
    assert np.median(rtt_ms) < _RTT_MS + 2
    # The stall takes several packets' time, and a few of them are late by what shows it.
    assert np.quantile(rtt_ms, 0.9) < _RTT_MS + 5
