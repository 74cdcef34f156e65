"""Turns: so many at a time, and none is kept by a process that has ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.late_network import CHECKOUT
from wanlat.emulator import turns

TAKER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from wanlat.emulator import turns
turns.os.geteuid = lambda: "killed"
turn = turns.take(lambda: None)
print("taken", flush=True)
sys.stdin.read()
os.kill(os.getpid(), 9)
"""


def test_as_many_at_a_time_as_processors_and_none_stays_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns.os, "geteuid", lambda: "test")
    monkeypatch.setattr(turns, "cores", lambda: 2)
    waited: list[int] = []

    def wait() -> None:
        waited.append(1)
        if len(waited) == 3:
            first.close()

    first, second = turns.take(wait), turns.take(wait)
    assert not waited
    third = turns.take(wait)
    assert len(waited) == 3
    second.close(), third.close()


def test_a_process_that_is_killed_gives_back_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns.os, "geteuid", lambda: "killed")
    command = [sys.executable, "-c", TAKER, str(CHECKOUT)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "taken\n"
        taker.communicate()
    assert taker.returncode == -9
    held = [turns.take(lambda: None) for _ in range(turns.cores())]
    for each in held:
        each.close()
