"""The schema of bundles: what is stored keeps to it, and nobody writes what it does not know."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from tests.command_line import ran
from wanlat.bundle import documents, tables
from wanlat.bundle.documents import (
    SCHEMA_VERSION,
    Calibration,
    Document,
    Points,
    Prefill,
    Prefills,
    RttSteps,
)
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import (
    bundles_below,
    read_document,
    read_json,
    read_manifest,
    read_table,
)
from wanlat.bundle.write import BundleWriter, Lines, write_table
from wanlat.topologies import limits
from wanlat.topologies.errors import MachineError, UserError

BUNDLES = bundles_below(Path(__file__).parents[1] / "data" / "bundles" / str(SCHEMA_VERSION))
STUDY: dict[str, Any] = {"kind": "study", "status": "running", "study": {"name": "mine"}}
SAMPLE = {"system": "garage", "outcome": "ok", "unknown column": 1}


@pytest.fixture
def writer(tmp_path: Path) -> BundleWriter:
    return BundleWriter.create(tmp_path / "b", STUDY)


def test_every_stored_bundle_keeps_to_the_schema() -> None:
    assert len(BUNDLES) >= 6
    for bundle in BUNDLES:
        assert read_manifest(bundle).schema_version == SCHEMA_VERSION


@pytest.mark.parametrize("model", [Calibration, RttSteps, Points])
def test_every_stored_document_is_read_and_would_be_written_as_it_is(
    model: type[Document],
) -> None:
    found = [bundle for bundle in BUNDLES if (bundle / model.FILE).is_file()]
    assert found
    for bundle in found:
        document = read_document(bundle, model)
        assert document is not None
        assert _known(document.model_dump(mode="json")) == _known(read_json(bundle / model.FILE))


def _known(value: Any) -> Any:
    """Without what is null, or was before its key was."""
    if isinstance(value, dict):
        return {key: _known(each) for key, each in value.items() if each not in (None, [])}
    return [_known(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["samples", "events", "resources"])
def test_stored_tables_have_columns_of_the_schema(name: str) -> None:
    known = getattr(tables, name.upper())
    files = [file for bundle in BUNDLES if (file := bundle / f"{name}.parquet").is_file()]
    assert files
    for file in files:
        for column in pq.read_schema(file):
            assert known.field(column.name).type == column.type, (file, column.name)


def test_a_run_that_is_not_ended_is_read_from_its_lines(writer: BundleWriter) -> None:
    for seq in range(3):
        writer.sample(SAMPLE | {"seq": seq})
    lines = writer.directory / "samples.jsonl"
    for cut, (count, is_cut) in ((None, (3, False)), (-5, (2, True))):
        lines.write_bytes(lines.read_bytes()[:cut])
        found = read_table(writer.directory, "samples")
        assert found is not None
        assert (list(found[0]["seq"]), found[1:]) == ([*range(count)], (lines, is_cut))
    assert read_manifest(writer.directory).status == "running"
    lines.write_bytes(b"{\n" + lines.read_bytes())
    with pytest.raises(BundleError, match=r"samples\.jsonl, line 1, is damaged"):
        read_table(writer.directory, "samples")


def test_a_run_that_is_ended_has_tables_of_the_schema_and_says_how_it_ended(
    writer: BundleWriter,
) -> None:
    writer.sample(SAMPLE | {"seq": 7})
    writer.event("fault", "n1")
    writer.close("failed", "the store died", tcp={"ecn": 2})
    writer.sample(SAMPLE | {"seq": 8})  # of a thread that ends late: no part of the run
    samples = pq.read_table(writer.directory / "samples.parquet")
    assert samples.schema.equals(tables.SAMPLES) and samples["seq"].to_pylist() == [7]
    assert pq.read_schema(writer.directory / "events.parquet").equals(tables.EVENTS)
    manifest = read_manifest(writer.directory)
    assert (manifest.status, manifest.reason, manifest.tcp) == (
        *("failed", "the store died", {"ecn": 2}),
    )
    assert read_table(writer.directory, "load") is None


def test_what_the_schema_does_not_know_is_not_written(writer: BundleWriter) -> None:
    assert read_document(writer.directory, Prefills) is None
    for system, objects in (("garage", 1), ("bob", 2), ("garage", 3)):
        writer.write_part(Prefills, Prefill(system=system, objects=objects, object_bytes=1))
    found = read_document(writer.directory, Prefills)
    assert found is not None
    assert [(each.system, each.objects) for each in found.systems] == [("bob", 2), ("garage", 3)]
    for change in (
        *({"complete": ["garage"]}, {"status": "done"}, {"systems": [{"name": "x"}]}),
        *({"budget": [{"samples": 1}]}, {"kind": "run"}),
    ):
        with pytest.raises(ValidationError):
            writer.write_manifest(**change)
    assert read_manifest(writer.directory).status == "running"
    with pytest.raises(UserError, match="is not empty, and a bundle never overwrites another"):
        BundleWriter.create(writer.directory, STUDY)


def test_a_table_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    rows = tables.of_lines(b'{"t_ns":1}\n', tables.EVENTS)
    assert write_table(tmp_path, "events", tables.EVENTS, [rows])

    def broken() -> Any:
        yield rows
        raise OSError(28, "No space left on device")

    assert not write_table(tmp_path, "events", tables.EVENTS, broken())
    assert pq.read_table(tmp_path / "events.parquet").num_rows == 1
    assert [each.name for each in tmp_path.iterdir()] == ["events.parquet"]


def _manifest(**changes: Any) -> Callable[[Path], None]:
    def change(bundle: Path) -> None:
        path = bundle / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _file(name: str, text: str) -> Callable[[Path], object]:
    return lambda bundle: (bundle / name).write_text(text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: (b / "manifest.json").unlink(), "it has no manifest.json"),
        (
            _manifest(schema_version=SCHEMA_VERSION + 1, wanlat="3.1.4"),
            r"schema version 3, .* reads 2.*wanlat 3\.1\.4; use that version or a newer one",
        ),
        (_manifest(schema_version=True), "is not a bundle"),
        (_manifest(kind="party"), r"damaged: kind: .*'study', 'drill', 'matrix' or 'drills'"),
        (_manifest(systems=3, seed="x"), "damaged: seed: .*; systems: .*"),
        (_manifest(dril={"name": "d"}), "damaged: dril: Extra inputs are not permitted"),
        (_file("manifest.json", "{"), "manifest.json is damaged: it is not JSON"),
        (_file("rtt_steps.json", "[]"), "a JSON object was expected"),
        (
            _file("rtt_steps.json", '{"rtt_steps": [{"system": "bob"}]}'),
            r"damaged: rtt_steps\.0\.rtt_step: Field required; .* run the study again",
        ),
    ],
)
def test_what_is_wrong_with_a_bundle_is_said(
    writer: BundleWriter, damage: Callable[[Path], object], message: str
) -> None:
    damage(writer.directory)
    with pytest.raises(BundleError, match=message):
        read_manifest(writer.directory)
        read_document(writer.directory, RttSteps)


def test_a_recorded_topology_is_at_most_as_large_as_one_can_be() -> None:
    assert documents.MAX_NODES == limits.MAX_NODES


def test_reading_needs_none_of_the_rooms_that_run_things() -> None:
    code = "import wanlat.bundle.read, sys; print('\\n'.join(sys.modules))"
    done = ran(sys.executable, "-c", code, check=True)
    loaded = done.stdout.split()
    for room in ("topologies", "emulator", "systems", "probes", "experiments", "analysis"):
        assert f"wanlat.{room}" not in loaded
    assert not {"numpy", "pandas", "pyarrow", "matplotlib"} & set(loaded)


def test_of_lines_that_find_no_room_nothing_stays_however_often(tmp_path: Path) -> None:
    path, before = tmp_path / "lines.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    with Lines(path) as lines:
        try:  # what a full disk does: a part is written, the rest is refused
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
            for number in range(2):
                for _ in range(2):
                    with pytest.raises(MachineError):
                        lines.append({"words": "x" * 40})
                lines.append({"n": number})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == '{"n":0}\n{"n":1}\n'
