"""Limits of processor time by cgroup v2, in a group that has been delegated."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.boot import BACKEND_VARIABLE, CHECKOUT

_DRILL = """
import os
from pathlib import Path
from wanlat.emulator.cgroup import CpuGroup
from wanlat.emulator.faults.cpu_throttled import _spin

def own():
    return Path("/proc/self/cgroup").read_text().strip()

before = own()
group = CpuGroup(0.2)
inside, part = own(), _spin(group)
usage = group.usage
group.remove()
print([before, inside, own(), str(group.directory), part, usage.throttled])
"""


@pytest.fixture
def scope() -> Iterator[Path]:
    """Return a group with the controller `cpu`, as systemd makes one with Delegate=yes."""
    if os.environ.get(BACKEND_VARIABLE) != "netem":
        pytest.skip("mounts cgroup v2: for the kernel that `make test-kernel` boots")
    root = Path("/run/cgroup")
    root.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", str(root)], check=True)
    (root / "cgroup.subtree_control").write_text("+cpu")
    made = root / "wanlat.scope"
    made.mkdir()
    yield made
    for group in (*made.iterdir(), made):
        if group.is_dir():
            group.rmdir()
    subprocess.run(["umount", str(root)], check=True)
    root.rmdir()


def run(scope: Path) -> subprocess.CompletedProcess[str]:
    """Make a limit from within the group, and report."""
    return subprocess.run(
        [
            "sh",
            "-c",
            f'echo $$ > {scope}/cgroup.procs && exec "$0" -c "$1"',
            sys.executable,
            _DRILL,
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(CHECKOUT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_delegated_group_is_limited_and_left_as_it_was(scope: Path) -> None:
    os.setxattr(scope, "user.delegate", b"1")
    done = run(scope)
    assert done.returncode == 0, done.stderr
    before, inside, after, group, part, throttled = ast.literal_eval(done.stdout)
    assert before == after == "0::/wanlat.scope"
    assert inside == "0::/wanlat.scope/wanlat-rest"  # v2 has processes in leaves only
    assert 0 < part < 0.3  # a busy machine gives it less, nobody gives it more
    assert throttled > 3
    assert Path(group).parent == scope
    assert [path for path in scope.iterdir() if path.is_dir()] == []
    assert (scope / "cgroup.subtree_control").read_text().split() == []


def test_a_group_that_is_not_delegated_is_left_alone(scope: Path) -> None:
    done = run(scope)
    assert done.returncode != 0
    assert "has not been delegated to us" in done.stderr
    assert "systemd-run --user --scope -p Delegate=yes" in done.stderr
    assert [path for path in scope.iterdir() if path.is_dir()] == []
