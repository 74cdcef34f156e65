"""Processes that draw reports end with the command that made them, SIGKILL included."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.command_line import CHECKOUT
from tests.processes import alive, children

DRAWS = """
import time
from wanlat.results import pool_of
if __name__ == "__main__":
    with pool_of(2) as pool:
        print(*pool.map(abs, [1, 2]), flush=True)
        time.sleep(600)
"""


def test_no_process_of_a_pool_is_left_when_its_command_was_killed() -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", DRAWS],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None and command.stdout.readline() == "1 2\n"
    started = children(command.pid)
    assert len(started) >= 2
    command.kill()
    command.communicate(timeout=60)
    deadline_s = time.monotonic() + 30
    while alive(started):
        assert time.monotonic() < deadline_s, "they go on"
        time.sleep(0.05)
