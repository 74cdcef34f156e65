"""Programs outside of labs end with whoever started them, and so does all that they start."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, PIPE, CalledProcessError, TimeoutExpired

import pytest

from tests.command_line import CHECKOUT
from tests.processes import alive, children, descendants
from wanlat.emulator.reaper import Reaped, run

STARTS_OTHERS = "sleep 600 & setsid sleep 600 & wait"
"""A program with a child, and with one that left its session."""
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def wait_until(holds: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, "it never came to that"
        time.sleep(0.02)


def caller_of(program: str) -> subprocess.Popen[str]:
    """Another process, which runs a shell's program by `run`."""
    code = f"from wanlat.emulator.reaper import run; run(['sh', '-c', {program!r}])"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=PIPE,
        text=True,
    )


def is_free(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_program_ends_as_it_would_without_us() -> None:
    done = run(["sh", "-c", "echo $0 $WHERE; exit 3", "me"], stdout=PIPE, env={"WHERE": "here"})
    assert (done.returncode, done.stdout) == (3, "me here\n")
    assert run(["sh", "-c", "kill -USR1 $$"]).returncode == -signal.SIGUSR1
    with pytest.raises(CalledProcessError) as failed:
        run(["sh", "-c", "exit 4"], check=True)
    assert (failed.value.returncode, failed.value.cmd) == (4, ["sh", "-c", "exit 4"])
    with pytest.raises(FileNotFoundError, match="/no/such/program"):
        run(["/no/such/program"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_program_whose_caller_was_killed(how: signal.Signals) -> None:
    caller = caller_of(STARTS_OTHERS)
    wait_until(lambda: len(descendants(caller.pid)) == 5)  # caller, reaper, shell, two that sleep
    started = [pid for pid in descendants(caller.pid) if pid != caller.pid]
    caller.send_signal(how)
    caller.communicate(timeout=60)
    wait_until(lambda: not alive(started))


def test_what_a_program_leaves_behind_ends_before_the_call_returns() -> None:
    leaves = "setsid sleep 600 >/dev/null & echo $!"
    done = run(["sh", "-c", leaves], stdout=PIPE)
    assert not alive([int(done.stdout)])


def test_what_takes_too_long_is_killed_with_all_that_it_started() -> None:
    began_s, before = time.monotonic(), children(os.getpid())
    with pytest.raises(TimeoutExpired):
        # A pipe that a grandchild has open is no reason to wait any longer.
        run(["sh", "-c", f"setsid sleep 601 & {STUBBORN}"], stdout=PIPE, timeout_s=0.5)
    assert time.monotonic() - began_s < 60
    assert children(os.getpid()) == before


def test_a_lock_that_was_handed_on_is_held_until_nothing_is_left(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        program = Reaped(["sh", "-c", STUBBORN], held=[file.fileno()], stdout=PIPE)
    assert program.stdout is not None and program.stdout.readline() == "ready\n"
    program.terminate()  # which it ignores
    time.sleep(0.3)
    assert program.poll() is None and not is_free(lock)
    program.kill()
    program.communicate(timeout=60)
    assert is_free(lock)


def test_a_program_does_not_outlive_the_process_between() -> None:
    program = Reaped(["sleep", "600"], stdin=DEVNULL)
    (sleeping,) = children(program.pid)
    os.kill(program.pid, signal.SIGKILL)
    program.wait(60)
    wait_until(lambda: not alive([sleeping]))
