"""A drill that cannot be carried out says why, and how far it got."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from tests.experiments.drill.drills import SHORT, drill
from wanlat.analysis.drill.read import read_drill
from wanlat.emulator.faults.fault import Fault, FaultFailed, Roles, Scene
from wanlat.emulator.faults.timeline import Step
from wanlat.experiments import session
from wanlat.experiments.drill import runner
from wanlat.experiments.drill.prepare import PreparedDrill, prepare
from wanlat.experiments.drill.timing import Overdue, within
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Plan

SHORTEST = SHORT.replace(
    "before: 1s, during: 2500ms, after: 2s", "before: 500ms, during: 1s, after: 500ms"
)


@pytest.fixture(autouse=True)
def _unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out calibration: nobody looks at times here."""
    monkeypatch.setattr(session, "prove", lambda *_, **__: None)


def prepared(directory: Path, text: str, head: str = SHORTEST) -> PreparedDrill:
    return prepare(drill(directory, text, head), system="quorum", directory=directory / "bundle")


class Stuck(Fault):
    """A fault that cannot be applied, or not be undone."""

    kind = "stuck"

    def __init__(self, fails_at: str) -> None:
        self._fails_at = fails_at

    @classmethod
    def parse(cls, target: object, settings: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        raise NotImplementedError

    @property
    def subject(self) -> str:
        return "n1"

    def begin(self, scene: Scene) -> int:  # noqa: ARG002
        return self._now("begin")

    def end(self, scene: Scene) -> int:  # noqa: ARG002
        return self._now("end")

    def _now(self, what: str) -> int:
        if what == self._fails_at:
            raise FaultFailed("it is stuck")
        return time.monotonic_ns()


@pytest.mark.parametrize("at", ["begin", "end"])
def test_a_fault_that_fails_fails_the_drill(at: str, tmp_path: Path) -> None:
    made = prepared(tmp_path, "faults: [{kill: victim, for: 800ms}]\n")
    stuck = Step(2, Stuck(at), 600 * 10**6, 700 * 10**6)
    outcome = runner.run(replace(made, steps=(*made.steps, stuck)))
    assert (outcome.status, outcome.reached) == ("failed", "during")
    assert outcome.reason is not None
    assert "it is stuck" in outcome.reason
    read = read_drill(outcome.directory)
    assert "it is stuck" in str(read.reason)
    # Where the machine stood still, it may have come first; what was begun was undone.
    assert all(each.end_s is not None for each in read.faults if each.kind == "kill")
    assert not read.passed


@pytest.mark.minutes
def test_nodes_that_do_not_come_back_are_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wanlat.emulator.binaries import binary

    once = tmp_path / "quorum"
    once.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = serve ] || exec {binary("quorum")} "$@"\n'
        f'mkdir {tmp_path}/was-"$3" || {{ echo "no second time"; exit 3; }}\n'
        f'exec {binary("quorum")} "$@"\n'
    )
    once.chmod(0o755)
    monkeypatch.setenv("WANLAT_QUORUM_BINARY", str(once))
    made = prepared(tmp_path, "faults: [{stop: victim, for: 300ms}]\n")
    outcome = runner.run(made)
    assert (outcome.status, outcome.reached) == ("complete", "done")
    assert any("Not every node served after the restart" in each for each in outcome.warnings)
    read = read_drill(outcome.directory)
    assert (read.durability.verdict, read.durability["lost"]) == ("unknown", 0)
    assert not read.passed
    assert {mark.subject for mark in read.deaths} == {"n1", "n2", "n3"}


def test_a_store_that_is_never_ready_ends_the_drill_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = tmp_path / "quorum"
    hangs.write_text("#!/bin/sh\n[ $1 = --version ] && echo 'quorum 9' && exit\nexec sleep 600\n")
    hangs.chmod(0o755)
    monkeypatch.setenv("WANLAT_QUORUM_BINARY", str(hangs))
    head = SHORTEST.replace("ready: 20s", "ready: 1s")
    outcome = runner.run(prepared(tmp_path, "faults: [{kill: victim}]\n", head))
    assert (outcome.status, outcome.reached) == ("failed", "calibrated")
    assert outcome.reason is not None
    assert "not ready after 1 s" in outcome.reason
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert (manifest["status"], manifest["reason"]) == ("failed", outcome.reason)


class LabOfOneThread:
    """Of a lab what ends with it."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self.why = ""

    def abort(self, why: str) -> None:
        self.why = why
        self._over.set()

    def wait(self, timeout_s: float) -> None:
        if self._over.wait(timeout_s):
            raise MachineError(f"The lab has ended. {self.why}")


def test_a_stage_that_hangs_is_ended_when_its_time_is_over() -> None:
    lab: Any = LabOfOneThread()
    with (
        pytest.raises(Overdue, match="Counting sheep took longer than the 0 s"),
        within(lab, "Counting sheep", 0.2),
    ):
        lab.wait(600)


def test_a_stage_that_is_over_in_time_is_left_alone() -> None:
    lab: Any = LabOfOneThread()
    with within(lab, "Counting sheep", 0.2):
        pass
    lab.wait(0.4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("object_size: 0\nfaults: [{kill: victim}]\n", "of an empty object"),
        ("systems: [garage]\nfaults: [{kill: victim}]\n", "not meant for system quorum"),
        (
            "faults: [{disk-full: victim, size: 64MiB}, {disk-full: victim, size: 32MiB, at: 1s}]",
            "it has one size",
        ),
    ],
)
def test_what_cannot_be_is_told_before_anything_starts(
    text: str, says: str, tmp_path: Path
) -> None:
    head = SHORTEST.replace("during: 1s", "during: 2s")
    with pytest.raises(UserError, match=says):
        prepared(tmp_path, text, head)
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "thesis.txt").touch()
    with pytest.raises(UserError, match="never overwrites"):
        prepared(tmp_path, "faults: [{kill: victim}]\n")


def test_the_seed_says_which_nodes_have_which_role(tmp_path: Path) -> None:
    file = drill(tmp_path, "faults: [{kill: victim}]\n")
    drawn = [
        prepare(file, system="quorum", seed=seed, directory=tmp_path / "bundle").roles
        for seed in (1, 1, 2, 3, 4, 5)
    ]
    assert drawn[0] == drawn[1]
    assert len({roles["victim"] for roles in drawn}) > 1
