"""Links change under traffic: nothing is lost, nothing is early, and the journal is right.

WANLAT_TEST_BACKEND=netem    in a kernel that has it (tests/kernel)
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.entries import Clocks, Entries, monotonic
from tests.emulator.plans import mesh, ms
from wanlat.emulator.backends.choice import _UNSUPPORTED
from wanlat.emulator.journal import Journal
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, lan_down, lan_up, wan
from wanlat.emulator.stream import Stream
from wanlat.topologies.errors import MachineError, UserError
from wanlat.topologies.resolve import Impairment

BACKEND: Any = os.environ.get("WANLAT_TEST_BACKEND", "wire")
CHANGES = {"wire": 5_000, "netem": 1_000}[BACKEND]  # netem's own 10,000 are in tests/kernel
# A packet leaves wire up to 5 us before it is due: half of what sending it takes.
LEAD_NS = {"wire": 6_000, "netem": 20_000}[BACKEND]
# How far a stamp of entry may lie before the packet meets the impairment, and clocks apart.
# netem's is stamped one hop earlier, and User-Mode Linux may be put to sleep in between.
APART_NS = {"wire": 20_000, "netem": 8_000_000}[BACKEND]
# There a hop has been seen to take longer than that, a few times in ten thousand. That no packet at
# all is early on netem, tests/kernel shows, one change a packet.
EARLY_PART = {"wire": 0.0, "netem": 0.001}[BACKEND]
LATE_NS = {"wire": 2_000_000, "netem": 6_000_000}[BACKEND]
STEP_S = {"wire": 0.0005, "netem": 0.002}[BACKEND]
ROUND = {"wire": 3000, "netem": 1000}[BACKEND]  # packets

BOTH = (wan("dc1", "dc2"), wan("dc2", "dc1"))
KINDS = [
    ms(20),
    ms(2),
    ms(25, jitter=5),
    ms(5),
    ms(12, jitter=12),
    ms(18, jitter=3, distribution="normal"),
    ms(1, rate_bps=1_000_000_000),
    ms(30, jitter=2, distribution="pareto"),
    ms(8, jitter=4, correlation=0.5),
    ms(0),
    ms(15, jitter=5, rate_bps=500_000_000),
]


@dataclass
class Crossing:
    """The packets of one direction of one round that arrived, in the order of arrival."""

    numbers: np.ndarray
    entered_ns: np.ndarray
    arrived_ns: np.ndarray
    lost: int
    odd: int  # damaged, or there twice


def cross(lab: Lab, stream: Stream, flows: int, count: int = ROUND) -> dict[Direction, Crossing]:
    """Send packets both ways; return when each entered the WAN link and when it arrived."""
    pairs = [("n1", "n2"), ("n2", "n1")]
    with ExitStack() as rings:
        entries = [rings.enter_context(Entries(lab, side, 3 * count)) for side in (0, 1)]
        first = Clocks.read()
        sent = stream.send(pairs, count, STEP_S * 2, 0.2, flows=flows)
        last = Clocks.read()
        entered = [ring.by_number(stream._turn, count) for ring in entries]
    result = {}
    for direction, pair, wall in zip(BOTH, pairs, entered, strict=True):
        delivery = sent[pair]
        # Damaged packets would have numbers that are wrong, and come in no list.
        assert (wall > 0).all(), "every packet was seen to enter"
        result[direction] = Crossing(
            numbers=delivery.numbers,
            entered_ns=monotonic(wall[delivery.numbers], first, last),
            arrived_ns=monotonic(delivery.arrived_ns, first, last),
            lost=delivery.lost,
            odd=delivery.damaged + delivery.duplicated,
        )
    return result


@dataclass
class Changes:
    """What the journal says of a direction: from when on which delays were possible (ns)."""

    certain_ns: np.ndarray
    possible_ns: np.ndarray
    shortest_ns: np.ndarray
    longest_ns: np.ndarray

    @classmethod
    def of(cls, journal: Journal, direction: Direction, first: Impairment) -> Changes:
        mine = [entry for entry in journal if entry.direction == direction]
        ever = -(1 << 62)
        ranges = [kind.range_ns for kind in (first, *(entry.after for entry in mine))]
        return cls(
            np.array([ever, *(entry.t_ns for entry in mine)]),
            np.array([ever, *(entry.not_before_ns for entry in mine)]),
            np.array([low for low, _ in ranges]),
            np.array([high for _, high in ranges]),
        )

    def extremes(self, entered_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the shortest and longest delay of packets that entered then."""
        first = np.searchsorted(self.certain_ns, entered_ns - APART_NS, side="right") - 1
        last = np.searchsorted(self.possible_ns, entered_ns + APART_NS, side="right") - 1
        shortest, longest = self.shortest_ns[first], self.longest_ns[first]
        for step in range(1, int((last - first).max(initial=0)) + 1):
            place = np.minimum(first + step, last)
            shortest = np.minimum(shortest, self.shortest_ns[place])
            longest = np.maximum(longest, self.longest_ns[place])
        return shortest, longest


def judged(
    crossing: Crossing, changes: Changes, *, in_one_row: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much each packet was too early, and too late (ns; negative: it was not).

    ``in_one_row``: packets wait for those that entered before them.
    """
    shortest, longest = changes.extremes(crossing.entered_ns)
    due_to = crossing.entered_ns + longest
    if in_one_row:
        due_to = np.maximum.accumulate(due_to)
    return crossing.entered_ns + shortest - crossing.arrived_ns, crossing.arrived_ns - due_to


def usable() -> list[Impairment]:
    """Return the impairments that the backend does."""
    return [kind for kind in KINDS if _UNSUPPORTED[BACKEND](kind) is None]


class Changer(threading.Thread):
    """Changes links as fast as it goes, from a thread of its own, until it is told to stop."""

    def __init__(self, number: int, change: Any) -> None:
        super().__init__()
        self.took_ns: list[int] = []
        self.told_ns: list[int] = []
        self.error: BaseException | None = None
        self._number, self._change = number, change

    def run(self) -> None:
        try:
            for number in range(self._number):
                begun = time.monotonic_ns()
                self.told_ns.append(self._change(number))
                self.took_ns.append(time.monotonic_ns() - begun)
        except BaseException as error:
            self.error = error


@pytest.mark.minutes
def test_thousands_of_changes_under_traffic_lose_nothing_and_let_nothing_out_early(capsys):
    kinds = usable()
    assert len(kinds) >= 4
    plan = mesh(2, wan=kinds[0])
    crossings: list[tuple[int, dict[Direction, Crossing]]] = []
    with Lab(plan, backend=BACKEND) as lab, Stream(lab, ["n1", "n2"]) as stream:
        # One thread changes one direction whole, the other bits of the other direction.
        delays = itertools.cycle(("15ms", "3ms", "28ms", "6ms", "0ms"))
        changers = [
            Changer(
                CHANGES // 2, lambda number: lab.change(BOTH[0], kinds[(number + 1) % len(kinds)])
            ),
            Changer(CHANGES // 2, lambda _: lab.change("dc2:dc1", delay=next(delays))),
        ]
        for changer in changers:
            changer.start()
        while any(changer.is_alive() for changer in changers):
            flows = 1 if len(crossings) % 2 else ROUND
            crossings.append((flows, cross(lab, stream, flows)))
        for changer in changers:
            changer.join()
            assert changer.error is None, changer.error
        journal, counters = lab.journal, lab.counters()

    assert len(journal) == CHANGES
    instants = [entry.t_ns for entry in journal]
    assert instants == sorted(instants)
    assert sorted(instants) == sorted(changers[0].told_ns + changers[1].told_ns)
    late_of_all = []
    for direction in BOTH:
        changes = Changes.of(journal, direction, kinds[0])
        assert changes.certain_ns.size == CHANGES // 2 + 1
        for flows, crossed in crossings:
            crossing = crossed[direction]
            assert (crossing.lost, crossing.odd) == (0, 0)
            one_row = flows == 1 or BACKEND == "netem"
            if one_row:
                assert (np.diff(crossing.numbers) > 0).all(), "the order is kept"
            early, late = judged(crossing, changes, in_one_row=one_row)
            assert (early > LEAD_NS).mean() <= EARLY_PART, f"by up to {early.max()} ns"
            late_of_all.append(late)
        assert (counters[direction].lost, counters[direction].queue_drops) == (0, 0)
        assert counters[direction].overflows == 0
    late = np.concatenate(late_of_all)
    took_us = np.array(changers[0].took_ns + changers[1].took_ns) / 1000
    with capsys.disabled():
        print(
            f"\nmeasured: {CHANGES} changes under {late.size} packets; a change took "
            f"{np.median(took_us):.0f} us (p99 {np.percentile(took_us, 99):.0f}), "
            f"{(late > LATE_NS).mean():.2%} of the packets later than {LATE_NS / 1e6:g} ms"
        )
    # A busy machine makes some packets late. Changes that do not happen make most of them late.
    assert np.median(late) < LATE_NS


def test_a_packet_meets_what_is_in_force_when_it_enters():
    # Far apart, so that one that met the other would show: 5 ms and 25 ms, every 50 ms.
    delays = itertools.cycle((ms(25), ms(5)))
    with Lab(mesh(2, wan=ms(5)), backend=BACKEND) as lab, Stream(lab, ["n1", "n2"]) as stream:
        over = threading.Event()

        def change(_number: int) -> int:
            over.wait(0.05)
            return lab.change("dc1/dc2", next(delays))

        changer = Changer(40, change)
        changer.start()
        crossed = cross(lab, stream, ROUND, count=1200 if BACKEND == "wire" else 400)
        over.set()
        changer.join()
        assert changer.error is None, changer.error
        journal = lab.journal
    for direction in BOTH:
        crossing, changes = crossed[direction], Changes.of(journal, direction, ms(5))
        early, late = judged(crossing, changes, in_one_row=BACKEND == "netem")
        assert (early > LEAD_NS).mean() <= EARLY_PART, f"by up to {early.max()} ns"
        assert np.median(late) < LATE_NS
        delays_ms = (crossing.arrived_ns - crossing.entered_ns) / 1e6
        assert (delays_ms < 15).sum() > 100
        assert (delays_ms > 15).sum() > 100
        assert crossing.lost == 0
    if BACKEND == "wire":  # both directions at one instant
        entries = list(journal)
        pairs = zip(entries[::2], entries[1::2], strict=True)
        assert all(a.t_ns == b.t_ns and a.direction != b.direction for a, b in pairs)


def test_a_cut_loses_what_enters_during_it_and_nothing_else():
    with Lab(mesh(2, wan=ms(30)), backend=BACKEND) as lab, Stream(lab, ["n1", "n2"]) as stream:
        held = []

        def cut_and_heal() -> None:
            time.sleep(0.3)
            with lab.cutting("dc1:dc2") as hold:
                held.append(hold)
                deadline = time.monotonic() + 60
                while lab.counters()[BOTH[0]].lost < count / 8 and time.monotonic() < deadline:
                    time.sleep(0.02)

        count = 1000 if BACKEND == "wire" else 300
        thread = threading.Thread(target=cut_and_heal)
        thread.start()
        with Entries(lab, 0, 3 * count) as ring:
            first = Clocks.read()
            sent = stream.send([("n1", "n2")], count, 3 / count, 0.3)["n1", "n2"]
            last = Clocks.read()
            entered = monotonic(ring.by_number(stream._turn, count), first, last)
        thread.join()
        counters = lab.counters()[BOTH[0]]
        cut, healed = lab.journal
    assert (held[0].begun_ns, held[0].ended_ns) == (cut.t_ns, healed.t_ns)
    missing = sent.missing
    during = (entered > cut.t_ns + APART_NS) & (entered < healed.not_before_ns - APART_NS)
    outside = (entered < cut.not_before_ns - APART_NS) | (entered > healed.t_ns + APART_NS)
    assert during.sum() > count / 20
    assert missing[during].all()
    assert not missing[outside].any()
    assert counters.lost == missing.sum()


def test_a_node_is_slowed_and_restored_while_it_talks():
    plan = mesh(2, 2, wan=ms(1))
    with Lab(plan, backend=BACKEND, splice="all") as lab, Stream(lab, ["n1", "n2", "n3"]) as stream:
        pairs = [("n1", "n3"), ("n2", "n3"), ("n3", "n1")]

        def quickest_ms() -> list[float]:
            sent = stream.send(pairs, 100, 0.005, 0.2)
            assert [each.lost for each in sent.values()] == [0, 0, 0]
            return [float(np.min(sent[pair].delays_ns)) / 1e6 for pair in pairs]

        before = quickest_ms()
        with lab.changed("n1", delay="+20ms"):
            during = quickest_ms()
        after = quickest_ms()
    early = APART_NS / 1e6 + 0.1
    for found, least in ((before, (1, 1, 1)), (during, (21, 1, 21)), (after, (1, 1, 1))):
        for quickest, least_ms in zip(found, least, strict=True):
            assert least_ms - early <= quickest < least_ms + 15


def test_a_plain_cable_says_how_it_could_be_changed():
    with Lab(mesh(2, wan=ms(1)), backend=BACKEND) as lab:
        before = lab.impairments
        with pytest.raises(MachineError, match='splice="all"'):
            lab.change("n1", delay="5ms")
        assert lab.impairments == before
        assert len(lab.journal) == 0


def test_a_change_that_is_refused_changes_nothing():
    with Lab(mesh(3, wan=ms(10)), backend=BACKEND) as lab:
        before = lab.impairments
        for target, settings in (
            ("dc1/dc2", {"delay": "5ms", "jitter": "6ms"}),
            ({"dc1/dc2": {"delay": "5ms"}, "dc1/dc3": {"jitter": "11ms"}}, {}),
            ("dc1/dc9", {"delay": "1ms"}),
            ("dc1/dc2", {"delay": "5"}),
            ("dc1:dc2", {"rtt": "5ms"}),
        ):
            with pytest.raises(UserError):
                lab.change(target, **settings)
        assert lab.impairments == before
        assert len(lab.journal) == 0


def test_what_a_plan_has_can_be_restored_whatever_it_is():
    odd = ms(10, queue_bytes=9000)  # without a rate: no topology file says so
    with Lab(mesh(2, wan=odd), backend=BACKEND) as lab:
        lab.change(BOTH[0], ms(1))
        lab.restore()
        lab.change(BOTH[0], ms(1))
        lab.change(BOTH[0], odd)
        assert lab.impairments == lab.requested
        with pytest.raises(UserError, match="queue"):
            lab.change(BOTH[0], delay="5ms")


def test_holds_that_overlap_do_not_undo_each_other():
    with Lab(mesh(3, wan=ms(10)), backend=BACKEND) as lab:
        way = wan("dc1", "dc2")
        slow, lossy = lab.changed("dc1", delay="+20ms"), lab.changed("dc1/dc2", loss="5%")
        slow.begin()
        lossy.begin()
        with lab.cutting("dc2"):
            assert lab.impairments[way].loss == 1
            lab.change("dc1/dc2", loss="1%")
            assert lab.impairments[way].loss == 1, "a cut lies on top"
        assert lab.impairments[way] == replace(ms(30), loss=0.01)
        slow.end()
        assert lab.impairments[way] == replace(ms(10), loss=0.01)
        lossy.end()
        assert lab.impairments[way] == replace(ms(10), loss=0.01)
        lab.restore()
        assert lab.impairments == lab.requested
        assert lab.journal.at(way, time.monotonic_ns()) == ms(10)
        assert lab.journal.at(way, slow.begun_ns) == ms(30)
        assert lab.journal.at(way, slow.begun_ns - 1) == ms(10)
        assert slow.end() == slow.ended_ns, "an end is an end, also the second time"


def test_what_is_in_force_already_is_no_change():
    with Lab(mesh(2, wan=ms(10)), backend=BACKEND) as lab:
        lab.change("dc1/dc2", delay="10ms")
        lab.restore()
        assert len(lab.journal) == 0
        assert lab.impairments[lan_up("n1", "dc1")] == lab.impairments[lan_down("n1", "dc1")]


def test_the_journal_is_a_file_while_the_lab_runs(tmp_path):
    file = tmp_path / "journal.jsonl"
    with Lab(mesh(2, wan=ms(10)), backend=BACKEND, journal=file) as lab:
        instant = lab.change("dc1:dc2", delay="20ms", loss="5%", origin="a test")
        begin, line = (json.loads(each) for each in file.read_text().splitlines())
        assert line == {
            "t_ns": instant,
            "not_before_ns": line["not_before_ns"],
            "link": "wan",
            "from": "dc1",
            "to": "dc2",
            "before": {"delay_ns": 10_000_000},
            "after": {"delay_ns": 20_000_000, "loss": 0.05},
            "origin": "a test",
        }
        assert begin["t_ns"] < line["not_before_ns"] <= instant
        assert {"link": "wan", "from": "dc2", "to": "dc1", "delay_ns": 10_000_000} in begin[
            "in_force"
        ]


def test_a_journal_that_cannot_be_written_is_told_before_anything_starts(tmp_path):
    with pytest.raises(UserError, match="journal cannot be written"):
        Lab(mesh(1), journal=tmp_path / "nowhere" / "journal.jsonl")


def test_a_full_disk_ends_the_file_and_not_the_lab():
    with Lab(mesh(2, wan=ms(10)), backend=BACKEND) as lab:
        lab.journal._file = open("/dev/full", "w")  # noqa: SIM115 - the journal closes it
        with pytest.raises(MachineError, match="is in force, but the journal /dev/full"):
            lab.change("dc1/dc2", delay="1ms")
        lab.change("dc1/dc2", delay="2ms")
        assert lab.impairments[BOTH[0]] == ms(2)
        assert len(lab.journal) == 4
