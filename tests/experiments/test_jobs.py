"""Points of a matrix side by side: what comes of them, of a worker that dies, and of Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here
from tests.experiments.commands import manifest_of, samples_of
from tests.experiments.drill.drills import await_that
from tests.experiments.matrices import begin, is_measuring, points, statuses, study
from tests.processes import children, said
from wanlat.experiments import workers
from wanlat.experiments.config.study import load as load_study
from wanlat.experiments.matrix import run_matrix
from wanlat.experiments.matrix_points import PointEnded, StudyPoints, prepare_points
from wanlat.experiments.session import Report, silent
from wanlat.experiments.workers import ADJUST_INTERVAL_S, Jobs, LatenessWatch


def workers_of(run: subprocess.Popen[str]) -> list[int]:
    """The processes of the workers of a run."""
    mine = children(run.pid)
    return [pid for pid in mine if b"experiments.worker" in said(pid, "cmdline")]


@pytest.mark.minutes
def test_points_side_by_side_are_what_they_are_one_by_one(tmp_path: Path) -> None:
    file = study(tmp_path, 200)
    for name, jobs in (("serial", "1"), ("jobs", "2")):
        done = here("run", str(file), "--out", str(tmp_path / name), "--jobs", jobs)
        assert done.returncode == 0, done.stderr
    for one, other in zip(points(tmp_path / "serial"), points(tmp_path / "jobs"), strict=True):
        assert (one["name"], other["status"], other["attempts"]) == (other["name"], "complete", 1)
        asked = [samples_of(tmp_path / run / one["directory"]) for run in ("serial", "jobs")]
        columns = ["endpoint", "phase", "object_bytes", "outcome"]
        assert asked[0][columns].equals(asked[1][columns])
    assert [each["jobs"] for each in manifest_of(tmp_path / "jobs")["jobs"]] == [2]
    began = [point["began"] for point in points(tmp_path / "jobs")]
    assert began == sorted(began)


@pytest.mark.minutes
def test_a_worker_that_is_killed_costs_its_point_alone(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    run = begin(str(study(tmp_path, 3000)), "--out", str(bundle), "--jobs", "2")
    await_that(lambda: is_measuring(bundle, 0) and is_measuring(bundle, 1), run)
    os.kill(min(workers_of(run)), signal.SIGKILL)
    _, said = run.communicate(timeout=300)
    assert run.returncode == 1, said
    assert sorted(statuses(bundle)) == ["complete"] * 2 + ["failed"]
    (failed,) = (each for each in points(bundle) if each["status"] == "failed")
    assert "exit code -9" in failed["reason"]
    resumed = here("run", "--resume", str(bundle), "--jobs", "2")
    assert resumed.returncode == 0, resumed.stderr
    assert statuses(bundle) == ["complete"] * 3


@pytest.mark.minutes
def test_ctrl_c_ends_all_at_once_and_keeps_what_is_complete(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    run = begin(str(study(tmp_path, 20_000, 5)), "--out", str(bundle), "--jobs", "3")
    await_that(lambda: all(is_measuring(bundle, place) for place in range(3)), run)
    mine = workers_of(run)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert statuses(bundle) == ["interrupted"] * 3 + ["planned"] * 2
    for point in points(bundle)[:3]:
        assert manifest_of(bundle / point["directory"])["status"] == "interrupted"
        assert len(samples_of(bundle / point["directory"])) > 10
    assert len(mine) == 3 and not any(Path(f"/proc/{pid}").exists() for pid in mine)


def test_auto_adds_while_calm_and_takes_back_when_busy_or_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, spent = [0.0], [0, 0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(workers, "_spent", lambda: (spent[0], spent[1]))
    share_late = [0.0]
    monkeypatch.setattr(LatenessWatch, "late_share", lambda *_: share_late[0])
    jobs = Jobs(None)

    def after(busy: float, running: int, late: float = 0.0) -> int:
        clock[0] += ADJUST_INTERVAL_S
        spent[0] += 100
        spent[1] += round(100 * (1 - busy))
        share_late[0] = late
        at_work = {Path(str(number)): 2.0 for number in range(running)}
        assert jobs.adjust(at_work)
        assert not jobs.adjust(at_work)
        return jobs.allowed

    assert jobs.allowed == 1
    assert [after(0.1, 1), after(0.3, 2), after(0.3, 2)] == [2, 3, 3]  # the third is not there yet
    assert [after(0.7, 3), after(0.95, 3), after(0.95, 3), after(0.95, 1)] == [3, 2, 2, 1]
    assert [after(0.2, 1), after(0.2, 2, 0.2), after(0.2, 2, 0.5)] == [2, 2, 1]
    assert [each["jobs"] for each in jobs.history] == [1, 2, 3, 2, 1, 2, 1]
    assert jobs.history[-1]["late"] == 0.5
    fixed = Jobs(4)
    clock[0] += ADJUST_INTERVAL_S
    assert fixed.adjust({}) and fixed.allowed == 4


def test_auto_waits_for_points_to_end_before_it_runs_many(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(workers.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(workers, "_spent", lambda: (round(100 * clock[0]), round(99 * clock[0])))
    monkeypatch.setattr(workers, "cores", lambda: 2)
    jobs, begun = Jobs(None), 0

    def after(ended: int) -> int:
        """A minute later, in which as many ran as were allowed: of all, so many have ended."""
        nonlocal begun
        for _ in range(30):
            clock[0] += ADJUST_INTERVAL_S
            begun = max(begun, ended + jobs.allowed)
            assert jobs.adjust({Path(str(number)): 2.0 for number in range(ended, begun)})
        return jobs.allowed

    assert [after(0), after(0), after(1), after(4), after(40)] == [6, 6, 7, 10, 16]


def test_what_is_niced_counts_as_idle(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 400 5 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    assert workers._spent(stat) == (576, 425)


def test_lateness_is_the_share_of_time_in_which_networks_were_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, lines = [0], tmp_path / "lateness.jsonl"
    monkeypatch.setattr(workers.time, "monotonic_ns", lambda: now[0])
    watch = LatenessWatch()

    def after(*late_ms: tuple[float, float], allowed_ms: float = 2.0, more: str = "") -> float:
        """Two seconds later, in which that was written: seconds, and how late it was."""
        now[0] += 2 * 10**9
        bins = [{"start_ns": round(s * 1e9), "max_ns": round(ms * 1e6)} for s, ms in late_ms]
        with lines.open("a") as file:
            file.write("".join(f"{json.dumps(each)}\n" for each in bins) + more)
        other = tmp_path / "not yet there"
        return watch.late_share({tmp_path: allowed_ms, other: allowed_ms})

    assert after((0.1, 5), (0.2, 9), (1.1, 1.9)) == 1 / 8  # one of four half seconds, of two labs
    assert after() == 0.0, "nothing is read twice"
    assert after((4.1, 5), (4.6, 5), (5.1, 5), (5.6, 5), more='{"start_ns"') == 1 / 2
    assert after(allowed_ms=25.0) == 0.0
    # The point is begun again: its file is another one, and shorter.
    lines.rename(tmp_path / "of the attempt before")
    assert after((10.1, 5), allowed_ms=2.0) == 1 / 8


class Ends(Jobs):
    """Measures nothing: each attempt at a point ends as is told, after those complete."""

    def __init__(self, told: dict[str, list[PointEnded]]) -> None:
        super().__init__(1)
        self._told = told
        self.began: list[str] = []

    def runner(self) -> Any:
        return self

    is_alive = True

    def run(self, bundle: Path, point: str, _: Report) -> PointEnded:
        self.began.append(point)
        directory = bundle / "points" / point
        directory.mkdir(parents=True)
        ended = self._told[point].pop(0) if self._told.get(point) else PointEnded("complete")
        (directory / "manifest.json").write_text(json.dumps({"status": ended.status}))
        return ended

    def interrupt(self) -> None:
        raise AssertionError("nothing is interrupted")

    def close(self) -> None:
        pass


LATE = PointEnded("failed", "The machine was late.", is_late=True)
BUSY = PointEnded("complete", is_late=True, warnings=["It was too busy."])
WRONG = PointEnded("failed", "The network is wrong.")


@pytest.mark.parametrize(
    ("attempts", "begun", "status"),
    [
        ([LATE], 2, "complete"),
        ([LATE, LATE], 3, "complete"),
        ([LATE, LATE, LATE], 3, "failed"),
        ([WRONG], 1, "failed"),
        ([LATE, WRONG], 2, "failed"),
        ([BUSY], 2, "complete"),
        ([BUSY, BUSY, BUSY], 3, "complete"),
    ],
)
def test_a_point_at_which_the_machine_was_late_is_begun_again_after_the_others(
    attempts: list[PointEnded], begun: int, status: str, tmp_path: Path
) -> None:
    batch = StudyPoints(load_study(str(study(tmp_path, 1))))
    prepared = prepare_points(batch, directory=tmp_path / "bundle")
    first, *others = (point.name for point in prepared.points)
    engine = Ends({first: [*attempts]})
    outcome = run_matrix(prepared, silent, engine=engine)
    assert engine.began == [first, *others, *[first] * (begun - 1)]
    assert (outcome.status, outcome.complete) == (status, 3 if status == "complete" else 2)
    assert (prepared.points[0].status, prepared.points[0].attempts) == (status, begun)
    again = min(sum(each.is_late for each in attempts), begun - 1)
    assert [first in each for each in outcome.remarks] == [True] * again
    is_said = [first in each for each in outcome.warnings if "busy" in each]
    assert is_said == [True] * (attempts == [BUSY] * 3), "of the attempt that counts"
    aside = [f"{first}.attempt-{number}" for number in range(1, begun)]
    directories = {each.name for each in (tmp_path / "bundle" / "points").iterdir()}
    assert directories == {first, *others, *aside}
