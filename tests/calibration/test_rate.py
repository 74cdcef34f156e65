"""A link passes as many bits a second as asked, of packets that follow each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.calibration.bench import Bench
from tests.emulator.plans import ms
from wanlat.emulator.calibration.rate import densest
from wanlat.topologies.resolve import Impairment

# Queues with room for a whole train, so that it does not matter when this process is on time.
ROOM = 4 << 20
ASKED = {
    "with jitter and loss": ms(15, jitter=3, loss=0.02, rate_bps=50_000_000, queue_bytes=ROOM),
    "fast": ms(20, rate_bps=200_000_000, queue_bytes=ROOM),
}
FAST_IN_UML_BPS = 30_000_000


def within_reach(backend: str, asked: Impairment) -> Impairment:
    """What a backend's own machine can fill with packets: User-Mode Linux has one processor."""
    if backend != "netem" or asked.rate_bps is None or asked.rate_bps < 20_000_000:
        return asked
    return replace(asked, rate_bps=min(asked.rate_bps, FAST_IN_UML_BPS), queue_bytes=ROOM)


@pytest.mark.parametrize("name", ASKED)
def test_rate_is_within_two_percent(bench: Bench, name: str) -> None:
    """By the closest half of the trains. One in which a stall left gaps says nothing, and counts
    for nothing: trains are sent until three say something.
    """
    asked = within_reach(bench.lab.backend, ASKED[name])
    trains_bps: list[float] = []
    for _ in range(20):
        if len(trains_bps) < 3:
            trains_bps += bench.trains_bps(asked)
    assert densest(trains_bps)[0] == pytest.approx(asked.rate_bps, rel=0.02), trains_bps


def test_packets_that_keep_arriving_are_waited_for(bench: Bench) -> None:
    """Half a second of packets, far longer than the patience for one of them: none is lost."""
    asked = ms(5, rate_bps=1_000_000, queue_bytes=ROOM)
    delivery = bench.send(asked, 400, 5000)
    assert delivery.lost == 0
    took_s = float(delivery.arrived_ns[-1] - delivery.sent_ns[-1]) / 1e9
    assert took_s > 0.3
