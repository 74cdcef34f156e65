"""However a lab's processes die, nothing of it is left on the machine."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests import late_network
from tests.processes import alive, descendants, every, fields, said

MOMENTS = 12
PATIENCE_S = 60.0
"""For the kernel to remove what there was, and for a command to write its bundle: at once, where
nothing else runs."""
ATF_PERM = 0x4
"""The flag of a permanent entry in /proc/net/arp (linux/if_arp.h)."""
_STUDY = """
name: kill-me
topology: {topology}
systems: [quorum]
endpoints: [GetObject, PutObject, RemoveObject]
samples: 1500
warmup: 2
seed: 1
storage: {storage}
"""
_TOPOLOGY = """
name: three
sites:
  - {name: dc1, nodes: [n1], lan: {rtt: 0.2ms}}
  - {name: dc2, nodes: [n2]}
  - {name: dc3, nodes: [n3]}
links:
  default: {rtt: 4ms, jitter: 1ms}
"""


def host_state(labs: Path, scratch: Path) -> dict[str, object]:
    """Return what a lab might leave behind or change on the host.

    ``scratch`` is where its temporary files go: tests beside this one have others.
    """
    sysctls = {}
    for path in Path("/proc/sys/net").rglob("*"):
        try:
            sysctls[str(path)] = path.read_text() if path.is_file() else None
        except OSError:
            continue
    for changing in ("/proc/sys/net/netfilter/nf_conntrack_count",):
        sysctls.pop(changing, None)
    return {
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "routes": Path("/proc/net/route").read_text(),
        "neighbours": permanent_neighbours(),
        "sysctls": sysctls,
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "files": sorted(map(str, scratch.iterdir())),
        "data": sorted(map(str, labs.glob("*/*"))),
    }


def permanent_neighbours() -> list[str]:
    """Those that somebody has written, as a lab does; others the host finds and forgets."""
    _, *lines = Path("/proc/net/arp").read_text().splitlines()
    rows = [line.split() for line in lines]
    return sorted(address for address, _, flags, *_ in rows if int(flags, 16) & ATF_PERM)


def changed(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """Return what is there after and was not before."""
    new: dict[str, object] = {}
    for name, now in after.items():
        was = before[name]
        if isinstance(now, list) and isinstance(was, list):
            new[name] = sorted(set(now) - set(was))
        else:
            new[name] = None if now == was else now
    return {name: value for name, value in new.items() if value}


def namespaces(pids: Iterable[int]) -> set[str]:
    """Return the network namespaces of processes, without this process's own."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return found - {str(Path("/proc/self/ns/net").readlink())}


def began() -> dict[int, list[str]]:
    """Return all processes, each with when it was started."""
    return {pid: fields(pid)[19:20] for pid in every()}


def named(root: int, name: str) -> list[int]:
    """Return the processes below ``root`` that are called so."""
    return [pid for pid in descendants(root) if said(pid, "comm").decode().strip() == name]


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "three.yaml").write_text(_TOPOLOGY)
    yield tmp_path


def start_run(directory: Path, number: int, storage: str) -> subprocess.Popen[bytes]:
    file = directory / f"study-{number}.yaml"
    file.write_text(_STUDY.format(topology=directory / "three.yaml", storage=storage))
    return subprocess.Popen(
        [*late_network.command("run", str(file)), *("--out", str(directory / f"bundle-{number}"))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ
        | {"WANLAT_LABS": str(directory / "labs"), "TMPDIR": str(directory / "scratch")},
    )


def await_named(command: subprocess.Popen[bytes], *names: str) -> None:
    """Return when a run has such processes, each at least one.

    Those of its own lab: it has tried a small one first, before there was a bundle.
    """
    assert isinstance(command.args, list)
    manifest = Path(str(command.args[-1])) / "manifest.json"
    until_s = time.monotonic() + PATIENCE_S
    while not (manifest.exists() and all(named(command.pid, name) for name in names)):
        assert command.poll() is None
        assert time.monotonic() < until_s, f"no {names}"
        time.sleep(0.01)


def kill_and_look(
    command: subprocess.Popen[bytes],
    family: list[int],
    victim: int,
    study: Path,
    before: dict[str, object],
) -> str:
    """Kill a process of a run, see to it that all the others end, and return its name."""
    inside = namespaces(family)
    name = ""
    with contextlib.suppress(OSError):  # it may have ended by itself in this instant
        name = Path(f"/proc/{victim}/comm").read_text().strip()
        os.kill(victim, signal.SIGKILL)
    until_s = time.monotonic() + PATIENCE_S
    others = [pid for pid in family if pid != command.pid]
    there = began()

    def inside_now() -> set[str]:
        """Those that a process of then is in: a lab of another test may get a number again."""
        same = (pid for pid, at in began().items() if there.get(pid) == at)
        return inside & namespaces(same)

    while (alive(others) or inside_now()) and time.monotonic() < until_s:
        time.sleep(0.05)
    left, inside_left = alive(others), inside_now()
    # The command has a bundle to write, and must end by itself.
    with contextlib.suppress(subprocess.TimeoutExpired):
        command.wait(PATIENCE_S)
    ended = command.poll() is not None
    command.kill()
    command.wait()
    assert left == [], f"the kill hit {name}"
    assert not inside_left, f"the kill hit {name}"
    assert ended, f"the command did not end; the kill hit {name}"
    left_over = changed(before, host_state(study / "labs", study / "scratch"))
    assert not left_over, f"the kill hit {name}"
    return name


@pytest.mark.parametrize("wanted", ["command", "wanlat-guard", "wanlat-lab"])
def test_each_kind_of_process_may_be_killed_and_nothing_is_left(study: Path, wanted: str) -> None:
    (study / "scratch").mkdir()
    before = host_state(study / "labs", study / "scratch")
    command = start_run(study, 0, "disk")
    # From then on there are namespaces, links and a directory that could be left behind.
    await_named(command, "wanlat-guard", "wanlat-lab", "wire")
    family = descendants(command.pid)
    assert namespaces(family)
    victim = command.pid if wanted == "command" else min(named(command.pid, wanted))
    killed = kill_and_look(command, family, victim, study, before)
    assert wanted in (killed, "command")


@pytest.mark.minutes
def test_kill_at_random_moments_leaves_nothing(study: Path) -> None:
    chance = random.Random(20)
    (study / "scratch").mkdir()
    before = host_state(study / "labs", study / "scratch")
    killed = []
    for number in range(MOMENTS):
        command = start_run(study, number, "disk" if number % 2 else "memory")
        # The command and its guard are few among many, and the ones that matter most.
        wanted = ("", "wanlat-guard", "wanlat-lab")[number % 3] if number < 9 else ""
        if wanted:
            await_named(command, wanted)
        # Set-up, calibration, start, preparing, and then samples for at least 18 s (4500 of 4 ms),
        # so that no kill comes when the lab has done its work and the command draws the chart.
        time.sleep(chance.uniform(0.1, 5))
        family = descendants(command.pid)
        if wanted:
            victim = min(named(command.pid, wanted))
        else:
            victim = command.pid if number < 9 else chance.choice(family)
        killed.append(kill_and_look(command, family, victim, study, before))
    assert {"wanlat-guard", "wanlat-lab"} <= set(killed)


def test_the_host_is_the_same_while_a_lab_is_up_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.emulator.plans import mesh, ms
    from wanlat.emulator.lab import Lab

    labs, scratch = tmp_path / "labs", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = host_state(labs, scratch)
    with Lab(mesh(3, 2, wan=ms(1))) as lab:
        assert namespaces([lab.supervisor_pid])
        assert not changed(before, host_state(labs, scratch))
    assert not changed(before, host_state(labs, scratch))
