"""Processes that are limited get what they are given, with all their children, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.emulator.plans import mesh
from wanlat.emulator import cgroup, family
from wanlat.emulator.cgroup import CpuGroup
from wanlat.emulator.family import outside
from wanlat.emulator.faults.cpu_throttled import CpuThrottled
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.lab import Lab
from wanlat.emulator.process import Process
from wanlat.topologies.errors import MachineError, UserError

PLAN = mesh(2)
SPIN = [sys.executable, "-S", "-c", "while True: pass"]
TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def group() -> None:
    """Skips where nothing can be limited (that it can be, tests/kernel/test_cgroup_v2 shows)."""
    try:
        CpuGroup(0.5).remove()
    except MachineError as impossible:
        pytest.skip(str(impossible))


needs_a_group = pytest.mark.usefixtures("group")


@dataclass
class Spinner:
    """A service whose child takes all the processor time that it gets."""

    node: str
    process: Process | None = field(default=None)

    def start(self, lab: Lab) -> None:
        script = f"trap 'kill $!' EXIT; {sys.executable} -S -c 'while True: pass' & wait"
        self.process = lab.spawn(self.node, ["sh", "-c", script])

    def stop(self, how: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal_to_family(how)


def hosts_pids(lab: Lab, service: Spinner) -> set[int]:
    assert service.process is not None
    proc = Path(f"/proc/{lab.supervisor_pid}/root/proc")
    return set(outside(lab.supervisor_pid, family.members(proc, service.process.pid)).values())


def part_of_a_processor(lab: Lab, service: Spinner, seconds: float = 0.6) -> float:
    """Return the processor time that a service's processes take, by the time that passes."""

    def used_s() -> float:
        total = 0.0
        for pid in hosts_pids(lab, service):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
        return total

    before, begun = used_s(), time.monotonic()
    time.sleep(seconds)
    return (used_s() - before) / (time.monotonic() - begun)


@pytest.fixture
def stage() -> Iterator[tuple[Scene, Spinner]]:
    with Lab(PLAN) as lab:
        service = Spinner("n1")
        service.start(lab)
        time.sleep(0.2)
        yield Scene(lab, {"n1": service}), service
    assert ours() == []


def ours() -> list[str]:
    base = cgroup._find()[0]
    return [path.name for path in base.glob(f"wanlat-{os.getpid()}-*")]


def throttled(quota: str = "10%") -> CpuThrottled:
    return CpuThrottled.parse("victim", {"quota": quota}, PLAN, {"victim": ("n1",)})


@needs_a_group
def test_a_limited_node_gets_its_quota_and_afterwards_what_it_got_before(
    stage: tuple[Scene, Spinner],
) -> None:
    scene, service = stage
    fault = throttled()
    fault.check(scene.lab)
    before = part_of_a_processor(scene.lab, service)
    at = time.monotonic_ns()
    begun = fault.begin(scene)
    assert at < begun <= time.monotonic_ns()
    during = part_of_a_processor(scene.lab, service, 1.5)
    fault.end(scene)
    after = part_of_a_processor(scene.lab, service)
    assert during < 0.14
    assert during < min(before, after)
    assert fault.usage["n1"].throttled >= 1
    assert fault.usage["n1"].throttled_s > 0
    assert "10% of one processor; processors made to wait" in fault.detail


@needs_a_group
def test_a_service_that_is_started_anew_is_limited_again(stage: tuple[Scene, Spinner]) -> None:
    scene, service = stage
    fault = throttled()
    fault.begin(scene)
    service.stop()
    assert service.process is not None
    service.process.wait(5)
    service.start(scene.lab)
    time.sleep(0.6)
    during = part_of_a_processor(scene.lab, service)
    fault.end(scene)
    assert during < 0.2


@needs_a_group
def test_of_two_that_overlap_the_smaller_quota_holds(stage: tuple[Scene, Spinner]) -> None:
    scene, service = stage
    loose, tight = throttled("25%"), throttled("5%")
    loose.begin(scene)
    tight.begin(scene)
    both = part_of_a_processor(scene.lab, service)
    tight.end(scene)
    one = part_of_a_processor(scene.lab, service)
    loose.end(scene)
    assert both < 0.08
    assert both < one < 0.32


@needs_a_group
def test_a_drill_that_is_killed_leaves_no_group() -> None:
    program = """
import time
from wanlat.emulator.faults.cpu_throttled import CpuThrottled
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.lab import Lab
from tests.emulator.faults.test_resource_cpu import PLAN, Spinner
service = Spinner("n1")
with Lab(PLAN) as lab:
    service.start(lab)
    fault = CpuThrottled.parse("n1", {"quota": "10%"}, PLAN, {})
    fault.begin(Scene(lab, {"n1": service}))
    print(fault._limits["n1"].group.directory, flush=True)
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
    assert group.is_dir()
    assert (group / "cgroup.procs").read_text().split()
    drill.send_signal(signal.SIGKILL)
    drill.wait()
    deadline = time.monotonic() + 60
    while group.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group.exists()
    drill.stdout.close()


@needs_a_group
def test_what_a_maker_left_that_was_killed_with_its_keeper_is_removed_by_the_next() -> None:
    left = cgroup._find()[0] / "wanlat-4194305-1"  # no process has this number
    left.mkdir()
    CpuGroup(0.5).remove()
    assert not left.exists()


def test_without_a_group_it_is_said_to_be_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_hierarchies", list)
    with Lab(PLAN) as lab, pytest.raises(MachineError, match=r"no control groups.*Delegate=yes"):
        throttled().check(lab)


def test_a_group_that_is_not_ours_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounted = [(2, "/", tmp_path)]
    monkeypatch.setattr(cgroup, "_hierarchies", lambda: mounted)
    monkeypatch.setattr(cgroup, "_own", lambda *_: tmp_path)
    said = {
        "": "has no controller `cpu`",
        "cpu memory": "has not been delegated to us",
    }
    (tmp_path / "cgroup.type").write_text("domain")
    for controllers, reason in said.items():
        (tmp_path / "cgroup.controllers").write_text(controllers)
        with pytest.raises(MachineError, match=f"{reason}.*systemd-run --user --scope"):
            CpuGroup(0.5)


def test_a_machine_whose_limits_do_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle:
        def __init__(self, quota: float) -> None:
            self.quota = quota

        def add(self, pid: int) -> None: ...

        def remove(self) -> None: ...

    monkeypatch.setattr("wanlat.emulator.faults.cpu_throttled.CpuGroup", Idle)
    with Lab(PLAN) as lab, pytest.raises(MachineError, match="limited to 1% of a processor got"):
        throttled("1%").check(lab)


@pytest.mark.parametrize("quota", ["0%", "0.5%", "120%", "much"])
def test_quotas_that_cannot_be_are_refused(quota: str) -> None:
    with pytest.raises(UserError, match="quota"):
        throttled(quota)
