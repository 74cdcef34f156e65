"""Runs that are cut short, each in a way of its own, and what `--resume` makes of them: for real.

On one node, without a network to prove, so that a run takes a second.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.command_line import here
from tests.experiments.commands import command, manifest_of, samples_of
from tests.experiments.drill.drills import await_that

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
