"""What netem is sent for an impairment; tests/kernel show what the kernel makes of it."""

from __future__ import annotations

import pytest

from tests.emulator.plans import ms
from wanlat.emulator.backends.netem import Ledger
from wanlat.emulator.rtnetlink import Statistics
from wanlat.topologies.netem import unsupported
from wanlat.topologies.resolve import GilbertElliott, Impairment


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (ms(20, 5, reorder=True, rate_bps=10**6), False),
        (ms(20, reorder=True, rate_bps=10**6), True),
        (Impairment(10**11, 9 * 10**9), False),
        (Impairment(10**11, 8 * 10**9), True),
        (ms(10_000, 1_000, distribution="pareto"), False),
        (ms(1, duplicate=0.1, bursts=GilbertElliott(0.1, 0.5)), False),
        (ms(1, duplicate=0.3, loss=0.2), False),
        (ms(1, loss=1, duplicate=0.3), True),
        (ms(1, duplicate=1), True),
        (ms(20, 5, distribution="pareto", overtake=0.1, loss=0.01, corrupt=0.01), True),
        (ms(20, 5, bursts=GilbertElliott(0.01, 0.3), rate_bps=10**6), True),
    ],
)
def test_what_netem_would_get_wrong_is_refused(asked: Impairment, fits: bool) -> None:
    assert (unsupported(asked) is None) == fits


# -- losses told from drops -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "packets", "drops", "counted"),
    [
        (ms(1), 1000, 7, (0, 0, 7)),
        (ms(1, rate_bps=10**6), 1000, 7, (0, 7, 0)),
        (ms(1, loss=0.1), 9000, 1100, (1100, 0, 0)),
        (ms(1, bursts=GilbertElliott(0.01, 0.1)), 9000, 1300, (1300, 0, 0)),
        (ms(1, loss=0.1), 8000, 2000, (1000, 0, 1000)),
        (ms(1, loss=0.1, rate_bps=10**6), 8000, 2000, (1000, 1000, 0)),
    ],
)
def test_what_chance_explains_is_lost_and_the_rest_are_the_queues_drops(
    asked: Impairment, packets: int, drops: int, counted: tuple[int, int, int]
) -> None:
    found = Ledger(asked).counters(Statistics(0, packets, drops, 0))
    assert (found.lost, found.queue_drops, found.overflows) == counted
