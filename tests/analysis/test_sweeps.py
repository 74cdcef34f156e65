"""A sweep on disk as one report: its points, what is missing of it, its tables and charts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_checks import assert_apart, texts_of
from rich.console import Console
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, GARAGE, MINIO

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.grid import Grid
from wanlat.analysis.report import report
from wanlat.analysis.summary import Summary, print_summary, summarize
from wanlat.analysis.sweep import bytes_of, is_sweep, number_of, read_sweep
from wanlat.bundle.errors import BundleError

pytestmark = pytest.mark.usefixtures("few_resamples")


def summary_of(path: Path, parameters: dict[str, list[Any]], **settings: Any) -> Summary:
    settings = {"systems": (MINIO,), **settings}
    write_sweep(path, parameters, **settings)
    return summarize(read_sweep(path))


def latencies(summary: Summary) -> Grid:
    (grid,) = summary.blocks["endpoints"].grids()
    return grid


def charts_of(summary: Summary) -> Any:
    return summary.blocks["endpoints"].charts()


def printed(summary: Summary) -> str:
    console = Console(file=io.StringIO(), width=400)
    print_summary(summary, console, verbose=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_points_stand_in_the_order_of_the_grid_however_they_were_run(tmp_path: Path) -> None:
    study = {"matrix": {"object_size": ["1MiB", "50KiB"], "topology": ["near", "far"]}}
    swept = {"object_size": ["1MiB", "50KiB"], "topology": ["far", "near"]}
    write_sweep(tmp_path / "s", swept, systems=(MINIO, BOB), study=study)
    sweep = read_sweep(tmp_path / "s")
    assert [(p.value("object_size"), p.value("topology"), p.system) for p in sweep.points] == [
        (size, where, system)
        for size in ("50KiB", "1MiB")  # numbers by size
        for where in ("near", "far")  # words as the study has them
        for system in ("minio", "bob")
    ]
    assert sorted(p.number for p in sweep.points) == list(range(8))
    assert [p.number for p in sweep.points] != list(range(8))


def test_a_parameter_that_is_not_swept_has_the_studys_value(tmp_path: Path) -> None:
    study = {"prefill": {"objects": 100}, "key_mode": "same"}
    write_sweep(tmp_path / "s", {"nodes": [1, 2]}, systems=(MINIO,), study=study)
    point = read_sweep(tmp_path / "s").points[1]
    assert (point.value("nodes"), point.value("prefill.objects")) == (2, 100)
    assert point.value("key_mode") == "same"
    assert point.value("nothing.like.it") is None


def test_what_is_missing_is_named_with_its_reason_and_in_no_figure(tmp_path: Path) -> None:
    statuses = {"minio-nodes-2": "failed", "minio-nodes-4": "planned", "minio-nodes-3": "running"}
    summary = summary_of(
        tmp_path / "s",
        {"nodes": [1, 2, 3, 4]},
        statuses=statuses,
        manifest={"status": "interrupted", "reason": "interrupted by the user"},
    )
    document = summary.to_json()
    assert {entry["point"] for entry in document["endpoints"]} == {"minio-nodes-1"}
    (how, missing, *_) = summary.notes
    assert how == "The matrix was interrupted (interrupted by the user)."
    assert missing.startswith("3 points of 4 missing, in no figure: ")
    for why in ("it failed: the store died", "it was killed while it ran", "it was never begun"):
        assert why in missing
    assert "wanlat run --resume" in missing
    entry = document["matrix"]
    assert entry["missing"] == ["minio-nodes-2", "minio-nodes-3", "minio-nodes-4"]
    assert [p["status"] for p in entry["points"]] == ["complete", "failed", "running", "planned"]


def test_a_point_that_cannot_be_read_is_missing_too(tmp_path: Path) -> None:
    write_sweep(tmp_path / "s", {"nodes": [1, 2]}, systems=(MINIO,))
    (tmp_path / "s" / "points" / "minio-nodes-2" / "samples.parquet").write_bytes(b"torn")
    (missing,) = read_sweep(tmp_path / "s").missing
    assert missing.name == "minio-nodes-2"
    assert "samples.parquet" in (missing.why_missing or "")


def test_a_sweep_of_which_nothing_is_there_is_reported_all_the_same(tmp_path: Path) -> None:
    made = summary_of(tmp_path / "s", {"nodes": [1]}, statuses={"minio-nodes-1": "planned"})
    written = report(tmp_path / "s")
    assert written.charts == () and written.tables_path is None
    assert json.loads(written.summary_path.read_text())["endpoints"] == []
    assert "no point is complete" in printed(made)


def test_the_table_has_a_row_for_every_endpoint_of_every_point(tmp_path: Path) -> None:
    summary = summary_of(
        tmp_path / "s", {"nodes": [1, 2], "key_mode": ["fresh", "same"]}, systems=(BOB, MINIO)
    )
    grid = latencies(summary)
    assert len(summary.endpoints) == len(grid.rows) == 2 * 2 * 2 * 2
    assert grid.headers[:4] == ("system", "nodes", "key_mode", "endpoint")
    assert len({row[:4] for row in grid.rows}) == len(grid.rows)
    assert [row[1:3] for row in grid.rows[:5:4]] == [("1", "fresh"), ("1", "same")]


def test_figures_of_a_point_are_those_of_its_own_report(tmp_path: Path) -> None:
    summary = summary_of(tmp_path / "s", {"nodes": [1, 2]})
    entry = summary.to_json()["endpoints"][0]
    own = summarize(read_bundle(tmp_path / "s" / "points" / entry["point"])).to_json()["endpoints"]
    assert {k: v for k, v in entry.items() if k not in ("point", "values")} in own
    assert entry["values"] == {"nodes": 1}


def test_the_chart_has_a_line_for_each_system_against_what_was_swept(tmp_path: Path) -> None:
    summary = summary_of(tmp_path / "s", {"nodes": [1, 2, 4]}, systems=(MINIO, GARAGE))
    charts = charts_of(summary)
    assert list(charts) == ["sweep"]
    assert_apart(charts["sweep"])
    assert {"GetObject", "PutObject", "1", "2", "4"} <= set(texts_of(charts["sweep"]))


def test_no_line_joins_medians_of_requests_that_take_one_of_two_times(tmp_path: Path) -> None:
    def values(_system: str, at: Any, endpoint: str, _size: int) -> Any:
        spread = np.linspace(0.95, 1.05, 40)
        return spread * (np.where(np.arange(40) % 2, 41, 1) if endpoint == "GetObject" else 2)

    (figure,) = charts_of(summary_of(tmp_path / "s", {"nodes": [1, 2, 4]}, values=values)).values()
    styles = [axes.get_lines()[-1].get_linestyle() for axes in figure.axes if axes.get_visible()]
    assert styles == ["None", "-"]


def test_words_are_drawn_too_and_a_third_parameter_has_charts_of_its_own(tmp_path: Path) -> None:
    swept = {"topology": ["near", "far"], "key_mode": ["fresh", "same"], "nodes": [1, 2]}
    charts = charts_of(summary_of(tmp_path / "s", swept))
    assert len(charts) == 2
    for figure in charts.values():
        assert_apart(figure)


def test_points_without_common_axes_have_a_table_and_no_chart(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_sweep(path, {"nodes": [1, 2], "options.minio.drives": [1, 4]}, systems=(MINIO, GARAGE))
    document = json.loads((path / "points.json").read_text())
    points = [p for p in document["points"] if p["system"] == "minio" or "drives-1" in p["name"]]
    for point in points:
        if point["system"] == "garage":
            del point["values"]["options.minio.drives"]
    (path / "points.json").write_text(json.dumps({**document, "points": points}))
    summary = summarize(read_sweep(path))
    assert charts_of(summary) == {}
    grid = latencies(summary)
    assert [row[2] for row in grid.rows if row[0].startswith("Garage")] == ["–"] * 4


def test_an_option_of_several_stores_is_one_column_and_each_has_its_own(tmp_path: Path) -> None:
    swept = {"options.minio.drives": [1, 4], "options.garage.drives": [2]}
    path = tmp_path / "s"
    write_sweep(path, swept, systems=(MINIO, GARAGE))
    sweep = read_sweep(path)
    (drives,) = sweep.parameters
    assert (drives.name, drives.values, drives.keys) == ("drives", (1, 2, 4), tuple(swept))
    found = {(point.system, point.value("drives")) for point in sweep.points}
    assert found == {("minio", 1), ("minio", 4), ("garage", 2)}
    assert latencies(summarize(sweep)).headers[:2] == ("system", "drives")


def test_what_is_swept_may_be_lists_and_mappings(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_sweep(path, {"nodes": [1, 2]}, systems=(MINIO,))
    document = json.loads((path / "points.json").read_text())
    values = [{"GetObject": 1.0}, {"PutObject": 1.0}]
    document["parameters"] = [{"name": "load.mix", "values": values}]
    for point, value in zip(document["points"], values, strict=True):
        point["values"] = {"load.mix": value}
    (path / "points.json").write_text(json.dumps(document))
    sweep = read_sweep(path)
    assert sweep.parameters[0].values == tuple(values)
    assert [point.value("load.mix") for point in sweep.points] == values


def test_an_option_that_is_called_as_something_else_keeps_its_whole_name(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_sweep(path, {"nodes": [1, 2], "options.minio.nodes": [4]}, systems=(MINIO,))
    assert [p.name for p in read_sweep(path).parameters] == ["nodes", "options.minio.nodes"]


def test_warnings_of_points_are_told_once_with_the_points(tmp_path: Path) -> None:
    summary = summary_of(
        tmp_path / "s", {"nodes": [1, 2]}, point_manifest={"warnings": ["The disk was slow."]}
    )
    assert "The disk was slow. (minio-nodes-1; minio-nodes-2)" in summary.notes


def test_only_a_sweep_is_read_as_one(tmp_path: Path) -> None:
    write_sweep(tmp_path / "s", {"nodes": [1]}, systems=(MINIO,))
    assert is_sweep(tmp_path / "s")
    assert not is_sweep(tmp_path / "s" / "points" / "minio-nodes-1")
    with pytest.raises(BundleError, match="not of a matrix"):
        read_sweep(tmp_path / "s" / "points" / "minio-nodes-1")
    (tmp_path / "s" / "points.json").write_text('{"parameters": [{}], "points": []}')
    with pytest.raises(BundleError, match="damaged"):
        read_sweep(tmp_path / "s")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("50KiB", 51_200), ("512kB", 512_000), ("4MiB", 2**22), (1024, 1024), ("near", None)],
)
def test_sizes_are_read_as_studies_write_them(value: Any, expected: int | None) -> None:
    assert bytes_of(value) == expected
    assert number_of(value) == expected
