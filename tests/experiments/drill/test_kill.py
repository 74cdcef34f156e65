"""A drill that is ended before its time leaves a bundle that can be read, and nothing else.

(Ctrl-C at any moment is `tests.experiments.test_interruptions`.)
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.experiments.commands import manifest_of
from tests.experiments.drill.drills import (
    PHASES,
    SHORT,
    await_that,
    drill,
    reached,
    started,
    writes_of,
)
from tests.processes import alive, descendants
from wanlat.analysis.figures.drill.read import read_drill

SEED = 5
BROKEN = """
faults:
  - {kill: victim, at: 100ms, for: 2s}
  - {disk-full: survivor, size: 64MiB, at: 200ms, for: 1s}
  - {stop: survivor, at: 1300ms, for: 500ms}
"""
ENDLESS = {
    "lab": PHASES,
    "filled": PHASES.replace("1s", "10min"),
    "during": PHASES.replace("2500ms", "10min"),
    "after": PHASES.replace("after: 2s", "after: 10min"),
}
"""The phases of a drill that does not get beyond a stage before it is ended, however late."""


def elsewhere(family: Collection[int] = ()) -> set[str]:
    """What a drill could leave behind beside processes and its bundle.

    Control groups have the process in their name that made them: those of ``family`` count.
    """
    groups = (path for path in Path("/sys/fs/cgroup").rglob("wanlat-*") if path.is_dir())
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        *(path.name for path in Path("/sys/class/net").iterdir()),
        *(line.split()[1] for line in mounts),
        *(str(path) for path in groups if int(path.name.split("-")[1]) in family),
    }


@contextmanager
def endless(
    out: Path, stage: str, *options: str, more_s: float = 0.0
) -> Iterator[subprocess.Popen[str]]:
    """A drill that is still at this stage whenever somebody looks. The block ends it, and nothing
    of it is left then.
    """
    before = elsewhere()
    file = drill(out.parent, BROKEN, SHORT.replace(PHASES, ENDLESS[stage]))
    run = started(file, out, *options, unproved=True)
    reached(run, out, stage)
    time.sleep(more_s)
    family = descendants(run.pid)
    assert len(family) > 1
    yield run
    await_that(lambda: not alive(family))
    assert elsewhere(family) <= before


@pytest.mark.parametrize(
    ("stage", "within_s"),
    [
        pytest.param("lab", 3.0, marks=pytest.mark.minutes),
        ("during", 1.0),
    ],
)
def test_a_drill_that_is_killed_leaves_a_readable_bundle_and_nothing_else(
    stage: str, within_s: float, tmp_path: Path
) -> None:
    more_s = random.Random(f"{SEED} {stage}").uniform(0, within_s)
    with endless(tmp_path / "bundle", stage, more_s=more_s) as run:
        run.kill()
        run.communicate()
    _check_bundle(tmp_path / "bundle", status="running")


def _check_bundle(out: Path, status: str) -> None:
    """It can be read, says how far it got, and its ledger has every write that has a sample."""
    manifest = manifest_of(out)
    assert manifest["status"] == status
    made = read_drill(out)
    assert (made["status"], made["reached"]) == (status, manifest["reached"])
    assert made["durability"]["verdict"] == "unknown"
    ledger = writes_of(out)
    samples = made.bundle.samples
    writes = samples[(samples.operation == "write") & samples.start_ns.notna()]
    assert set(writes.key) <= {write["key"] for write in ledger}
    acknowledged = writes[writes.outcome == "ok"].key
    known = {write["key"] for write in ledger if write["state"] == "ok"}
    # The last line of each client may not have got there; that makes it one nobody knows of.
    assert len(set(acknowledged) - known) <= 4
