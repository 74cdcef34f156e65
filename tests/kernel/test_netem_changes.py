"""Live changes on netem: nothing is lost, nothing comes early, what waits keeps its due time."""

from __future__ import annotations

import json
import os
import random
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.experiments.session import LabSetup, Session

FORWARD, BACK = wan("dc1", "dc2"), wan("dc2", "dc1")
REQUESTS = 5_000 if os.environ.get("WANLAT_LONG") == "1" else 500  # of two changes each


def test_a_thousand_changes_lose_no_packet_and_let_none_be_early() -> None:
    """One change before every packet, of both directions; some twenty packets wait meanwhile."""
    draw = random.Random(7)
    delays_ns = np.array([draw.uniform(1e6, 40e6) for _ in range(REQUESTS)])
    changing_ns = np.zeros(REQUESTS)
    with Lab(mesh(2, wan=ms(20)), backend="netem") as lab:

        def change(number: int) -> None:
            changing_ns[number] = time.time_ns()
            asked = ms(delays_ns[number] / 1e6)
            lab.change({FORWARD: asked, BACK: asked})

        began = time.perf_counter()
        passage = packets.send(lab, "n1", "n2", REQUESTS, interval_s=0, between=change)
        took_s = time.perf_counter() - began
        counters = lab.counters()[FORWARD]
    print(f"{2 * REQUESTS} changes in {took_s:.1f} s")
    assert (passage.lost, passage.doubled, passage.overtaken) == (0, 0, 0)
    assert (counters.packets, counters.lost) == (REQUESTS, 0)
    assert (counters.queue_drops, counters.overflows) == (0, 0)
    for number, sent_ns, arrived_ns in zip(
        passage.number, passage.sent_ns, passage.arrived_ns, strict=True
    ):
        # It may reach the link only after later changes: each holds from its beginning on.
        later = slice(number, None)
        due_ns = np.maximum(changing_ns[later], sent_ns) + delays_ns[later]
        assert arrived_ns >= due_ns.min() - 1000, number
    # The order is kept: a packet is due when its delay is over and the one before has left. Many
    # leave then; a change without effect would leave none there.
    due_ns = np.maximum.accumulate(passage.sent_ns + delays_ns[passage.number])
    assert np.quantile(passage.arrived_ns - due_ns, 0.1) < packets.QUICKEST_LATE_NS


@pytest.mark.parametrize(
    "following", [ms(5), ms(5, rate_bps=50_000_000, queue_bytes=15_140)], ids=["delay", "rate"]
)
def test_a_smaller_queue_takes_newcomers_while_old_packets_still_wait(following: Any) -> None:
    """netem compares all that waits with the new limit."""
    with Lab(mesh(2, wan=ms(800, rate_bps=900_000_000)), backend="netem") as lab:

        def change(number: int) -> None:
            if number == 1000:
                lab.change({FORWARD: following})

        passage = packets.send(lab, "n1", "n2", 1100, interval_s=0.0003, settle_s=1, between=change)
    assert passage.lost == 0


def test_the_queue_shrinks_to_what_was_asked_for_when_the_old_packets_have_left() -> None:
    asked = ms(5, rate_bps=800_000, queue_bytes=15_140)
    with Lab(mesh(2, wan=ms(200)), backend="netem") as lab:

        def change(number: int) -> None:
            if number == 100:
                lab.change({FORWARD: asked})

        first = packets.send(lab, "n1", "n2", 110, interval_s=0.0005, settle_s=1, between=change)
        burst = packets.send(lab, "n1", "n2", 300, interval_s=0, bytes_each=1400)
        drops = lab.counters()[FORWARD].queue_drops
    assert first.lost == 0
    assert burst.lost > 100  # 10 fit; a second of a stall lets another 70 through
    assert drops == burst.lost


def test_a_change_does_not_turn_losses_into_overflows() -> None:
    with Lab(mesh(2, wan=ms(2, loss=0.3)), backend="netem") as lab:

        def change(number: int) -> None:
            if number % 20 == 0:
                lab.change({FORWARD: ms(2, loss=0.3) if number % 40 else ms(2)})

        passage = packets.send(lab, "n1", "n2", 2000, interval_s=0.0002, between=change)
        counters = lab.counters()[FORWARD]
    assert counters.lost == passage.lost > 150
    assert counters.overflows == 0


def change_by_hand(lab: Lab, arguments: str) -> None:
    """Change netem past the emulator, which thinks that its own limit is in force."""
    inside = ["ip", "netns", "exec", "site.dc1"]
    shown = json.loads(lab.run("n1", [*inside, "ip", "-j", "link"]).stdout)
    (name,) = [each["ifname"] for each in shown if each["ifname"].startswith("w")]
    command = [*inside, "tc", "qdisc", "change", "dev", name, "root", "netem", *arguments.split()]
    done = lab.run("n1", command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_an_overflowing_queue_is_flagged_in_the_bundle(loss: float) -> None:
    with Lab(mesh(2, wan=ms(100, loss=loss)), backend="netem") as lab:
        change_by_hand(lab, f"delay 100ms limit 20 loss {loss:%}")
        passage = packets.send(lab, "n1", "n2", 1000, interval_s=0.0002)
        counters = lab.counters()[FORWARD]
        events: list[tuple[str, ...]] = []
        bundle: Any = SimpleNamespace(event=lambda *told: events.append(told))
        warnings: list[str] = []
        recording: Any = SimpleNamespace(
            bundle=bundle, outcome=None, warn=warnings.append, report=print
        )
        setup = LabSetup(name="s", plan=lab.plan, client="n1", seed=1)
        Session(recording, setup).note_overflows(lab)
    assert passage.lost > 200
    assert counters.overflows == pytest.approx(passage.lost, abs=1000 * loss + 50)
    assert counters.overflows + counters.lost == passage.lost
    assert [event[:2] for event in events] == [("overflow", "dc1->dc2")]
    assert "dropped on dc1->dc2" in warnings[0]
