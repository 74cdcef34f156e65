"""Runs that are cut short, each in a way of its own, and what `--resume` makes of them: for real.

On one node, without a network to prove, so that a run takes a second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here
from tests.experiments.commands import command, manifest_of, node_of, samples_of
from tests.experiments.drill.drills import await_that
from wanlat.experiments.config.overrides import changed
from wanlat.experiments.config.study import load
from wanlat.experiments.matrix import prepare_matrix, run_matrix
from wanlat.experiments.matrix_resume import read_unfinished
from wanlat.experiments.session import silent

STUDY = """
name: test
topology: one-site
nodes: 1
endpoints: [GetObject, PutObject]
samples: 500
warmup: 2
seed: 7
resources: false
"""
MATRIX = STUDY + "matrix: {object_size: [1KiB, 2KiB, 4KiB]}\n"


def begin(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command("run", *arguments), stderr=subprocess.PIPE, text=True)


def points(bundle: Path) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads((bundle / "points.json").read_text())["points"]
    except FileNotFoundError:
        return []
    return found


def is_measuring(bundle: Path, place: int) -> bool:
    """Whether the point that is run as number `place` has samples already."""
    known = points(bundle)
    raw = bundle / known[place]["directory"] / "samples.jsonl" if known else bundle
    return raw.is_file() and raw.read_bytes().count(b"\n") > 10


def statuses(bundle: Path) -> list[str]:
    return [point["status"] for point in points(bundle)]


def test_a_matrix_that_is_interrupted_and_killed_measures_every_point_once(tmp_path: Path) -> None:
    file, bundle = tmp_path / "study.yaml", tmp_path / "bundle"
    file.write_text(MATRIX)

    run = begin(str(file), "--out", str(bundle))
    await_that(lambda: is_measuring(bundle, 0), run)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=180)
    assert run.returncode == 130
    assert f"`wanlat run --resume {bundle}` resumes it" in said
    assert statuses(bundle) == ["interrupted", "planned", "planned"]
    assert manifest_of(bundle)["status"] == "interrupted"

    run = begin("--resume", str(bundle))
    await_that(lambda: is_measuring(bundle, 1), run)
    run.send_signal(signal.SIGSTOP)  # so that it is there, however long the other one takes
    refused = here("run", "--resume", str(bundle))
    assert (refused.returncode, "Another run is writing to" in refused.stderr) == (2, True)
    run.kill()
    run.communicate()
    assert statuses(bundle) == ["complete", "running", "planned"]
    first = bundle / points(bundle)[0]["directory"] / "samples.parquet"
    was = first.stat()

    resumed = here("run", "--resume", str(bundle))
    assert resumed.returncode == 0, resumed.stderr
    assert statuses(bundle) == ["complete"] * 3
    assert [point["attempts"] for point in points(bundle)] == [2, 2, 1]
    now = first.stat()
    assert (now.st_ino, now.st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
    for point in points(bundle):
        measured = samples_of(bundle / point["directory"]).query("phase == 'measure'")
        assert len(measured) == 1000
        assert set(measured.object_bytes) == {int(point["values"]["object_size"][0]) * 1024}
    aside = sorted(path.name for path in (bundle / "points").glob("*.attempt-*"))
    assert len(aside) == 2
    assert manifest_of(bundle)["attempts"] == 3


@pytest.mark.minutes
def test_a_store_that_dies_costs_its_point_alone(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (tmp_path / "study.yaml").write_text(MATRIX)
    study = changed(load(str(tmp_path / "study.yaml")), {"samples": 2000})
    prepared = prepare_matrix(study, directory=bundle)

    def kill_the_store() -> None:
        while not is_measuring(bundle, 0):
            time.sleep(0.01)
        os.kill(node_of(os.getpid(), "n1"), signal.SIGKILL)

    with ThreadPoolExecutor() as beside:
        beside.submit(kill_the_store)
        outcome = run_matrix(prepared, silent)
    assert outcome.status == "failed"
    assert outcome.reason is not None
    assert "1 of 3 points failed" in outcome.reason
    failed, *others = points(bundle)
    assert failed["status"] == "failed"
    assert "n1" in failed["reason"]
    assert {point["status"] for point in others} == {"complete"}
    assert 10 < len(samples_of(bundle / failed["directory"])) < 4000

    outcome = run_matrix(prepared, silent, unfinished=read_unfinished(bundle))
    assert outcome.status == "complete"
    assert [point["attempts"] for point in points(bundle)] == [2, 1, 1]


ON_A_SMALL_DISK = """
import shutil, subprocess, sys
from pathlib import Path
from wanlat.experiments.config.overrides import changed
from wanlat.experiments.config.study import load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run

directory = Path(sys.argv[1])
disk = directory / "disk"
disk.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", disk], check=True)
study = changed(load(str(directory / "study.yaml")), {"samples": 4000})
outcome = run(prepare(study, directory=disk / "bundle"), lambda *_: None)
assert (outcome.status, outcome.is_disk_full) == ("failed", True), outcome
shutil.copytree(disk / "bundle", directory / "full")
"""


@pytest.mark.minutes
def test_a_disk_that_runs_full_leaves_a_bundle_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    argv = [*own, sys.executable, "-c", ON_A_SMALL_DISK, str(tmp_path)]
    subprocess.run(argv, check=True, timeout=300)
    full = tmp_path / "full"
    manifest = manifest_of(full)
    assert manifest["status"] == "failed"
    assert "No space left on device" in manifest["reason"]
    assert manifest["ended"] is not None
    # Where there was room for a table, it is one.
    lines = full / "samples.jsonl"
    samples = lines.read_bytes().count(b"\n") if lines.exists() else len(samples_of(full))
    assert 100 < samples < 8000
