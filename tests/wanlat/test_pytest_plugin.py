"""Fixtures and markers for users' own tests: as their pytest runs them, several at a time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.command_line import here, ran
from tests.own_store import DEFINITION

SUITE = """
import pytest

@pytest.mark.wanlat_topology("near.yaml")
def test_that_fails(wanlat_probe, wanlat_fault):
    key = wanlat_probe.put("a name of my own").key
    with wanlat_fault("stop", "n2"):
        wanlat_probe.get(key)
    assert wanlat_probe.at("n3").get(key).latency_ms < 0, "this is what fails"

@pytest.mark.wanlat_topology("near.yaml")
def test_that_passes(wanlat_probe):
    assert wanlat_probe.put().ok

@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.wanlat_system("quorum", api="bob")
def test_bobs_api(wanlat_probe, size):
    key = wanlat_probe.put("any text", object_bytes=size).key
    assert wanlat_probe.at("n3").get(key).ok
    assert wanlat_probe.remove(key).ok
    assert wanlat_probe.at("n2").get(key).outcome == "fail"

def test_a_lab_alone(wanlat_lab, wanlat_fault):
    address = wanlat_lab.node("n2").address
    with wanlat_fault("blackhole", "n2"):
        with pytest.raises(OSError):
            wanlat_lab.connect("n1", (address, 9), timeout_s=0.3)
    with pytest.raises(ConnectionRefusedError):
        wanlat_lab.connect("n1", (address, 9), timeout_s=30)

def test_a_key_that_nobody_put(wanlat_probe):
    with pytest.raises(Exception, match="Put it first"):
        wanlat_probe.get("nothing")

@pytest.mark.wanlat_system("./ci/mystore/")
def test_a_store_of_ones_own(wanlat_probe, wanlat_system):
    assert wanlat_system == "own-store"
    key = wanlat_probe.put().key
    assert wanlat_probe.at("n3").get(key).ok

@pytest.mark.wanlat_system("quorum", "garage", "minio")
def test_on_each(wanlat_system, wanlat_drill):
    assert wanlat_system
"""
NEAR = """
name: near
sites:
  - {name: dc1, nodes: [n1, n2]}
  - {name: dc2, nodes: [n3]}
links: {default: {rtt: 20ms}}
"""


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a directory, as a user whose machine has no store installed."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("WANLAT_", "PYTEST_"))
    }
    empty = str(directory / "cache")
    # No configuration of ours reaches it: its root is the directory.
    command = [sys.executable, "-m", "pytest", "--rootdir", str(directory), "-c", os.devnull]
    own = environment | {"XDG_CACHE_HOME": empty, "PATH": "/usr/bin:/bin"}
    plain = ("-p", "no:cacheprovider", "-rs", "-v")
    return ran(*command, *plain, *arguments, cwd=directory, env=own)


def write_store(directory: Path) -> None:
    """Write the definition of a store of the user's own."""
    directory.mkdir(parents=True)
    (directory / "system.yaml").write_text(DEFINITION)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory of a suite that was run by several workers, and what was printed."""
    directory = tmp_path_factory.mktemp("repository")
    (directory / "test_store.py").write_text(SUITE)
    (directory / "near.yaml").write_text(NEAR)
    write_store(directory / "ci" / "mystore")
    done = run(directory, "-n", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    return directory, done.stdout


def test_tests_run_beside_each_other_and_what_is_not_installed_is_skipped(
    suite: tuple[Path, str],
) -> None:
    _, printed = suite
    came = re.findall(r"(PASSED|FAILED|ERROR|SKIPPED) test_store\.py::(\S+)", printed)
    assert {name: what for what, name in came} == {
        "test_that_fails": "FAILED",
        "test_that_passes": "PASSED",
        "test_bobs_api[quorum-1]": "PASSED",
        "test_bobs_api[quorum-100000]": "PASSED",
        "test_a_lab_alone": "PASSED",
        "test_a_key_that_nobody_put": "PASSED",
        "test_a_store_of_ones_own[./ci/mystore/]": "PASSED",
        "test_on_each[quorum]": "PASSED",
        "test_on_each[garage]": "SKIPPED",
        "test_on_each[minio]": "SKIPPED",
    }, printed
    assert "wanlat system install garage" in printed


def test_a_failed_test_leaves_its_bundle_and_the_others_none(suite: tuple[Path, str]) -> None:
    directory, printed = suite
    kept = directory / "results" / "tests"
    assert [each.name for each in kept.iterdir()] == ["test_store.py.test_that_fails"]
    bundle = kept / "test_store.py.test_that_fails"
    assert f"the bundle of this test: {bundle}" in printed
    logs = {each.name for each in (bundle / "logs").iterdir()}
    assert logs == {f"quorum-n{number}.log" for number in (1, 2, 3)}
    assert json.loads((bundle / "manifest.json").read_text())["status"] == "failed"
    rows = pq.read_table(bundle / "samples.parquet").to_pylist()
    assert [(row["endpoint"], row["client"], row["outcome"]) for row in rows] == [
        ("PutObject", "n1", "ok"),
        ("GetObject", "n1", "ok"),
        ("GetObject", "n3", "ok"),
    ]
    events = pq.read_table(bundle / "events.parquet").to_pylist()
    broken = [event for event in events if event["kind"] in ("inject", "heal")]
    assert [event["kind"] for event in broken] == ["inject", "heal"]
    assert broken[0]["subject"] == "1 stop n2"
    assert json.loads(broken[0]["detail"])["nodes"] == ["n2"]
    # The read in between met the fault, and the one after it did not.
    assert broken[0]["t_ns"] <= rows[1]["start_ns"] <= broken[1]["t_ns"] <= rows[2]["start_ns"]
    done = here("report", str(bundle), "--json")
    assert done.returncode == 0, done.stderr
    # What a busy machine made late is in the bundle, and in no figure.
    on_time = Counter(row["endpoint"] for row in rows if not row["late"])
    found = Counter[str]()
    for row in json.loads(done.stdout)["endpoints"]:
        found[row["endpoint"]] += row["ok"] - row["late"]
    assert found == on_time
    assert "taken again" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("build", "required", "summary", "says"),
    [
        ("raise OSError(errno.EPERM, 'planted')", [], "1 skipped", "planted"),
        ("raise OSError(errno.EPERM, 'planted')", ["--wanlat-require"], "1 error", "planted"),
        # A mistake of ours skips nothing.
        ("raise KeyError('planted')", [], "1 error", "Please report it"),
    ],
)
def test_what_the_machine_refuses_skips_unless_it_is_required(
    tmp_path: Path, build: str, required: list[str], summary: str, says: str
) -> None:
    (tmp_path / "test_store.py").write_text("def test_a_lab(wanlat_lab):\n    assert False\n")
    program = (
        "import errno\nfrom wanlat.emulator import supervisor\n"
        f"def build(*_):\n    {build}\nsupervisor.Supervisor.build = build\n"
    )
    (tmp_path / "conftest.py").write_text(
        "from wanlat.emulator import owner\n"
        f"owner._GUARD_PROGRAM = {program!r} + owner._GUARD_PROGRAM\n"
    )
    printed = run(tmp_path, *required).stdout
    assert summary in printed and says in printed, printed


def test_a_store_that_is_not_installed_fails_where_it_is_required(tmp_path: Path) -> None:
    (tmp_path / "test_store.py").write_text(SUITE)
    printed = run(tmp_path, "--wanlat-require", "-k", "test_on_each and garage").stdout
    assert "1 error" in printed and "wanlat system install garage" in printed, printed


OWN = """
import pytest
from wanlat.systems import registry

def is_known(name):
    return registry.get(name).name == name

@pytest.mark.wanlat_system("../stores/at-root/", "./stores/at-root/", "stores/at-root")
def test_from_the_file_or_from_the_root(wanlat_system):
    assert wanlat_system == "own-store" and is_known(wanlat_system)

@pytest.mark.wanlat_system("of-a-package", "quorum")
def test_by_name(wanlat_system):
    assert is_known(wanlat_system)

@pytest.mark.wanlat_system("./nowhere/")
def test_nowhere(wanlat_system):
    pass

@pytest.mark.wanlat_topology("nets/near.yaml")
def test_a_network_of_the_root(wanlat_topology):
    assert wanlat_topology.name == "near"

def test_a_drill_beside_the_test(wanlat_drill):
    with pytest.raises(Exception, match="mine.yaml:2: .*killl"):
        wanlat_drill("mine.yaml")

def test_claims_beside_the_test(wanlat_drill):
    with pytest.raises(Exception, match="claims.yaml:1: .*claimz"):
        wanlat_drill("one-node-killed", claims=["claims.yaml"])
"""


def test_paths_lead_from_the_tests_file_or_the_rootdir_and_names_may_be_a_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "unit/test_own.py": OWN,
        "unit/mine.yaml": "name: mine\nkilll: 3\n",
        "unit/claims.yaml": "claimz: []\n",
        "nets/near.yaml": NEAR,
        "site/of_a_package/__init__.py": "",
        "site/of_a_package-1.dist-info/METADATA": "Name: of-a-package\nVersion: 1\n",
        "site/of_a_package-1.dist-info/entry_points.txt": (
            "[wanlat.systems]\nof-a-package = of_a_package\n"
        ),
        "site/of_a_package/system.yaml": DEFINITION.replace("own-store", "of-a-package"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    write_store(tmp_path / "stores" / "at-root")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{before}")
    printed = run(tmp_path, "unit").stdout
    came = re.findall(r"^unit/test_own\.py::(\S+) (FAILED|ERROR)", printed, re.MULTILINE)
    assert came == [("test_nowhere[./nowhere/]", "ERROR")], printed
    assert "8 passed" in printed
    assert f"in {tmp_path}/unit nor in {tmp_path}: a path is relative to" in printed
