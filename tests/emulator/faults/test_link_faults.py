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

from tests.emulator.entries import Clocks, monotonic
from tests.emulator.plans import mesh, ms
from wanlat.emulator.faults.blackhole import Blackhole
from wanlat.emulator.faults.fault import Fault, FaultFailed, Scene
from wanlat.emulator.faults.flapping import Flapping
from wanlat.emulator.faults.lossy import Lossy
from wanlat.emulator.faults.one_way_cut import OneWayCut
from wanlat.emulator.faults.partition import Partition
from wanlat.emulator.faults.slow import Slow
from wanlat.emulator.faults.throttled import Throttled
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import lan_down, lan_up, requested, wan
from wanlat.emulator.prober import Prober
from wanlat.emulator.stream import FRAME_BYTES, Delivery, Stream
from wanlat.topologies.errors import UserError

BACKEND: Any = os.environ.get("WANLAT_TEST_BACKEND", "wire")
# User-Mode Linux has no fine timers, and netem tells a window in which a change took effect.
EARLY_MS = {"wire": 0.1, "netem": 6.0}[BACKEND]
MARGIN_NS = {"wire": 2_000_000, "netem": 20_000_000}[BACKEND]
SLACK_MS = 20.0
"""The quickest of many echoes is later than asked for by less than this: faults differ by more."""
PLAN = mesh(4, wan=ms(2))  # n1 in dc1, … n4 in dc4
ROLES = {"victim": ("n2",), "others": ("n1", "n3", "n4"), "pair": ("n1", "n2")}
NOBODY: dict[str, tuple[str, ...]] = {}

Pair = tuple[str, str]


class Bench:
    """A lab whose links are all changeable, and instruments on each of its nodes."""

    def __init__(self, lab: Lab) -> None:
        names = [node.name for node in lab.nodes]
        self.lab = lab
        self.scene = Scene(lab, {})
        self.prober = Prober(lab, names)
        self.stream = Stream(lab, names)

    def rtt_ms(self, *pairs: Pair, count: int = 20) -> dict[Pair, float]:
        """Return the quickest round trip of pairs; nan where no echo came back."""
        found = self.prober.measure(pairs, count, 0.01, 0.6)
        return {
            pair: min(echoes.rtt_ns) / 1e6 if echoes.rtt_ns else float("nan")
            for pair, echoes in found.items()
        }

    def heard(self, pairs: Sequence[Pair], count: int = 10) -> dict[Pair, bool]:
        """Return for each pair whether packets arrive, one way; all of them or none."""
        sent = self.stream.send(pairs, count, 0.005, 0.15)
        assert all(each.lost in (0, count) for each in sent.values())
        return {pair: each.lost == 0 for pair, each in sent.items()}

    def deliver(self, pair: Pair, count: int, interval_s: float) -> Delivery:
        """Send packets one way and return what became of them."""
        return self.stream.send([pair], count, interval_s, 0.3)[pair]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Lab(PLAN, backend=BACKEND, splice="all") as lab:
        made = Bench(lab)
        yield made
        made.prober.close()
        made.stream.close()


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


def slow(target: object, **settings: str) -> Slow:
    return Slow.parse(target, settings, PLAN, ROLES)


def all_pairs() -> list[Pair]:
    names = [node.name for node in PLAN.nodes]
    return [(a, b) for a in names for b in names if a != b]


def test_a_slow_node_answers_later_by_what_is_asked_whoever_asks(bench: Bench) -> None:
    fault = slow("victim", delay="60ms")
    asked = (("n1", "n2"), ("n2", "n4"), ("n3", "n4"))
    fault.begin(bench.scene)
    during = bench.rtt_ms(*asked)
    fault.end(bench.scene)
    after = bench.rtt_ms(*asked)
    assert adds(during["n1", "n2"], 60)
    assert adds(during["n2", "n4"], 60)
    assert adds(during["n3", "n4"], 0)
    assert all(adds(after[pair], 0) for pair in asked)


@pytest.mark.parametrize("target", ["dc1/dc2", "dc1:dc2", "n1:n2", "pair/n3"])
def test_a_slow_link_adds_to_the_round_trip_however_many_directions_are_named(
    bench: Bench, target: str
) -> None:
    pair = ("n1", "n3") if target == "pair/n3" else ("n1", "n2")
    fault = slow(target, delay="40ms")
    fault.begin(bench.scene)
    during = bench.rtt_ms(pair, ("n3", "n4"))
    fault.end(bench.scene)
    assert adds(during[pair], 40)
    assert adds(during["n3", "n4"], 0)


@pytest.mark.skipif(BACKEND == "netem", reason="netem keeps the order of all packets of a link")
def test_a_slow_links_jitter_is_of_the_round_trip_as_well(bench: Bench) -> None:
    fault = slow("dc1/dc2", delay="40ms", jitter="20ms")
    fault.begin(bench.scene)
    found = bench.prober.measure([("n1", "n2")], 150, 0.005, 0.3, many_flows=True)["n1", "n2"]
    fault.end(bench.scene)
    rtt_ms = np.asarray(found.rtt_ns) / 1e6
    assert 24 - EARLY_MS < rtt_ms.min() < 40  # of 24 to 64
    assert np.percentile(rtt_ms, 90) - np.percentile(rtt_ms, 10) > 12  # 22 of 40 ms, of a triangle


def test_slow_twice_is_slower_and_each_takes_only_its_own_away(bench: Bench) -> None:
    pair = ("n1", "n2")
    first, second = slow("victim", delay="30ms"), slow("n2", delay="50ms")
    first.begin(bench.scene)
    second.begin(bench.scene)
    both = bench.rtt_ms(pair)[pair]
    first.end(bench.scene)
    one = bench.rtt_ms(pair)[pair]
    second.end(bench.scene)
    assert adds(both, 80)
    assert adds(one, 50)


def test_of_a_hundred_packets_five_are_lost(bench: Bench) -> None:
    from scipy import stats

    fault = Lossy.parse("dc1/dc2", {"loss": "5%"}, PLAN, NOBODY)
    fault.begin(bench.scene)
    found = bench.stream.send([("n1", "n2"), ("n2", "n1"), ("n1", "n3")], 2500, 0.0006, 0.2)
    fault.end(bench.scene)
    low, high = stats.binom.interval(0.99, 2500, 0.05)  # the draws are seeded
    assert low <= found["n1", "n2"].lost <= high
    assert low <= found["n2", "n1"].lost <= high
    assert found["n1", "n3"].lost == 0
    assert bench.deliver(("n1", "n2"), 500, 0.0006).lost == 0


def test_losses_may_come_in_bursts(bench: Bench) -> None:
    fault = Lossy.parse("n2", {"loss": {"p": "2%", "r": "20%"}}, PLAN, NOBODY)
    fault.begin(bench.scene)
    found = bench.deliver(("n1", "n2"), 3000, 0.0003)
    fault.end(bench.scene)
    assert found.lost / found.sent == pytest.approx(0.02 / 0.22, rel=0.35)
    assert found.bursts.mean() == pytest.approx(5, rel=0.35)


def since_first_ns(found: Delivery) -> float:
    """Return how long after the first packet was sent the last one arrived."""
    return float(np.max(found.arrived_ns) - np.min(found.sent_ns))


def test_a_throttled_link_carries_its_rate(bench: Bench) -> None:
    fault = Throttled.parse("victim", {"rate": "1mbit", "queue": "64KiB"}, PLAN, ROLES)
    fault.begin(bench.scene)
    trains = [bench.deliver(("n1", "n2"), 40, 0.0003) for _ in range(4)]  # in at 4.6 Mbit/s
    fault.end(bench.scene)
    free = [bench.deliver(("n1", "n2"), 40, 0.0003) for _ in range(4)]
    assert [found.lost for found in trains] == [0] * 4
    # The last packet of a train waits for all of them to get through, in every train.
    all_of_it_ns = 40 * 8 * FRAME_BYTES / 1e6 * 1e9
    assert min(map(since_first_ns, trains)) > 0.97 * all_of_it_ns
    assert min(map(since_first_ns, trains)) < 2 * all_of_it_ns
    assert min(map(since_first_ns, free)) < all_of_it_ns / 2


def test_a_blackholed_node_is_silent_both_ways_and_still_reaches_itself(bench: Bench) -> None:
    fault = Blackhole.parse("victim", {}, PLAN, ROLES)
    at = time.monotonic_ns()
    begun = fault.begin(bench.scene)
    assert at <= begun <= time.monotonic_ns()
    heard = bench.heard([("n1", "n2"), ("n2", "n3"), ("n1", "n4")])
    to_itself_ms = bench.rtt_ms(("n2", "n2"))["n2", "n2"]
    fault.end(bench.scene)
    assert heard == {("n1", "n2"): False, ("n2", "n3"): False, ("n1", "n4"): True}
    assert not np.isnan(to_itself_ms), "it still reaches itself"
    assert all(bench.heard([("n1", "n2"), ("n2", "n3")]).values())


def test_a_partition_cuts_between_groups_and_nothing_inside(bench: Bench) -> None:
    fault = Partition.parse(["pair", ["n3", "dc4"]], {}, PLAN, ROLES)
    assert fault.subject == "n1, n2 | n3, n4"
    fault.begin(bench.scene)
    heard = bench.heard(all_pairs())
    fault.end(bench.scene)
    together = [{"n1", "n2"}, {"n3", "n4"}]
    assert heard == {pair: set(pair) in together for pair in all_pairs()}
    assert all(bench.heard(all_pairs()).values())


def test_a_partition_may_have_three_groups_and_leave_out_who_reaches_all(bench: Bench) -> None:
    fault = Partition.parse(["n1", "n2", "n3"], {}, PLAN, NOBODY)
    fault.begin(bench.scene)
    heard = bench.heard(all_pairs())
    fault.end(bench.scene)
    assert heard == {pair: "n4" in pair for pair in all_pairs()}


def test_a_one_way_cut_is_one_way(bench: Bench) -> None:
    fault = OneWayCut.parse("victim:n3", {}, PLAN, ROLES)
    fault.begin(bench.scene)
    heard = bench.heard([("n2", "n3"), ("n3", "n2"), ("n2", "n1")])
    fault.end(bench.scene)
    assert heard == {("n2", "n3"): False, ("n3", "n2"): True, ("n2", "n1"): True}


def test_a_node_may_be_heard_and_hear_nothing(bench: Bench) -> None:
    fault = OneWayCut.parse("dc2:victim", {}, PLAN, ROLES)
    fault.begin(bench.scene)
    heard = bench.heard([("n2", "n3"), ("n3", "n2")])
    fault.end(bench.scene)
    assert heard == {("n2", "n3"): True, ("n3", "n2"): False}


def test_cuts_that_overlap_end_each_for_itself(bench: Bench) -> None:
    parted = Partition.parse([["n1", "n2"], ["n3", "n4"]], {}, PLAN, NOBODY)
    cut = OneWayCut.parse("n1:n3", {}, PLAN, NOBODY)
    parted.begin(bench.scene)
    cut.begin(bench.scene)
    parted.end(bench.scene)
    heard = bench.heard([("n1", "n3"), ("n3", "n1"), ("n2", "n4")])
    cut.end(bench.scene)
    assert heard == {("n1", "n3"): False, ("n3", "n1"): True, ("n2", "n4"): True}
    assert bench.heard([("n1", "n3")])["n1", "n3"]


def test_a_flapping_link_is_down_when_it_says_and_up_else(bench: Bench) -> None:
    occurrences: list[tuple[int, str]] = []
    scene = Scene(
        bench.lab, {}, on_occurrence=lambda _f, at, more: occurrences.append((at, more["state"]))
    )
    fault = Flapping.parse("victim", {"period": "300ms", "down": "40%"}, PLAN, ROLES)
    first = Clocks.read()
    fault.begin(scene)
    found = bench.deliver(("n1", "n2"), 400, 0.004)
    fault.end(scene)
    last = Clocks.read()
    assert [state for _, state in occurrences] == ["down", "up"] * (len(occurrences) // 2)
    assert len(occurrences) >= 4
    starts = np.array([at for at, state in occurrences if state == "down"])
    ends = np.array([at for at, state in occurrences if state == "up"])
    assert all(at - starts[0] >= beat * 300e6 for beat, at in enumerate(starts))
    # A packet is on the WAN for 2 ms before it meets the victim's link.
    met_ns = monotonic(found.sent_ns, first, last) + 2_000_000
    is_down = [bool(((starts + MARGIN_NS < at) & (at < ends - MARGIN_NS)).any()) for at in met_ns]
    is_near = [
        bool((np.abs(np.concatenate([starts, ends]) - at) <= MARGIN_NS).any()) for at in met_ns
    ]
    clear = ~np.array(is_near)
    assert (found.missing[clear] == np.array(is_down)[clear]).mean() > 0.8
    assert 0.1 < found.missing.mean() < 0.9
    assert bench.heard([("n1", "n2")])["n1", "n2"]


def test_a_flapping_link_that_is_ended_stays_up(bench: Bench) -> None:
    fault = Flapping.parse("n1/n2", {"period": "100ms"}, PLAN, NOBODY)
    fault.begin(bench.scene)
    ended = fault.end(bench.scene)
    assert ended <= time.monotonic_ns()
    assert bench.deliver(("n1", "n2"), 60, 0.005).lost == 0  # three periods long


def test_the_journal_names_the_fault(bench: Bench) -> None:
    fault = slow("victim", delay="10ms")
    begun = fault.begin(bench.scene)
    ended = fault.end(bench.scene)
    entries = [each for each in bench.lab.journal if each.origin == "slow"][-4:]
    assert {(each.t_ns, each.direction) for each in entries} == {
        (at, each) for at in (begun, ended) for each in fault.directions
    }


def test_the_end_of_one_that_never_began_is_no_error(bench: Bench) -> None:
    assert Blackhole.parse("n1", {}, PLAN, NOBODY).end(bench.scene) <= time.monotonic_ns()


def test_a_fault_that_cannot_be_applied_or_undone_says_so() -> None:
    lab = Lab(PLAN, backend=BACKEND, splice="all")
    with lab:
        begun, late = slow("n1", delay="10ms"), slow("n2", delay="10ms")
        scene = Scene(lab, {})
        begun.begin(scene)
    with pytest.raises(FaultFailed, match=r"slow of n2 could not be applied: The lab has ended"):
        late.begin(scene)
    with pytest.raises(FaultFailed, match=r"slow of n1 could not be undone: The lab has ended"):
        begun.end(scene)


def test_a_cable_is_refused_before_anything_is_measured() -> None:
    with Lab(PLAN, backend=BACKEND) as lab:
        with pytest.raises(
            UserError, match=r'n2->dc2 and dc2->n2 are of a plain cable.*splice="all"'
        ):
            slow("n2", delay="10ms").check(lab)
        slow("dc1/dc2", delay="10ms").check(lab)


TWO = mesh(2, 2, wan=ms(5))  # n1, n2 in dc1; n3, n4 in dc2


def test_a_role_that_is_a_whole_site_is_the_site() -> None:
    roles = {"east": ("n1", "n2"), "some": ("n1", "n3")}
    links = {wan("dc1", "dc2"), wan("dc2", "dc1")}
    assert set(Blackhole.parse("east", {}, TWO, roles).directions) == links
    assert set(Blackhole.parse("site.east", {}, TWO, roles).directions) == links
    by_node = Blackhole.parse("node.east", {}, TWO, roles)
    assert set(by_node.directions) == {
        way(node, "dc1") for way in (lan_up, lan_down) for node in ("n1", "n2")
    }
    assert by_node.nodes == ("n1", "n2")
    some = Blackhole.parse("some", {}, TWO, roles)
    assert some.nodes == ("n1", "n3")
    assert some.subject == "n1, n3"


def test_directions_are_those_whose_impairment_changes() -> None:
    fault = Throttled.parse(["n1", "dc1:dc2"], {"rate": "1mbit"}, TWO, NOBODY)
    assert set(fault.directions) == {lan_up("n1", "dc1"), lan_down("n1", "dc1"), wan("dc1", "dc2")}
    assert set(fault.directions) <= requested(TWO).keys()


REFUSED: list[tuple[type[Fault], object, dict[str, object], str]] = [
    (Slow, "n1", {}, "it needs `delay`"),
    (Slow, "n1", {"delay": "0ms"}, "changes nothing"),
    (Slow, "n1", {"delay": "5"}, "has no unit"),
    (Slow, "n1", {"delya": "5ms"}, "did you mean `delay`"),
    (Slow, "n1", {"delay": "5ms", "jitter": "20ms"}, "delays would be negative"),
    (Slow, "n9", {"delay": "5ms"}, "there is no `n9`.*the roles are some"),
    (Slow, "smoe", {"delay": "5ms"}, "did you mean `some`"),
    (Slow, [], {"delay": "5ms"}, "a list is no target"),
    (Slow, "n1/n2/n3", {"delay": "5ms"}, "more than two ends"),
    (Slow, "site.some", {"delay": "5ms"}, "n1 and n3, which is not one whole site"),
    (Lossy, "n1", {"loss": "0%"}, "changes nothing"),
    (Lossy, "n1", {"loss": "100%"}, "blackhole"),
    (Lossy, "n1", {"loss": {"p": "1%"}}, "bursts need p and r"),
    (Lossy, "n1", {"loss": "120%"}, "outside 0..1"),
    (Throttled, "n1", {"rate": "1Mbit"}, "did you mean `mbit`"),
    (Throttled, "n1", {"rate": "0mbit"}, "lets nothing through"),
    (Blackhole, "n1", {"delay": "5ms"}, "no setting `delay`.*it has no settings"),
    (Partition, "n1", {}, "not a list of groups"),
    (Partition, ["dc1"], {}, "two groups or more"),
    (Partition, ["n1", "dc2"], {}, "n1 shares the WAN links of site dc1 with n2"),
    (Partition, ["some", "n2"], {}, "n1 shares the WAN links of site dc1 with n2"),
    (Partition, ["dc1", ["n1", "n2"]], {}, "site `dc1` is in group 1 and in group 2"),
    (OneWayCut, "dc1/dc2", {}, "is both ways"),
    (OneWayCut, "n1", {}, "is both ways"),
    (OneWayCut, "n1:n3", {}, "n1 shares the WAN links of site dc1 with n2"),
    (OneWayCut, "dc1:dc1", {}, "cannot be on both sides"),
    (Flapping, "n1", {}, "it needs `period`"),
    (Flapping, "n1", {"period": "5ms"}, "too short; at least 20ms"),
    (Flapping, "n1", {"period": "5s", "down": "100%"}, "does not flap"),
]


@pytest.mark.parametrize(("kind", "target", "settings", "said"), REFUSED)
def test_what_is_wrong_is_said(
    kind: type[Fault], target: object, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        kind.parse(target, settings, TWO, {"some": ("n1", "n3")})
