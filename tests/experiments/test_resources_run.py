"""Runs of the reference store whose resources are sampled, for real; on one node, in seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.commands import manifest_of, run, samples_of

STUDY = """
name: test
topology: one-site
nodes: 1
endpoints: [PutObject]
samples: 200
warmup: 1
object_size: 64KiB
seed: 7
resources: {interval: 100ms, idle: 1s}
"""
RECLAIM = """
name: test
topology: one-site
nodes: 1
endpoints: [RemoveObject]
object_size: 64KiB
seed: 7
resources: {interval: 200ms}
reclaim: {objects: 60, remove: 0.5, settle: 300ms, watch: 1s}
"""


def resources_of(bundle: Path, kind: str) -> pd.DataFrame:
    rows = pd.read_parquet(bundle / "resources.parquet")
    return rows[rows.kind == kind]


def test_a_run_tells_what_its_nodes_used_on_the_samples_clock_and_cheaply(tmp_path: Path) -> None:
    file, out = tmp_path / "study.yaml", tmp_path / "bundle"
    file.write_text(STUDY)
    done = run(str(file), out=out)
    assert done.returncode == 0, done.stderr

    kinds = set(pd.read_parquet(out / "resources.parquet").kind)
    assert kinds == {"node"}  # one site has no links
    node, samples = resources_of(out, "node"), samples_of(out)
    assert node.t_ns.is_monotonic_increasing
    assert node.t_ns.min() < samples.start_ns.min() - 9 * 10**8  # it was idle first
    assert node.t_ns.max() > samples.start_ns.max()
    stored = manifest_of(out)["resources"]["systems"]["quorum"]
    assert stored["stored_bytes"] == 201 * 65536
    assert node.space_bytes.dropna().iloc[-1] >= stored["stored_bytes"]
    assert node.rss_bytes.min() > 1_000_000
    assert node.cpu_ns.is_monotonic_increasing
    said = manifest_of(out)["resources"]
    assert said["failed"] is None
    assert said["cost_cpu_share"] > 0  # how small it is kept: test_resources.py
    summary = json.loads((out / "summary.json").read_text())
    (system,) = summary["resources"]["systems"]
    assert system["idle_usage_subtracted"] is False  # a second is too short to know it
    assert system["stored"]["disk_bytes_per_stored_byte"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.minutes
def test_a_store_that_frees_at_once_is_seen_to_and_what_stays_can_be_read(tmp_path: Path) -> None:
    file, out = tmp_path / "study.yaml", tmp_path / "bundle"
    file.write_text(RECLAIM)
    done = run(str(file), out=out)
    assert done.returncode == 0, done.stderr

    (entry,) = json.loads((out / "reclaim.json").read_text())["systems"]
    assert entry["removed"] == 30
    assert entry["found"] == {
        "kept": 30,
        "lost": 0,
        "removed": 30,
        "still_there": 0,
        "example": None,
    }
    (of_block,) = json.loads((out / "summary.json").read_text())["reclaim"]["systems"]
    assert of_block["freed_at_end"] == pytest.approx(1.0, abs=0.1)
    assert of_block["watched_s"] >= 1.0
    assert not list(out.glob(".reclaim*"))
