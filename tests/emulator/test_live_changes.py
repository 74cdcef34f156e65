"""Links change under traffic: nothing is lost, nothing is early, and the journal is right.

WANLAT_TEST_BACKEND=netem    in a kernel that has it (tests/kernel)
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies.errors import UserError

BACKEND: Any = os.environ.get("WANLAT_TEST_BACKEND", "wire")
BOTH = (wan("dc1", "dc2"), wan("dc2", "dc1"))
EARLY_NS = 50_000  # clocks are read one after the other, and wire sends up to 5 us early


def test_a_packet_meets_what_the_journal_says_was_in_force_when_it_was_sent() -> None:
    """Many changes, 5 ms and 60 ms; the emulator's own tests look at each packet's entry."""
    with Lab(mesh(2, wan=ms(5)), backend=BACKEND) as lab:
        ahead_ns = time.time_ns() - time.monotonic_ns()

        def change(number: int) -> None:
            if number and number % 25 == 0:
                lab.change("dc1/dc2", delay="60ms" if number // 25 % 2 else "5ms")

        found = packets.send(lab, "n1", "n2", 500, interval_s=0.002, between=change)
        entries = [each for each in lab.journal if each.direction == BOTH[0]]
    assert (found.lost, found.doubled, len(entries)) == (0, 0, 19)
    instants = np.array([entry.t_ns for entry in entries]) + ahead_ns
    delays_ns = np.array([5_000_000, *(entry.after.delay_ns for entry in entries)])
    place = np.searchsorted(instants, found.sent_ns, side="right")
    # One that is sent before a change may come to the link after it, whoever holds it up.
    later = np.minimum(place + 1, len(instants))
    least_ns = np.minimum(delays_ns[place], delays_ns[later])
    assert np.all(found.delay_ns >= least_ns - EARLY_NS)
    slow = delays_ns[place] == 60_000_000
    assert np.mean(found.delay_ns[slow] >= 60_000_000 - EARLY_NS) > 0.5
    assert found.delay_ns[~slow].min() < 40_000_000


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
