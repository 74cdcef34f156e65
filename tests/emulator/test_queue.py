"""One queue in front of a rate, whichever backend: the same flow, the same bounds.

WANLAT_TEST_BACKEND=netem    in a kernel that has it (tests/kernel)
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from tests.emulator.plans import mesh, ms
from tests.kernel import packets
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan

BACKEND: Any = os.environ.get("WANLAT_TEST_BACKEND", "wire")
FORWARD = wan("dc1", "dc2")
FRAME_BYTES = 1514
DELAY_S = 0.01


@pytest.mark.parametrize(
    ("rate_bps", "queue_bytes", "room_bytes"),
    [
        (2_000_000, None, 64 << 10),  # the least
        (6_000_000, None, 75_000),  # 100 ms
        (2_000_000, 15_140, 15_140),
    ],
)
def test_twice_the_rate_fills_the_queue_and_no_more(
    rate_bps: int, queue_bytes: int | None, room_bytes: int
) -> None:
    frame_s = 8 * FRAME_BYTES / rate_bps
    room_s = 8 * room_bytes / rate_bps
    count = round(12 * room_s / frame_s)  # at twice the rate a queue is full after a sixth
    asked = ms(DELAY_S * 1e3, rate_bps=rate_bps, queue_bytes=queue_bytes)
    with Lab(mesh(2, wan=asked), backend=BACKEND) as lab:
        found = packets.send(
            lab,
            "n1",
            "n2",
            count,
            interval_s=frame_s / 2,
            settle_s=room_s + 0.3,
            bytes_each=FRAME_BYTES - 42,  # Ethernet, IP and UDP headers
        )
        counters = lab.counters()[FORWARD]
    assert counters.queue_drops == found.lost
    assert (counters.lost, counters.overflows) == (0, 0)
    # No more gets in than finds room, and what the rate lets out meanwhile; a sender that is held
    # up sends what is overdue at once, of which less gets in, but never less than fills the room.
    took_s = float(np.ptp(found.sent_ns)) / 1e9
    arrived = len(found.number)
    assert room_s / frame_s - 2 <= arrived <= (took_s + room_s) / frame_s + 2
    # The longest wait is for a full queue. (Half as much again and more, for stalls.)
    waited_s = found.delay_ns / 1e9 - DELAY_S
    assert np.max(waited_s) >= room_s - 2 * frame_s
    assert np.median(waited_s) <= 1.5 * room_s + 0.05
