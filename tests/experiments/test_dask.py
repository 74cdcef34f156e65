"""Points that Dask's workers measure: one a machine, again elsewhere, whole or not at all.

And runs that end before they are done, and clusters that are there for one run.
"""

from __future__ import annotations

import signal
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from tests.command_line import here
from tests.experiments.commands import manifest_of, round_trips, samples_of, topology
from tests.experiments.dask_cluster import cluster_of, measured
from tests.experiments.drill.drills import await_that
from tests.experiments.matrices import points, statuses, study
from wanlat.experiments import dask_engine
from wanlat.experiments.matrix_points import PointEnded
from wanlat.topologies.errors import MachineError

DISTANT = """
name: test
topology: small.yaml
endpoints: [GetObject, PutObject]
warmup: 2
seed: 7
resources: false
max_network_error: 1s
"""


@pytest.mark.minutes
def test_two_runs_share_one_machine_and_never_measure_at_once(tmp_path: Path) -> None:
    file, bundles = study(tmp_path, 100, 2), [tmp_path / "a", tmp_path / "b"]
    with cluster_of(tmp_path / "dask", "able") as dask:
        dask.worker("spare", machine=False)
        runs = [dask.run(file, bundle) for bundle in bundles]
        for run in runs:
            _, said = run.communicate(timeout=600)
            assert run.returncode == 0, said
    assert [statuses(bundle) for bundle in bundles] == [["complete"] * 2] * 2
    spans = sorted(span for bundle in bundles for span in measured(bundle))
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    # Each had one waiting while the other's was measured.
    began = [measured(bundle)[0][0] for bundle in bundles]
    assert max(began) < max(span[0] for span in spans)
    for bundle in bundles:
        for point in points(bundle):
            assert manifest_of(bundle / point["directory"])["host"]


@pytest.mark.minutes
def test_a_point_whose_worker_is_killed_is_run_again_and_all_is_as_in_a_serial_run(
    tmp_path: Path,
) -> None:
    topology(tmp_path)
    file, bundle = study(tmp_path, 80, 3, DISTANT), tmp_path / "dask-bundle"
    with cluster_of(tmp_path / "dask", "one", "two") as dask:
        run = dask.run(file, bundle)
        await_that(lambda: len(dask.measuring()) > 0, run)
        killed = dask.measuring()[0]
        dask.workers.pop(killed).kill()
        _, said = run.communicate(timeout=600)
        assert run.returncode == 0, said
    assert f"the Dask worker on {manifest_of(bundle)['host']} died; it was run again" in said
    serial = tmp_path / "serial"
    done = here("run", str(file), "--out", str(serial))
    assert done.returncode == 0, done.stderr
    keys = ("name", "point", "system", "values", "directory", "status")
    planned = [[{key: each[key] for key in keys} for each in points(b)] for b in (bundle, serial)]
    assert planned[0] == planned[1]
    columns = ["endpoint", "phase", "placement", "object_bytes", "outcome"]
    for point in points(bundle):
        mine, other = bundle / point["directory"], serial / point["directory"]
        assert samples_of(mine)[columns].equals(samples_of(other)[columns])
        assert round_trips(mine, 20) == round_trips(other, 20)
    assert not list(bundle.glob(".*")) and not list(bundle.glob("points/*.attempt-*"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--scheduler", "local:2"], "Add --engine dask."),
        (["--engine", "dask", "--jobs", "2"], "as many points measured at once as there are"),
        (["--engine", "dask", "--scheduler", "local:x"], "give a number of workers"),
    ],
)
def test_what_dask_is_not_asked_for(options: list[str], says: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "bundle"))
    refused = here("run", str(study(tmp_path, 10)), *out, *options)
    assert (refused.returncode, says in refused.stderr) == (2, True), refused.stderr


def test_a_bundle_arrives_as_it_was_sent_or_not_at_all(tmp_path: Path) -> None:
    bundle, sent = tmp_path / "bundle", tmp_path / "sent"
    (sent / "p" / "logs").mkdir(parents=True)
    (sent / "p" / "manifest.json").write_text("{}")
    bundle.mkdir()
    packed = dask_engine.packed(sent)
    there = {"host": "h", "place": "/there/x1"}
    told = {**there, "ended": asdict(PointEnded("complete")), **packed}
    with pytest.raises(MachineError, match="came from h is not the bundle"):
        dask_engine.arrived({**told, "bundle": packed["bundle"][:-1]}, bundle)
    assert list(bundle.iterdir()) == []
    assert dask_engine.arrived(told, bundle) == PointEnded("complete")
    assert (bundle / "points/p/manifest.json").read_text() == "{}"
    assert (bundle / "points/p/logs").is_dir()
    assert [each.name for each in bundle.iterdir()] == ["points"]
    dead = PointEnded("failed", "It died. The whole log: /there/x1/points/p/logs/n1.log")
    (tmp_path / "other").mkdir()
    reason = dask_engine.arrived({**told, "ended": asdict(dead)}, tmp_path / "other").reason
    assert reason == f"on h: It died. The whole log: {tmp_path}/other/points/p/logs/n1.log"


@pytest.mark.minutes
def test_the_schedulers_death_leaves_what_is_complete_and_resume_goes_on(tmp_path: Path) -> None:
    file, bundle = study(tmp_path, 1500), tmp_path / "bundle"
    with cluster_of(tmp_path / "dask", "one") as dask:
        run = dask.run(file, bundle)
        await_that(lambda: "complete" in statuses(bundle) and len(dask.measuring()) > 0, run)
        dask.scheduler.kill()
        _, said = run.communicate(timeout=600)
        assert run.returncode == 1, said
        assert f"--scheduler {dask.address} is gone" in said
        again = f"wanlat run --resume {bundle} --engine dask --scheduler {dask.address}"
        assert f"`{again}` resumes it" in said and "or name another one" in said
        for each in dask.workers.values():  # without a scheduler it ends, and what it measured
            each.wait(timeout=600)
    assert statuses(bundle) == ["complete", "failed", "planned"]
    kept = bundle / points(bundle)[0]["directory"] / "samples.parquet"
    was = kept.stat()
    resumed = here("run", "--resume", str(bundle))
    assert resumed.returncode == 0, resumed.stderr
    assert statuses(bundle) == ["complete"] * 3
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (was.st_ino, was.st_mtime_ns)


@pytest.mark.minutes
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


@pytest.mark.minutes
def test_workers_of_this_machine_are_there_for_one_run(tmp_path: Path) -> None:
    file, bundle = study(tmp_path, 300), tmp_path / "bundle"
    made = here(
        *("run", str(file), "--out", str(bundle), "--engine", "dask", "--scheduler", "local:2")
    )
    assert made.returncode == 0, made.stderr
    assert statuses(bundle) == ["complete"] * 3
    assert manifest_of(bundle)["jobs"][-1]["jobs"] == 2


@pytest.mark.minutes
def test_workers_without_the_resource_measure_nothing(tmp_path: Path) -> None:
    with cluster_of(tmp_path / "dask") as dask:
        dask.worker("spare", machine=False)
        run = dask.run(study(tmp_path, 10), tmp_path / "bundle")
        _, said = run.communicate(timeout=600)
    assert run.returncode == 1
    assert f"dask worker {dask.address} --nthreads 1 --resources machine=1" in " ".join(
        said.split()
    )
