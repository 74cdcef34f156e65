"""A machine that stands still now and then, as one whose host takes its processors away.

On every processor a process of the highest real-time priority computes for 50 to 900 ms at random
moments, on all of them at the same ones, about a tenth of the time. Needs CAP_SYS_NICE.

    python -m tests.stalling_machine [SEED]
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

SHARE = 0.1
SHORTEST_S, LONGEST_S = 0.05, 0.9
_PRIORITY = 90
_MEAN_S = (SHORTEST_S + LONGEST_S) / 2


def may_stall() -> bool:
    """Whether this process may take the processors from others."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    os.sched_setscheduler(0, *before)
    return True


@contextmanager
def stalling(seed: int = 1, share: float = SHARE) -> Iterator[None]:
    """Have the machine stall while this is open."""
    begin = time.monotonic()
    pids = [_fork(cpu, seed, share, begin) for cpu in sorted(os.sched_getaffinity(0))]
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _fork(cpu: int, seed: int, share: float, begin: float) -> int:
    parent = os.getpid()
    if pid := os.fork():
        return pid
    with contextlib.suppress(BaseException):
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
        at, draw = begin, random.Random(seed)
        while os.getppid() == parent:
            at += draw.expovariate(share / (1 - share) / _MEAN_S)
            end = at + draw.uniform(SHORTEST_S, LONGEST_S)
            time.sleep(max(0.0, at - time.monotonic()))
            while time.monotonic() < end:
                pass
            at = end
    os._exit(0)


if __name__ == "__main__":
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with stalling(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        signal.sigwait(ends)
