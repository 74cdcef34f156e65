"""A lab whose data stay: a later one goes on with them, and never two at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.emulator.plans import mesh
from wanlat.emulator.disk import hold
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import UserError


def test_the_next_lab_goes_on_with_what_a_lab_left_at_the_same_place(tmp_path: Path) -> None:
    first, moved = tmp_path / "a b", tmp_path / "elsewhere"
    with Lab(mesh(1, 2), storage="disk", keep=first) as lab:
        lab.run("n2", ["sh", "-c", "pwd >file"])
        assert (lab.node("n2").host_directory / "file").exists()
    first.rename(moved)
    with Lab(mesh(1, 2), storage="disk", keep=moved) as lab:
        # Where a store's files are, as it sees it, is the same though the directory was moved.
        assert (
            lab.run("n2", ["sh", "-c", "cat file; pwd"]).stdout.split()
            == [str(lab.node("n2").directory)] * 2
        )
        assert lab.run("n1", ["ls"]).stdout == ""


def test_data_are_of_one_lab_at_a_time(tmp_path: Path) -> None:
    with (
        Lab(mesh(1, 1), storage="disk", keep=tmp_path / "data"),
        pytest.raises(UserError, match="in use by a lab"),
        Lab(mesh(1, 1), storage="disk", keep=tmp_path / "data"),
    ):
        pass
    with Lab(mesh(1, 1), storage="disk", keep=tmp_path / "data"):
        pass


def test_what_lies_in_memory_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="use storage `disk`"):
        Lab(mesh(1, 1), keep=tmp_path)


def test_after_a_kill_the_data_are_there_and_nobody_writes_to_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    program = (
        "import sys, time; from wanlat.emulator.lab import Lab\n"
        "from tests.emulator.plans import mesh\n"
        "with Lab(mesh(1, 1), storage='disk', keep=__import__('pathlib').Path(sys.argv[1])) as l:\n"
        "    l.spawn('n1', ['sh', '-c', 'while sleep 0.01; do echo >>file; done'])\n"
        "    time.sleep(60)"
    )
    caller = subprocess.Popen([sys.executable, "-c", program, str(data)])
    written = data / "n1" / "file"
    _until(lambda: written.exists() and written.stat().st_size > 3)
    os.kill(caller.pid, signal.SIGKILL)
    caller.wait()
    lock = _until(lambda: _held(data))  # which the lab's guard lets go of last
    size = written.stat().st_size
    time.sleep(0.1)
    assert written.stat().st_size == size
    os.close(lock)


def _held(data: Path) -> int | None:
    try:
        return hold(data)
    except UserError:
        return None


def _until(condition):  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found
