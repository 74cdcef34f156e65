"""Limits of processor time by cgroup v2, which only this kernel has to ourselves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.boot import BACKEND_VARIABLE
from wanlat.emulator.cgroup import CpuGroup

SPIN = """
import sys, time
sys.stdin.read(1)
begun, used = time.monotonic(), time.process_time()
while time.monotonic() - begun < 0.6:
    pass
print((time.process_time() - used) / (time.monotonic() - begun))
"""


@pytest.fixture
def root() -> Iterator[Path]:
    if os.environ.get(BACKEND_VARIABLE) != "netem":
        pytest.skip("mounts cgroup v2: for the kernel that `make test-kernel` boots")
    made = Path("/run/cgroup")
    made.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", str(made)], check=True)
    yield made
    subprocess.run(["umount", str(made)], check=True)
    made.rmdir()


def test_a_process_is_limited_and_nothing_is_left_of_it(root: Path) -> None:
    group = CpuGroup(0.2)
    assert group.directory.parent == root
    command = [sys.executable, "-S", "-c", SPIN]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as spinner:
        group.add(spinner.pid)
        part, _ = spinner.communicate(".")
    assert 0 < float(part) < 0.3  # a busy machine gives it less, nobody gives it more
    assert group.throttled_s > 0
    group.remove()
    assert [path for path in root.iterdir() if path.is_dir()] == []
