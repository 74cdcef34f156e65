"""What resumes an incomplete matrix must be what began it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat.experiments import matrix_resume
from wanlat.experiments.config.study import Study
from wanlat.experiments.manifest import machine
from wanlat.experiments.matrix_resume import (
    Unfinished,
    capture_of,
    check_same_stores,
    check_same_study,
    check_same_topologies,
    machine_remarks,
    read_unfinished,
    study_of,
    topologies_of,
)
from wanlat.experiments.session import CaptureWanted
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
    "kind": "matrix",
    "status": "running",
    "study": STUDY.to_dict(),
    "topologies": {"one-site": load_topology("one-site").to_dict()},
    "seed": 7,
    "systems": SYSTEMS,
}


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (None, "is not a bundle: it has no manifest"),
        ("{", "manifest.json is damaged"),
        ('{"kind": "matrix"}', "is not a bundle"),
    ],
)
def test_what_is_no_bundle_of_a_matrix_is_not_resumed(
    tmp_path: Path, manifest: str | None, says: str
) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(UserError, match=says):
        read_unfinished(tmp_path)


def test_what_is_measured_in_one_go_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SimpleNamespace(kind="drill")
    monkeypatch.setattr(matrix_resume, "read_manifest", lambda _: kind)
    with pytest.raises(UserError, match="a bundle of kind drill, which is measured in one go"):
        read_unfinished(tmp_path)


def unfinished(**changes: Any) -> Unfinished:
    return Unfinished(Path("bundle"), MANIFEST | changes)


@pytest.mark.parametrize(
    ("study", "seed", "differs"),
    [
        ({}, None, None),
        ({}, 7, None),
        ({"description": "Other words"}, None, None),
        ({"samples": 5, "nodes": 4}, None, "100 there, 5 here; nodes: nothing there, 4"),
        ({}, 8, "seed: 7 there, 8 here"),
    ],
)
def test_a_study_that_differs_is_refused(
    study: dict[str, Any], seed: int | None, differs: str | None
) -> None:
    with pytest.raises(UserError, match=differs) if differs else nullcontext():
        check_same_study(unfinished(), STUDY.model_copy(update=study), seed)


def test_a_study_that_this_version_does_not_know_is_refused() -> None:
    with pytest.raises(UserError, match="none to this version"):
        study_of(unfinished(study=STUDY.to_dict() | {"colour": "red"}))


def test_a_topology_or_a_store_that_changed_is_refused() -> None:
    known = topologies_of(unfinished())
    check_same_topologies(unfinished(), known)
    changed = known["one-site"].model_copy(update={"description": "four nodes"})
    with pytest.raises(UserError, match="topology one-site has changed"):
        check_same_topologies(unfinished(), {"one-site": changed})
    check_same_stores(Path("bundle"), SYSTEMS[:1], SYSTEMS)
    newer = [SYSTEMS[0] | {"version": "2", "sha256": "quorum-2"}]
    with pytest.raises(UserError, match=r"system quorum is another program now: 1 .* before, 2 "):
        check_same_stores(Path("bundle"), SYSTEMS, newer)


def test_another_machine_is_named() -> None:
    assert machine_remarks(machine()) == []
    (told,) = machine_remarks(machine() | {"kernel": "1.0"})
    assert "kernel 1.0, then" in told


def test_packets_are_recorded_as_they_were_to_be() -> None:
    wanted = CaptureWanted(limit_bytes=1 << 20, snap_bytes=99)
    assert capture_of(unfinished(requested={"capture": asdict(wanted)})) == wanted
    assert capture_of(unfinished()) is None
