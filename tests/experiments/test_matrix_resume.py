"""What resumes an incomplete matrix must be what began it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from wanlat.experiments import machine_facts
from wanlat.experiments.config.study import Study
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
        (None, "there is no bundle"),
        ("{", "cannot be read"),
        ('{"kind": "drill"}', "a bundle of kind drill, which is measured in one go"),
        ("[]", "a bundle of kind None"),
    ],
)
def test_what_is_no_bundle_of_a_matrix_is_not_resumed(
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
    assert machine_remarks(machine_facts.collect()) == []
    (told,) = machine_remarks(machine_facts.collect() | {"kernel": "1.0"})
    assert "kernel 1.0, then" in told


def test_packets_are_recorded_as_they_were_to_be() -> None:
    wanted = CaptureWanted(limit_bytes=1 << 20, snap_bytes=99)
    assert capture_of(unfinished(requested={"capture": asdict(wanted)})) == wanted
    other = replace(wanted, snap_bytes=200)
    assert capture_of(unfinished(requested={"capture": asdict(other)})) == other != wanted
    assert capture_of(unfinished()) is None
