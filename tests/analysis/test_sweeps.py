"""A matrix on disk as one report: its points, what is missing of it, its tables and charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers import changing
from chart_checks import assert_apart, texts_of

from tests.bundles import BOB, GARAGE, MINIO, write_sweep
from wanlat.analysis.compare import conditions
from wanlat.analysis.section import Grid
from wanlat.analysis.summary import Summary, summarize
from wanlat.bundle.errors import BundleError
from wanlat.bundle.matrix import Matrix, read_matrix

pytestmark = pytest.mark.usefixtures("few_resamples")


def sweep_of(path: Path, parameters: dict[str, list[Any]], **settings: Any) -> Matrix:
    write_sweep(path, parameters, **{"systems": (MINIO,), **settings})
    return read_matrix(path)


def latencies(summary: Summary) -> Grid:
    (grid,) = summary.blocks["endpoints"].grids()
    return grid


def charts_of(sweep: Matrix) -> Any:
    return summarize(sweep).blocks["endpoints"].charts()


def rewritten(path: Path, **changes: Any) -> Matrix:
    """The matrix in `path` after points.json was changed."""
    with changing(path / "points.json") as document:
        document.update(changes)
    return read_matrix(path)


def test_points_stand_in_the_order_of_the_study_however_they_were_run(tmp_path: Path) -> None:
    found = {"object_size": ["1MiB", "50KiB"], "topology": ["far", "near"]}
    listed = [{"name": "object_size", "values": ["1MiB", "50KiB"]}]
    listed += [{"name": "topology", "values": ["near", "far"]}]
    manifest = {"parameters": listed}
    sweep = sweep_of(tmp_path / "s", found, systems=(MINIO, BOB), manifest=manifest)
    assert [(p.value("object_size"), p.value("topology"), p.system) for p in sweep.points] == [
        (size, where, system)
        for size in ("50KiB", "1MiB")  # numbers by size
        for where in ("near", "far")  # words as the study has them
        for system in ("minio", "bob")
    ]
    run = [p.entry.point for p in sweep.points]
    assert sorted(run) == list(range(8)) != run


def test_a_value_is_the_points_else_the_studys(tmp_path: Path) -> None:
    study = {"prefill": {"objects": 100}, "key_mode": "same"}
    swept = {"nodes": [1, 2], "options.minio.drives": [1, 4], "options.minio.key_mode": ["x"]}
    sweep = sweep_of(tmp_path / "s", swept, study=study)
    point = sweep.points[-1]
    assert (point.value("nodes"), point.value("prefill.objects")) == (2, 100)
    assert (point.value("key_mode"), point.value("drives")) == ("x", 4)
    assert point.value("nothing.like.it") is None
    # An option that is called as something else that varies keeps its whole name.
    sweep = sweep_of(tmp_path / "t", {"nodes": [1, 2], "options.minio.nodes": [4]})
    assert [p.name for p in sweep.parameters] == ["nodes", "options.minio.nodes"]


def test_what_is_missing_is_named_with_its_reason_and_in_no_figure(tmp_path: Path) -> None:
    statuses = {"minio-nodes-2": "failed", "minio-nodes-4": "planned", "minio-nodes-3": "running"}
    manifest = {"status": "interrupted", "reason": "by the user"}
    path, nodes = tmp_path / "s", {"nodes": [1, 2, 3, 4, 5]}
    sweep_of(path, nodes, statuses=statuses, manifest=manifest)
    (path / "points" / "minio-nodes-5" / "samples.parquet").write_bytes(b"torn")
    summary = summarize(read_matrix(path))
    document = summary.to_json()
    assert {entry["point"] for entry in document["endpoints"]} == {"minio-nodes-1"}
    (how, missing, *_) = summary.notes
    assert how == "The matrix was interrupted (by the user)."
    assert missing.startswith("4 points of 5 missing, in no figure: ")
    for why in ("failed: the store died", "killed", "never begun", "samples.parquet is damaged"):
        assert why in missing
    entry = document["matrix"]
    assert entry["missing"] == [f"minio-nodes-{nodes}" for nodes in (2, 3, 4, 5)]
    said = ["complete", "failed", "running", "planned", "complete"]
    assert [p["status"] for p in entry["points"]] == said


def test_the_chart_has_a_line_for_each_system_where_medians_are_of_one_mode(tmp_path: Path) -> None:
    def values(_system: str, at: Any, endpoint: str, _size: int) -> Any:
        spread = np.linspace(0.95, 1.05, 40)
        return spread * (np.where(np.arange(40) % 2, 41, 1) if endpoint == "GetObject" else 2)

    nodes = {"nodes": [1, 2, 4]}
    charts = charts_of(sweep_of(tmp_path / "s", nodes, systems=(MINIO, GARAGE), values=values))
    assert list(charts) == ["sweep"]
    assert_apart(charts["sweep"])
    assert {"GetObject", "PutObject", "1", "2", "4"} <= set(texts_of(charts["sweep"]))
    panels = [axes for axes in charts["sweep"].axes if axes.get_visible()]
    assert [axes.get_lines()[-1].get_linestyle() for axes in panels] == ["None", "-"]
    assert any("No line joins" in text for text in texts_of(charts["sweep"]))


def test_a_chart_of_lines_alone_has_no_word_on_marks_that_none_joins(tmp_path: Path) -> None:
    summary = summarize(sweep_of(tmp_path / "s", {"nodes": [1, 2, 4]}))
    texts = texts_of(summary.blocks["endpoints"].charts()["sweep"])
    assert any(text.startswith("Median · ") for text in texts)
    assert not any("No line joins" in text for text in texts)


def test_a_third_parameter_has_charts_of_its_own_and_no_common_axes_none(tmp_path: Path) -> None:
    swept = {"topology": ["near", "far"], "key_mode": ["fresh", "same"], "nodes": [1, 2]}
    charts = charts_of(sweep_of(tmp_path / "s", swept))
    assert len(charts) == 2
    for figure in charts.values():
        assert_apart(figure)
    path, drives = tmp_path / "t", "options.minio.drives"
    sweep_of(path, {"nodes": [1, 2], drives: [1, 4]}, systems=(MINIO, GARAGE))
    points = json.loads((path / "points.json").read_text())["points"]
    points = [p for p in points if p["system"] == "minio" or "drives-1" in p["name"]]
    for point in points:
        if point["system"] == "garage":
            del point["values"][drives]
    sweep = rewritten(path, points=points)
    assert charts_of(sweep) == {}
    rows = latencies(summarize(sweep)).rows
    assert [row[2] for row in rows if row[0].startswith("Garage")] == ["–"] * 4


def test_what_a_point_warns_of_is_said_once(tmp_path: Path) -> None:
    path, text = tmp_path / "s", "minio: the network was off"
    sweep_of(path, {"nodes": [1, 2]}, manifest={"warnings": [f"minio-nodes-1: {text}", "hot"]})
    with changing(path / "points" / "minio-nodes-1" / "manifest.json") as manifest:
        manifest["warnings"] = [text]
    notes = summarize(read_matrix(path)).to_json()["notes"]
    assert [each for each in notes if "off" in each or each == "hot"] == [
        "hot",
        f"{text} (minio-nodes-1)",
    ]


def test_clusters_of_one_mean_are_of_one_program(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = {"name": "minio", "version": MINIO[1], "files": {"system.yaml": "a"}}
    sweep = sweep_of(
        *(path, {"nodes": [1, 2], "replicate": [1, 2]}), point_manifest={"systems": [store]}
    )
    assert sweep.mixed_programs == {}
    with changing(path / "points" / "minio-nodes-2-replicate-2" / "manifest.json") as manifest:
        manifest["systems"][0]["files"] = {"system.yaml": "b"}
    mixed = read_matrix(path)
    assert mixed.mixed_programs == {"minio": ["`system.yaml`"]}
    assert any("`system.yaml`" in note for note in summarize(mixed).to_json()["notes"])


def test_clusters_of_several_programs_are_not_compared_as_one(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_sweep(path, {"replicate": [1, 2]}, systems=(MINIO,))
    conditions.read(path)
    for number in (1, 2):
        with changing(path / "points" / f"minio-replicate-{number}" / "manifest.json") as manifest:
            manifest["systems"][0]["sha256"] = f"{number}" * 64
    with pytest.raises(BundleError, match="minio: its program"):
        conditions.read(path)
