"""Real-time priority for the wire process, where the caller may give it.

What netem does happens in the kernel's soft interrupts, ahead of every process. ``wire`` is a
process and competes with the others: beside stores that compute, the scheduler lets it wait for a
tick or two, now and then, and packets are late by milliseconds. A caller with CAP_SYS_NICE (root,
usually) can do something about it from outside the lab; inside, in a user namespace of its own,
that cannot be done.

A real-time process that is busy all the time would slow down whoever sends and receives through
it. So it has the priority only while it needs little of a CPU, and competes as the others do while
it moves data in bulk.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

from wanlat.emulator.syscalls import wait_readable

_LOOK_EVERY_S = 0.1
_MODEST = 0.25  # of a CPU


class RealTime:
    """Gives a process real-time priority while it is modest. Close it before the process ends.

    ``allowed``: whether that may be done.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="real-time", daemon=True)
        self.allowed = self._set(os.SCHED_FIFO)
        if self.allowed:
            self._thread.start()

    def close(self) -> None:
        """Look after the process no longer. Safe to repeat."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _watch(self) -> None:
        has_it, used_ns, seen_ns = True, 0, 0
        while not self._end.wait(_LOOK_EVERY_S):
            try:
                schedstat = Path(f"/proc/{self._pid}/schedstat").read_text()
            except OSError:
                return  # it has ended
            now_used_ns, now_ns = int(schedstat.split()[0]), time.monotonic_ns()
            modest = now_used_ns - used_ns < _MODEST * (now_ns - seen_ns)
            policy = os.SCHED_FIFO if modest else os.SCHED_OTHER
            if seen_ns and modest != has_it and self._set(policy):
                has_it = modest
            used_ns, seen_ns = now_used_ns, now_ns

    def _set(self, policy: int) -> bool:
        """Give it a policy that its threads and children do not inherit.

        Its niceness and its slice (Linux 6.12) stay what they are: _sched_setscheduler(),
        kernel/sched/syscalls.c.
        """
        if wait_readable([self._pidfd], 0):
            return False  # it has ended, and its number may be another's
        priority = os.sched_param(1 if policy == os.SCHED_FIFO else 0)
        try:
            os.sched_setscheduler(self._pid, policy | os.SCHED_RESET_ON_FORK, priority)
        except OSError:
            return False
        return True


def for_wire(supervisor_pid: int) -> RealTime | None:
    """Look after the wire process of a lab; None where there is none or it may not be done."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{supervisor_pid}/task/{supervisor_pid}/children").read_text()
        for pid in map(int, children.split()):
            if Path(f"/proc/{pid}/comm").read_text() == "wire\n":
                real_time = RealTime(pid)
                if real_time.allowed:
                    return real_time
                real_time.close()
    return None
