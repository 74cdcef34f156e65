"""What no code foresaw, and strange surroundings: one paragraph, an exit code, no traceback."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.bundles import QUORUM, write_bundle
from tests.command_line import here, ran
from tests.experiments.commands import manifest_of, run, study
from wanlat.bundle.errors import BundleError, refusing
from wanlat.experiments.session import Outcome
from wanlat.running import exit_code, reporting
from wanlat.streams import OutputLost
from wanlat.systems import registry
from wanlat.topologies.errors import MachineError, RunFailed, UserError

NOT_UTF8 = os.fsdecode(b"caf\xe9")
STUDY = "resources: false\nendpoints: [PutObject]\nsamples: 2\nwarmup: 0\n"


def deep(depth: int = 0) -> int:
    return deep(depth + 1)


@pytest.fixture(params=[ZeroDivisionError("7"), MemoryError(), ImportError("no such part"), deep])
def error(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have `wanlat system list` run into it; the name of its kind."""

    def fail() -> Any:
        raise request.param if isinstance(request.param, Exception) else RecursionError(deep())

    monkeypatch.setattr(registry, "every", fail)
    yield "RecursionError" if request.param is deep else type(request.param).__name__


def test_an_error_nothing_foresaw_is_code_3_with_its_kind_and_place(error: str) -> None:
    done = here("system", "list")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" not in done.stderr and error in done.stderr
    assert "systems/catalogue.py:" in done.stderr, "the innermost place that is ours"
    assert "Traceback" in here("system", "list", WANLAT_TRACEBACK="1").stderr


@pytest.mark.parametrize(
    "error",
    [MachineError("no"), RunFailed("no"), BundleError("damaged"), OutputLost(BrokenPipeError())],
)
def test_a_report_that_fails_is_not_the_machines_fault_of_a_complete_run(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    for raised in (error, ZeroDivisionError("7"), OSError(1, "may not")):
        with pytest.raises(typer.Exit) as ended, reporting(Path("mine")):
            raise raised
        assert ended.value.exit_code == 1
        text = capsys.readouterr().err
        assert str(raised) in text and "`wanlat report mine`" in text


FAULTS = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM"]
HELPS = "Make room|quota|ulimit|sysctl|read-only|dmesg|Free memory"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", [UserError, BundleError, RunFailed, None])
def test_what_the_machine_lacks_is_code_3_whoever_met_it(
    kind: type[Exception] | None, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        error = OSError(getattr(errno, fault), os.strerror(getattr(errno, fault)), "that/file")
        if kind is None:
            raise error
        try:
            raise error
        except OSError:
            raise kind(f"that/file cannot be written: {error.strerror}.") from None

    monkeypatch.setattr(registry, "every", fail)
    done = here("system", "list")
    assert done.returncode == 3
    assert "that/file" in done.stderr and re.search(HELPS, done.stderr)
    with pytest.raises(typer.Exit) as ended, reporting(Path("mine")):
        fail()
    assert ended.value.exit_code == 3


def small_bundle(directory: Path) -> None:
    bundle = directory / "bundle"
    bundle.mkdir()
    write_bundle(bundle, systems=[QUORUM], endpoints=["PutObject"], n=20)


@pytest.mark.parametrize(
    "command",
    [
        "topology export one-site --to mininet --out /dev/full --force",
        "topology import rtt.csv --out /dev/full --force",
        "compare bundle bundle --markdown /dev/full",
    ],
)
def test_a_file_that_a_full_disk_does_not_take_is_code_3(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_bundle(tmp_path)
    (tmp_path / "rtt.csv").write_text("from,to,rtt_ms\na,b,5\n")
    monkeypatch.chdir(tmp_path)
    done = here(*command.split())
    assert done.returncode == 3, done.stderr
    assert "/dev/full cannot be written: No space left on device." in done.stderr
    assert "Make room" in done.stderr


ON_A_FULL_DISK = """
mount -t tmpfs -o size=400k tmpfs disk
cp -r bundle disk && dd if=/dev/zero of=disk/ballast status=none 2>/dev/null
cd disk
for command in "report bundle" "system new mine" "topology export one-site --to mininet -o x.json"
do "$0" -m wanlat $command; echo "code $?" >&2; done
"""


def test_on_a_full_disk_every_command_that_writes_is_code_3(tmp_path: Path) -> None:
    small_bundle(tmp_path)
    (tmp_path / "disk").mkdir()
    done = ran(
        *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ON_A_FULL_DISK),
        sys.executable,
        cwd=tmp_path,
    )
    assert re.findall(r"code (\d+)", done.stderr) == ["3", "3", "3"], done.stderr
    assert done.stderr.count("No space left on device") == 3
    assert done.stderr.count("Make room") == 3


def test_a_run_that_a_full_disk_ended_is_code_3() -> None:
    for ended in (
        Outcome(Path("mine"), status="failed", is_disk_full=True),
        Outcome(Path("mine"), status="failed", is_of_machine=True),
    ):
        assert exit_code(ended) == 3
    assert exit_code(Outcome(Path("mine"), status="failed")) == 1


def test_a_hint_that_fails_leaves_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MachineError("There is no home directory.")

    monkeypatch.setattr("wanlat.commands.run.next_step", fail)
    done = run(study(tmp_path, STUDY), out=tmp_path / "bundle")
    assert done.returncode == 0, done.stderr
    assert manifest_of(tmp_path / "bundle")["status"] == "complete"


@pytest.mark.parametrize(
    "error", [ImportError("no"), MemoryError(), OSError(28, "no space"), MachineError("no")]
)
def test_no_bundle_is_called_damaged_for_what_the_machine_lacks(error: Exception) -> None:
    with pytest.raises(type(error)), refusing(Path("mine")):
        raise error


@pytest.mark.parametrize(
    "command",
    ["run {}", "run endpoint-latency --out {}", "report {}", "topology show {}", "system new {}"],
)
def test_a_name_that_is_not_utf_8_is_code_2(command: str, tmp_path: Path) -> None:
    place = tmp_path / NOT_UTF8
    place.write_text("name: mine\n")
    words = command.split()
    done = ran(sys.executable, "-m", "wanlat", *(word.format(place) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert "UTF-8" in done.stderr and "Traceback" not in done.stderr


def test_a_run_below_a_directory_whose_name_is_not_utf_8_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / NOT_UTF8
    place.mkdir()
    file = Path(study(place, STUDY))
    monkeypatch.chdir(place)
    done = run(file.name, out=Path("bundle"))
    assert done.returncode == 0, done.stderr
    assert here("report", "bundle").returncode == 0


@pytest.mark.parametrize(
    "command", ["system show ./mine/", "lab exec one-site n1 -- true", "system new mine"]
)
def test_a_current_directory_that_was_removed_is_named(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    done = here(*command.split())
    assert done.returncode in (2, 3)
    assert "directory" in done.stderr and "mistake" not in done.stderr


@pytest.mark.parametrize("name", ["file/mine", "nowhere/\0/mine"])
def test_a_definition_that_cannot_be_written_is_code_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    done = here("system", "new", name)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("kind", ["study", "drill"])
@pytest.mark.parametrize("system", ["./mystore/", "/srv/mystore"])
def test_a_path_among_a_files_systems_is_refused_with_the_way_to_give_it(
    kind: str, system: str, tmp_path: Path
) -> None:
    shipped = {"study": "endpoint-latency", "drill": "one-node-killed"}[kind]
    lines = here(kind, "show", shipped, "-q").stdout.splitlines()
    kept = [line for line in lines if not line.startswith("systems:")]
    file = tmp_path / "mine.yaml"
    file.write_text("\n".join([*kept, f"systems: [{system}]\n"]))
    done = here(kind, "validate", str(file))
    assert done.returncode == 2
    assert f"--systems {system}" in done.stderr
    assert f"mine.yaml:{len(kept) + 1}:" in done.stderr


def test_a_name_that_is_too_long_for_a_file_is_no_bundle() -> None:
    done = here("report", "x" * 300)
    assert done.returncode == 2
    assert "is not a bundle" in done.stderr
