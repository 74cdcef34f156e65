"""A prefill on the reference store: written, read back, and not believed blindly.

On one node, whose lab needs no calibration.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from tests.experiments.commands import run, samples_of, study

STUDY = "systems: [quorum]\nstorage: disk\nresources: false\nsamples: 3\nwarmup: 1\n"


def prefill_of(bundle: Path) -> dict[str, Any]:
    (system,) = json.loads((bundle / "prefill.json").read_text())["systems"]
    assert isinstance(system, dict)
    return system


def test_a_prefill_is_written_read_back_counted_and_waited_for(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        STUDY + "endpoints: [ListObjectsPage, GetObject]\n"
        "prefill: {objects: 600, buckets: 2, writers: 2}\n",
        sites=1,
    )
    done = run(file, out=tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    filled = prefill_of(tmp_path / "bundle")
    assert filled["written"] == filled["counted"] == 1200
    assert filled["read_back"] == 100
    assert filled["settled"]["seconds"] > 0
    samples = samples_of(tmp_path / "bundle")
    assert set(samples.outcome) == {"ok"}
    assert len(samples[samples.phase == "measure"]) == 2 * 3
    events = pd.read_parquet(tmp_path / "bundle" / "events.parquet")
    told = [json.loads(each)["what"] for each in events[events.kind == "prefill"].detail]
    assert told[:2] == ["begins", "ends"]


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
