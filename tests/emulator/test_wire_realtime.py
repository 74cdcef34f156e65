"""Where the caller may, wire has real-time priority, as long as it needs little of a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.backends import realtime
from wanlat.emulator.lab import Lab


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    # It computes for a second for every line that it is sent.
    program = (
        "import os, sys, threading, time\n"
        "for line in sys.stdin:\n"
        " end = time.monotonic() + 1\n"
        " while time.monotonic() < end: pass\n"
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
    assert int(process.stdout.readline()) == os.SCHED_OTHER, "of a thread of its own"
    assert becomes(process.pid, os.SCHED_FIFO, 60)
    real_time.close()
    real_time.close()


def test_a_process_that_has_ended_is_left_alone(process):
    real_time = needs_permission(realtime.RealTime(process.pid))
    process.kill()
    process.wait()
    assert not real_time._set(real_time=True)
    real_time.close()


def test_wire_has_it_in_a_lab_and_nothing_else_does():
    with Lab(mesh(2, wan=ms(5)), backend="wire") as lab:
        needs_permission(lab._real_time)
        sleeper = lab.spawn("n1", ["sleep", "300"])
        supervisor = lab.supervisor_pid
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        pids = {Path(f"/proc/{pid}/comm").read_text().strip(): int(pid) for pid in children}
        assert becomes(pids["wire"], os.SCHED_FIFO, 60), (
            "it has lost it while it was busy, if at all"
        )
        assert policy_of(pids["sleep"]) == os.SCHED_OTHER
        assert policy_of(supervisor) == os.SCHED_OTHER
        sleeper.kill()


def test_a_lab_without_wire_needs_none():
    assert realtime.for_wire(os.getpid()) is None
