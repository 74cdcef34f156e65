"""A disk that is full: a real file system, real ENOSPC, and room again afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.emulator.plans import mesh
from wanlat.emulator.faults.disk_full import Ballast, DiskFull
from wanlat.emulator.faults.fault import FaultFailed, Scene
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import MachineError, UserError

MIB = 1 << 20
PLAN = mesh(2)
ROLES = {"victim": ("n2",)}


def disk_full(target: object = "victim", **settings: object) -> DiskFull:
    return DiskFull.parse(target, {"size": "16MiB"} | settings, PLAN, ROLES)


def write(lab: Lab, node: str, name: str, size: int) -> subprocess.CompletedProcess[str]:
    """Have a program on a node write and sync a file in its own directory."""
    return lab.run(
        node, ["dd", "if=/dev/zero", f"of={name}", f"bs={size}", "count=1", "conv=fsync"]
    )


@pytest.fixture(params=["memory", "disk"])
def lab(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("WANLAT_LABS", str(tmp_path / "labs"))
    storage: Literal["memory", "disk"] = request.param
    with Lab(PLAN, storage=storage, volumes=dict(disk_full().volumes)) as made:
        yield made
    left = tmp_path / "labs"
    assert not left.exists() or list(left.iterdir()) == []


def test_a_volume_has_its_size_and_is_seen_from_both_sides(lab: Lab) -> None:
    limited, free = lab.node("n2"), lab.node("n1")
    (limited.host_directory / "from-outside").write_text("hello")
    assert lab.run("n2", ["cat", "from-outside"]).stdout == "hello"
    lab.run("n2", ["sh", "-c", "echo inside > from-inside"])
    assert (limited.host_directory / "from-inside").read_text() == "inside\n"
    size = os.statvfs(limited.host_directory)
    assert size.f_blocks * size.f_frsize == 16 * MIB
    assert os.statvfs(free.host_directory).f_fsid != size.f_fsid
    assert "No space left" in write(lab, "n2", "large", 17 * MIB).stderr


def test_a_full_disk_refuses_writes_and_has_room_again_afterwards(lab: Lab) -> None:
    fault, scene = disk_full(), Scene(lab, {})
    fault.check(lab)
    assert write(lab, "n2", "before", MIB).returncode == 0
    at = time.monotonic_ns()
    begun = fault.begin(scene)
    assert at <= begun <= time.monotonic_ns()
    refused = write(lab, "n2", "during", 4096)
    assert refused.returncode != 0
    assert "No space left on device" in refused.stderr
    assert write(lab, "n1", "elsewhere", MIB).returncode == 0
    held = lab.node("n2").host_directory
    assert sorted(path.name for path in held.iterdir()) == ["before", "during"]  # no file of ours
    assert (held / "before").stat().st_size == MIB  # what was there is as it was
    ended = fault.end(scene)
    assert begun < ended <= time.monotonic_ns()
    assert write(lab, "n2", "after", 8 * MIB).returncode == 0


def test_what_the_store_frees_itself_it_may_use_again(lab: Lab) -> None:
    fault, scene = disk_full(), Scene(lab, {})
    write(lab, "n2", "old", MIB)
    fault.begin(scene)
    lab.run("n2", ["rm", "old"])
    assert write(lab, "n2", "new", MIB).returncode == 0
    assert write(lab, "n2", "more", MIB).returncode != 0
    fault.end(scene)


def test_two_that_overlap_keep_it_full_until_both_have_ended(lab: Lab) -> None:
    first, second, scene = disk_full(), disk_full(["n2"], size="8MiB"), Scene(lab, {})
    first.begin(scene)
    second.begin(scene)
    first.end(scene)
    assert write(lab, "n2", "between", 4096).returncode != 0
    second.end(scene)
    assert write(lab, "n2", "after", MIB).returncode == 0


def test_a_disk_that_stays_full_fails_the_fault(lab: Lab) -> None:
    fault, scene = disk_full(), Scene(lab, {})
    fault.begin(scene)
    sabotage = _other_ballast(lab)
    with sabotage, pytest.raises(FaultFailed, match=r"disk of n2 nothing can be written.*No space"):
        fault.end(scene)
    assert write(lab, "n2", "after", MIB).returncode == 0


@contextlib.contextmanager
def _other_ballast(lab: Lab) -> Iterator[None]:
    """Have somebody else take the space in the moment in which it is given back."""
    directory = lab.node("n2").host_directory
    taken = Ballast(directory)
    truncate = os.ftruncate

    def snatch(fd: int, size: int) -> None:
        truncate(fd, size)
        taken.fill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "ftruncate", snatch)
        yield
    taken.release()


def test_nothing_is_left_of_a_full_disk_whose_drill_is_killed(tmp_path: Path) -> None:
    program = """
import time
from wanlat.emulator.faults.disk_full import DiskFull
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.lab import Lab
from tests.emulator.plans import mesh
fault = DiskFull.parse("n1", {"size": "16MiB"}, mesh(1), {})
with Lab(mesh(1), storage="disk", volumes=fault.volumes) as lab:
    fault.begin(Scene(lab, {}))
    print(lab.supervisor_pid, flush=True)
    time.sleep(60)
"""
    environment = os.environ | {
        "WANLAT_LABS": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    drill = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert drill.stdout is not None
    supervisor = int(drill.stdout.readline())
    assert [path.is_dir() for path in tmp_path.iterdir()] == [True]
    drill.send_signal(signal.SIGKILL)
    drill.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (
        Path(f"/proc/{supervisor}").exists() or list(tmp_path.iterdir())
    ):
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
    assert not Path(f"/proc/{supervisor}").exists()
    drill.stdout.close()


def test_a_node_without_a_volume_is_refused() -> None:
    with Lab(PLAN) as lab, pytest.raises(UserError, match="directory of n2 is no file system of"):
        disk_full().check(lab)


def test_more_than_the_machines_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wanlat.emulator.faults.disk_full.available_memory_bytes", lambda: 10 * MIB)
    with (
        Lab(PLAN, volumes=disk_full().volumes) as lab,
        pytest.raises(MachineError, match=r"fills 16 MiB of memory.*10 MiB are free"),
    ):
        disk_full().check(lab)


def test_targets_and_sizes_are_read() -> None:
    assert DiskFull.parse("dc1", {}, PLAN, ROLES).volumes == {"n1": 256 * MIB}
    assert disk_full(["n1", "victim"]).volumes == {"n1": 16 * MIB, "n2": 16 * MIB}
    assert disk_full().subject == "n2"
    with pytest.raises(UserError, match="at least 8MiB"):
        disk_full(size="1MiB")
    with pytest.raises(UserError, match="no site or node `n7`"):
        disk_full("n7")
    with pytest.raises(UserError, match="is to have 5 bytes"):
        Lab(PLAN, volumes={"n1": 5})
    with pytest.raises(UserError, match="no node `n9`"):
        Lab(PLAN, volumes={"n9": MIB})
