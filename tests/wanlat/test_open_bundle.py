"""`wanlat.open_bundle`: frames, figures and charts of every kind of bundle; the notebook."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from wanlat import BundleError, open_bundle
from wanlat.analysis.stats import intervals
from wanlat.bundle.documents import SCHEMA_VERSION

STORED = Path(__file__).parents[1] / "data" / "bundles" / str(SCHEMA_VERSION)
NOTEBOOK = Path(__file__).parents[2] / "examples" / "open-a-bundle.ipynb"


@pytest.fixture(autouse=True)
def _few_resamples() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "RESAMPLES", 499)
        yield


def test_a_run_is_frames_figures_and_charts() -> None:
    run = open_bundle(STORED / "study")
    assert (run.manifest.kind, run.manifest.study and run.manifest.study.name) == ("study", "small")
    of = run.samples.groupby(["phase", "endpoint"], observed=True).size()
    assert of["measure"].to_dict() == {"GetObject": 12, "PutObject": 12}
    endpoints = run.figures["endpoints"].set_index("endpoint")
    assert list(endpoints["ok"]) == [12, 12]
    (typed,) = [each for each in run.report.endpoints if each.endpoint == "PutObject"]
    assert endpoints["median_ms"]["PutObject"] == typed.median_ms
    nodes = run.figures["resources.systems.nodes"]
    assert list(nodes["system"]) == ["quorum"] * 3 and set(nodes["name"]) == {"n1", "n2", "n3"}
    assert set(run.charts()) == {"endpoint-latency", "calibration"}
    assert {"t_ns", "kind", "subject"} <= set(run.table("events").columns)
    assert run.points == {}
    with pytest.raises(BundleError, match=r"has no table load\. It has: events, resources, samp"):
        run.table("load")
    assert not [*(STORED / "study").rglob("report.html")]


def test_a_matrix_names_what_varies() -> None:
    matrix = open_bundle(STORED / "matrix")
    assert len(matrix.points) == 2
    samples = matrix.samples
    assert samples.groupby("point").size().to_dict() == {
        name: len(point.samples) for name, point in matrix.points.items()
    }
    sizes = matrix.figures["sizes.entries"]
    assert set(sizes["object_bytes"]) == {1024, 65536} and len(sizes) == 4
    assert set(matrix.figures["endpoints"]["object_size"]) == {"1KiB", "64KiB"}


def test_a_drill_has_its_phases_and_round_trips_their_modes() -> None:
    phases = open_bundle(STORED / "drill").figures["drill.phases"]
    assert list(phases["name"]) == ["before", "during", "after"]
    assert phases["writes.attempted"].sum() > 50
    modes = open_bundle(STORED / "round-trips").figures["round_trips.modes"]
    assert {"system", "endpoint", "placement", "share", "round_trips"} <= set(modes.columns)


def test_several_drills_are_one_below_the_other(tmp_path: Path) -> None:
    (tmp_path / "points").mkdir()
    (tmp_path / "manifest.json").write_text('{"schema_version": 2, "kind": "drills"}')
    points = []
    for number, name in enumerate(("one", "other")):
        shutil.copytree(STORED / "drill", tmp_path / "points" / name)
        points.append(
            f'{{"point": {number}, "name": "{name}", "system": "quorum", "values": {{}}, '
            f'"directory": "points/{name}", "status": "complete"}}'
        )
    document = f'{{"parameters": [], "points": [{",".join(points)}]}}'
    (tmp_path / "points.json").write_text(document)
    drills = open_bundle(tmp_path)
    assert list(drills.figures["drill.phases"]["point"]) == ["one"] * 3 + ["other"] * 3
    assert set(drills.samples["point"]) == {"one", "other"}
    with pytest.raises(BundleError, match="each of its `points` has a report"):
        _ = drills.report


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"it has no manifest\.json"):
        open_bundle(tmp_path)


@pytest.mark.minutes
def test_the_notebook_runs() -> None:
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    ).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code)
    kinds = {kind for cell in code for each in cell.outputs for kind in each.get("data", ())}
    assert {"text/html", "image/png"} <= kinds
