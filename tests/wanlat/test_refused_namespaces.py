"""A machine that refuses namespaces: every command that needs a lab says so, with exit code 3.

The kernel refuses them for real, within a user namespace of the test's own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import machine_lacks_a_lab

STUDY = """
name: test
topology: one-site
nodes: 1
endpoints: [GetObject]
samples: 5
warmup: 2
"""


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if machine_lacks_a_lab():
        pytest.skip("no namespace to refuse namespaces in")


def refused(limit: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory where a limit (`user=0`) of namespaces is in force."""
    name, value = limit.split("=")
    (directory / "study.yaml").write_text(STUDY)
    (directory / "matrix.yaml").write_text(STUDY + "matrix: {object_size: [1KiB, 2KiB]}\n")
    return subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "sh", "-c"),
            f'echo {value} >/proc/sys/user/max_{name}_namespaces && exec "$@"',
            *("sh", sys.executable, "-m", "wanlat.cli", *arguments),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def left_in(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir()} - {"study.yaml", "matrix.yaml"}


DRILL = ("drill", "run", "one-node-killed", "--systems", "quorum")


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ("user=0", "sudo sysctl -w user.max_user_namespaces"),
        # refused by the supervisor, and not by the guard
        pytest.param("mnt=0", "wanlat doctor", marks=pytest.mark.minutes),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "study.yaml"),
        ("run", "study.yaml", "--out", "bundle"),
        ("run", "matrix.yaml"),
        DRILL,
        (*DRILL, "--out", "bundle"),
        ("trace", "five-sites", "--system", "quorum", "--endpoint", "PutObject", "--out", "bundle"),
        ("calibrate", "one-site"),
    ],
    ids=" ".join,
)
def test_it_is_told_and_nothing_is_left(
    arguments: tuple[str, ...], limit: str, says: str, tmp_path: Path
) -> None:
    done = refused(limit, tmp_path, *arguments)
    assert done.returncode == 3, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize("arguments", [("run", "study.yaml", "--set", "nodes=4"), DRILL])
def test_a_lab_that_is_too_large_for_the_limit_is_told_as_early(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    done = refused("net=6", tmp_path, *arguments)
    assert done.returncode == 3, done.stderr
    assert "network namespaces, and the limit (user.max_net_namespaces) is 6" in done.stderr
    assert left_in(tmp_path) == set()


def test_a_bundle_to_resume_is_left_as_it_is(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    text = "samples: 5\nready_timeout: 1s\nmatrix: {warmup: [1]}"
    study.write_text(STUDY.replace("samples: 5", text))
    hangs = tmp_path / "quorum"
    hangs.write_text("#!/bin/sh\n[ $1 = --version ] && echo 'quorum 9' && exit\nexec sleep 600\n")
    hangs.chmod(0o755)
    bundle = tmp_path / "bundle"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("WANLAT_QUORUM_BINARY", str(hangs))
        begun = subprocess.run(
            [sys.executable, "-m", "wanlat.cli", "run", str(study), "--out", str(bundle)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert begun.returncode == 1, begun.stderr
        before = contents(bundle)
        done = refused("user=0", tmp_path, "run", "--resume", "bundle")
    assert done.returncode == 3, done.stderr
    assert contents(bundle) == before


def contents(directory: Path) -> dict[str, bytes]:
    files = [each for each in directory.rglob("*") if each.is_file()]
    return {str(each.relative_to(directory)): each.read_bytes() for each in files}
