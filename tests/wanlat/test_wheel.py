"""A wheel in an empty environment, away from the checkout, beside a user's own modules.

The environment is made from the package index that pip is set up with: what the wheel says it
needs must be all that it needs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.command_line import CHECKOUT, ran, tracked
from tests.wanlat.action_runner import Job, environment
from tests.wanlat.test_one_name import ROOMS
from tests.wanlat.test_pytest_plugin import NEAR

pytestmark = pytest.mark.registry

CRATES = ("emulator/wire/", "systems/quorum/", "probes/oneshot/", "proto/")
OF_CRATES = ("proto/bob.proto", "systems/quorum/hooks.py", "systems/quorum/system.yaml")
"""What lies beside a crate, and is in the wheel."""
KINDS = (".py", ".yaml", ".j2", ".css", ".js", ".json", ".csv", ".proto", "py.typed")
SHADOW = "MINE = True\n"
STUDY = """
name: mine
topology: near.yaml
systems: [quorum]
endpoints: [PutObject, GetObject]
samples: 10
"""
SUITE = """
import analysis, emulator, experiments  # the user's own
import pytest
import wanlat.analysis.figures.drill

@pytest.mark.wanlat_topology("near.yaml")
def test_a_probe(wanlat_probe, wanlat_fault):
    key = wanlat_probe.put("a name").key
    with wanlat_fault("stop", "n2"):
        assert wanlat_probe.at("n3").get(key).ok

def test_a_drill(wanlat_drill):
    few = {"objects": 60, "interval": "1s"}
    assert wanlat_drill("one-node-killed", scale=0.06, settings=few).passed

def test_the_modules_are_the_users():
    assert analysis.MINE and emulator.MINE and experiments.MINE
    assert "site-packages" in wanlat.analysis.figures.drill.__file__
"""


def succeed(*command: str | Path, cwd: Path, within_s: float = 300, **changes: str) -> str:
    """Run a command with nothing of this checkout in its environment but `changes`."""
    done = ran(*command, cwd=cwd, env=environment(**changes), timeout=within_s)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `make wheel` builds it where an earlier one was built from another state."""
    library = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    left = CHECKOUT / "build" / library / "wanlat" / "left_behind.py"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    # It lists what was packed before, which would be packed again whatever pyproject.toml says.
    shutil.rmtree(CHECKOUT / "wanlat.egg-info", ignore_errors=True)
    try:
        succeed("make", "-o", "setup", "wheel", f"BIN={Path(sys.executable).parent}", cwd=CHECKOUT)
    finally:
        left.unlink(missing_ok=True)
    built = max((CHECKOUT / "dist").glob("wanlat-*.whl"), key=lambda path: path.stat().st_mtime)
    return Path(shutil.copy(built, tmp_path_factory.mktemp("dist")))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds the wheel, what it needs, and pytest."""
    home = tmp_path_factory.mktemp("environment")
    succeed(sys.executable, "-m", "venv", home / "venv", cwd=home)
    pip = home / "venv" / "bin" / "pip"
    # The versions that the checkout is tested with.
    succeed(pip, "install", "-q", "--require-hashes", "-r", CHECKOUT / "requirements.txt", cwd=home)
    succeed(pip, "install", "-q", wheel, f"pytest=={pytest.__version__}", cwd=home)
    return home / "venv" / "bin"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A user's directory, with modules that are named as our rooms."""
    (tmp_path / "analysis.py").write_text(SHADOW)
    for name in ("emulator", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(SHADOW)
    (tmp_path / "near.yaml").write_text(NEAR)
    return tmp_path


def test_the_wheel_holds_every_file_that_the_checkout_has_and_no_other(wheel: Path) -> None:
    # What git does not know yet is in as well, unless it is told to ignore it.
    listed = [file for file in tracked("wanlat", *ROOMS, "proto") if file.is_file()]
    programs = {f"wanlat/bin/{name}" for name in ("wire", "oneshot", "quorum")}
    files = {
        path if path.startswith("wanlat/") else f"wanlat/{path}"
        for path in (str(file.relative_to(CHECKOUT)) for file in listed)
        if path in OF_CRATES or not path.startswith(CRATES)
    }
    wanted = {path for path in files if path.endswith(KINDS)}
    assert len(wanted) > 200
    of = wheel.name.split("-py3")[0]
    names = zipfile.ZipFile(wheel).namelist()
    shared = {name for name in names if name.startswith(f"{of}.data/data/share/")}
    metadata = zipfile.ZipFile(wheel).read(f"{of}.dist-info/METADATA").decode()
    assert {"clients", "dask"} <= set(re.findall("^Provides-Extra: (.+)$", metadata, re.MULTILINE))
    assert {name.split("/share/")[1] for name in shared} == {
        *("man/man1/wanlat.1", "bash-completion/completions/wanlat"),
        *("zsh/site-functions/_wanlat", "fish/vendor_completions.d/wanlat.fish"),
    }
    held = {name for name in names if not name.startswith(f"{of}.dist-info/")} - shared
    assert not wanted - held, "missing"
    assert not programs - held, "missing"
    assert not held - files - programs, "too much"


def test_a_study_runs_beside_a_users_own_modules(programs: Path, desk: Path) -> None:
    assert "No broken requirements" in succeed(programs / "pip", "check", cwd=desk)
    (desk / "mine.yaml").write_text(STUDY)
    said = succeed(
        *(programs / "wanlat", "run", "mine.yaml", "--json", "--out", desk / "bundle"),
        *("--max-network-error", "200ms"),
        cwd=desk,
    )
    endpoints = json.loads(said)["endpoints"]
    assert {(each["endpoint"], each["ok"]) for each in endpoints} == {
        ("PutObject", 10),
        ("GetObject", 10),
    }
    summary = desk / "bundle" / "summary.json"
    chart = desk / "bundle" / "charts" / "endpoint-latency.png"
    assert chart.stat().st_size > 10_000
    before = {path: path.read_bytes() for path in (summary, chart)}
    for path in before:
        path.unlink()
    succeed(programs / "python", "-m", "wanlat.cli", "report", desk / "bundle", cwd=desk)
    assert {path: path.read_bytes() for path in before} == before
    assert viewed(programs, desk / "bundle") == (desk / "bundle" / "report.html").read_text()
    code = "import sys, wanlat; print(len(wanlat.open_bundle(sys.argv[1]).figures['endpoints']))"
    assert succeed(programs / "python", "-c", code, desk / "bundle", cwd=desk) == "2\n"


def viewed(programs: Path, bundle: Path) -> str:
    """The page of a bundle that `wanlat view` serves."""
    view = subprocess.Popen(
        [programs / "wanlat", "view", bundle.parent], stderr=subprocess.PIPE, text=True
    )
    try:
        assert view.stderr is not None
        address = view.stderr.readline().removeprefix("view: ").strip()
        with urlopen(f"{address}report/{bundle.name}", timeout=60) as answer:
            return str(answer.read().decode())
    finally:
        view.terminate()
        view.wait(timeout=30)


def test_a_drill_runs_and_is_reported(programs: Path, desk: Path) -> None:
    said = succeed(
        *(programs / "wanlat", "drill", "run", "one-node-killed", "--systems", "quorum"),
        *("--scale", "0.06", "--set", "objects=60", "--set", "interval=1s"),
        *("--max-network-error", "200ms", "--out", desk / "drill", "--json"),
        cwd=desk,
    )
    assert json.loads(said)["drill"]["passed"]
    succeed(programs / "wanlat", "report", desk / "drill", "--junit", "junit.xml", cwd=desk)
    assert "one-node-killed" in (desk / "junit.xml").read_text()


def test_the_action_installs_it_and_measures(wheel: Path, desk: Path) -> None:
    (desk / "mine.yaml").write_text(STUDY)
    job = Job(desk, environment())
    assert job.uses(study="mine.yaml", systems="quorum", package=str(wheel)) == 0, job.said
    assert job.skipped == ["Cache of stores"]
    assert "| Quorum 0.1.0 | PutObject |" in job.summary
    assert "quorum PutObject" in json.loads((desk / "wanlat-results" / "bmf.json").read_text())


def test_the_pytest_plugin_works_beside_a_users_own_modules(programs: Path, desk: Path) -> None:
    (desk / "test_store.py").write_text(SUITE)
    passed = succeed(programs / "python", "-m", "pytest", "-q", "--wanlat-require", cwd=desk)
    assert "3 passed" in passed
