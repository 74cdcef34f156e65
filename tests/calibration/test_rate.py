"""A link passes as many bits a second as asked, of packets that follow each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.calibration import Tolerance
from emulator.calibration.rate import rate_figures, rate_pass
from emulator.stream import FRAME_BYTES
from tests.calibration.bench import PAIR, Bench, holds
from tests.emulator.plans import ms
from topologies.resolve import Impairment

ASKED = {
    "home uplink": ms(10, rate_bps=5_000_000),
    "short queue": ms(10, rate_bps=20_000_000, queue_bytes=16_000),
    "with jitter and loss": ms(15, jitter=3, loss=0.02, rate_bps=50_000_000),
    "fast": ms(20, rate_bps=200_000_000),
}
FAST_IN_UML_BPS = 100_000_000


def within_reach(backend: str, asked: Impairment) -> Impairment:
    """What a backend's own machine can fill with packets.

    User-Mode Linux has one processor, which cannot send packets one by one as fast as this: there
    the queue is so long that a whole train is sent at once, in few calls.
    """
    if backend != "netem" or asked.rate_bps is None or asked.rate_bps < 20_000_000:
        return asked
    if asked.queue_bytes is not None:
        return asked
    return replace(asked, rate_bps=min(asked.rate_bps, FAST_IN_UML_BPS), queue_bytes=4 << 20)


@pytest.mark.parametrize("name", ASKED)
def test_rate_is_within_two_percent(bench: Bench, name: str) -> None:
    asked = within_reach(bench.lab.backend, ASKED[name])
    plan = bench.ask(asked)
    found: list[float | None] = []

    def is_right() -> bool:
        trains_bps = rate_pass(bench.lab, plan, [PAIR], lambda _: None)[PAIR]
        figures = rate_figures(plan.path(*PAIR), trains_bps, Tolerance())
        assert figures is not None
        found.append(figures["error"])
        return figures["error"] is not None and abs(figures["error"]) < 0.02

    assert holds(is_right), found


def test_what_finds_no_room_in_the_queue_is_dropped(bench: Bench) -> None:
    delivery = bench.send(ms(5, rate_bps=1_000_000, queue_bytes=8_000), 400, 5000)
    took_s = float(delivery.sent_ns[-1] - delivery.sent_ns[0]) / 1e9
    waiting, meanwhile = 8_000 / FRAME_BYTES, took_s * 1e6 / 8 / FRAME_BYTES
    arrived = delivery.sent - delivery.lost
    # Fewer, if this process was held up and sent many at once.
    assert 0.85 * waiting <= arrived <= 1.15 * (waiting + meanwhile) + 3
