"""Processes that are limited get what they are given, with all their children, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulator.faults.heartbeats import Heart
from tests.emulator.plans import mesh
from wanlat.emulator import cgroup, family
from wanlat.emulator.cgroup import CpuGroup
from wanlat.emulator.faults.cpu_throttled import CpuThrottled
from wanlat.emulator.faults.fault import Hit, Scene
from wanlat.emulator.faults.processes import Kill
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import MachineError

PLAN = mesh(1)
TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module", autouse=True)
def group() -> None:
    """Skips where nothing can be limited (that it can be, tests/kernel/test_cgroup_v2 shows)."""
    try:
        CpuGroup(0.5).remove()
    except MachineError as impossible:
        pytest.skip(str(impossible))


def spinner(lab: Lab) -> Heart:
    """Return a service whose child takes all the processor time that it gets."""
    script = f"trap 'kill $!' EXIT; {sys.executable} -S -c 'while True: pass' & wait"
    return Heart(lab, "n1", ["sh", "-c", script])


def hosts_pids(lab: Lab, service: Heart) -> set[int]:
    assert service.process is not None
    proc = Path(f"/proc/{lab.supervisor_pid}/root/proc")
    members = family.members(proc, service.process.pid)
    return set(family.outside(lab.supervisor_pid, members).values())


def part_of_a_processor(lab: Lab, service: Heart, seconds: float = 0.6) -> float:
    """Return the processor time that a service's processes take, by the time that passes."""
    members = hosts_pids(lab, service)

    def used_s() -> float:
        total = 0.0
        for pid in members:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
        return total

    before, begun = used_s(), time.monotonic()
    time.sleep(seconds)
    return (used_s() - before) / (time.monotonic() - begun)


@pytest.fixture
def stage() -> Iterator[tuple[Scene, Heart]]:
    with Lab(PLAN) as lab:
        service = spinner(lab)
        service.start(lab)
        time.sleep(0.2)
        yield Scene(lab, {"n1": service}), service
    left = cgroup._find()[0].glob(f"wanlat-{os.getpid()}-*")
    assert list(left) == []


def test_a_limited_node_gets_its_quota_also_when_it_is_started_anew_until_the_end(
    stage: tuple[Scene, Heart],
) -> None:
    scene, service = stage
    fault, kill = CpuThrottled.parse("n1", {"quota": "10%"}, PLAN, {}), Kill(Hit.on_nodes("n1"))
    fault.check(scene.lab)
    at = time.monotonic_ns()
    begun = fault.begin(scene)
    assert at < begun <= time.monotonic_ns()
    assert part_of_a_processor(scene.lab, service, 1.5) < 0.14
    kill.begin(scene)
    kill.end(scene)
    time.sleep(0.2)
    assert part_of_a_processor(scene.lab, service, 1.5) < 0.14
    # A busy machine gives it less than that in any case; so look who is in.
    pids = hosts_pids(scene.lab, service)
    assert len(pids) == 2
    assert fault._limits["n1"][0].members == pids
    fault.end(scene)
    assert all("wanlat-" not in Path(f"/proc/{pid}/cgroup").read_text() for pid in pids)
    assert "10% of one processor; processors made to wait" in fault.detail


def test_a_drill_that_is_killed_leaves_no_group() -> None:
    program = """
import time
from wanlat.emulator.faults.cpu_throttled import CpuThrottled
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.lab import Lab
from tests.emulator.faults.test_resource_cpu import PLAN, spinner
with Lab(PLAN) as lab:
    service = spinner(lab)
    service.start(lab)
    fault = CpuThrottled.parse("n1", {"quota": "10%"}, PLAN, {})
    fault.begin(Scene(lab, {"n1": service}))
    print(fault._limits["n1"][0].directory, flush=True)
    time.sleep(60)
"""
    drill = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert drill.stdout is not None
    group = Path(drill.stdout.readline().strip())
    assert (group / "cgroup.procs").read_text().split()
    drill.send_signal(signal.SIGKILL)
    drill.wait()
    deadline = time.monotonic() + 60
    while group.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group.exists()
    drill.stdout.close()
