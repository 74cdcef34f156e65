"""Runs that are cut short, each in a way of its own, and what `--resume` makes of them: for real.

On one node, without a network to prove, so that a run takes a second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from tests.experiments.commands import TOLERANT, command, manifest_of, node_of, samples_of

STUDY = """
name: test
topology: one-site
nodes: 1
endpoints: [GetObject, PutObject]
samples: 300
warmup: 2
seed: 7
resources: false
"""
SWEEP = STUDY + "sweep: {object_size: [1KiB, 2KiB, 4KiB]}\n"


def begin(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command("run", *arguments), stderr=subprocess.PIPE, text=True)


def end(run: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = run.communicate(timeout=60)
    return run.returncode, said


def resume(bundle: Path) -> tuple[int, str]:
    return end(begin("--resume", str(bundle)))


def await_that(holds: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def write(directory: Path, text: str) -> str:
    file = directory / "study.yaml"
    file.write_text(text)
    return str(file)


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


def test_a_sweep_that_is_interrupted_and_killed_measures_every_point_once(tmp_path: Path) -> None:
    file, bundle = write(tmp_path, SWEEP), tmp_path / "bundle"

    run = begin(file, *TOLERANT, "--out", str(bundle))
    await_that(lambda: is_measuring(bundle, 0), run)
    run.send_signal(signal.SIGINT)
    code, said = end(run)
    assert code == 130
    assert f"`wanlat run --resume {bundle}` goes on" in said
    assert statuses(bundle) == ["interrupted", "planned", "planned"]
    assert manifest_of(bundle)["status"] == "interrupted"

    run = begin("--resume", str(bundle))
    await_that(lambda: is_measuring(bundle, 1), run)
    run.send_signal(signal.SIGSTOP)  # so that it is there, however long the other one takes
    code, said = resume(bundle)
    assert (code, "Another run is writing to" in said) == (2, True)
    run.kill()
    end(run)
    assert statuses(bundle) == ["complete", "running", "planned"]
    first = bundle / points(bundle)[0]["directory"] / "samples.parquet"
    was = first.stat()

    code, said = resume(bundle)
    assert code == 0, said
    assert statuses(bundle) == ["complete"] * 3
    assert [point["attempts"] for point in points(bundle)] == [2, 2, 1]
    now = first.stat()
    assert (now.st_ino, now.st_mtime_ns) == (was.st_ino, was.st_mtime_ns)
    for point in points(bundle):
        measured = samples_of(bundle / point["directory"]).query("phase == 'measure'")
        assert len(measured) == 600
        assert set(measured.object_bytes) == {int(point["values"]["object_size"][0]) * 1024}
    aside = sorted(path.name for path in (bundle / "points").glob("*.attempt-*"))
    assert len(aside) == 2
    assert manifest_of(bundle)["attempts"] == 3

    code, said = end(begin(file, "--samples", "5", "--resume", str(bundle)))
    assert (code, "samples: 300 there, 5 here" in said) == (2, True)


def test_a_store_that_dies_costs_its_point_alone(tmp_path: Path) -> None:
    file, bundle = write(tmp_path, SWEEP), tmp_path / "bundle"
    run = begin(file, *TOLERANT, "--set", "samples=2000", "--out", str(bundle))
    await_that(lambda: is_measuring(bundle, 0), run)
    os.kill(node_of(run.pid, "n1"), signal.SIGKILL)
    code, said = end(run)
    assert code == 1
    assert "1 of 3 points failed" in said
    failed, *others = points(bundle)
    assert failed["status"] == "failed"
    assert "n1" in failed["reason"]
    assert {point["status"] for point in others} == {"complete"}
    assert 10 < len(samples_of(bundle / failed["directory"])) < 4000

    code, said = resume(bundle)
    assert code == 0, said
    assert [point["attempts"] for point in points(bundle)] == [2, 1, 1]


ON_A_SMALL_DISK = """
import subprocess, sys
from pathlib import Path
command, directory = sys.argv[1].split(), Path(sys.argv[2])
disk = directory / "disk"
disk.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", disk], check=True)
out = disk / "bundle"
study = [str(directory / "study.yaml"), "--set", "samples=4000", "--tolerate", "50ms"]
for name, arguments, size in (
    ("full", [*study, "--out", str(out)], "64m"),
    ("resumed", ["--resume", str(out)], "64m"),
):
    run = subprocess.run([*command, *arguments], capture_output=True, text=True)
    (directory / f"{name}.said").write_text(f"{run.returncode}\\n{run.stderr}")
    subprocess.run(["cp", "-r", out, directory / name], check=True)
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
"""


def test_a_disk_that_runs_full_leaves_a_bundle_that_says_so(tmp_path: Path) -> None:
    write(tmp_path, STUDY)
    (tmp_path / "script.py").write_text(textwrap.dedent(ON_A_SMALL_DISK))
    subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount"),
            *(sys.executable, str(tmp_path / "script.py")),
            *(" ".join(command("run")), str(tmp_path)),
        ],
        check=True,
        timeout=120,
    )
    full, resumed = tmp_path / "full", tmp_path / "resumed"
    code, said = (tmp_path / "full.said").read_text().split("\n", 1)
    assert code == "1", said
    assert "No space left on device" in said
    assert "Make room: then `wanlat run --resume" in said
    manifest = manifest_of(full)
    assert manifest["status"] == "failed"
    assert "No space left on device" in manifest["reason"]
    assert manifest["ended"] is not None
    assert 100 < rows(full) < 8000

    code, said = (tmp_path / "resumed.said").read_text().split("\n", 1)
    assert code == "0", said
    manifest = manifest_of(resumed)
    assert (manifest["status"], manifest["attempts"]) == ("complete", 2)
    assert len(samples_of(resumed).query("phase == 'measure'")) == 8000
    assert rows(resumed / "attempt-1") == rows(full)


def rows(bundle: Path) -> int:
    """How many samples a bundle has: as lines, or as a table."""
    lines = bundle / "samples.jsonl"
    if lines.exists():
        return len(pd.read_json(lines, lines=True))
    return int(pq.read_metadata(bundle / "samples.parquet").num_rows)
