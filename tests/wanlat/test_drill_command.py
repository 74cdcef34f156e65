"""``wanlat drill``: which there are, what it is told, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.experiments.commands import command
from tests.experiments.drill.drills import SHORT, UNPROVED, drill
from tests.wanlat.running import Done, in_process
from wanlat.experiments.drill.files import shipped
from wanlat.experiments.drill.progress import Live


def told(*arguments: str) -> Done:
    return in_process(["drill", *arguments])


def test_without_a_name_it_lists_what_is_shipped() -> None:
    done = subprocess.run(
        command("drill"), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0
    assert all(name in done.stderr for name in shipped())
    assert "at most" in done.stderr
    listed = json.loads(told("--json").stdout)["drills"]
    assert [each["name"] for each in listed] == shipped()
    for each in listed:
        assert 60 < each["stated_time_s"] <= 600
        assert each["topology"] in ("four-sites", "three-datacenters")
        assert set(each["systems"]) >= {"quorum", "garage", "minio", "bob"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("one-node-kiled",), "did you mean `one-node-killed`?"),
        (("one-node-killed",), "--system quorum"),
        (("one-node-killed", "--system", "quorun"), "did you mean `quorum`?"),
        (("one-node-killed", "--system", "quorum,quorum"), "given twice"),
        (("one-node-killed", "--system", "service"), "not meant for it"),
        (("one-node-killed", "--system", "quorum", "--scale", "0"), "more than 0"),
        (("one-node-killed", "--system", "quorum", "--scale", "0.001"), "too short"),
        (
            ("partition-two-two", "--system", "quorum", "--topology", "one-site"),
            "shares the WAN links",
        ),
        (("one-node-killed", "--system", "quorum", "--storage", "tape"), "`memory` and `disk`"),
        (("one-node-killed", "--system", "quorum", "--option", "quorum.x=1"), "`x` is unknown"),
        (("one-node-killed", "--system", "quorum", "--option", "bob.x=1"), "bob is not measured"),
        (("one-node-killed", "--system", "quorum", "--bobd", "x"), "bob is not measured"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    done = told(*arguments, "--out", str(tmp_path / "bundle"))
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "bundle").exists()


def test_several_systems_run_one_after_another_each_with_its_bundle(tmp_path: Path) -> None:
    # Of two that cannot both be had, the first is not started either.
    done = subprocess.run(
        command("drill", "one-node-killed", "--system", "quorum,bob", "--out", str(tmp_path / "b")),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PATH": "/usr/bin:/bin", "WANLAT_BOB_BINARY": "/nowhere/bobd"},
    )
    assert done.returncode == 3, done.stderr
    assert "bob" in done.stderr.lower()
    assert not (tmp_path / "b").exists()


def test_a_claim_that_does_not_hold_is_exit_code_1(tmp_path: Path) -> None:
    head = SHORT.replace(
        "before: 1s, during: 2500ms, after: 2s", "before: 1s, during: 1s, after: 1s"
    )
    text = (
        "faults: [{stop: victim}]\nclaims: [{claim: it answers when stopped, source: nobody, "
        "of: reads, vantage: victim, availability: {at_least: 90%}}]\n"
    )
    file = drill(tmp_path, text, head.replace("deadline: 1s", "deadline: 300ms"))
    argv = command("drill", file, "--out", str(tmp_path / "b"), "--json")
    done = subprocess.run(
        [argv[0], "-c", UNPROVED, *argv[3:]],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    (claim,) = summary["drill"]["claims"]
    assert claim["verdict"] == "does not hold"
    assert summary["drill"]["durability"]["verdict"] == "pass"
    assert "failed: “it answers when stopped” does not hold" in done.stderr


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_line_is_new_with_each_phase_and_fault_and_now_and_then() -> None:
    clock, lines = Clock(), []

    def report(stage: str, done: float = 0, total: float | None = None, detail: str = "") -> None:
        lines.append((stage, done, total, detail))

    live = Live(report, "quorum", every_s=10, window_s=5, clock=clock)
    live.tell("before", 0, 20)
    live.row("read", "ok")
    live.tell("before", 1, 20)
    assert lines == [
        (
            "quorum: before",
            0,
            20,
            "nothing broken; no read answered, no write answered in the last 5 s",
        )
    ], "nothing new, so soon"
    live.broken(1, "kill n2")
    live.row("write", "unknown")
    live.row("write", "ok")
    live.tell("during", 2, 20)
    assert lines[-1][3] == "kill n2; reads 1 of 1 ok, writes 1 of 2 ok in the last 5 s"
    clock.now_s += 6
    live.row("read", "fail")
    live.mended(1)
    live.tell("during", 8, 20)
    assert lines[-1][3] == "nothing broken; reads 0 of 1 ok, no write answered in the last 5 s"
    clock.now_s += 10
    live.tell("during", 18, 20)
    assert len(lines) == 4, "after ten seconds it is told again"
