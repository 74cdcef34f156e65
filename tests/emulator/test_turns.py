"""Turns: so many at a time, none kept by a process that has ended, and no wait without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.late_network import CHECKOUT
from wanlat.emulator import own_directories, turns

TAKER = """
import sys
sys.path.insert(0, sys.argv[1])
from wanlat.emulator import turns
turns.cores = lambda: 2
turn = turns.take(lambda: None)
print("taken", flush=True)
sys.stdin.read()
"""
NEVER_S = 3600.0


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of these tests alone, of a machine with two processors."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(turns, "cores", lambda: 2)


@contextmanager
def another_run() -> Iterator[subprocess.Popen[str]]:
    """A process that has a turn."""
    command = [sys.executable, "-c", TAKER, str(CHECKOUT)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "taken\n"
        yield taker
        taker.kill()


def not_to_wait() -> None:
    pytest.fail("a turn was to be had")


def test_as_many_at_a_time_as_processors_and_none_stays_taken() -> None:
    waited: list[int] = []

    def wait() -> None:
        waited.append(1)
        if len(waited) == 3:
            first.close()

    first, second = turns.take(not_to_wait), turns.take(not_to_wait)
    third = turns.take(wait, NEVER_S)
    assert len(waited) == 3
    assert [turn.remark for turn in (first, second, third)] == ["", "", ""]
    second.close(), third.close()


def test_a_process_that_is_killed_gives_back_its_turn() -> None:
    with another_run() as one, another_run() as other:
        for each in (one, other):
            each.kill()
            each.wait()
        with turns.take(not_to_wait), turns.take(not_to_wait):
            pass


def test_runs_that_are_stopped_hold_up_no_other_and_it_is_noted() -> None:
    with another_run() as one, another_run() as other:
        for each in (one, other):
            each.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, each.pid, os.WSTOPPED)
        waited: list[int] = []

        def wait() -> None:
            waited.append(1)
            if len(waited) == 3:
                second.close()

        # As many as processors all the same: what is stopped uses none.
        first, second = turns.take(not_to_wait), turns.take(not_to_wait)
        with first, turns.take(wait, NEVER_S) as third:
            assert len(waited) == 3
            assert all(str(each.pid) in third.remark for each in (one, other))


def test_where_no_turn_changes_hands_a_lab_goes_without_and_that_is_noted() -> None:
    with (
        turns.take(not_to_wait),
        turns.take(not_to_wait),
        turns.take(lambda: None, longest_s=0.3) as without,
    ):
        assert str(os.getpid()) in without.remark


def test_a_directory_that_another_user_took_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a link of that name, though it leads to a directory of this user."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(own_directories, "_SHARED", tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / f"wanlat-turns-{os.geteuid()}").symlink_to(tmp_path / "own")
    with turns.take(not_to_wait) as turn:
        assert turn.remark
    assert not any((tmp_path / "own").iterdir())


def test_a_directory_of_the_users_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_directories, "_SHARED", tmp_path / "absent")
    for name in ("wanlat", f"wanlat-turns-{os.geteuid()}"):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "turn-0").write_text("mine")
    with turns.take(not_to_wait) as turn:
        assert "without a turn" in turn.remark
    for name in ("wanlat", f"wanlat-turns-{os.geteuid()}"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o755
        assert (tmp_path / name / "turn-0").read_text() == "mine"


def test_where_a_turn_cannot_be_opened_there_is_none() -> None:
    directory = own_directories.runtime_directory()
    assert directory is not None
    (directory / "turn-0").mkdir()
    with turns.take(not_to_wait) as turn:
        assert "without a turn" in turn.remark
