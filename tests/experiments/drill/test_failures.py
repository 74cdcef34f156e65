"""A drill that cannot be carried out says why, and how far it got."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.experiments.drill.drills import SHORTEST, drill
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.emulator.binaries import binary
from wanlat.emulator.faults.fault import Fault, FaultFailed, Scene
from wanlat.emulator.faults.timeline import Step
from wanlat.experiments import session
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.prepare import PreparedDrill, prepare
from wanlat.experiments.drill.timeline import Overdue, within
from wanlat.topologies.errors import MachineError


@pytest.fixture(autouse=True)
def _unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out calibration: nobody looks at times here."""
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)


def prepared(directory: Path, text: str, head: str = SHORTEST, **more: Any) -> PreparedDrill:
    file = drill(directory, text, head)
    return prepare(file, system="quorum", directory=directory / "bundle", **more)


class Stuck(Fault):
    """A fault that cannot be applied, or not be undone."""

    kind = "stuck"
    subject = "n1"

    def __init__(self, fails_at: str) -> None:
        self._fails_at = fails_at

    def begin(self, scene: Scene) -> int:  # noqa: ARG002
        return self._now("begin")

    def end(self, scene: Scene) -> int:  # noqa: ARG002
        return self._now("end")

    def _now(self, what: str) -> int:
        if what == self._fails_at:
            raise FaultFailed("it is stuck")
        return time.monotonic_ns()


@pytest.mark.parametrize("at", [pytest.param("begin", marks=pytest.mark.minutes), "end"])
def test_a_fault_that_fails_fails_the_drill(at: str, tmp_path: Path) -> None:
    made = prepared(tmp_path, "faults: [{kill: victim, for: 800ms}]\n")
    stuck = Step(2, Stuck(at), 600 * 10**6, 700 * 10**6)
    outcome = runner.run(replace(made, steps=(*made.steps, stuck)))
    assert (outcome.status, outcome.reached) == ("failed", "during")
    assert "it is stuck" in str(outcome.reason)
    read = read_drill(outcome.directory)
    assert "it is stuck" in str(read["reason"])
    # Where the machine stood still, it may have come first; what was begun was undone.
    assert all(each["end_s"] is not None for each in read["faults"] if each["kind"] == "kill")
    assert not read["passed"]


@pytest.mark.minutes
def test_nodes_that_do_not_come_back_are_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, once = binary("quorum"), tmp_path / "quorum"
    once.write_text(
        f'#!/bin/sh\n[ "$1" = serve ] || exec {real} "$@"\n'
        f'mkdir /dev/shm/was-"$3" || {{ echo "no second time"; exit 3; }}\nexec {real} "$@"\n'
    )
    once.chmod(0o755)
    monkeypatch.setenv("WANLAT_QUORUM_BINARY", str(once))
    outcome = runner.run(prepared(tmp_path, "faults: [{stop: victim, for: 300ms}]\n"))
    assert (outcome.status, outcome.reached) == ("complete", "done")
    assert any("Not every node served after the restart" in each for each in outcome.warnings)
    read = read_drill(outcome.directory)
    assert (read["durability"]["verdict"], read["durability"]["lost"]) == ("unknown", 0)
    assert not read["passed"]
    assert {mark["node"] for mark in read["deaths"]} == {"n1", "n2", "n3"}


def test_a_store_that_is_never_ready_ends_the_drill_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = tmp_path / "quorum"
    hangs.write_text("#!/bin/sh\n[ $1 = --version ] && echo 'quorum 9' && exit\nexec sleep 600\n")
    hangs.chmod(0o755)
    monkeypatch.setenv("WANLAT_QUORUM_BINARY", str(hangs))
    head = SHORTEST.replace("ready: 20s", "ready: 1s")
    outcome = runner.run(prepared(tmp_path, "faults: [{kill: victim}]\n", head))
    assert (outcome.status, outcome.reached) == ("failed", "calibrated")
    assert "not ready after 1 s" in str(outcome.reason)
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == ("failed", outcome.reason)


def test_a_stage_that_hangs_is_ended_when_its_time_is_over_and_no_other() -> None:
    over = threading.Event()
    lab: Any = SimpleNamespace(abort=lambda _: over.set())
    with within(lab, "Counting sheep", 0.2):
        pass
    assert not over.wait(0.4)
    with (
        pytest.raises(Overdue, match="Counting sheep took longer than the 0 s"),
        within(lab, "Counting sheep", 0.2),
    ):
        over.wait(600)
        raise MachineError("The lab has ended.")


# A small disk of the test's own, which is filled when a drill tells that it is there.
ON_A_SMALL_DISK = """
import json, shutil, subprocess, sys
from pathlib import Path
from wanlat.experiments import session
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.prepare import prepare

directory, when, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
disk = directory / "disk"
disk.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
session.prove = lambda *_, **__: None
is_full = False

def fill(*_):
    global is_full
    is_full = True
    with open(disk / "ballast", "wb", buffering=0) as ballast:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while ballast.write(bytes(size)):
                    pass
            except OSError:
                pass
    if how == "unexpected":
        (disk / "bundle" / "more").write_bytes(bytes(1 << 20))

def report(stage, *_):
    if when in stage and not is_full:
        fill()

if when == "at the end":
    everything = runner._carry_out
    runner._carry_out = lambda *run: (everything(*run), fill())

made = prepare(str(directory / "drill.yaml"), system="quorum", directory=disk / "bundle")
outcome = runner.run(made, report)
assert is_full
shutil.copytree(disk / "bundle", directory / "full")
print(json.dumps([outcome.status, outcome.reason, outcome.is_disk_full, outcome.warnings]))
"""
FULL = "No space left on device"
LONG = pytest.mark.minutes


@pytest.mark.parametrize(
    ("when", "how", "says", "reached"),
    [
        ("writing objects", "as it comes", FULL, {"calibrated", "ready", "filled"}),
        pytest.param(
            *("restarting every node", "as it comes", FULL, {"healed", "restarted"}), marks=LONG
        ),
        pytest.param(
            *("building the lab", "unexpected", f"A file cannot be written: {FULL}."),
            {None, "lab"},
            marks=LONG,
        ),
        pytest.param("at the end", "as it comes", None, {"done"}, marks=LONG),
    ],
)
def test_the_bundle_says_that_its_disk_was_full_and_how_far_it_got(
    when: str, how: str, says: str | None, reached: set[str | None], tmp_path: Path
) -> None:
    drill(tmp_path, "faults: [{kill: victim, for: 400ms}]\n", SHORTEST)
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount"),
            *(sys.executable, "-c", ON_A_SMALL_DISK, str(tmp_path), when, how),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, reason, is_disk_full, warnings = json.loads(done.stdout)
    assert status == ("complete" if says is None else "failed")
    assert is_disk_full is (says is not None)
    assert reason is None if says is None else says in reason
    manifest = json.loads((tmp_path / "full" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == (status, reason)
    assert manifest["ended"] is not None
    assert manifest["warnings"] == warnings
    assert manifest["reached"] in reached
    read = read_drill(tmp_path / "full")
    assert read["reason"] == reason
    assert read["passed"] is (says is None)
