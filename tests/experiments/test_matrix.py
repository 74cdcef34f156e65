"""Sweeps: which points a study has, what is wrong with some, and in which order they are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wanlat.experiments.config.files import shipped
from wanlat.experiments.config.overrides import changed
from wanlat.experiments.config.study import Study, StudyError, load
from wanlat.experiments.matrix_points import Point, Points, in_order, points_of, seed_of
from wanlat.topologies.errors import UserError

TOP = "name: mine\ntopology: one-site\nendpoints: [GetObject, Put]\n"


def study(directory: Path, text: str = "") -> Study:
    file = directory / "study.yaml"
    file.write_text(TOP + text)
    return load(str(file))


def points(directory: Path, text: str) -> list[Point]:
    return points_of(study(directory, text))


def said(point: Point) -> tuple[str, dict[str, Any]]:
    return point.system, dict(point.values)


def mistakes(directory: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(StudyError) as caught:
        study(directory, text)
    return [(each.line, each.where, each.text) for each in caught.value.mistakes]


def test_a_grid_is_every_combination_on_every_system(tmp_path: Path) -> None:
    found = points(
        tmp_path, "systems: [quorum, garage]\nmatrix: {nodes: [1, 2], object_size: [1KiB, 1MiB]}\n"
    )
    assert [said(each) for each in found] == [
        (system, {"nodes": nodes, "object_size": size})
        for system in ("quorum", "garage")
        for nodes in (1, 2)
        for size in ("1KiB", "1MiB")
    ]
    first = found[0].study
    assert (first.nodes, first.object_size.bytes, first.systems) == (1, 1024, ["quorum"])
    assert first.matrix is None
    assert found[0].name == "quorum-nodes-1-object_size-1KiB"


def test_inner_parameters_are_dotted(tmp_path: Path) -> None:
    (ten, twenty) = points(tmp_path, "prefill: {writers: 3}\nmatrix: {prefill.objects: [10, 20]}\n")
    assert ten.study.prefill is not None
    assert (ten.study.prefill.objects, ten.study.prefill.writers) == (10, 3)
    assert twenty.name == "quorum-prefill.objects-20"


def test_an_option_is_swept_on_the_system_that_has_it(tmp_path: Path) -> None:
    found = points(
        tmp_path,
        "systems: [minio, garage]\nmatrix: {options.minio.drives: [1, 4], nodes: [2]}\n",
    )
    assert [said(each) for each in found] == [
        ("minio", {"options.minio.drives": 1, "nodes": 2}),
        ("minio", {"options.minio.drives": 4, "nodes": 2}),
        ("garage", {"nodes": 2}),
    ]
    assert found[2].study.options == {}


def test_several_grids_are_a_union_without_doubles(tmp_path: Path) -> None:
    found = points(
        tmp_path,
        "systems: [quorum, minio]\nmatrix:\n"
        "  - {nodes: [1, 2]}\n"
        "  - {nodes: [2, 4], systems: [minio]}\n",
    )
    assert [said(each) for each in found] == [
        *(("quorum", {"nodes": n}) for n in (1, 2)),
        *(("minio", {"nodes": n}) for n in (1, 2, 4)),
    ]


def test_the_same_value_written_differently_is_one_point(tmp_path: Path) -> None:
    found = points(tmp_path, "matrix: {object_size: [1KiB, 1024B]}\n")
    assert [said(each) for each in found] == [("quorum", {"object_size": "1KiB"})]


def test_the_order_is_shuffled_and_the_seed_gives_it_again(tmp_path: Path) -> None:
    found = points(tmp_path, "matrix: {nodes: [1, 2, 3, 4, 5, 6, 7, 8]}\n")
    order = [each.name for each in in_order(found, 7)]
    assert order == [each.name for each in in_order(found, 7)]
    assert order != [each.name for each in found]
    assert sorted(order) == sorted(each.name for each in found)
    assert order != [each.name for each in in_order(found, 8)]


def test_systems_are_asked_the_same_and_other_points_something_else(tmp_path: Path) -> None:
    found = points(tmp_path, "systems: [quorum, garage]\nmatrix: {nodes: [1, 2]}\n")
    seeds = {each.name: seed_of(each, 7) for each in found}
    assert seeds["quorum-nodes-1"] == seeds["garage-nodes-1"] != seeds["quorum-nodes-2"]


def test_a_seed_that_is_swept_is_the_points(tmp_path: Path) -> None:
    found = points(tmp_path, "seed: 3\nmatrix: {seed: [1, 2]}\n")
    assert [seed_of(each, 3) for each in found] == [1, 2]


@pytest.mark.parametrize(
    ("text", "line", "where", "says"),
    [
        ("matrix: {nodes: [1, 2, 1]}\n", 4, "matrix.nodes[2]", "given twice"),
        ("matrix: {nodes: [1, 0]}\n", 4, "matrix.nodes[1]", "`0` is too small"),
        ("matrix:\n  samples: [5]\n  node: [1]\n", 6, "matrix.node", "did you mean `nodes`?"),
        ("matrix: {name: [a, b]}\n", 4, "matrix.name", "cannot be varied: it names the bundle"),
        ("samples: 3\nmatrix: {samples.x: [1]}\n", 5, "matrix", "has no `x`"),
        ("matrix: {object_size.x: [1]}\n", 4, "matrix.object_size.x", "a mapping is not"),
        ("matrix: 3\n", 4, "matrix", "a mapping of parameters to lists of values"),
        ("matrix: []\n", 4, "matrix", "a mapping of parameters to lists of values"),
        ("matrix: {nodes: []}\n", 4, "matrix.nodes", "at least 1"),
        ("matrix: {systems: [garage]}\n", 4, "matrix.systems[0]", "none of the study's `systems`"),
        ("matrix: {options.minio.drives: [1]}\n", 4, "matrix", "that this grid does not measure"),
        ("round_trips: {}\nmatrix:\n  reclaim: [{}]\n", 6, "matrix.reclaim[0]", "of one kind"),
        (
            "matrix: {seed: [X]}\n".replace("X", ", ".join(map(str, range(10001)))),
            4,
            "matrix",
            "most",
        ),
    ],
)
def test_a_mistake_in_a_matrix_is_told_where_the_file_has_it(
    tmp_path: Path, text: str, line: int, where: str, says: str
) -> None:
    (found,) = mistakes(tmp_path, text)
    assert found[0] == line
    assert found[1].startswith(where)
    assert says in found[2]


def test_all_mistakes_are_told_each_once(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "matrix:\n  nodes: [0, 1]\n  samples: [1, x]\n  warmup: [1, 2]\n")
    assert [(line, where) for line, where, _ in found] == [
        (5, "matrix.nodes[0]"),
        (6, "matrix.samples[1]"),
    ]


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_study_has_points_and_survives_its_bundle(name: str) -> None:
    given = load(name)
    assert points_of(given)
    assert Study.model_validate(json.loads(json.dumps(given.to_dict()))) == given


def test_object_sizes_is_what_was_published_and_4_mib_from_both_sides() -> None:
    found = points_of(load("object-sizes"))
    sizes = sorted({each.study.object_size.bytes for each in found})
    assert sizes == [
        *(1024, 50 * 1024, 1024**2),
        *(4 * 1024**2 - 1024, 4 * 1024**2, 4 * 1024**2 + 1024),
        100 * 1024**2,
    ]
    assert {each.study.nodes for each in found} == {1, 2, 4}
    assert {each.system for each in found} == {"bob", "minio", "minio-nginx", "garage", "quorum"}


def test_a_parameter_that_is_set_is_swept_no_longer(tmp_path: Path) -> None:
    given = study(tmp_path, "matrix: {nodes: [1, 2], samples: [3, 4]}\n")
    made = changed(given, {"nodes": 5, "prefill.objects": 7})
    assert made.matrix == [{"samples": [3, 4]}]
    assert made.nodes == 5
    assert made.prefill is not None
    assert made.prefill.objects == 7
    assert changed(given, {"nodes": 5, "samples": 1}).matrix is None


def test_what_the_command_line_matrixs_replaces_what_the_study_does(tmp_path: Path) -> None:
    given = study(tmp_path, "matrix: [{nodes: [1, 2]}, {samples: [3]}]\n")
    assert changed(given, {}, {"nodes": [4, 8]}).matrix == [
        {"nodes": [4, 8]},
        {"samples": [3], "nodes": [4, 8]},
    ]
    assert changed(study(tmp_path), {}, {"systems": ["garage", "quorum"]}).systems == [
        *("garage", "quorum"),
    ]


def test_systems_that_are_chosen_choose_grids(tmp_path: Path) -> None:
    given = study(
        tmp_path,
        "systems: [minio, garage]\n"
        "matrix: [{systems: [minio], nodes: [1]}, {systems: [garage], nodes: [4]}]\n",
    )
    (only,) = points_of(changed(given, {"systems": ["garage"]}))
    assert said(only) == ("garage", {"nodes": 4})
    with pytest.raises(UserError, match="no grid of its matrix is for quorum"):
        changed(given, {"systems": ["quorum"]})


@pytest.mark.parametrize(
    ("settings", "axes", "says"),
    [
        ({"sample": 3}, {}, "sample: .*did you mean `samples`"),
        ({"samples": 0}, {}, "samples: `0` is too small"),
        ({"samples.x": 0}, {}, "`samples` is 100 here, so it has no `x`"),
        ({"nodes": 1}, {"nodes": [1, 2]}, "`nodes` is set and varied"),
        ({}, {"nodes": [1, "many"]}, r"matrix\[0\].nodes\[1\]"),
        ({}, {"name": ["a"]}, "cannot be varied"),
        ({"load.workers": 3, "round_trips.visits": 2}, {}, "a study is of one kind"),
        ({"budget.time": "5s", "warmup": 0}, {}, "judged from the warm-up"),
    ],
)
def test_a_mistake_on_the_command_line_is_told(
    tmp_path: Path, settings: dict[str, Any], axes: dict[str, list[Any]], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        changed(study(tmp_path), settings, axes)


def test_points_json_is_whole_after_every_step(tmp_path: Path) -> None:
    made = Points.create(tmp_path, points(tmp_path, "matrix: {nodes: [1, 2]}\n"))
    first = made.begins(made.entries[0])
    made.ends(first, "failed", "its store died")
    again = Points.read(tmp_path)
    assert again is not None
    assert again.entries == made.entries
    assert (again.entries[0].attempts, again.entries[0].status) == (1, "failed")
    assert [each.point for each in again.left()] == [0, 1]
    assert again.parameters == [{"name": "nodes", "values": [1, 2]}]
    (tmp_path / "points.json").write_text("{}")
    with pytest.raises(UserError, match=r"points\.json is no list of points"):
        Points.read(tmp_path)


def test_systems_are_points_where_they_are_asked_to_be(tmp_path: Path) -> None:
    made = changed(study(tmp_path), {}, {"systems": ["quorum", "garage"]})
    assert [said(each) for each in points_of(made)] == [("quorum", {}), ("garage", {})]
    assert made.matrix is not None


EXCLUDING = """matrix:
  nodes: [1, 2]
  object_size: [1KiB, 1MiB]
  exclude: [{nodes: 2, object_size: 1MiB}]
  include: [{nodes: 4, object_size: 8MiB}]
"""


def test_combinations_are_excluded_and_single_ones_included(tmp_path: Path) -> None:
    given = study(tmp_path, EXCLUDING)
    found = {(each.values["nodes"], each.values["object_size"]) for each in points_of(given)}
    assert found == {(1, "1KiB"), (2, "1KiB"), (1, "1MiB"), (4, "8MiB")}
    again = Study.model_validate(json.loads(json.dumps(given.to_dict())))
    assert points_of(again) == points_of(given)
    # What is set varies no longer, and neither does an exclusion count that names it.
    sizes = {each.values["object_size"] for each in points_of(changed(given, {"nodes": 2}))}
    assert sizes == {"1KiB", "1MiB", "8MiB"}


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (
            "matrix: {nodes: [1, 2], exclude: [{node: 1}]}\n",
            "matrix.exclude[0].node",
            "`node` does not vary here (did you mean `nodes`?)",
        ),
        ("matrix: {nodes: [1], include: [{nodes: 0}]}\n", "matrix.include[0].nodes[0]", "0"),
        ("matrix: {nodes: [1], exclude: [1]}\n", "matrix.exclude[0]", "excludes nothing"),
    ],
)
def test_a_mistake_in_what_is_included_or_excluded_is_told_where_it_is(
    tmp_path: Path, text: str, where: str, says: str
) -> None:
    (found,) = mistakes(tmp_path, text)
    assert found[:2] == (4, where)
    assert says in found[2]
