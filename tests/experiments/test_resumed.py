"""What of an unfinished bundle stays, and what a run refuses to go on with."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wanlat.bundle import write as bundle_write
from wanlat.bundle.write import BundleWriter, Lock
from wanlat.experiments.prepared import CaptureWanted
from wanlat.experiments.resumed import Unfinished, go_on, read_unfinished
from wanlat.experiments.same import (
    capture_of,
    check_same_stores,
    check_same_study,
    check_same_topologies,
    machine_remarks,
    study_of,
    topologies_of,
)
from wanlat.experiments.study import Study
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology

STUDY = Study(
    name="mine",
    topology="one-site",
    endpoints=["GetObject"],
    systems=["quorum", "garage"],
)
SYSTEMS = [{"name": name, "version": "1", "sha256": f"{name}-1"} for name in STUDY.systems]
MANIFEST: dict[str, Any] = {
    "kind": "study",
    "status": "running",
    "study": STUDY.to_dict(),
    "topology": load_topology("one-site").to_dict(),
    "seed": 7,
    "systems": SYSTEMS,
    "started": "then",
    "warnings": ["quorum: slow", "garage: slower"],
}


def begun(directory: Path, completed: list[str]) -> BundleWriter:
    """A run that has measured quorum, and some of garage."""
    bundle = BundleWriter.create(directory, MANIFEST)
    for system in STUDY.systems:
        bundle.event("lab up", system)
        for seq in range(3):
            phase = "warmup" if seq == 0 else "measure"
            bundle.sample({"system": system, "seq": seq, "phase": phase})
        bundle.event("impairment", "dc1->dc2")
        (bundle.logs / f"{system}-n1.log").write_text("hello\n")
    pairs = [{"system": name, "verdict": "pass"} for name in STUDY.systems]
    bundle.write_json("calibration.json", {"pairs": pairs, "verdict": "pass"})
    bundle.write_manifest(completed=completed)
    return bundle


def killed(directory: Path, completed: list[str]) -> None:
    """The same, as kill -9 leaves it: with a line that was cut off."""
    bundle = begun(directory, completed)
    assert bundle.lock is not None
    bundle.lock.release()
    with (directory / "samples.jsonl").open("a") as lines:
        lines.write('{"system":"garage","se')


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_what_completed_systems_left_stays_and_the_rest_is_put_aside(
    tmp_path: Path, how: str
) -> None:
    if how == "killed":
        killed(tmp_path, ["quorum"])
    else:
        begun(tmp_path, ["quorum"]).close("interrupted", "by the user")
    (tmp_path / "summary.json").write_text("{}")

    earlier = go_on(tmp_path, MANIFEST)

    assert earlier.completed == ["quorum"]
    assert (earlier.samples("quorum"), earlier.samples("garage")) == (2, None)
    assert earlier.warnings == ["quorum: slow"]
    assert [pair["system"] for pair in earlier.calibrations[0]["pairs"]] == ["quorum"]
    assert not (tmp_path / "summary.json").exists()
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["quorum-n1.log"]
    earlier.writer.sample({"system": "garage", "seq": 0, "phase": "measure"})
    earlier.writer.close("complete", None)
    samples = pd.read_parquet(tmp_path / "samples.parquet")
    assert list(samples.system) == ["quorum"] * 3 + ["garage"]
    events = pd.read_parquet(tmp_path / "events.parquet")
    assert list(events.kind) == ["lab up", "impairment", "resumed"]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["attempts"], manifest["started"]) == (2, "then")

    aside = tmp_path / "attempt-1"
    assert sorted(path.name for path in (aside / "logs").iterdir()) == [
        *("garage-n1.log", "quorum-n1.log"),
    ]
    assert (aside / "summary.json").exists()
    name = "samples.jsonl" if how == "killed" else "samples.parquet"
    assert (aside / name).stat().st_size > 0


def test_a_system_of_which_nothing_completed_begins_anew(tmp_path: Path) -> None:
    killed(tmp_path, [])
    earlier = go_on(tmp_path, MANIFEST)
    earlier.writer.close("complete", None)
    assert len(pd.read_parquet(tmp_path / "samples.parquet")) == 0
    assert not (tmp_path / "calibration.json").exists()
    assert not earlier.calibrations


def test_being_killed_while_going_on_loses_nothing(tmp_path: Path) -> None:
    """Of every state that the steps of going on leave on disk, the next attempt makes the same."""
    killed(tmp_path, ["quorum"])
    for attempt in (2, 3, 4):
        earlier = go_on(tmp_path, MANIFEST)
        assert earlier.samples("quorum") == 2
        assert earlier.writer.manifest["attempts"] == attempt
        assert earlier.writer.lock is not None
        earlier.writer.lock.release()  # killed right here
        # As if it had been killed between two steps: both forms of a table, and half a file.
        (tmp_path / ".samples.jsonl.partial").write_text("half")
        (tmp_path / ".attempt.partial").mkdir()


def test_a_bundle_that_is_complete_or_in_use_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_write, "_WAIT_S", 0.2)
    bundle = begun(tmp_path, ["quorum"])
    with pytest.raises(UserError, match="Another run is writing to"):
        go_on(tmp_path, MANIFEST)
    bundle.close("complete", None)
    with pytest.raises(UserError, match="nothing left to measure"):
        go_on(tmp_path, MANIFEST)
    Lock(tmp_path).release()  # which it did not keep


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (None, "there is no bundle"),
        ("{", "cannot be read"),
        ('{"kind": "drill"}', "a bundle of kind drill; only studies and sweeps"),
        ("[]", "a bundle of kind None"),
    ],
)
def test_what_is_no_bundle_of_a_study_is_not_gone_on_with(
    tmp_path: Path, manifest: str | None, says: str
) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(UserError, match=says):
        read_unfinished(tmp_path)


def unfinished(**changes: Any) -> Unfinished:
    return Unfinished(Path("bundle"), MANIFEST | changes)


def test_a_study_that_differs_is_refused_and_the_difference_told() -> None:
    check_same_study(unfinished(), STUDY, None)
    check_same_study(unfinished(), STUDY, 7)
    check_same_study(unfinished(), STUDY.model_copy(update={"description": "Other words"}), None)
    other = STUDY.model_copy(update={"samples": 5, "nodes": 4})
    with pytest.raises(UserError, match="100 there, 5 here; nodes: nothing there, 4"):
        check_same_study(unfinished(), other, None)
    with pytest.raises(UserError, match="seed: 7 there, 8 here"):
        check_same_study(unfinished(), STUDY, 8)


def test_a_study_that_this_version_does_not_know_is_told() -> None:
    with pytest.raises(UserError, match="none to this version"):
        study_of(unfinished(study=STUDY.to_dict() | {"colour": "red"}))


def test_a_topology_that_changed_is_refused() -> None:
    known = topologies_of(unfinished())
    check_same_topologies(unfinished(), known)
    changed = known["one-site"].model_copy(update={"description": "four nodes"})
    with pytest.raises(UserError, match="topology one-site has changed"):
        check_same_topologies(unfinished(), {"one-site": changed})


def test_a_store_that_is_another_program_is_refused() -> None:
    check_same_stores(Path("bundle"), SYSTEMS[:1], SYSTEMS)
    newer = [SYSTEMS[0] | {"version": "2", "sha256": "quorum-2"}]
    with pytest.raises(UserError, match=r"system quorum is another program now: 1 .* before, 2 "):
        check_same_stores(Path("bundle"), SYSTEMS, newer)


def test_another_machine_is_told() -> None:
    from wanlat.experiments import machine_facts

    assert machine_remarks(machine_facts.collect()) == []
    (told,) = machine_remarks(machine_facts.collect() | {"kernel": "1.0"})
    assert "kernel 1.0, then" in told


def test_packets_are_recorded_as_they_were_to_be() -> None:
    wanted = CaptureWanted(limit_bytes=1 << 20, snap_bytes=99)
    assert capture_of(unfinished(requested={"capture": asdict(wanted)})) == wanted
    other = replace(wanted, snap_bytes=200)
    assert capture_of(unfinished(requested={"capture": asdict(other)})) == other != wanted
    assert capture_of(unfinished()) is None
