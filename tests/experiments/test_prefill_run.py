"""A prefill on the reference store: written, interrupted, gone on with, and not believed blindly.

On one node, whose lab needs no calibration.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import command, manifest_of, run, samples_of, study
from wanlat.emulator.disk import hold
from wanlat.experiments.prefill.kept import kept_bytes
from wanlat.topologies.errors import UserError

STUDY = "systems: [quorum]\nstorage: disk\nresources: false\nsamples: 3\nwarmup: 1\n"


def prefill_of(bundle: Path) -> dict[str, Any]:
    (system,) = json.loads((bundle / "prefill.json").read_text())["systems"]
    assert isinstance(system, dict)
    return system


@pytest.mark.minutes
def test_a_prefill_that_was_killed_goes_on_where_it_was_and_leaves_nothing(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        STUDY + "endpoints: [ListObjectsPage, GetObject]\n"
        "prefill: {buckets: 2, writers: 2}\nsweep: {prefill.objects: [1200]}\n",
        sites=1,
    )
    bundle = tmp_path / "bundle"
    point = bundle / "points" / "quorum-prefill.objects-1200"
    kept = point / "kept" / "quorum"
    started = subprocess.Popen(
        command("run", file, "--out", str(bundle)), stderr=subprocess.DEVNULL
    )
    _until(lambda: _size(kept / "filled-1.raw") > 20_000)
    started.kill()
    started.wait()
    _until(lambda: _is_let_go(kept / "nodes"))  # the last process of its lab is gone
    assert not (point / "prefill.json").exists()
    assert kept_bytes(point) > 100 * 1024

    done = subprocess.run(
        command("run", "--resume", str(bundle)),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    filled = prefill_of(point)
    assert filled["resumed"] > 100
    assert filled["written"] + filled["resumed"] == filled["counted"] == 2400
    assert filled["read_back"] == 100
    assert filled["settled"]["is_quiet"]
    assert manifest_of(bundle)["status"] == "complete"
    samples = samples_of(point)
    assert set(samples.outcome) == {"ok"}
    assert len(samples[samples.phase == "measure"]) == 2 * 3
    assert not list(bundle.rglob("kept"))
    events = pd.read_parquet(point / "events.parquet")
    begins, ends = (json.loads(each) for each in events[events.kind == "prefill"].detail)
    assert begins["resumed"] == ends["resumed"] == filled["resumed"]


def test_objects_that_a_store_acknowledged_and_has_not_got_end_the_run(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        STUDY + "endpoints: [GetObject]\nprefill: {objects: 1100, writers: 4, settle: 0s}\n"
        "options: {quorum: {defects: [drop-acked]}}\n",
        sites=1,
    )
    done = run(file, out=tmp_path / "bundle")
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "bucket wanlat was filled with 1,100 objects, all acknowledged" in said
    assert samples_of(tmp_path / "bundle").empty
    # Whoever wants to look at what is there still can.
    assert (tmp_path / "bundle" / "kept" / "quorum" / "nodes" / "n1").exists()


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _is_let_go(directory: Path) -> bool:
    try:
        os.close(hold(directory))
    except UserError:
        return False
    return True


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
