"""A thousand nodes in twenty sites: up, right to the last node, gone afterwards.

How long that takes, and what a node costs: docs/results/thousand-nodes.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import ran
from tests.emulator.plans import mesh, ms
from wanlat.emulator import machine
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


@pytest.fixture(scope="module")
def large() -> Iterator[Lab]:
    with Lab(unequal(mesh(SITES, NODES_A_SITE)), backend="wire") as lab:
        yield lab


def test_every_node_answers_after_the_round_trip_time_asked_for(large: Lab) -> None:
    # Every link has a delay of its own: wherever two were mixed up, somebody is early.
    source = "n1"
    others = {node.address: node.name for node in large.nodes if node.name != source}
    rtts_ms = echo_all(large.socket(source, socket.AF_INET, socket.SOCK_RAW, 1), list(others))
    assert rtts_ms.keys() == others.keys()
    over = {others[at]: rtt - large.plan.rtt_ms(source, others[at]) for at, rtt in rtts_ms.items()}
    assert min(over.values()) >= 0, "a packet was early"
    assert min(over.values()) < 5


def test_the_labs_first_process_loads_no_library() -> None:
    # Any of them would take longer to load than a lab of 100 nodes takes to build.
    heavy = {"numpy", "pandas", "pyarrow", "pydantic", "pyroute2", "yaml"}
    program = "import sys, wanlat.emulator.sandbox, wanlat.emulator.supervisor; print(*sys.modules)"
    loaded = ran(sys.executable, "-c", program, cwd=CHECKOUT, check=True).stdout.split()
    assert heavy & set(loaded) == set()


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
def test_a_limit_that_is_too_small_is_named(limits: machine.Limits, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        machine.check_limits(limits, sites=20, nodes=1000, sockets=380)


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
