"""Faults of links do to packets what they say, to nobody else, and only for as long as they last.

WANLAT_TEST_BACKEND=netem    in a kernel that has it (tests/kernel)
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from wanlat.emulator.faults import catalogue
from wanlat.emulator.faults.fault import Fault, FaultFailed, Scene
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, lan_down, lan_up, wan
from wanlat.emulator.prober import ETHERNET_BYTES, ONE_WAY_BYTES, Prober, Probes

BACKEND: Any = os.environ.get("WANLAT_TEST_BACKEND", "wire")
# User-Mode Linux has no fine timers, and netem tells a window in which a change took effect.
EARLY_MS = {"wire": 0.1, "netem": 6.0}[BACKEND]
MARGIN_NS = {"wire": 2_000_000, "netem": 20_000_000}[BACKEND]
SLACK_MS = 20.0
"""The quickest of many echoes is later than asked for by less than this: faults differ by more."""
PLAN = mesh(4, wan=ms(2))  # n1 in dc1, … n4 in dc4
ROLES = {"victim": ("n2",), "others": ("n1", "n3", "n4"), "pair": ("n1", "n2")}

Pair = tuple[str, str]


class Bench:
    """A lab whose links are all changeable, and instruments on each of its nodes."""

    def __init__(self, lab: Lab) -> None:
        names = [node.name for node in lab.nodes]
        self.lab = lab
        self.scene = Scene(lab, {})
        self.prober = Prober(lab, names)

    def rtt_ms(self, *pairs: Pair, count: int = 20) -> dict[Pair, float]:
        """Return the quickest round trip of pairs; nan where no echo came back."""
        found = self.prober.measure(pairs, count, 0.01, 0.6)
        return {
            pair: min(echoes.rtt_ns) / 1e6 if echoes.rtt_ns.size else float("nan")
            for pair, echoes in found.items()
        }

    def heard(self, pairs: Sequence[Pair], count: int = 10) -> dict[Pair, bool]:
        """Return for each pair whether packets arrive, one way; all of them or none."""
        sent = self.prober.send(pairs, count, 0.005, 0.15)
        assert all(each.lost in (0, count) for each in sent.values())
        return {pair: each.lost == 0 for pair, each in sent.items()}

    def deliver(self, pair: Pair, count: int, interval_s: float) -> Probes:
        """Send packets one way and return what became of them."""
        return self.prober.send([pair], count, interval_s, 0.3)[pair]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Lab(PLAN, backend=BACKEND, splice="all") as lab:
        made = Bench(lab)
        yield made
        made.prober.close()


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "bench" in request.fixturenames:
        lab = request.getfixturevalue("bench").lab
        left = {str(each) for each, now in lab.impairments.items() if now != lab.requested[each]}
        lab.restore()
        assert not left


RTT_MS = 4.0


def adds(rtt_ms: float, more_ms: float) -> bool:
    """Whether a round trip is the plan's, and so much more: nothing is early, and no more."""
    least_ms = RTT_MS + more_ms
    return least_ms - EARLY_MS <= rtt_ms < least_ms + SLACK_MS


def fault_of(kind: str, target: object, **settings: object) -> Fault:
    return catalogue.parse(kind, target, settings, PLAN, ROLES)


def all_pairs() -> list[Pair]:
    names = [node.name for node in PLAN.nodes]
    return [(a, b) for a in names for b in names if a != b]


def test_a_slow_node_answers_later_by_what_is_asked_whoever_asks(bench: Bench) -> None:
    fault = fault_of("slow", "victim", rtt="60ms")
    asked = (("n1", "n2"), ("n2", "n4"), ("n3", "n4"))
    fault.begin(bench.scene)
    during = bench.rtt_ms(*asked)
    fault.end(bench.scene)
    after = bench.rtt_ms(*asked)
    assert adds(during["n1", "n2"], 60)
    assert adds(during["n2", "n4"], 60)
    assert adds(during["n3", "n4"], 0)
    assert all(adds(after[pair], 0) for pair in asked)


@pytest.mark.parametrize("target", ["dc1/dc2", "dc1:dc2", "pair/n3"])
def test_a_slow_link_adds_to_the_round_trip_however_many_directions_are_named(
    bench: Bench, target: str
) -> None:
    pair = ("n1", "n3") if target == "pair/n3" else ("n1", "n2")
    first, second = (fault_of("slow", target, rtt=rtt) for rtt in ("30ms", "50ms"))
    first.begin(bench.scene)
    second.begin(bench.scene)
    both = bench.rtt_ms(pair, ("n3", "n4"))
    first.end(bench.scene)
    one = bench.rtt_ms(pair)[pair]
    second.end(bench.scene)
    assert adds(both[pair], 80)
    assert adds(both["n3", "n4"], 0)
    assert adds(one, 50), "each takes only its own away"


@pytest.mark.parametrize(
    ("loss", "part", "off"), [("5%", 0.05, 0.25), ({"p": "2%", "r": "20%"}, 0.02 / 0.22, 0.5)]
)
def test_of_a_hundred_packets_so_many_are_lost(
    bench: Bench, loss: object, part: float, off: float
) -> None:
    fault = fault_of("lossy", "dc1/dc2", loss=loss)
    fault.begin(bench.scene)
    found = bench.prober.send([("n1", "n2"), ("n2", "n1"), ("n1", "n3")], 2500, 0.0006, 0.2)
    fault.end(bench.scene)
    # Five standard deviations; the draws are seeded.
    assert found["n1", "n2"].lost == pytest.approx(2500 * part, rel=off)
    assert found["n2", "n1"].lost == pytest.approx(2500 * part, rel=off)
    assert found["n1", "n3"].lost == 0
    assert bench.deliver(("n1", "n2"), 500, 0.0006).lost == 0


def since_first_ns(found: Probes) -> float:
    """Return how long after the first packet was sent the last one arrived."""
    return float(np.max(found.there.instants_ns) - np.min(found.sent_ns))


def test_a_throttled_link_carries_its_rate(bench: Bench) -> None:
    fault = fault_of("throttled", "victim", rate="1mbit", queue="64KiB")
    fault.begin(bench.scene)
    trains = [bench.deliver(("n1", "n2"), 40, 0.0003) for _ in range(4)]  # in at 4.6 Mbit/s
    fault.end(bench.scene)
    free = [bench.deliver(("n1", "n2"), 40, 0.0003) for _ in range(4)]
    assert [found.lost for found in trains] == [0] * 4
    # The last packet of a train waits for all of them to get through, in every train.
    all_of_it_ns = 40 * 8 * (ONE_WAY_BYTES + ETHERNET_BYTES) / 1e6 * 1e9
    assert min(map(since_first_ns, trains)) > 0.97 * all_of_it_ns
    assert min(map(since_first_ns, trains)) < 2 * all_of_it_ns
    assert min(map(since_first_ns, free)) < all_of_it_ns / 2


def both(*pairs: Pair) -> set[Pair]:
    return {each for pair in pairs for each in (pair, pair[::-1])}


@pytest.mark.parametrize(
    ("kind", "target", "subject", "silent"),
    [
        ("blackhole", "victim", "n2", both(("n1", "n2"), ("n2", "n3"), ("n2", "n4"))),
        (
            "partition",
            ["pair", ["n3", "dc4"]],
            "n1, n2 | n3, n4",
            both(("n1", "n3"), ("n1", "n4"), ("n2", "n3"), ("n2", "n4")),
        ),
        (
            "partition",
            ["n1", "n2", "n3"],  # and n4 reaches all
            "n1 | n2 | n3",
            both(("n1", "n2"), ("n1", "n3"), ("n2", "n3")),
        ),
        ("one-way-cut", "victim:n3", "n2 → n3", {("n2", "n3")}),
        ("one-way-cut", "dc2:victim", "dc2 → n2", {("n1", "n2"), ("n3", "n2"), ("n4", "n2")}),
    ],
)
def test_a_cut_silences_what_it_says_and_nothing_else(
    bench: Bench, kind: str, target: object, subject: str, silent: set[Pair]
) -> None:
    fault = fault_of(kind, target)
    assert fault.subject == subject
    at = time.monotonic_ns()
    begun = fault.begin(bench.scene)
    assert at <= begun <= time.monotonic_ns()
    heard = bench.heard(all_pairs())
    assert not np.isnan(bench.rtt_ms(("n2", "n2"))["n2", "n2"]), "it still reaches itself"
    fault.end(bench.scene)
    assert {pair for pair, is_heard in heard.items() if not is_heard} == silent
    assert all(bench.heard(all_pairs()).values())


def test_a_flapping_link_is_down_when_it_says_and_up_else(bench: Bench) -> None:
    occurrences: list[tuple[int, str]] = []
    scene = Scene(
        bench.lab, {}, on_occurrence=lambda _f, at, more: occurrences.append((at, more["state"]))
    )
    fault = fault_of("flapping", "victim", period="300ms", down="40%")
    ahead_ns = time.time_ns() - time.monotonic_ns()
    fault.begin(scene)
    found = bench.deliver(("n1", "n2"), 400, 0.004)
    fault.end(scene)
    assert [state for _, state in occurrences] == ["down", "up"] * (len(occurrences) // 2)
    assert len(occurrences) >= 4
    starts = np.array([at for at, state in occurrences if state == "down"])
    ends = np.array([at for at, state in occurrences if state == "up"])
    assert all(at - starts[0] >= beat * 300e6 for beat, at in enumerate(starts))
    # A packet is on the WAN for 2 ms before it meets the victim's link.
    met_ns = found.sent_ns - ahead_ns + 2_000_000
    is_down = [bool(((starts + MARGIN_NS < at) & (at < ends - MARGIN_NS)).any()) for at in met_ns]
    is_near = [
        bool((np.abs(np.concatenate([starts, ends]) - at) <= MARGIN_NS).any()) for at in met_ns
    ]
    clear = ~np.array(is_near)
    assert (found.missing[clear] == np.array(is_down)[clear]).mean() > 0.8
    assert 0.1 < found.missing.mean() < 0.9
    assert bench.heard([("n1", "n2")])["n1", "n2"]


def test_a_cable_cannot_be_changed_and_it_is_said_how_it_could() -> None:
    with (
        Lab(PLAN, backend=BACKEND) as lab,
        pytest.raises(FaultFailed, match=r'slow of n2 could not .*plain cable.*splice="all"'),
    ):
        fault_of("slow", "n2", rtt="10ms").begin(Scene(lab, {}))


TWO = mesh(2, 2, wan=ms(5))  # n1, n2 in dc1; n3, n4 in dc2
SOME = {"east": ("n1", "n2"), "some": ("n1", "n3")}
WAYS = {wan("dc1", "dc2"), wan("dc2", "dc1")}


def lan(*nodes: str) -> set[Direction]:
    site = {node.name: node.site for node in TWO.nodes}
    return {way(node, site[node]) for way in (lan_up, lan_down) for node in nodes}


@pytest.mark.parametrize(
    ("target", "directions", "nodes", "subject"),
    [
        ("east", WAYS, (), "n1, n2"),  # a role that is a whole site is the site
        ("node.east", lan("n1", "n2"), ("n1", "n2"), "n1, n2"),
        ("some", lan("n1", "n3"), ("n1", "n3"), "n1, n3"),
        (["n1", "dc1:dc2"], lan("n1") | {wan("dc1", "dc2")}, ("n1",), "n1, dc1 → dc2"),
        ("east/dc2", WAYS, (), "n1, n2 ↔ dc2"),
    ],
)
def test_a_target_may_be_a_role(
    target: object, directions: set[Direction], nodes: tuple[str, ...], subject: str
) -> None:
    fault = catalogue.parse("blackhole", target, {}, TWO, SOME)
    assert set(fault.directions) == directions
    assert (fault.nodes, fault.subject) == (nodes, subject)
