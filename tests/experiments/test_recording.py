"""The bundle of a run that ends by an error that nothing foresaw says so, and has the traceback."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.points.__main__ import simulated_points
from tests.emulator.plans import mesh, ms
from tests.experiments.commands import manifest_of
from wanlat.bundle.write import claim_directory, write_document
from wanlat.experiments.config.study import Study
from wanlat.experiments.manifest import beginning
from wanlat.experiments.matrix import run_matrix
from wanlat.experiments.matrix_points import StudyPoints, prepare_points
from wanlat.experiments.session import LabSetup, Recording, Session, silent
from wanlat.experiments.workers import Jobs, Worker
from wanlat.topologies.errors import UserError


def recording(directory: Path) -> Recording:
    return Recording(directory, {**beginning("study", 1), "study": {"name": "mine"}})


def test_an_internal_error_is_in_the_manifest_with_its_traceback(tmp_path: Path) -> None:
    def work() -> None:
        write_document(tmp_path, None)  # type: ignore[arg-type]  # a mistake of ours

    bundle = tmp_path / "bundle"
    with pytest.raises(AttributeError):
        recording(bundle).run(work)
    manifest = manifest_of(bundle)
    assert (manifest["status"], manifest["ended"] is not None) == ("failed", True)
    assert "AttributeError" in manifest["reason"] and "bundle/write.py:" in manifest["reason"]
    assert "AttributeError" in (bundle / "traceback.txt").read_text()


def test_an_interruption_that_has_a_reason_is_recorded_with_it(tmp_path: Path) -> None:
    for number, (error, reason) in enumerate(
        [
            (KeyboardInterrupt(), "interrupted by the user"),
            (KeyboardInterrupt("interrupted: its terminal was closed"), None),
        ]
    ):

        def work(raised: KeyboardInterrupt = error) -> None:
            raise raised

        outcome = recording(tmp_path / str(number)).run(work)
        assert outcome.status == "interrupted"
        assert manifest_of(tmp_path / str(number))["reason"] == (reason or str(error))


def test_an_internal_error_of_a_matrix_is_in_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise ZeroDivisionError("7")

    monkeypatch.setattr(Jobs, "adjust", fail)
    keys = {"name": "many", "topology": "one-site", "nodes": 1, "endpoints": ["GetObject"]}
    study = Study.model_validate({**keys, "matrix": {"object_size": [1, 2]}})
    with simulated_points(), pytest.raises(ZeroDivisionError):
        prepared = prepare_points(StudyPoints(study), directory=tmp_path / "bundle")
        run_matrix(prepared, silent, jobs=2)
    manifest = manifest_of(tmp_path / "bundle")
    assert (manifest["status"], "ZeroDivisionError: 7" in manifest["reason"]) == ("failed", True)
    assert "ZeroDivisionError" in (tmp_path / "bundle" / "traceback.txt").read_text()


def test_a_worker_reports_what_it_cannot_read_whatever_else_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('Welcome to this machine')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    worker = Worker()
    try:
        ended = worker.run(tmp_path / "no-bundle", "point", silent)
        assert (ended.status, worker.is_alive) == ("failed", True)
        assert "no-bundle" in str(ended.reason)
    finally:
        worker.close()


def test_runs_of_the_same_second_have_a_directory_each(tmp_path: Path) -> None:
    wanted = tmp_path / "results" / "mine-20250101-120000"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(claim_directory, [wanted] * 24))
    assert len({*made}) == 24 and wanted in made
    assert all(each.is_dir() and each.parent == wanted.parent for each in made)


def test_a_directory_that_cannot_be_made_has_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(UserError, match="--out"):
        claim_directory(tmp_path / "results" / "mine")


def test_programs_of_a_lab_write_into_the_bundle_where_records_go_and_nowhere_else(
    tmp_path: Path,
) -> None:
    recorded = recording(tmp_path / "bundle")
    setup = LabSetup(name="toy", plan=mesh(2, wan=ms(1)), client="n1", seed=1, backend="wire")
    script = 'cd "$0"; echo kept >records/load; ! touch file logs/file; ! ln -s / logs/link'

    def work() -> None:
        with Session(recorded, setup).lab(is_proved=False) as lab:
            done = lab.run("n1", ["sh", "-ec", script, str(tmp_path / "bundle")])
            assert done.returncode == 0, done.stderr

    recorded.run(work)
    assert (tmp_path / "bundle" / "records" / "load").read_text() == "kept\n"
