"""Packets are lost, doubled, damaged and overtaken as often as asked, and else never.

These are counts, which no stall of the machine changes: a right network fails one of them once in
a million runs (`ALPHA`), and each says which wrong one it finds.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration.bench import Bench
from tests.emulator.plans import ms
from wanlat.emulator.calibration import counts
from wanlat.topologies.resolve import GilbertElliott

PACKETS = 10_000
PER_S = 20_000
ALPHA = 1e-6
DEVIATIONS = 4.9  # the same for a mean


def test_nothing_is_lost_doubled_or_damaged_if_nobody_asks(bench: Bench) -> None:
    delivery = bench.send(ms(10), PACKETS, PER_S)
    assert (delivery.lost, delivery.duplicated, delivery.damaged, delivery.overtaken) == (0,) * 4


@pytest.mark.parametrize(
    ("more", "packets"),
    [
        ({}, 20_000),
        ({"distribution": "normal"}, 3000),
        ({"distribution": "pareto"}, 3000),
        ({"bursts": GilbertElliott(0.05, 0.3)}, 3000),
        ({"duplicate": 0.2}, 3000),
    ],
)
def test_no_packet_of_a_flow_is_overtaken(
    bench: Bench, more: dict[str, object], packets: int
) -> None:
    delivery = bench.send(ms(40, jitter=8, **more), packets, PER_S)
    assert delivery.sent - delivery.lost > packets / 2
    assert (delivery.overtaken, delivery.lost > 0) == (0, "bursts" in more)


def test_packets_overtake_where_that_is_asked_for(bench: Bench) -> None:
    delivery = bench.send(ms(20, jitter=10, reorder=True), 2000, 2000)
    assert delivery.overtaken > 500


def test_a_rare_loss_is_within_its_binomial_interval(bench: Bench) -> None:
    """Finds 0.1 % that is none, or more than the double."""
    delivery = bench.send(ms(5, loss=0.001), 2 * PACKETS, PER_S)
    assert counts.p_value(delivery.lost, delivery.sent, 0.001) > ALPHA, delivery.lost


def test_losses_are_as_many_as_asked_and_independent(bench: Bench) -> None:
    """Finds 10 % that is below 8.5 % or above 11.5 %, and runs that are a tenth longer."""
    delivery = bench.send(ms(5, loss=0.1), PACKETS, PER_S)
    assert counts.p_value(delivery.lost, delivery.sent, 0.1) > ALPHA, delivery.lost
    bursts = delivery.bursts
    # Runs of independent losses are geometric: mean 1 / 0.9, deviation sqrt(0.1) / 0.9.
    error = np.sqrt(0.1) / 0.9 / np.sqrt(bursts.size)
    assert bursts.mean() == pytest.approx(1 / 0.9, abs=DEVIATIONS * error)


CHAINS = {
    "bursts of four": GilbertElliott(p=0.01, r=0.25),
    "half in the bad state, a little in the good": GilbertElliott(p=0.02, r=0.2, h=0.5, k=0.995),
}


@pytest.mark.parametrize("name", CHAINS)
def test_bursts_are_as_many_and_as_long_as_asked(bench: Bench, name: str) -> None:
    """Finds bursts of four packets that are of one, two or seven."""
    chain = CHAINS[name]
    asked = ms(5, bursts=chain)
    delivery = bench.send(asked, 2 * PACKETS, PER_S)
    inflation = counts.inflation([asked])
    assert counts.p_value(delivery.lost, delivery.sent, chain.loss, inflation) > ALPHA
    lengths = delivery.bursts
    error = lengths.std(ddof=1) / np.sqrt(lengths.size)
    assert lengths.mean() == pytest.approx(counts.mean_burst(chain), abs=DEVIATIONS * error)


def test_duplication_is_within_its_binomial_interval(bench: Bench) -> None:
    """Finds 2 % that is below 1.4 % or above 2.7 %."""
    delivery = bench.send(ms(5, duplicate=0.02), PACKETS, PER_S)
    assert (delivery.lost, delivery.damaged) == (0, 0)
    assert counts.p_value(delivery.duplicated, delivery.sent, 0.02) > ALPHA, delivery.duplicated


def test_corruption_is_noticed_by_the_receiver(bench: Bench) -> None:
    """A flipped bit makes a wrong checksum, or in a header a packet that nobody is given."""
    asked = 0.05
    delivery = bench.send(ms(5, corrupt=asked), PACKETS, PER_S)
    assert delivery.damaged > 0
    spoilt = delivery.lost
    # A bit of a link-layer address may be flipped, which the next router writes anew.
    least = asked * (1 - counts.UNNOTICED_CORRUPTION)
    assert counts.p_value_between(spoilt, delivery.sent, least, asked) > ALPHA, spoilt


def test_overtaking_sends_that_part_at_once(bench: Bench) -> None:
    """Finds 2 % that is below 1.2 % or above 3 %: at most a tenth of it may be held up."""
    asked = 0.02
    delivery = bench.send(ms(150, overtake=asked), 5000, 5000)
    assert delivery.lost == 0
    at_once = int((delivery.delays_ns < 75e6).sum())
    # The first packets have nobody to overtake.
    p = counts.p_value_between(at_once, delivery.sent, 0.9 * asked, asked)
    assert p > ALPHA, at_once
