"""``wanlat drill``: which there are, what they would do, and what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.experiments.commands import command
from tests.experiments.drill.drills import SHORT, UNPROVED, drill
from tests.wanlat.running import Done, in_process
from wanlat.experiments.drill.files import find, shipped
from wanlat.experiments.drill.progress import Live


def reported(*arguments: str) -> Done:
    return in_process(["drill", *arguments])


def test_the_shipped_ones_are_listed_with_their_time() -> None:
    done = reported("list")
    assert done.returncode == 0
    assert all(name in done.stdout for name in shipped())
    assert "AT MOST" in done.stdout
    listed = json.loads(reported("list", "--json").stdout)
    assert [each["name"] for each in listed] == shipped()
    for each in listed:
        assert 60 < each["stated_time_s"] <= 600
        assert each["topology"] in ("four-sites", "three-datacenters")
        assert set(each["systems"]) >= {"quorum", "garage", "minio", "bob"}


def test_one_is_shown_as_it_is_written() -> None:
    done = reported("show", "one-node-killed")
    assert done.stdout.rstrip() == find("one-node-killed").read_text(encoding="utf-8").rstrip()
    assert "takes at most" in done.stderr
    assert "takes at most" not in reported("show", "one-node-killed", "-q").stderr
    assert json.loads(reported("show", "flapping", "--json").stdout)["name"] == "flapping"


def test_all_mistakes_of_a_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    text = find("one-node-killed").read_text(encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    done = reported("validate", str(file))
    assert done.returncode == 0, done.stderr
    assert "is valid: 1 fault; takes at most" in done.stderr
    file.write_text(text + "\nfautls: []\nmore: 3\n")
    done = reported("validate", str(file))
    assert done.returncode == 2
    lines = len(text.splitlines())
    assert f"{file}:{lines + 2}:" in done.stderr and f"{file}:{lines + 3}:" in done.stderr


def test_a_dry_run_says_what_would_be_broken_when_and_starts_nothing(tmp_path: Path) -> None:
    wanted = ("run", "one-node-killed", "--systems", "quorum", "--seed", "7", "--dry-run")
    out = tmp_path / "bundle"
    done = reported(*wanted, "--json", "-o", str(out))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["system"], document["seed"], document["backend"]) == ("quorum", 7, "auto")
    (fault,) = document["faults"]
    (victim,) = document["roles"]["victim"]
    assert fault["fault"] == f"kill {victim}"
    assert document["at_most_s"]["total"] == sum(
        seconds for stage, seconds in document["at_most_s"].items() if stage != "total"
    )
    assert not out.exists()
    done = reported(*wanted)
    assert f"kill {victim}" in done.stdout and "Nothing was started." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("one-node-kiled",), "did you mean `one-node-killed`?"),
        (("one-node-killed",), "--systems quorum"),
        (("one-node-killed", "--systems", "quorun"), "did you mean `quorum`?"),
        (("one-node-killed", "--systems", "quorum,quorum"), "given twice"),
        (("one-node-killed", "--systems", "service"), "not meant for it"),
        (("one-node-killed", "--systems", "quorum", "--scale", "0"), "more than 0"),
        (("one-node-killed", "--systems", "quorum", "--scale", "0.001"), "too short"),
        (
            ("partition-two-two", "--systems", "quorum", "--topology", "one-site"),
            "shares the WAN links",
        ),
        (("one-node-killed", "--systems", "quorum", "--storage", "tape"), "'memory', 'disk'"),
        (("one-node-killed", "--systems", "quorum", "--option", "quorum.x=1"), "`x` is unknown"),
        (("one-node-killed", "--systems", "quorum", "--option", "bob.x=1"), "bob is not measured"),
        (("one-node-killed", "--systems", "quorum", "--bobd", "x"), "bob is not measured"),
    ],
)
def test_a_mistake_is_reported_before_anything_starts(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    done = reported("run", *arguments, "--out", str(tmp_path / "bundle"))
    assert done.returncode == 2, done.stderr
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "bundle").exists()


def test_several_systems_run_one_after_another_each_with_its_bundle(tmp_path: Path) -> None:
    # Of two that cannot both be had, the first is not started either.
    done = subprocess.run(
        command(
            *("drill", "run", "one-node-killed", "--systems", "quorum,bob"),
            *("--out", str(tmp_path / "b")),
        ),
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
    (tmp_path / "claims.yaml").write_text(
        "system: quorum\nclaims:\n  - {id: mine, claim: it answers when stopped, source: nobody, "
        "drill: short, availability: {of: reads, client: victim, at_least: 90%}}\n"
    )
    head = head.replace("deadline: 1s", "deadline: 300ms")
    file, claims = drill(tmp_path, "faults: [{stop: victim}]\n", head), tmp_path / "claims.yaml"
    options = ("--claims", str(claims), "--out", str(tmp_path / "b"), "--json")
    argv = command("drill", "run", file, *options)
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
