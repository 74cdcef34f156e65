"""A disk that is full: a real file system, real ENOSPC, and room again afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.plans import mesh
from wanlat.emulator.faults.disk_full import DiskFull
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import UserError

MIB = 1 << 20
PLAN = mesh(2)


def disk_full() -> DiskFull:
    return DiskFull.parse("victim", {"size": "16MiB"}, PLAN, {"victim": ("n2",)})


def write(lab: Lab, node: str, name: str, size: int) -> subprocess.CompletedProcess[str]:
    """Have a program on a node write and sync a file in its own directory."""
    return lab.run(
        node, ["dd", "if=/dev/zero", f"of={name}", f"bs={size}", "count=1", "conv=fsync"]
    )


@pytest.fixture(params=["memory", "disk"])
def lab(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("WANLAT_LABS", str(tmp_path / "labs"))
    with Lab(PLAN, storage=request.param, volumes=dict(disk_full().volumes)) as made:
        yield made
    left = tmp_path / "labs"
    assert not left.exists() or not any(list(store.iterdir()) for store in left.iterdir())


def test_a_full_disk_refuses_writes_and_has_room_again_afterwards(lab: Lab) -> None:
    fault, scene = disk_full(), Scene(lab, {})
    held = lab.node("n2").host_directory
    size = os.statvfs(held)
    assert size.f_blocks * size.f_frsize == 16 * MIB
    fault.check(lab)
    assert write(lab, "n2", "before", MIB).returncode == 0
    at = time.monotonic_ns()
    begun = fault.begin(scene)
    assert at <= begun <= time.monotonic_ns()
    refused = write(lab, "n2", "during", 4096)
    assert refused.returncode != 0
    assert "No space left on device" in refused.stderr
    assert write(lab, "n1", "elsewhere", MIB).returncode == 0
    assert sorted(path.name for path in held.iterdir()) == ["before", "during"]  # no file of ours
    assert (held / "before").stat().st_size == MIB  # what was there is as it was
    lab.run("n2", ["rm", "before"])  # what the store frees itself it may use again
    assert write(lab, "n2", "new", MIB).returncode == 0
    ended = fault.end(scene)
    assert begun < ended <= time.monotonic_ns()
    assert write(lab, "n2", "after", 8 * MIB).returncode == 0


def test_a_node_without_a_volume_is_refused_and_so_is_a_tiny_one() -> None:
    with Lab(PLAN) as lab, pytest.raises(UserError, match="directory of n2 is no file system of"):
        disk_full().check(lab)
    with pytest.raises(UserError, match="at least 8MiB"):
        DiskFull.parse("n1", {"size": "1MiB"}, PLAN, {})
    with pytest.raises(UserError, match="is to have 5 bytes"):
        Lab(PLAN, volumes={"n1": 5})
