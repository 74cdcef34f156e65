"""Matrices: which points a study has, what is wrong with some, and in which order they are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wanlat.bundle.documents import Manifest
from wanlat.experiments.config.study import Study, changed, load
from wanlat.experiments.manifest import machine
from wanlat.experiments.matrix_points import (
    Point,
    StudyPoints,
    check_same_programs,
    in_order,
    points_of,
)
from wanlat.experiments.resume import Unfinished
from wanlat.experiments.session import CaptureWanted
from wanlat.topologies.errors import UserError
from wanlat.topologies.load import load as load_topology

TOP = "name: mine\ntopology: one-site\nendpoints: [GetObject, Put]\n"


def study(directory: Path, text: str = "") -> Study:
    file = directory / "study.yaml"
    file.write_text(TOP + text)
    return load(str(file))


def points(directory: Path, text: str) -> list[Point]:
    return points_of(study(directory, text))


def said(found: list[Point]) -> list[tuple[str, dict[str, Any]]]:
    return [(point.system, dict(point.values)) for point in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # every combination on every system
            "systems: [quorum, garage]\nmatrix: {nodes: [1, 2], object_size: [1KiB, 1MiB]}\n",
            [
                (system, {"nodes": nodes, "object_size": size})
                for system in ("quorum", "garage")
                for nodes in (1, 2)
                for size in ("1KiB", "1MiB")
            ],
        ),
        (  # an option varies on the system that has it
            "systems: [minio, garage]\nmatrix: {options.minio.drives: [1, 4], nodes: [2]}\n",
            [
                ("minio", {"options.minio.drives": 1, "nodes": 2}),
                ("minio", {"options.minio.drives": 4, "nodes": 2}),
                ("garage", {"nodes": 2}),
            ],
        ),
        (  # several grids are a union without doubles
            "systems: [quorum, minio]\n"
            "matrix: [{nodes: [1, 2]}, {nodes: [2, 4], systems: [minio]}]\n",
            [
                *(("quorum", {"nodes": n}) for n in (1, 2)),
                *(("minio", {"nodes": n}) for n in (1, 2, 4)),
            ],
        ),
        (  # the same value written differently is one point
            "matrix: {object_size: [1KiB, 1024B]}\n",
            [("quorum", {"object_size": "1KiB"})],
        ),
        (
            "systems: [quorum, garage]\n"
            "matrix:\n  nodes: [1, 2]\n  exclude: [{nodes: 2, systems: garage}]\n"
            "  include: [{nodes: 4, systems: garage}]\n",
            [
                *(("quorum", {"nodes": n}) for n in (1, 2)),
                *(("garage", {"nodes": n}) for n in (1, 4)),
            ],
        ),
        ("systems: [quorum, garage]\n", [("quorum", {}), ("garage", {})]),
    ],
)
def test_the_points_of_a_study(
    text: str, expected: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    given = study(tmp_path, text)
    assert said(points_of(given)) == expected
    again = Study.model_validate(json.loads(json.dumps(given.to_dict())))
    assert points_of(again) == points_of(given)


def test_a_point_is_a_study_of_its_own(tmp_path: Path) -> None:
    text = "systems: [minio, garage]\noptions: {minio: {drives: 2}}\nprefill: {writers: 3}\n"
    found = points(tmp_path, f"{text}matrix: {{prefill.objects: [10, 20]}}\n")
    assert [each.name for each in found[:2]] == [
        *("minio-prefill.objects-10", "minio-prefill.objects-20"),
    ]
    for point, options in ((found[0], {"minio": {"drives": 2}}), (found[2], {})):
        assert point.study.prefill is not None
        assert (point.study.prefill.objects, point.study.prefill.writers) == (10, 3)
        assert (point.study.systems, point.study.options) == ([point.system], options)
        assert point.study.matrix is None


def test_replicates_are_points_of_their_own_in_blocks(tmp_path: Path) -> None:
    text = "systems: [quorum, garage]\nmatrix: {nodes: [1, 2, 3]}\nreplicates: 3\n"
    found = points(tmp_path, text)
    assert len(found) == len({each.directory for each in found}) == 18
    assert {each.study.replicates for each in found} == {1}
    # Both systems are asked the same, and every replicate something else.
    seeds = {each.name: each.seed(7) for each in found}
    assert len(set(seeds.values())) == 9
    assert seeds["quorum-nodes-1-replicate-2"] == seeds["garage-nodes-1-replicate-2"]
    ordered = in_order(found, 7)
    assert [each.replicate for each in ordered] == [1] * 6 + [2] * 6 + [3] * 6
    blocks = [[each.name[:-1] for each in ordered[at : at + 6]] for at in (0, 6, 12)]
    assert sorted(blocks[0]) == sorted(blocks[1])
    assert blocks[0] != blocks[1]
    # No matrix is needed, and one cluster of each is no matrix.
    plain = study(tmp_path)
    assert not plain.has_points
    several = changed(plain, {"replicates": 2})
    assert several.has_points
    assert [each.name for each in points_of(several)] == [
        *("quorum-replicate-1", "quorum-replicate-2"),
    ]


def test_what_is_set_varies_no_longer_and_what_varies_replaces_the_studys(tmp_path: Path) -> None:
    given = study(tmp_path, "matrix: {nodes: [1, 2], samples: [3, 4]}\n")
    made = changed(given, {"nodes": 5, "prefill.objects": 7})
    assert said(points_of(made)) == [("quorum", {"samples": n}) for n in (3, 4)]
    assert made.nodes == 5
    assert made.prefill is not None
    assert made.prefill.objects == 7
    assert changed(given, {"nodes": 5, "samples": 1}).matrix is None
    union = study(tmp_path, "matrix: [{nodes: [1, 2]}, {samples: [3]}]\n")
    assert [values for _, values in said(points_of(changed(union, {}, {"nodes": [4, 8]})))] == [
        *({"nodes": n} for n in (4, 8)),
        *({"samples": 3, "nodes": n} for n in (4, 8)),
    ]
    excluding = study(
        tmp_path, "matrix: {nodes: [1, 2], samples: [3, 4], exclude: [{nodes: 2, samples: 4}]}\n"
    )
    assert len(points_of(excluding)) == 3
    # What is set varies no longer, and no exclusion counts that names it.
    assert len(points_of(changed(excluding, {"nodes": 2}))) == 2


def test_options_of_systems_that_are_not_measured_are_left_out_and_not_set(tmp_path: Path) -> None:
    given = study(
        tmp_path,
        "systems: [quorum, minio]\noptions: {minio: {parity: 99}}\n"
        "matrix: {options.minio.parity: [1, 2], options.quorum.api: [s3]}\n",
    )
    made = changed(given, {"systems": ["quorum"]})
    assert made.options == {}
    assert [point.values for point in points_of(made)] == [{"options.quorum.api": "s3"}]
    with pytest.raises(UserError, match="minio is not measured, only quorum"):
        changed(given, {"systems": ["quorum"], "options.minio.parity": 1})


STUDY = Study(
    name="mine",
    topology="one-site",
    endpoints=["GetObject"],
    systems=["quorum", "garage"],
)
SYSTEMS = [{"name": name, "version": "1", "sha256": f"{name}-1"} for name in STUDY.systems]


def unfinished(**changes: Any) -> Unfinished:
    manifest = {
        "schema_version": 2,
        "kind": "matrix",
        "status": "running",
        "study": STUDY.to_dict(),
        "topologies": {"one-site": load_topology("one-site").to_dict()},
        "seed": 7,
        "systems": SYSTEMS,
    }
    return Unfinished(Path("bundle"), Manifest.model_validate(manifest | changes))


def test_it_goes_on_as_it_was_begun_with_the_stores_that_it_was_begun_with() -> None:
    assert unfinished().batch == StudyPoints(STUDY)
    how = unfinished(requested={"capture": {"limit_bytes": 1 << 20, "snap_bytes": 99}}).how
    assert how["capture"] == CaptureWanted(limit_bytes=1 << 20, snap_bytes=99)
    assert (how["topologies"], how["seed"]) == ({"one-site": load_topology("one-site")}, 7)
    assert unfinished().how["capture"] is None
    check_same_programs(Path("bundle"), SYSTEMS[:1], SYSTEMS)
    newer = [SYSTEMS[0], SYSTEMS[1] | {"version": "2", "sha256": "garage-2"}]
    with pytest.raises(UserError, match=r"garage: its program, 1 .*garage-1.* against 2"):
        check_same_programs(Path("bundle"), SYSTEMS, newer)
    old: dict[str, Any] = {"warnings": [], "command": [], "started": "", "attempts": 1, **machine()}
    assert unfinished(**old).kept(SYSTEMS)["warnings"] == []
    (remark,) = unfinished(**old | {"kernel": "5.0"}).kept(SYSTEMS)["warnings"]
    assert "kernel 5.0, then " in remark
