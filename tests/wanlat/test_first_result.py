"""From `make study` to the next command: few lines, and each of use."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from rich.console import Console

from tests.command_line import ran
from tests.processes import alive
from wanlat import cli, output, running, suggested
from wanlat.systems import registry
from wanlat.systems.engine import progress

CALMLY = Path(__file__).parents[2] / "tools" / "calmly"


# -- the build ------------------------------------------------------------------------------

HANG_S = 50
"""Less than the build lasts that is to end."""


def test_what_a_build_prints_goes_to_its_log_and_why_it_failed_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "made" / "build.log"
    bar = r"printf '\033[K    Building [==>  ] 12/236: a, b\r\033[K   Compiling a v1\n'"
    for end, code in (("true", 0), ("echo 'error: no such crate'; exit 101", 101)):
        building = (CALMLY, log, "Building", "crates", "sh", "-c")
        done = ran(*building, f"{bar}; seq 400; {end}")
        assert done.returncode == code
        assert done.stdout.splitlines()[0] == f"Building (log: {log}) ..."
        # The states of a progress bar are not left in it.
        assert log.read_text().splitlines()[:2] == ["   Compiling a v1", "1"]
        assert (code != 0) == ("error: no such crate" in done.stderr)
        assert "Compiling" not in done.stderr and len(done.stderr.splitlines()) < 40


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_a_build_ends_with_the_one_who_waits_for_it(tmp_path: Path, how: str) -> None:
    log = tmp_path / "build.log"
    waiting = subprocess.Popen(
        [str(CALMLY), str(log), "Building", "crates", "sh", "-c", "echo $$; exec sleep 60"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        # Whoever runs the tests in the background may have them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline_s = time.monotonic() + HANG_S
    while not (log.exists() and log.read_text().endswith("\n")):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    build = int(log.read_text())
    if how == "interrupted":  # as a terminal does on Ctrl-C: all of its foreground
        os.killpg(waiting.pid, signal.SIGINT)
    else:
        waiting.kill()
    assert waiting.wait(HANG_S) == {"interrupted": 130, "killed": -9}[how]
    while alive([build]):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


# -- progress without a terminal ------------------------------------------------------------


def test_progress_into_a_pipe_is_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(running, "remark", said.append)
    now_s = 0.0
    report = running.Reporter(clock=lambda: now_s)
    for second in range(150):
        now_s = float(second)
        report("quorum: measuring", second, 500)
        report(f"quorum: visit {second}", 0, None, "of many")
    left = {0: "", 60: ", about 7 min 20 s left", 120: ", about 6 min 20 s left"}
    assert said == [f"quorum: measuring, {second} of 500{left[second]}" for second in left]


def test_what_is_done_side_by_side_is_one_line_a_minute_or_one_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(running, "remark", said.append)
    now_s = [0.0]

    def play(report: running.Reporter) -> None:
        report("3 points", 0, 3, "2 running")
        with report.lane() as one, report.lane() as other:
            for second in range(61):
                now_s[0] = float(second)
                one("replicate 1: quorum: measuring", second, 500)
                other("replicate 2: quorum: during", 3, 10, "kill n2")
        report("3 points", 2, 3, "about 1 min left")

    play(running.Reporter(clock=lambda: now_s[0]))
    assert said == [
        "3 points: 2 running",
        "3 points, 0 of 3: 2 running; replicate 1: quorum: measuring, 60 of 500; "
        "replicate 2: quorum: during: kill n2",
    ]
    text = io.StringIO()
    with running.bar(Console(file=text, width=110, force_terminal=True)) as report:
        play(report)
    assert all(row in text.getvalue() for row in ("3 points", "replicate 1: ", "replicate 2: "))


def test_quiet_leaves_results_and_verbose_says_more(capsys: pytest.CaptureFixture[str]) -> None:
    output.be_quiet(True)
    output.remark("remark")
    output.inform("result")
    with running.reporter(log=True) as report:
        report("stage")
    output.be_quiet(False)
    output.be_verbose(True)
    with running.reporter() as report:
        report("first stage", 0, 10, "detail")
        report("next stage")
    output.be_verbose(False)
    said = capsys.readouterr().err.splitlines()
    assert said == ["result", "first stage: detail", "next stage"]


def test_a_terminal_gets_a_bar_with_the_details_underneath() -> None:
    text = io.StringIO()
    console = Console(file=text, width=90, force_terminal=True)
    with running.bar(console) as report:
        assert report.is_live
        report("quorum: [before]", 0, 20)
        report("quorum: during", 3, 10, "kill n2")
    assert "quorum: during" in text.getvalue() and "3/10" in text.getvalue()
    assert "kill n2" in text.getvalue()


@pytest.mark.parametrize(("term", "is_live"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    term: str, is_live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = io.StringIO()
    console = Console(file=text, width=90, force_terminal=True, _environ={"TERM": term})
    monkeypatch.setattr(running, "people", lambda: console)
    monkeypatch.setattr(output, "people", lambda: console)
    with running.reporter() as report:
        report("quorum: measuring", 3, 10)
        assert report.is_live == is_live
    with progress.Reporter(console, every_s=0).building("garage") as show:
        show("compiling")
    assert ("\x1b[" in text.getvalue()) == is_live
    assert "quorum: measuring" in text.getvalue() and "compiling" in text.getvalue()


# -- the next command -----------------------------------------------------------------------


def made(*systems: str, rtts: int | None = 1, **more: Any) -> Any:
    """A report of a study of `systems` that found this whole number of round trips."""
    entry = {"endpoint": "PutObject", "rtt_ms": 100.0, "rtts": 1.4, "round_trips": rtts, **more}
    summary = SimpleNamespace(
        blocks={"in_rtts": SimpleNamespace(to_json=lambda: {"endpoints": [entry]})},
        endpoints=[SimpleNamespace(series=SimpleNamespace(system=name)) for name in systems],
    )
    return SimpleNamespace(summary=summary)


def given_with(monkeypatch: pytest.MonkeyPatch, *words: str) -> suggested.Given:
    """The options of `wanlat run WORDS`."""
    monkeypatch.setattr("sys.argv", ["wanlat", "run", *words])
    root, command = typer.main.get_command(cli.app), cli.load("run")
    whole = root.context_class(root, info_name="wanlat")
    return suggested.given(command.context_class(command, info_name="run", parent=whole))


@pytest.mark.parametrize(
    ("report", "options", "follows"),
    [
        (
            made("quorum"),
            "",
            "wanlat system install garage minio (about 15 min on two cores), then "
            "wanlat run 'my study.yaml' --systems garage,minio",
        ),
        (made("quorum"), "--topology five-sites", " --topology five-sites"),
        # What was given is given again, as far as what follows takes it.
        (
            made("quorum"),
            "--set object_size=4KiB --client n2 --systems quorum -o out --option quorum.api=s3 "
            "--samples 7 --no-capture --option garage.replication_factor=2 -q --rtt 9ms",
            " --systems garage,minio --set object_size=4KiB --client n2 "
            "--option garage.replication_factor=2 --samples 7 --no-capture --rtt 9ms",
        ),
        (
            made("garage", rtts=None),
            "--client n2 --set object_size=4KiB --set prefil=3 --samples 7 --rtt 9ms",
            " --systems garage --topology five-sites --client n2 --set object_size=4KiB",
        ),
        (
            made("garage", rtts=0),
            "--client n2 --set object_size=4KiB --topology five-sites --storage disk "
            "--backend wire --set keys=3",
            " --systems garage --topology five-sites --set object_size=4KiB --storage disk "
            "--backend wire",
        ),
        # Which endpoints those have not, they are not to be asked.
        (made("quorum", endpoint="Put"), "", None),
        (
            made("garage", "minio", rtts=None),
            "",
            "wanlat run round-trips --systems garage,minio --topology five-sites",
        ),
        *(
            (each, "", "wanlat drill run one-node-killed --systems garage")
            for each in (made("garage", rtts=0), made("garage", rtts=None, rtt_ms=None))
        ),
        # A system of one's own is known by its directory alone.
        (
            made("mine", rtts=None),
            "",
            "wanlat run round-trips --systems './my stores/mine/' --topology five-sites",
        ),
        (made("service"), "", None),  # no drill is meant for it
        (SimpleNamespace(summary=SimpleNamespace(blocks={})), "", None),
    ],
)
def test_the_next_step_follows_from_what_was_found(
    report: Any,
    options: str,
    follows: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WANLAT_CACHE", str(tmp_path))
    monkeypatch.setattr(registry, "_ADOPTED", {"mine": Path("my stores/mine").absolute()})
    given = given_with(monkeypatch, "my study.yaml", *shlex.split(options))
    step = suggested.next_step(report, "my study.yaml", "five-sites", given)
    assert (step is None) if follows is None else (step is not None and step.endswith(follows))


def test_the_command_that_resumes_has_all_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ADOPTED", {"mine": Path("mine").absolute()})
    options = given_with(monkeypatch, "x.yaml", "--jobs", "auto", "--samples", "3")
    assert suggested.resuming("run", Path("my bundle"), options) == (
        "wanlat run --resume 'my bundle' --jobs auto"
    )
    known = SimpleNamespace(
        manifest=SimpleNamespace(adopted={"mine": "/there"}), outside=["the program /x/bobd"]
    )
    monkeypatch.setattr("wanlat.experiments.resume.read_unfinished", lambda *_, **__: known)
    assert suggested.resuming("drill run", Path("b"), options) == (
        "wanlat drill run --resume b --systems ./mine/ --trust --jobs auto"
    )
