"""A drill whose bundle's disk runs full, at any stage: the bundle says so, and how far it got.

The disk is a small one of the test's own, and is filled when a drill tells that it is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.drill.drills import drill
from tests.experiments.drill.test_run_failures import SHORTEST
from wanlat.analysis.drill.read import read_drill

ON_A_SMALL_DISK = """
import json, os, shutil, subprocess, sys
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
    everything = runner._Run.all
    runner._Run.all = lambda run: (everything(run), fill())

made = prepare(str(directory / "drill.yaml"), system="quorum", directory=disk / "bundle")
outcome = runner.run(made, report)
assert is_full
shutil.copytree(disk / "bundle", directory / "full")
print(json.dumps([outcome.status, outcome.reason, outcome.is_disk_full, outcome.warnings]))
"""

LONG = pytest.mark.minutes


def run_full(directory: Path, when: str, how: str = "as it comes") -> Any:
    """Return how a drill ended whose disk was full from then on, and copy its bundle to `full`."""
    drill(directory, "faults: [{kill: victim, for: 400ms}]\n", SHORTEST)
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount"),
            *(sys.executable, "-c", ON_A_SMALL_DISK, str(directory), when, how),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("when", "reached"),
    [
        pytest.param("building the lab", {None, "lab"}, marks=LONG),
        ("writing objects", {"calibrated", "ready", "filled"}),
        pytest.param("restarting every node", {"healed", "restarted"}, marks=LONG),
    ],
)
def test_the_bundle_says_that_the_disk_was_full(
    when: str, reached: set[str | None], tmp_path: Path
) -> None:
    status, reason, is_disk_full, warnings = run_full(tmp_path, when)
    assert (status, is_disk_full) == ("failed", True)
    assert "No space left on device" in reason
    manifest = json.loads((tmp_path / "full" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == ("failed", reason)
    assert manifest["ended"] is not None
    assert manifest["warnings"] == warnings
    assert manifest["reached"] in reached
    read = read_drill(tmp_path / "full")
    assert read.reason == reason
    assert not read.passed


@pytest.mark.minutes
def test_a_full_disk_that_nobody_expected_there_is_told_as_well(tmp_path: Path) -> None:
    status, reason, is_disk_full, _ = run_full(tmp_path, "building the lab", "unexpected")
    assert (status, is_disk_full) == ("failed", True)
    assert reason == "A file cannot be written: No space left on device."
    manifest = json.loads((tmp_path / "full" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == ("failed", reason)


@pytest.mark.minutes
def test_a_disk_that_is_full_at_the_very_end_keeps_what_was_found(tmp_path: Path) -> None:
    status, reason, _, _ = run_full(tmp_path, "at the end")
    manifest = json.loads((tmp_path / "full" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == (status, reason) == ("complete", None)
    assert manifest["reached"] == "done"
    assert read_drill(tmp_path / "full").passed
