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
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.emulator.entries import Clocks, Entries, monotonic
from tests.emulator.plans import mesh, ms
from wanlat.emulator.journal import Journal
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import Direction, wan
from wanlat.emulator.prober import Prober
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Impairment

BACKEND: Any = os.environ.get("WANLAT_TEST_BACKEND", "wire")
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

BOTH = (wan("dc1", "dc2"), wan("dc2", "dc1"))


@dataclass
class Crossing:
    """The packets of one direction of one round that arrived, in the order of arrival."""

    numbers: np.ndarray
    entered_ns: np.ndarray
    arrived_ns: np.ndarray
    lost: int
    odd: int  # damaged, or there twice


def cross(lab: Lab, stream: Prober, flows: int, count: int) -> dict[Direction, Crossing]:
    """Send packets both ways; return when each entered the WAN link and when it arrived."""
    pairs = [("n1", "n2"), ("n2", "n1")]
    with ExitStack() as rings:
        entries = [rings.enter_context(Entries(lab, side, 3 * count)) for side in (0, 1)]
        first = Clocks.read()
        sent = stream.send(pairs, count, STEP_S * 2, 0.2, flows=flows)
        last = Clocks.read()
        entered = [ring.by_number(stream.turn, count) for ring in entries]
    result = {}
    for direction, pair, wall in zip(BOTH, pairs, entered, strict=True):
        delivery = sent[pair]
        # Damaged packets would have numbers that are wrong, and come in no list.
        assert (wall > 0).all(), "every packet was seen to enter"
        result[direction] = Crossing(
            numbers=delivery.there.numbers,
            entered_ns=monotonic(wall[delivery.there.numbers], first, last),
            arrived_ns=monotonic(delivery.there.instants_ns, first, last),
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


def test_a_packet_meets_what_is_in_force_when_it_enters():
    # Far apart, so that one that met the other would show: 5 ms and 25 ms, every 50 ms.
    delays = itertools.cycle((ms(25), ms(5)))
    with Lab(mesh(2, wan=ms(5)), backend=BACKEND) as lab, Prober(lab, ["n1", "n2"]) as stream:
        over = threading.Event()

        def change(_number: int) -> int:
            over.wait(0.05)
            return lab.change("dc1/dc2", next(delays))

        changer = Changer(40, change)
        changer.start()
        crossed = cross(lab, stream, 3000, count=1200 if BACKEND == "wire" else 400)
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
