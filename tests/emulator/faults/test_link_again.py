"""A link that was healed is what it was, or it is noticed: while others talk over it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
from wanlat.emulator.links import Direction, wan
from wanlat.emulator.prober import Prober
from wanlat.topologies.resolve import Impairment

PLAN = mesh(3, 2, wan=ms(10, jitter=2), lan=ms(0.1))  # n1, n2 in dc1; n3, n4 in dc2; …
EVERY_FAULT: list[tuple[str, Any, dict[str, Any]]] = [
    ("slow", "n1", {"delay": "60ms"}),
    ("slow", "dc1:dc2", {"delay": "4ms"}),
    ("lossy", "dc1/dc2", {"loss": "5%"}),
    ("throttled", "dc1/dc2", {"rate": "20mbit"}),
    ("blackhole", "n1", {}),
    ("partition", ["dc1", "dc2,dc3"], {}),
    ("one-way-cut", "dc1:dc2", {}),
    ("flapping", "dc1/dc2", {"period": "200ms"}),
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


@contextmanager
def afterwards(lab: Lab) -> Iterator[None]:
    try:
        yield
    finally:
        lab.restore()


def wait_for_probes(monkeypatch: pytest.MonkeyPatch, patience_s: float) -> None:
    """Have probes waited for so long, where not all come back sooner."""
    measure = Prober.measure

    def wait(prober: Prober, pairs: Any, count: int, every_s: float, _: float, **more: Any) -> Any:
        return measure(prober, pairs, count, every_s, patience_s, **more)

    monkeypatch.setattr(Prober, "measure", wait)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no stall make a probe count as lost."""
    wait_for_probes(monkeypatch, 60)


def send_many_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have so many bursts be sent that no stall hits half of them, as it does five."""
    monkeypatch.setattr(live, "_BURSTS", 40)


def fault_of(kind: str, target: Any, settings: dict[str, Any]) -> Fault:
    return parse(kind, target, settings, PLAN, {})


def verdicts(entries: list[dict[str, Any]]) -> set[str]:
    for entry in entries:
        print(entry["from"], entry["to"], entry["verdict"], entry["reasons"])  # when it fails
    return {entry["verdict"] for entry in entries}


@pytest.mark.usefixtures("patient")
def test_a_link_that_was_healed_passes(lab: Lab) -> None:
    fault, scene = fault_of("slow", "n1", {"delay": "60ms"}), Scene(lab, {})
    fault.begin(scene)
    fault.end(scene)
    entries = recalibrate(lab, fault.directions, tolerance=ANY_DELAY)
    assert verdicts(entries) == {"pass"}
    (entry,) = entries
    assert (entry["from"], entry["to"]) == ("n1", "n2")  # the shortest way over that link
    assert set(entry["directions"]) == {"n1->dc1", "dc1->n1"}
    assert entry["requested_rtt_ms"] == pytest.approx(0.4)
    assert 0.3 < entry["rtt_ms"]["min"] < 1.9  # of a second and a half not all is late
    assert entry["rtt_ms"]["n"] == entry["sent"] == 300 * sum(LIMITS.sizes[: entry["rounds"]])


@pytest.mark.usefixtures("patient")
def test_every_direction_of_a_partition_is_measured_and_passes_with_its_jitter(lab: Lab) -> None:
    fault, scene = fault_of("partition", ["dc1", "dc2", "dc3"], {}), Scene(lab, {})
    fault.begin(scene)
    fault.end(scene)
    entries = recalibrate(lab, fault.directions, tolerance=ANY_DELAY)
    assert verdicts(entries) == {"pass"}
    assert len(entries) == 3
    covered = {each for entry in entries for each in entry["directions"]}
    assert covered == {str(each) for each in fault.directions}
    assert all(entry["requested_jitter_ms"] == 4 for entry in entries)
    assert all(16.2 < entry["rtt_ms"]["min"] < 20.4 for entry in entries)  # of 16.4 to 24.4


@pytest.mark.parametrize(("kind", "target", "settings"), EVERY_FAULT)
def test_an_undo_that_undoes_nothing_is_noticed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: str, target: Any, settings: dict[str, Any]
) -> None:
    fault, scene = fault_of(kind, target, settings), Scene(lab, {})
    with afterwards(lab):
        fault.begin(scene)
        monkeypatch.setattr("wanlat.emulator.impairments.Hold.end", lambda _: time.monotonic_ns())
        if kind == "throttled":
            send_many_trains(monkeypatch)
        fault.end(scene)
        entries = recalibrate(lab, fault.directions, samples=80, limits=ONE_ROUND)
        monkeypatch.undo()
    failed = [entry for entry in entries if entry["verdict"] == "fail"]
    assert failed
    assert all(entry["reasons"] for entry in failed)


@pytest.mark.parametrize(
    "left",
    [
        ms(12, jitter=2),
        ms(12, jitter=12),
        ms(8, jitter=2),
        ms(10, jitter=2, duplicate=0.05),
        ms(10, jitter=2, rate_bps=10_000_000),
    ],
)
def test_a_backend_that_does_not_do_what_the_lab_believes_is_noticed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, left: Impairment
) -> None:
    way = wan("dc1", "dc2")
    lab.change({way: left})
    with afterwards(lab):
        with monkeypatch.context() as patch:
            # The lab asks, the backend nods and does nothing.
            now = time.monotonic_ns()
            patch.setattr(lab, "_change", lambda _changes: (now, now))
            lab.restore()
        assert lab.impairments == lab.requested
        if left.rate_bps:
            send_many_trains(monkeypatch)
        entries = recalibrate(lab, [way, way.opposite], samples=150, limits=ONE_ROUND)
        lab._unsure.add(way)  # what is in force is not what the lab believes
    assert verdicts(entries) == {"fail"}
    assert any("there" in reason or "probes" in reason for reason in entries[0]["reasons"])


def test_a_link_with_a_rate_and_loss_of_its_own_passes_as_it_is(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is noticed of its rate is the 1 Mbit/s of the fault, or none at all."""
    wait_for_probes(monkeypatch, 3)
    send_many_trains(monkeypatch)
    own = ms(10, jitter=2, loss=0.03, rate_bps=20_000_000)
    ways = (wan("dc2", "dc3"), wan("dc3", "dc2"))
    with afterwards(lab):
        lab.change(dict.fromkeys(ways, own))  # to stay: from now on that is what is asked
        fault, scene = fault_of("throttled", "dc2/dc3", {"rate": "1mbit"}), Scene(lab, {})
        fault.begin(scene)
        fault.end(scene)
        time.sleep(0.6)  # what waited for 1 Mbit/s is on its way
        wide = replace(ANY_DELAY, rate=3.0)
        (entry,) = recalibrate(lab, fault.directions, tolerance=wide)
    assert entry["verdict"] == "pass", entry["reasons"]
    assert entry["requested_loss"] == pytest.approx(1 - 0.97**2)
    assert 2e6 < entry["rate"]["there"]["measured_bps"] < 80e6
    assert 16.2 < entry["rtt_ms"]["min"] < 24.4


@pytest.mark.usefixtures("patient")
def test_what_another_fault_still_does_is_asked_for_as_well(lab: Lab) -> None:
    first, second = (fault_of("slow", "n1", {"delay": d}) for d in ("20ms", "30ms"))
    scene = Scene(lab, {})
    with afterwards(lab):
        first.begin(scene)
        second.begin(scene)
        first.end(scene)
        unheld = recalibrate(lab, first.directions, samples=80, limits=ONE_ROUND)
        assert verdicts(unheld) == {"fail"}
        entries = recalibrate(lab, first.directions, held=second.directions, tolerance=ANY_DELAY)
        second.end(scene)
    assert verdicts(entries) == {"pass"}
    assert entries[0]["requested_rtt_ms"] == pytest.approx(30.4)
    assert 30.3 < entries[0]["rtt_ms"]["min"] < 40  # and not the first one's 20 ms as well


def test_a_link_that_something_else_cuts_is_unmeasured(lab: Lab) -> None:
    cut = fault_of("blackhole", "dc1", {})
    scene = Scene(lab, {})
    with afterwards(lab):
        cut.begin(scene)
        entries = recalibrate(
            lab, fault_of("slow", "dc1/dc2", {"delay": "9ms"}).directions, held=cut.directions
        )
        cut.end(scene)
    assert verdicts(entries) == {"unmeasured"}
    assert "something else cuts the way from n1 to n3" in entries[0]["reasons"]


@pytest.mark.usefixtures("patient")
def test_ways_around_what_is_cut_are_taken(lab: Lab) -> None:
    away = fault_of("blackhole", "n1", {})
    scene = Scene(lab, {})
    with afterwards(lab):
        away.begin(scene)
        ways = [wan("dc1", "dc2"), wan("dc2", "dc1")]
        (entry,) = recalibrate(lab, ways, tolerance=ANY_DELAY)
        away.end(scene)
    assert (entry["from"], entry["verdict"]) == ("n2", "pass")


@pytest.mark.usefixtures("patient")
def test_many_links_share_the_probes_of_a_few_seconds() -> None:
    plan = mesh(7, wan=ms(3))
    with Lab(plan, splice="all") as big:
        links = [each for each in big.requested if each.kind == "wan"]
        entries = recalibrate(big, links, tolerance=ANY_DELAY)
    assert len(entries) == 21
    assert verdicts(entries) == {"pass"}
    in_one_round = [entry["sent"] / sum(LIMITS.sizes[: entry["rounds"]]) for entry in entries]
    assert sum(in_one_round) <= 3000  # one every millisecond
    assert min(in_one_round) >= 40


def test_a_direction_of_a_node_that_is_alone_has_nobody_to_measure_with() -> None:
    with Lab(mesh(1, 1, lan=ms(1))) as lone:
        assert recalibrate(lone, [Direction("lan", "n1", "dc1")]) == []
