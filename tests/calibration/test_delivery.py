"""Packets are lost, doubled, damaged and overtaken as often as asked, and else never."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.calibration import counts
from tests.calibration.bench import Bench, holds
from tests.emulator.plans import ms
from topologies.resolve import GilbertElliott

PACKETS = 20_000
PER_S = 10_000
ALPHA = 0.01


def test_nothing_is_lost_doubled_or_damaged_if_nobody_asks(bench: Bench) -> None:
    delivery = bench.send(ms(10), PACKETS, PER_S)
    assert (delivery.lost, delivery.duplicated, delivery.damaged, delivery.overtaken) == (0,) * 4


def test_none_of_100_000_packets_is_overtaken(bench: Bench) -> None:
    delivery = bench.send(ms(20, jitter=10), 100_000, 20_000)
    assert delivery.overtaken == 0
    assert delivery.lost == 0


def test_of_other_distributions_neither(bench: Bench) -> None:
    for shape in ("normal", "pareto"):
        delivery = bench.send(ms(60, jitter=8, distribution=shape), 3000, PER_S)
        assert (delivery.overtaken, delivery.lost) == (0, 0)


def test_packets_overtake_where_that_is_asked_for(bench: Bench) -> None:
    delivery = bench.send(ms(20, jitter=10, reorder=True), 2000, 2000)
    assert delivery.overtaken > 500


@pytest.mark.parametrize("part", [0.001, 0.05])
def test_loss_is_within_its_binomial_interval(bench: Bench, part: float) -> None:
    def is_right() -> bool:
        delivery = bench.send(ms(5, loss=part), PACKETS, PER_S)
        return counts.p_value(delivery.lost, delivery.sent, part) > ALPHA

    assert holds(is_right)


def test_losses_are_independent(bench: Bench) -> None:
    def is_right() -> bool:
        bursts = bench.send(ms(5, loss=0.1), PACKETS, PER_S).bursts
        # Runs of independent losses are geometric: mean 1 / 0.9, deviation sqrt(0.1) / 0.9.
        return bool(abs(bursts.mean() - 1 / 0.9) < 2.6 * np.sqrt(0.1) / 0.9 / np.sqrt(bursts.size))

    assert holds(is_right)


CHAINS = {
    "bursts of four": GilbertElliott(p=0.01, r=0.25),
    "half in the bad state, a little in the good": GilbertElliott(p=0.02, r=0.2, h=0.5, k=0.995),
}


@pytest.mark.parametrize("name", CHAINS)
def test_bursts_are_as_many_and_as_long_as_asked(bench: Bench, name: str) -> None:
    chain = CHAINS[name]
    asked = ms(5, bursts=chain)
    found: list[tuple[int, float]] = []

    def is_right() -> bool:
        delivery = bench.send(asked, PACKETS, PER_S)
        lengths = delivery.bursts
        found.append((delivery.lost, float(lengths.mean())))
        many = counts.p_value(delivery.lost, delivery.sent, chain.loss, counts.inflation([asked]))
        error = lengths.std(ddof=1) / np.sqrt(lengths.size)
        return many > ALPHA and abs(lengths.mean() - counts.mean_burst(chain)) < 2.6 * error

    assert holds(is_right), (found, chain.loss * PACKETS, counts.mean_burst(chain))


def test_duplication_is_within_its_binomial_interval(bench: Bench) -> None:
    def is_right() -> bool:
        delivery = bench.send(ms(5, duplicate=0.02), PACKETS, PER_S)
        assert (delivery.lost, delivery.damaged) == (0, 0)
        return counts.p_value(delivery.duplicated, delivery.sent, 0.02) > ALPHA

    assert holds(is_right)


def test_corruption_is_noticed_by_the_receiver(bench: Bench) -> None:
    """A flipped bit makes a wrong checksum, or in a header a packet that nobody is given."""
    asked = 0.05

    def is_right() -> bool:
        delivery = bench.send(ms(5, corrupt=asked), PACKETS, PER_S)
        assert delivery.damaged > 0
        spoilt = delivery.damaged + delivery.lost
        # A bit of a link-layer address may be flipped, which the next router writes anew.
        least = asked * (1 - counts.UNNOTICED_CORRUPTION)
        return counts.p_value_between(spoilt, delivery.sent, least, asked) > ALPHA

    assert holds(is_right)


def test_overtaking_sends_that_part_at_once(bench: Bench) -> None:
    def is_right() -> bool:
        delivery = bench.send(ms(150, overtake=0.02), 10_000, 5000)
        assert delivery.lost == 0
        at_once = int((delivery.delays_ns < 75e6).sum())
        # The first packets have nobody to overtake.
        return counts.p_value(at_once, delivery.sent, 0.02) > ALPHA

    assert holds(is_right)
