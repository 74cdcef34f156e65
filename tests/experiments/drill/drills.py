"""Short drills on the reference store, as files, and what watches over them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.experiments.commands import command, manifest_of, topology
from wanlat.experiments.drill.runner import STAGES

SHORT = """
name: short
topology: small.yaml
roles: {victim: {select: one}, survivor: {select: one}}
clients:
  survivor: {node: survivor}
  victim: {node: victim}
interval: 50ms
deadline: 1s
objects: 30
timeouts:
  ready: 20s
  serve_after_restart: 20s
  verify_after_heal: 20s
  verify_after_restart: 20s
phases: {before: 1s, during: 2500ms, after: 2s}
seed: 7
"""
PHASES = "before: 1s, during: 2500ms, after: 2s"
SHORTEST = SHORT.replace(PHASES, "before: 500ms, during: 1s, after: 500ms")
KILLED = "faults:\n  - {kill: victim, at: 300ms, for: 1s}\n"


def drill(directory: Path, text: str = KILLED, head: str = SHORT) -> str:
    """Write a drill on a topology of its own, of three sites 10 ms from each other."""
    topology(directory, rtt="10ms")
    file = directory / "drill.yaml"
    file.write_text(head + text)
    return str(file)


UNPROVED = """
from wanlat.experiments import session
from wanlat.experiments.drill import runner
session.prove = lambda *_, **__: None
from wanlat.cli import main
main()
"""
"""The command line without calibration: for drills of which nobody looks at the times."""


def started(file: str, out: Path, *options: str, unproved: bool = False) -> subprocess.Popen[str]:
    """Start a drill, and return once its bundle has a manifest."""
    argv = command("drill", "run", file, "--systems", "quorum", "--out", str(out), *options)
    if unproved:
        argv = [argv[0], "-c", UNPROVED, *argv[3:]]
    run = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    await_that((out / "manifest.json").exists, run)
    return run


def reached(run: subprocess.Popen[str], out: Path, stage: str) -> None:
    """Return when a drill has got so far."""
    ahead = STAGES[STAGES.index(stage) :]
    await_that(lambda: manifest_of(out)["reached"] in ahead, run)


def await_that(is_so: Callable[[], bool], run: subprocess.Popen[str] | None = None) -> None:
    """Wait for something that comes, or for the end of the process that it comes from."""
    deadline = time.monotonic() + 600
    while not is_so():
        assert run is None or run.poll() is None, run.communicate()
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def writes_of(directory: Path) -> list[dict[str, Any]]:
    """The writes of a ledger, in their order; ``state`` is `invoked` where nothing more is known.

    A last line that is not whole is left out: its writer ended in the middle of it.
    """
    writes: dict[int, dict[str, Any]] = {}
    *lines, _ = (directory / "ledger.jsonl").read_bytes().split(b"\n")
    for line in map(json.loads, lines):
        writes.setdefault(line["id"], {}).update(line)
    return list(writes.values())
