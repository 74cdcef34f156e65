"""What lies in the current directory is not run, whatever wanlat starts there.

It has a module of each name that Python's own have, and of each that wanlat imports, and programs
with names that wanlat looks for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import CHECKOUT, ran, write_program
from tests.experiments.matrices import study
from wanlat.emulator import interpreter
from wanlat.systems.engine.kinds import check_tool, version_output
from wanlat.topologies.errors import MachineError

OTHERS = ("analysis", "bundle", "emulator", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic")
OTHERS += ("distributed", "dask", "pip", "rich", "scipy", "systems", "typer", "yaml")
SHADOW = """
import posix
log = posix.open({log!r}, posix.O_CREAT | posix.O_WRONLY | posix.O_APPEND)
posix.write(log, b"{name} ")
raise ImportError("{name}")
"""
DRILL = CHECKOUT / "tests" / "data" / "bundles" / "2" / "drill"


class Here:
    """A directory of such modules; `ran` has the names of those that were run."""

    def __init__(self, directory: Path, log: Path) -> None:
        self.directory, self._log = directory, log
        directory.mkdir()
        for name in sorted({*sys.stdlib_module_names, *OTHERS}):
            (directory / f"{name}.py").write_text(SHADOW.format(log=str(log), name=name))
        for name in ("go", "cargo", "ip", "true"):
            write_program(directory / name, f"echo {name} >>{log}; exit 1")

    @property
    def ran(self) -> list[str]:
        return self._log.read_text().split() if self._log.exists() else []

    def python(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a Python there that finds wanlat, as from a checkout, and PATH leads there too."""
        path = {"PYTHONPATH": str(CHECKOUT), "PATH": f".::{os.environ['PATH']}:"}
        return ran(sys.executable, *arguments, cwd=self.directory, env={**os.environ, **path})


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path / "here", tmp_path / "ran")


@pytest.mark.parametrize("words", ["--version", "doctor", "lab exec one-site n1 -- true"])
def test_a_command_imports_nothing_from_there(here: Here, words: str) -> None:
    done = here.python("-m", "wanlat", *words.split())
    assert (done.returncode, here.ran) == (0, []), done.stderr


def test_processes_that_run_points_beside_each_other_import_nothing_from_there(
    here: Here, tmp_path: Path
) -> None:
    out = ("--out", tmp_path / "bundle", "--jobs", 2, "--quiet")
    done = here.python("-m", "wanlat", "run", study(tmp_path, samples=2, points=2), *out)
    assert (done.returncode, here.ran) == (0, []), done.stderr


@pytest.mark.minutes
def test_dasks_workers_import_nothing_from_there(here: Here, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "bundle", "--engine", "dask", "--scheduler", "local:1", "--quiet")
    done = here.python("-m", "wanlat", "run", study(tmp_path, samples=2, points=2), *out)
    assert (done.returncode, here.ran) == (0, []), done.stderr


def test_reports_that_are_written_beside_each_other_import_nothing_from_there(
    here: Here, tmp_path: Path
) -> None:
    bundle, points = tmp_path / "bundle", list[dict[str, object]]()
    for number, name in enumerate(("one", "other")):
        shutil.copytree(DRILL, bundle / "points" / name)
        point = {"point": number, "name": name, "system": "quorum", "values": {"drill": name}}
        points.append({**point, "directory": f"points/{name}", "status": "complete"})
    manifest = json.loads((DRILL / "manifest.json").read_text()) | {"kind": "drills"}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    (bundle / "points.json").write_text(json.dumps({"parameters": [], "points": points}))
    done = here.python("-m", "wanlat", "report", bundle, "--quiet")
    assert (done.returncode, here.ran) == (0, []), done.stderr


def test_a_lab_of_a_users_program_imports_nothing_from_there(here: Here) -> None:
    """The program may; a lab's own processes do not."""
    code = (
        "import sys; before = sys.path.pop(0); from wanlat import Lab, load_topology, resolve\n"
        "with Lab(resolve(load_topology('one-site'))) as lab:\n"
        "    sys.path.insert(0, before); print(lab.run('n1', ['sh', '-c', 'echo $PATH']).stdout)"
    )
    done = here.python("-c", code)
    assert (done.returncode, here.ran) == (0, []), done.stderr
    assert all(entry.startswith("/") for entry in done.stdout.strip().split(":"))


def test_programs_are_not_looked_for_there(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.directory)
    monkeypatch.setenv("PATH", f"{os.pathsep}.")
    with pytest.raises(MachineError, match="PATH"):
        check_tool("cargo", "Building")
    assert here.ran == []


@pytest.mark.parametrize("path", ["", ":", ".", None])
def test_a_path_that_names_no_directory_is_the_systems(tmp_path: Path, path: str | None) -> None:
    write_program(tmp_path / "cat", "echo shadow")
    bare = {name: text for name, text in os.environ.items() if name != "PATH"}
    given = {"PYTHONPATH": str(CHECKOUT), **({} if path is None else {"PATH": path})}
    words = ("-m", "wanlat", "lab", "exec", "one-site", "n1", "--", "sh", "-c", "echo mine | cat")
    done = ran(sys.executable, *words, cwd=tmp_path, env={**bare, **given})
    assert done.stdout.strip() == "mine", done.stderr


@pytest.mark.parametrize("path", ["", ":", "."])
def test_a_list_of_no_directory_that_is_absolute_is_the_systems(path: str) -> None:
    assert interpreter.without_relative(path) == os.defpath


def test_a_programs_version_is_read_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rustup's programs run what a `rust-toolchain.toml` where they stand names."""
    monkeypatch.chdir(tmp_path)
    write_program(tmp_path / "prints-where", "pwd")
    assert version_output(tmp_path / "prints-where").strip() == "/"


def test_a_python_that_wanlat_starts_is_of_this_wanlat(here: Here) -> None:
    code = "import queue, wanlat; print([queue.__file__, wanlat.__file__])"
    for argv in (interpreter.command(code), interpreter.bare_command(code)):
        done = ran(*argv, cwd=here.directory, env=interpreter.bare_environment())
        standard, own = json.loads(done.stdout.replace("'", '"'))
        assert own == str(CHECKOUT / "wanlat" / "__init__.py")
        assert not standard.startswith(str(here.directory))


def test_where_wanlat_lies_in_the_current_directory_it_runs(tmp_path: Path) -> None:
    """As of a checkout that is installed nowhere; its workers find the same wanlat."""
    (tmp_path / "wanlat").symlink_to(CHECKOUT / "wanlat")
    bare = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    out = ("--out", "bundle", "--jobs", 2, "--quiet")
    words = ("run", study(tmp_path, samples=2, points=2), *out)
    done = ran(sys.executable, "-m", "wanlat", *words, cwd=tmp_path, env=bare)
    assert done.returncode == 0, done.stderr
