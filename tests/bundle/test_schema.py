"""The schema of bundles: what is published keeps to it, and nobody writes what it does not know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from wanlat.bundle import tables
from wanlat.bundle.documents import SCHEMA_VERSION, DrillManifest, StudyManifest
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_manifest, read_table
from wanlat.bundle.write import BundleWriter

ROOT = Path(__file__).parents[2]
RESULTS = sorted(each.parent for each in (ROOT / "docs" / "results").rglob("manifest.json"))
STUDY: dict[str, Any] = {"kind": "study", "status": "running", "study": {"name": "mine"}}


def test_every_published_bundle_keeps_to_the_schema() -> None:
    assert len(RESULTS) > 200
    for bundle in RESULTS:
        assert read_manifest(bundle).schema_version == SCHEMA_VERSION


@pytest.mark.parametrize("name", ["samples", "events", "resources", "load"])
def test_tables_that_are_published_have_columns_of_the_schema(name: str) -> None:
    known = getattr(tables, name.upper())
    files = sorted((ROOT / "docs" / "results").rglob(f"{name}.parquet"))
    assert files
    for file in files:
        for column in pq.read_schema(file):
            assert known.field(column.name).type == column.type, (file, column.name)


def test_a_run_that_is_not_ended_is_read_from_its_lines(tmp_path: Path) -> None:
    writer = BundleWriter.create(tmp_path / "b", STUDY)
    for seq in range(3):
        writer.sample({"system": "garage", "seq": seq, "outcome": "ok", "unknown column": 1})
    found = read_table(tmp_path / "b", "samples")
    assert found is not None
    frame, path, is_cut = found
    assert path.name == "samples.jsonl"
    assert list(frame["seq"]) == [0, 1, 2]
    assert not is_cut
    path.write_bytes(path.read_bytes()[:-5])
    found = read_table(tmp_path / "b", "samples")
    assert found is not None
    assert (len(found[0]), found[2]) == (2, True)
    assert read_manifest(tmp_path / "b").status == "running"


def test_a_run_that_is_ended_has_tables_of_the_schema_and_says_how_it_ended(tmp_path: Path) -> None:
    writer = BundleWriter.create(tmp_path / "b", STUDY)
    writer.sample({"system": "garage", "seq": 7, "outcome": "ok", "unknown column": 1})
    writer.event("fault", "n1")
    writer.close("failed", "the store died", tcp={"ecn": 2})
    assert pq.read_schema(tmp_path / "b" / "samples.parquet").equals(tables.SAMPLES)
    assert pq.read_table(tmp_path / "b" / "samples.parquet")["seq"].to_pylist() == [7]
    assert pq.read_schema(tmp_path / "b" / "events.parquet").equals(tables.EVENTS)
    manifest = read_manifest(tmp_path / "b")
    assert isinstance(manifest, StudyManifest)
    assert (manifest.status, manifest.reason) == ("failed", "the store died")
    assert manifest.tcp == {"ecn": 2}
    assert read_table(tmp_path / "b", "load") is None


def test_what_the_schema_does_not_know_is_not_written(tmp_path: Path) -> None:
    writer = BundleWriter.create(tmp_path / "b", STUDY)
    for change in ({"complete": ["garage"]}, {"status": "done"}, {"systems": [{"name": "x"}]}):
        with pytest.raises(ValidationError):
            writer.write_manifest(**change)
    assert read_manifest(tmp_path / "b").status == "running"


def test_a_drill_is_no_study(tmp_path: Path) -> None:
    drill = {"kind": "drill", "drill": {"name": "mine"}, "roles": {"victim": ["n1"]}}
    BundleWriter.create(tmp_path / "b", drill)
    assert isinstance(read_manifest(tmp_path / "b"), DrillManifest)
    path = tmp_path / "b" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"study": {"name": "mine"}}))
    with pytest.raises(BundleError, match="damaged: study: Extra inputs are not permitted"):
        read_manifest(tmp_path / "b")


def test_reading_needs_none_of_the_rooms_that_run_things() -> None:
    code = "import wanlat.bundle.read, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    for room in ("topologies", "emulator", "systems", "probes", "experiments", "analysis"):
        assert f"wanlat.{room}" not in loaded
    assert not {"numpy", "pandas", "pyarrow", "matplotlib"} & set(loaded)
