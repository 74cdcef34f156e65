"""A thousand nodes in twenty sites: up, right to the last node, gone afterwards.

How long that takes, and what a node costs: benchmarks/size.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator import capacity
from wanlat.emulator.lab import Lab
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Plan

CHECKOUT = Path(__file__).resolve().parent.parent.parent
SITES, NODES_A_SITE = 20, 50


def unequal(plan: Plan) -> Plan:
    """Return ``plan`` with another delay on every WAN link, so that a mix-up would show."""
    links = (
        replace(link, forward=ms(5 + 0.25 * index), backward=ms(5 + 0.25 * index))
        for index, link in enumerate(plan.wan_links)
    )
    return replace(plan, wan_links=tuple(links))


def processes_inside(lab: Lab) -> list[str]:
    """Return the names of all processes in the lab's PID namespace."""
    inside = Path(f"/proc/{lab.supervisor_pid}/ns/pid").readlink()
    names = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "ns/pid").readlink() == inside:
                names.append((process / "comm").read_text().strip())
        except OSError:
            continue
    return sorted(names)


@pytest.fixture(scope="module")
def large() -> Iterator[Lab]:
    with Lab(unequal(mesh(SITES, NODES_A_SITE)), backend="wire") as lab:
        yield lab


def test_no_process_is_started_for_a_node(large: Lab) -> None:
    assert processes_inside(large) == ["wanlat-lab", "wire"]


def test_the_supervisor_holds_no_descriptor_for_a_node(large: Lab) -> None:
    assert len(list(Path(f"/proc/{large.supervisor_pid}/fd").iterdir())) < 32


def test_every_node_answers_after_the_round_trip_time_asked_for(large: Lab) -> None:
    # Every link has a delay of its own: wherever two were mixed up, somebody is early.
    source = "n1"
    others = {node.address: node.name for node in large.nodes if node.name != source}
    rtts_ms = echo_all(large.socket(source, socket.AF_INET, socket.SOCK_RAW, 1), list(others))
    assert rtts_ms.keys() == others.keys()
    over = {others[at]: rtt - large.plan.rtt_ms(source, others[at]) for at, rtt in rtts_ms.items()}
    assert min(over.values()) >= 0, "a packet was early"
    assert min(over.values()) < 5


def test_a_program_starts_on_the_last_node_as_fast_as_on_the_first(large: Lab) -> None:
    took_s: dict[str, list[float]] = {"n1": [], "n1000": []}
    for _ in range(8):
        for node, times in took_s.items():  # in turn
            start = time.monotonic()
            assert large.run(node, ["true"]).returncode == 0
            times.append(time.monotonic() - start)
    assert min(took_s["n1000"]) < 5 * min(took_s["n1"]) + 0.05


def test_the_labs_first_process_loads_no_library() -> None:
    # Any of them would take longer to load than a lab of 100 nodes takes to build.
    heavy = {"numpy", "pandas", "pyarrow", "pydantic", "pyroute2", "yaml"}
    program = "import sys, wanlat.emulator.sandbox, wanlat.emulator.supervisor; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert heavy & set(loaded) == set()


_LET_GO = """
import os, socket
from wanlat.emulator import rtnetlink, syscalls
from wanlat.emulator.addressing import End
from wanlat.emulator.sandbox import wait_until_dismantled
uid, gid = os.geteuid(), os.getegid()
syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNET)
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
home = os.open("/proc/self/ns/net", os.O_RDONLY)
for index in range(2, 202):
    syscalls.unshare(syscalls.CLONE_NEWNET)
    with rtnetlink.Socket() as netlink:
        far = End("home", f"v{index}", index)
        netlink.send([rtnetlink.veth(End("other", "v", 2), far, home)])
syscalls.setns(home, syscalls.CLONE_NEWNET)
assert wait_until_dismantled(30)
syscalls.setns(home, syscalls.CLONE_NEWNET)
print([name for _, name in socket.if_nameindex()])
"""


def test_the_end_of_namespaces_is_awaited() -> None:
    # An interface here lives as long as its peer in a namespace that has been let go.
    done = subprocess.run(
        [sys.executable, "-c", _LET_GO], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.strip() == "['lo']"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"user.max_net_namespaces": 500}, "user.max_net_namespaces"),
        ({"fs.mount-max": 1500}, "fs.mount-max"),
        ({"ulimit -Hn": 256}, "ulimit -Hn"),
        ({"ulimit -n": 64}, "ulimit -n"),
        ({"MemAvailable": 100_000_000}, "smaller topology"),
    ],
)
def test_a_limit_that_is_too_small_is_named(limits: capacity.Limits, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        capacity.check(limits, sites=20, nodes=1000, sockets=380)


def test_limits_that_suffice_are_not_mentioned() -> None:
    capacity.check(capacity.read_limits(), sites=20, nodes=1000, sockets=380)
    capacity.check({}, sites=255, nodes=60_000, sockets=120_000)


def test_a_lab_beyond_the_limits_is_refused_before_it_is_built() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (66, 66))\n"
        "from wanlat.emulator.lab import Lab\n"
        "from tests.emulator.plans import mesh, ms\n"
        "with Lab(mesh(4, 1, wan=ms(1)), backend='wire'): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert "A lab of 4 nodes in 4 sites needs 68 open files in one process" in done.stderr


def echo_all(raw: socket.socket, targets: list[str]) -> dict[str, float]:
    """Return the round-trip times, in ms, of one ICMP echo to every address that answered."""
    waiting: dict[int, tuple[str, float]] = {}
    found: dict[str, float] = {}
    unsent = list(enumerate(targets))
    identifier = random.randrange(1 << 16)
    give_up = time.monotonic() + 60
    raw.setblocking(False)
    while (unsent or waiting) and time.monotonic() < give_up:
        if unsent and len(waiting) < 100:  # more answers might not fit the socket's buffer
            number, address = unsent.pop()
            head = struct.pack("!BBHHH", 8, 0, 0, identifier, number)
            checksum = 0xFFFF - (sum(struct.unpack("!4H", head)) % 0xFFFF)
            waiting[number] = (address, time.monotonic())
            raw.sendto(struct.pack("!BBHHH", 8, 0, checksum, identifier, number), (address, 0))
        while select.select([raw], [], [], 0 if unsent and len(waiting) < 100 else 0.02)[0]:
            packet, (source, _) = raw.recvfrom(2048)
            now = time.monotonic()
            kind, _, _, whose, number = struct.unpack_from("!BBHHH", packet, 20)
            if kind == 0 and whose == identifier and number in waiting:
                address, sent = waiting.pop(number)
                if address == source:
                    found[address] = (now - sent) * 1000
    return found
