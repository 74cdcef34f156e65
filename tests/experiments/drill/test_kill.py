"""A drill that is ended before its time leaves a bundle that can be read, and nothing else."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.experiments.drill.drills import SHORT, drill, manifest_of, reached, started
from wanlat.analysis.drill.read import read_drill
from wanlat.analysis.report import report
from wanlat.experiments.drill.ledger import LedgerReader

SEED = 5
BROKEN = """
faults:
  - {kill: victim, at: 100ms, for: 2s}
  - {disk-full: survivor, size: 64MiB, at: 200ms, for: 1s}
  - {stop: survivor, at: 1300ms, for: 500ms}
"""
PHASES = "before: 1s, during: 2500ms, after: 2s"
ENDLESS = {
    "lab": PHASES,
    "filled": PHASES.replace("1s", "10min"),
    "during": PHASES.replace("2500ms", "10min"),
    "after": PHASES.replace("after: 2s", "after: 10min"),
}
"""The phases of a drill that does not get beyond a stage before it is ended, however late."""
LONG = pytest.mark.minutes
MOMENTS = [
    pytest.param("lab", 3.0, marks=LONG, id="lab"),
    pytest.param("during", 2.0, id="during"),
    pytest.param("after", 3.0, marks=LONG, id="after"),
]
"""A stage, and up to how many seconds after it was reached."""


def endless(directory: Path, stage: str) -> str:
    """Write a drill that is still at this stage whenever somebody looks."""
    assert PHASES in SHORT
    return drill(directory, BROKEN, SHORT.replace(PHASES, ENDLESS[stage]))


def children(of: int) -> Iterator[int]:
    """Every process that descends from one, itself left out."""
    parents: dict[int, list[int]] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            stat = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(stat[1]), []).append(int(directory.name))
    todo = [of]
    while todo:
        for child in parents.get(todo.pop(), []):
            yield child
            todo.append(child)


def elsewhere(family: Collection[int] = ()) -> dict[str, set[str]]:
    """What a drill could leave behind beside processes and its bundle.

    Control groups have the process in their name that made them: those of ``family`` count.
    """
    groups = (path for path in Path("/sys/fs/cgroup").rglob("wanlat-*") if path.is_dir())
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        "interfaces": {path.name for path in Path("/sys/class/net").iterdir()},
        "mounts": {line.split()[1] for line in mounts},
        "control groups": {str(path) for path in groups if int(path.name.split("-")[1]) in family},
    }


def are_gone(pids: set[int], within_s: float = 60.0) -> set[int]:
    """Wait for processes to end; return those that have not."""
    until = time.monotonic() + within_s
    while True:
        left = {pid for pid in pids if Path(f"/proc/{pid}").exists() and _runs(pid)}
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]) != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("stage", "within_s"), MOMENTS)
def test_a_drill_that_is_killed_leaves_a_readable_bundle_and_nothing_else(
    stage: str, within_s: float, tmp_path: Path
) -> None:
    before = elsewhere()
    out = tmp_path / "bundle"
    run = started(endless(tmp_path, stage), out, unproved=True)
    reached(run, out, stage)
    time.sleep(random.Random(f"{SEED} {stage}").uniform(0, within_s))
    family = set(children(run.pid))
    run.kill()
    run.communicate()
    assert family
    assert not are_gone(family)
    for what, names in elsewhere({run.pid, *family}).items():
        assert names <= before[what], what
    _check_bundle(out, status="running")
    made = json.loads(report(out).summary_path.read_text())
    assert made["drill"]["durability"]["verdict"] == "unknown"


@pytest.mark.minutes
@pytest.mark.parametrize(
    ("number", "stage"), [(signal.SIGINT, "during"), (signal.SIGTERM, "filled")]
)
def test_a_drill_that_is_interrupted_ends_and_says_how_far_it_got(
    number: int, stage: str, tmp_path: Path
) -> None:
    before = elsewhere()
    out = tmp_path / "bundle"
    run = started(endless(tmp_path, stage), out, "--json", unproved=True)
    reached(run, out, stage)
    time.sleep(0.8)  # in `during` a node is down then, and a disk full
    family = set(children(run.pid))
    os.kill(run.pid, number)
    said, told = run.communicate(timeout=300)
    assert run.returncode == 130, told
    assert "Interrupted." in told
    assert f"It got as far as `{stage}`" in told
    document = json.loads(said)["bundle"]
    assert (document["status"], document["reached"]) == ("interrupted", stage)
    assert not are_gone(family)
    for what, names in elsewhere({run.pid, *family}).items():
        assert names <= before[what], what
    assert (out / "samples.parquet").exists()
    _check_bundle(out, status="interrupted")


@pytest.mark.minutes
def test_a_lab_that_ends_ends_the_drill_with_the_reason(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    run = started(endless(tmp_path, "filled"), out, unproved=True)
    reached(run, out, "filled")
    # Its children have its name until they are another program; it is the oldest of them.
    first = min(pid for pid in children(run.pid) if _name(pid) == "wanlat-lab")
    os.kill(first, signal.SIGKILL)
    _, told = run.communicate(timeout=300)
    assert run.returncode == 1, told
    assert "The drill failed: The lab has ended." in told
    assert "Traceback" not in told
    _check_bundle(out, status="failed")


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended meanwhile
        return ""


def _check_bundle(out: Path, status: str) -> None:
    """It can be read, says how far it got, and its ledger has every write that has a sample."""
    manifest = manifest_of(out)
    assert manifest["status"] == status
    made = read_drill(out)
    assert (made.status, made.reached) == (status, manifest["reached"])
    assert made.durability.verdict == "unknown"
    if not (out / "ledger.jsonl").exists():
        return
    ledger = LedgerReader.read(out / "ledger.jsonl")
    keys = {write.key for write in ledger.writes}
    samples = made.bundle.samples
    writes = samples[(samples.operation == "write") & samples.start_ns.notna()]
    assert set(writes.key) <= keys
    acknowledged = writes[writes.outcome == "ok"].key
    known = {write.key for write in ledger.writes if write.state == "ok"}
    # The last line of each client may not have got there; that makes it one nobody knows of.
    assert len(set(acknowledged) - known) <= 4
