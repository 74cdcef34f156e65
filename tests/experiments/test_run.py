"""A study on the reference store, from the command line to the bundle."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.experiments.commands import manifest_of, run, topology

ENDPOINTS = ("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    directory = tmp_path_factory.mktemp("run")
    return run(
        *("endpoint-latency", "--topology", topology(directory), "--samples", "20"),
        *("--seed", "42", "--json"),
        out=directory / "bundle",
    )


@pytest.fixture(scope="module")
def bundle(done: subprocess.CompletedProcess[str]) -> Path:
    assert done.returncode == 0, done.stderr
    return Path(done.args[-1])


def test_the_bundle_is_whole_and_says_what_was_measured_on_what(
    done: subprocess.CompletedProcess[str], bundle: Path
) -> None:
    names = {path.name for path in bundle.iterdir()}
    assert names >= {
        *("manifest.json", "calibration.json", "samples.parquet", "events.parquet"),
        *("summary.json", "charts", "logs"),
    }
    assert "samples.jsonl" not in names
    manifest = manifest_of(bundle)
    assert (manifest["status"], manifest["seed"]) == ("complete", 42)
    assert manifest["client"] == {"node": "n1", "site": "dc1"}
    (system,) = manifest["systems"]
    assert (system["name"], system["api"]) == ("quorum", "s3")
    assert len(system["sha256"]) == 64
    assert tuple(system["endpoints"]) == ENDPOINTS
    assert [each["round_trips"] for each in system["least_round_trips"]] == [1] * 5
    assert manifest["tcp"]["slow_start_after_idle"] in (0, 1)
    assert manifest["topology"]["name"] == "small"
    printed = json.loads(done.stdout)
    assert printed == json.loads((bundle / "summary.json").read_text())
    assert {row["endpoint"] for row in printed["endpoints"]} == set(ENDPOINTS)
    assert "chart: " in done.stderr
