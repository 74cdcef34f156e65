"""Where nothing can be printed: a run is measured to its end, and a lost result is reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import late_network
from tests.command_line import ran

STUDY = "name: mine\ntopology: one-site\nendpoints: [PutObject]\nsamples: 2\nwarmup: 0\n"
WANLAT = (sys.executable, "-m", "wanlat")
LONGEST_S = 60


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.yaml"
    file.write_text(f"{STUDY}resources: false\n")
    return file


def manifest_in(bundle: Path) -> Any:
    return json.loads((bundle / "manifest.json").read_text())


def until(is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def full_pipe() -> tuple[int, int]:
    """A pipe that takes no more."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    return read, write


@pytest.mark.parametrize(
    "redirected",
    [">/dev/full 2>&1", ">&- 2>&- <&-", "2>&1 | true; exit ${PIPESTATUS[0]}"],
    ids=["full", "closed", "unread"],
)
def test_a_run_whose_output_is_lost_is_complete(
    redirected: str, study: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    command = late_network.command("run", str(study), "--out", str(bundle))
    done = ran("bash", "-c", f'"$@" {redirected}', "bash", *command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert manifest_in(bundle)["status"] == "complete"
    assert (bundle / "report.html").is_file()


def test_the_result_of_a_run_that_a_full_disk_does_not_take_is_a_line(
    study: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    command = late_network.command("run", str(study), "--out", str(bundle), "--json")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=LONGEST_S
        )
    assert done.returncode == 3
    assert manifest_in(bundle)["status"] == "complete"
    assert "No space left on device" in done.stderr and f"wanlat report {bundle}" in done.stderr


def test_a_reader_who_does_not_read_holds_up_no_measurement(study: Path, tmp_path: Path) -> None:
    bundle, (read, write) = tmp_path / "bundle", full_pipe()
    command = late_network.command("run", str(study), "--out", str(bundle))
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=write)
    os.close(write)
    try:
        until((bundle / "report.html").exists)
        assert manifest_in(bundle)["status"] == "complete"
        with open(read, "rb") as reading:  # what follows the run waits for whoever reads it
            assert b"PutObject" in reading.read()
        assert run.wait(LONGEST_S) == 0
    finally:
        run.kill()
        run.wait()


@pytest.mark.parametrize(("ignored", "status"), [(False, "interrupted"), (True, "complete")])
def test_a_terminal_that_is_closed_interrupts_a_run_unless_nohup_started_it(
    ignored: bool, status: str, study: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    study.write_text(study.read_text().replace("samples: 2", "samples: 2000"))
    command = late_network.command("run", str(study), "--out", str(bundle), "-q")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        samples = bundle / "samples.jsonl"
        until(lambda: (samples.exists() and samples.stat().st_size) or run.poll() is not None)
        run.send_signal(signal.SIGHUP)
        assert run.wait(LONGEST_S) == (0 if ignored else 129)
    finally:
        run.kill()
        run.wait()
    manifest = manifest_in(bundle)
    assert manifest["status"] == status
    assert ("terminal" in str(manifest["reason"])) == (status == "interrupted")


PRINTING = [
    "study list",
    "study list --json",
    "study show endpoint-latency",
    "topology export five-sites --to containerlab",
    "system show quorum",
    "completion bash",
    "doctor --json",
    "--version",
    "run -h",
]


@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_a_result_that_cannot_be_written_is_code_3_and_why(command: str, where: str) -> None:
    done = ran("sh", "-c", f'"$@" {where}', "sh", *WANLAT, *command.split())
    assert done.returncode == 3
    line = done.stderr.splitlines()[-1]
    assert line.startswith("wanlat: ") and "standard output" in line


@pytest.mark.parametrize("command", ["study list --json", "run -h", "topology show azure-regions"])
def test_a_reader_who_has_enough_gets_no_complaint(command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = ran(*WANLAT, *command.split(), capture_output=False, stdout=write, stderr=-1)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", ["run nothing", "run --nothing", "nothing"])
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_a_mistake_that_cannot_be_printed_is_code_2_still(command: str, where: str) -> None:
    done = ran("sh", "-c", f'"$@" {where}', "sh", *WANLAT, *command.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.fixture(params=["ascii", "latin-1", "cp1252"])
def encoding(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


@pytest.mark.parametrize("command", ["topology list", "run -h", "system show bob"])
def test_a_terminal_of_few_characters_gets_others_escaped(command: str, encoding: str) -> None:
    done = ran(*WANLAT, *command.split(), env={**os.environ, "PYTHONIOENCODING": encoding}, text=0)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_document_is_json_whatever_the_encoding(encoding: str) -> None:
    command = (*WANLAT, "topology", "list", "--json")
    plain = json.loads(ran(*command).stdout)
    done = ran(*command, env={**os.environ, "PYTHONIOENCODING": encoding}, text=0)
    assert json.loads(done.stdout.decode(encoding)) == plain
    assert any(not each["description"].isascii() for each in plain)
