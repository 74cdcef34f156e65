"""Where the caller may, wire has real-time priority, as long as it needs little of a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from wanlat.emulator.backends import realtime


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    # It computes from one line that it is sent to the next.
    program = (
        "import os, select, sys, threading\n"
        "while sys.stdin.buffer.raw.readline():\n"
        " while not select.select([0], [], [], 0)[0]: pass\n"
        " sys.stdin.buffer.raw.readline()\n"
        " policies = []\n"
        " thread = threading.Thread(target=lambda: policies.append(os.sched_getscheduler(0)))\n"
        " thread.start()\n"
        " thread.join()\n"
        " print(policies[0], flush=True)"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with started:
        yield started
        started.kill()


def needs_permission(real_time: realtime.RealTime | None) -> realtime.RealTime:
    if real_time is None or not real_time.allowed:
        pytest.skip("this user may not give real-time priority (CAP_SYS_NICE)")
    return real_time


def policy_of(pid: int) -> int:
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


def becomes(pid: int, policy: int, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while policy_of(pid) != policy:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_process_loses_the_priority_while_it_is_busy_and_gets_it_back(process):
    real_time = needs_permission(realtime.RealTime(process.pid))
    assert policy_of(process.pid) == os.SCHED_FIFO
    process.stdin.write(b"compute\n")
    process.stdin.flush()
    assert becomes(process.pid, os.SCHED_OTHER, 60)
    process.stdin.write(b"enough\n")
    process.stdin.flush()
    assert int(process.stdout.readline()) == os.SCHED_OTHER, "of a thread of its own"
    assert becomes(process.pid, os.SCHED_FIFO, 60)
    real_time.close()
    real_time.close()
