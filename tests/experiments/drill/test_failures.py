"""A drill that cannot be carried out says why, and how far it got."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.command_line import ran
from tests.experiments.drill.drills import SHORTEST, drill
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.experiments import session
from wanlat.experiments.drill.timeline import Overdue, within
from wanlat.topologies.errors import MachineError


@pytest.fixture(autouse=True)
def _unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out calibration: nobody looks at times here."""
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)


def test_a_stage_that_hangs_is_ended_when_its_time_is_over_and_no_other() -> None:
    over = threading.Event()
    lab: Any = SimpleNamespace(abort=lambda _: over.set())
    with within(lab, "Counting sheep", 600):
        pass
    with pytest.raises(MachineError, match="by itself"), within(lab, "Counting sheep", 600):
        raise MachineError("The lab has ended by itself.")
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers), "no end awaits what is over"
    assert not over.is_set()
    with (
        pytest.raises(Overdue, match="Counting sheep took longer than the 0 s"),
        within(lab, "Counting sheep", 0.05),
    ):
        over.wait(600)
        raise MachineError("The lab has ended.")


# A small disk of the test's own, which is filled when a drill tells that it is there.
ON_A_SMALL_DISK = """
import json, shutil, subprocess, sys
from pathlib import Path
from wanlat.experiments import session
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.prepare import load, prepare

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
    everything = runner._run
    runner._run = lambda *run: (everything(*run), fill())

made = prepare(load(str(directory / "drill.yaml")), system="quorum", directory=disk / "bundle")
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
    done = ran(
        *("unshare", "--user", "--map-root-user", "--mount"),
        *(sys.executable, "-c", ON_A_SMALL_DISK, str(tmp_path), when, how),
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
