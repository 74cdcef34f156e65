"""Runs on Dask that end before they are done, and clusters that are there for one run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.command_line import here
from tests.experiments.commands import manifest_of
from tests.experiments.dask_cluster import cluster_of
from tests.experiments.drill.drills import await_that
from tests.experiments.matrices import points, statuses, study

pytestmark = pytest.mark.minutes


def test_the_schedulers_death_leaves_what_is_complete_and_resume_goes_on(tmp_path: Path) -> None:
    file, bundle = study(tmp_path, 1500), tmp_path / "bundle"
    with cluster_of(tmp_path / "dask", "one") as dask:
        run = dask.run(file, bundle)
        await_that(lambda: "complete" in statuses(bundle) and len(dask.measuring()) > 0, run)
        dask.scheduler.kill()
        _, said = run.communicate(timeout=600)
        assert run.returncode == 1, said
        assert f"--scheduler {dask.address} is gone" in said
        assert f"`wanlat run --resume {bundle}` resumes it" in said
        for each in dask.workers.values():  # without a scheduler it ends, and what it measured
            each.wait(timeout=600)
    assert statuses(bundle) == ["complete", "failed", "planned"]
    kept = bundle / points(bundle)[0]["directory"] / "samples.parquet"
    was = kept.stat()
    resumed = here("run", "--resume", str(bundle))
    assert resumed.returncode == 0, resumed.stderr
    assert statuses(bundle) == ["complete"] * 3
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (was.st_ino, was.st_mtime_ns)


def test_ctrl_c_ends_what_workers_measure_and_they_go_on_for_others(tmp_path: Path) -> None:
    file, bundle = study(tmp_path, 20_000), tmp_path / "bundle"
    with cluster_of(tmp_path / "dask", "one", "two") as dask:
        run = dask.run(file, bundle)
        await_that(lambda: len(dask.measuring()) == 2, run)
        assert len(dask.commands()) == 2
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=600)
        assert run.returncode == 130, said
        assert statuses(bundle) == ["interrupted"] * 2 + ["planned"]
        await_that(lambda: dask.commands() == [])
        again = dask.run(study(tmp_path, 10), tmp_path / "again")
        _, said = again.communicate(timeout=600)
        assert again.returncode == 0, said


def test_workers_of_this_machine_are_there_for_one_run(tmp_path: Path) -> None:
    file, bundle = study(tmp_path, 300), tmp_path / "bundle"
    made = here(
        *("run", str(file), "--out", str(bundle), "--engine", "dask", "--scheduler", "local:2")
    )
    assert made.returncode == 0, made.stderr
    assert statuses(bundle) == ["complete"] * 3
    assert manifest_of(bundle)["jobs"][-1]["jobs"] == 2


def test_workers_without_the_resource_measure_nothing(tmp_path: Path) -> None:
    with cluster_of(tmp_path / "dask") as dask:
        dask.worker("spare", machine=False)
        run = dask.run(study(tmp_path, 10), tmp_path / "bundle")
        _, said = run.communicate(timeout=600)
    assert run.returncode == 1
    assert f"dask worker {dask.address} --nthreads 1 --resources machine=1" in " ".join(
        said.split()
    )
