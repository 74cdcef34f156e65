"""From `make study` to the next command: few lines, and each of use."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wanlat import next_step, output

CALMLY = Path(__file__).parents[2] / "tools" / "calmly"


# -- the build ------------------------------------------------------------------------------

HANG_S = 50
"""Less than the build lasts that is to end."""


def calmly(log: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CALMLY), str(log), "Building", "crates", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_what_a_build_prints_goes_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "made" / "build.log"
    done = calmly(log, "echo one; echo two >&2; seq 400")
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert first == f"Building (log: {log}) ..."
    assert re.fullmatch(r"  done in \d+ s", last)
    assert done.stderr == ""
    assert log.read_text().splitlines()[:2] == ["one", "two"]


def test_a_build_that_fails_shows_why_and_keeps_its_exit_code(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    done = calmly(log, "seq 400; echo '   Compiling x v1'; echo 'error: no such crate'; exit 101")
    assert done.returncode == 101
    assert "error: no such crate" in done.stderr
    assert "Compiling" not in done.stderr
    assert len(done.stderr.splitlines()) < 40
    assert str(log) in done.stderr.splitlines()[-1]


def test_the_states_of_a_progress_bar_are_not_left_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    bar = r"printf '\033[K    Building [==>  ] 12/236: a, b\r\033[K   Compiling a v1\n'"
    assert calmly(log, bar).returncode == 0
    assert log.read_text() == "   Compiling a v1\n"


@pytest.mark.parametrize("how", ["interrupted", "terminated", "killed"])
def test_a_build_ends_with_the_one_who_waits_for_it(tmp_path: Path, how: str) -> None:
    log = tmp_path / "build.log"
    running = subprocess.Popen(
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
        os.killpg(running.pid, signal.SIGINT)
    else:
        running.send_signal(signal.SIGTERM if how == "terminated" else signal.SIGKILL)
    assert running.wait(HANG_S) == {"interrupted": 130, "terminated": -15, "killed": -9}[how]
    while is_running(build):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -- progress without a terminal ------------------------------------------------------------


def test_progress_into_a_pipe_is_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(output, "remark", said.append)
    now_s = 0.0
    report = output.Reporter(None, clock=lambda: now_s)
    for second in range(150):
        now_s = float(second)
        report("quorum: measuring", second, 500)
        report(f"quorum: visit {second}", 0, None, "of many")
    assert said == [
        "quorum: measuring, 0 of 500",
        "quorum: measuring, 60 of 500",
        "quorum: measuring, 120 of 500",
    ]


def test_progress_of_something_else_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(output, "remark", said.append)
    output.Reporter(None)("building the lab")
    output.Reporter(None)("measuring", 0, None, "visit 3 of 15")
    assert said == ["building the lab", "measuring: visit 3 of 15"]


# -- the next command -----------------------------------------------------------------------


def made(
    *systems: str,
    rtts: tuple[int | None, ...] = (1,),
    is_local: bool = False,
    endpoint: str = "PutObject",
) -> Any:
    """A report of a study of `systems` that found these whole numbers of round trips."""
    entries = [
        SimpleNamespace(
            group=SimpleNamespace(endpoint=endpoint),
            rtt_ms=None if is_local else 100.0,
            rtts=1.4,
            round_trips=each,
        )
        for each in rtts
    ]
    summary = SimpleNamespace(
        in_rtts=SimpleNamespace(entries=tuple(entries)),
        series=tuple(SimpleNamespace(system=name) for name in systems),
    )
    return SimpleNamespace(summary=summary)


def test_after_the_reference_store_come_real_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANLAT_CACHE", str(tmp_path))
    step = next_step.next_step(made("quorum"), "endpoint-latency", "five-sites")
    assert step is not None
    assert "wanlat system install garage minio (about 15 min" in step
    assert step.endswith("wanlat run endpoint-latency --systems garage,minio")
    mine = next_step.next_step(made("quorum"), "my study.yaml", "five-sites")
    assert mine is not None and "run 'my study.yaml' --systems" in mine
    # Which endpoints they have not, they are not to be asked.
    assert next_step.next_step(made("quorum", endpoint="Put"), "mine", "five-sites") is None
    chosen = next_step.next_step(made("quorum"), "mine.yaml", "one-site", is_chosen=True)
    assert chosen is not None and chosen.endswith("--topology one-site")


def test_after_no_whole_number_comes_the_study_that_counts() -> None:
    step = next_step.next_step(made("garage", "minio", rtts=(1, None)), "mine", "five-sites")
    assert step is not None
    assert step.endswith("wanlat run round-trips --systems garage,minio --topology five-sites")


@pytest.mark.parametrize("is_local", [False, True])
def test_after_whole_numbers_and_within_a_site_comes_a_drill(is_local: bool) -> None:
    rtts = (None,) if is_local else (1, 0)
    step = next_step.next_step(made("garage", rtts=rtts, is_local=is_local), "mine", "one-site")
    assert step is not None
    assert step.endswith("wanlat drill run one-node-killed --systems garage")


def test_nothing_follows_where_no_drill_is_meant_for_it() -> None:
    assert next_step.next_step(made("service"), "mine", "five-sites") is None


def test_other_studies_end_without_one() -> None:
    other = SimpleNamespace(summary=SimpleNamespace(in_rtts=None))
    assert next_step.next_step(other, "round-trips", "five-sites") is None  # type: ignore[arg-type]


def test_the_command_is_one_that_the_user_can_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / ".venv" / "bin" / "wanlat"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert next_step.program() == ".venv/bin/wanlat"
    monkeypatch.setenv("PATH", str(script.parent))
    assert next_step.program() == "wanlat"


# -- resources ------------------------------------------------------------------------------


def test_resource_usage_is_printed_when_asked_for() -> None:
    from wanlat.analysis.blocks import printed

    class Empty:
        def to_json(self) -> Any:
            return {}

        def grids(self) -> tuple[()]:
            return ()

        def charts(self) -> dict[str, Any]:
            return {}

    load, resources, remarks = Empty(), Empty(), Empty()
    blocks: Any = {"load": load, "resources": resources, "remarks": remarks}
    assert printed(blocks, verbose=False) == [load]
    assert printed(blocks, verbose=True) == [load, resources, remarks]
    reclaim = Empty()
    blocks = {"reclaim": reclaim, "resources": resources, "remarks": remarks}
    assert printed(blocks, verbose=False) == [reclaim, remarks]
