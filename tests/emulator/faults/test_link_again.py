"""A link that was healed is what it was, or it is noticed: while others talk over it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.calibration import live
from wanlat.emulator.calibration.live import LIMITS, WHILE_RUNNING, recalibrate
from wanlat.emulator.calibration.rounds import ONE_ROUND
from wanlat.emulator.faults.catalogue import parse
from wanlat.emulator.faults.fault import Fault, Scene
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import Prober

PLAN = mesh(3, 2, wan=ms(10, jitter=2), lan=ms(0.1))  # n1, n2 in dc1; n3, n4 in dc2; …
EVERY_FAULT: list[tuple[str, Any, dict[str, Any]]] = [
    ("slow", "n1", {"rtt": "60ms"}),
    ("lossy", "dc1/dc2", {"loss": "5%"}),
    ("throttled", "dc1/dc2", {"rate": "20mbit"}),
    ("partition", ["dc1", "dc2,dc3"], {}),
]
ANY_DELAY = replace(WHILE_RUNNING, median_ms=60_000, near_median_ms=60_000)
"""For links that are right, however long the machine stalls; tests look at minima then."""
_SERVER = """
import socket, threading
def answer(one):
    while data := one.recv(65536):
        one.sendall(data[:64])
server = socket.create_server(("0.0.0.0", 4000))
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
"""
_CLIENT = """
import socket, sys, time
peers = [socket.create_connection((host, 4000)) for host in sys.argv[1:]]
while True:
    for peer in peers:
        peer.sendall(bytes(1000))
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Return a lab in which a program on every node talks to every other all the time."""
    with Lab(PLAN, splice="all") as made:
        for node in made.nodes:
            made.spawn(node.name, [sys.executable, "-S", "-c", _SERVER])
        time.sleep(0.3)
        for node in made.nodes:
            others = [other.address for other in made.nodes if other != node]
            made.spawn(node.name, [sys.executable, "-S", "-c", _CLIENT, *others])
        yield made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no stall make a probe count as lost."""
    measure = Prober.measure

    def wait(prober: Prober, pairs: Any, count: int, every_s: float, _: float, **more: Any) -> Any:
        return measure(prober, pairs, count, every_s, 60.0, **more)

    monkeypatch.setattr(Prober, "measure", wait)


def fault_of(kind: str, target: Any, settings: dict[str, Any]) -> Fault:
    return parse(kind, target, settings, PLAN, {})


def verdicts(entries: list[dict[str, Any]]) -> set[str]:
    for entry in entries:
        print(entry["from"], entry["to"], entry["verdict"], entry["reasons"])  # when it fails
    return {entry["verdict"] for entry in entries}


@pytest.mark.usefixtures("patient")
def test_a_link_that_was_healed_passes(lab: Lab) -> None:
    fault, scene = fault_of("slow", "n1", {"rtt": "60ms"}), Scene(lab, {})
    fault.begin(scene)
    fault.end(scene)
    entries = recalibrate(lab, fault.directions, tolerance=ANY_DELAY)
    assert verdicts(entries) == {"pass"}
    (entry,) = entries
    assert (entry["from"], entry["to"]) == ("n1", "n2")  # the shortest way over that link
    assert set(entry["directions"]) == {"n1->dc1", "dc1->n1"}
    assert entry["requested_rtt_ms"] == pytest.approx(0.4)
    assert 0.3 < entry["rtt_ms"]["min"] < 1.9  # of a second and a half not all is late
    sent = entry["rtt_ms"]["n"] + entry["late"]  # a late machine spoils probes
    assert sent == entry["sent"] == 300 * sum(LIMITS.sizes[: entry["rounds"]])


@pytest.mark.parametrize(("kind", "target", "settings"), EVERY_FAULT)
def test_an_undo_that_undoes_nothing_is_noticed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: str, target: Any, settings: dict[str, Any]
) -> None:
    fault, scene = fault_of(kind, target, settings), Scene(lab, {})
    fault.begin(scene)
    monkeypatch.setattr("wanlat.emulator.impairments.Lease.end", lambda _: time.monotonic_ns())
    if kind == "throttled":
        # So many bursts that no stall hits half of them, as it does five.
        monkeypatch.setattr(live, "_BURSTS", 40)
    fault.end(scene)
    entries = recalibrate(lab, fault.directions, samples=80, limits=ONE_ROUND)
    lab.restore()
    failed = [entry for entry in entries if entry["verdict"] == "fail"]
    assert failed
    assert all(entry["reasons"] for entry in failed)
