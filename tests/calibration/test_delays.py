"""Delays are draws from the distribution that was asked for, and as related as asked."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.calibration.fit import correlation
from tests.calibration.bench import Bench, holds
from tests.emulator.plans import ms
from topologies import shapes
from topologies.resolve import Impairment

DELAYS = 5000
# What ping found on some evening: most at 20 to 26 ms, some at 30 to 36, a few long ones.
_MIXED = [20 + 0.1 * i for i in range(60)] + [30 + 0.2 * i for i in range(30)] + [42, 48, 55]
TABLE = shapes.empirical(tuple(_MIXED))

SHAPES = {
    "uniform": ms(60, jitter=10),
    "normal": ms(60, jitter=5, distribution="normal"),
    "pareto": ms(60, jitter=4, distribution="pareto"),
    "table": ms(60, jitter=5, distribution="table", table=TABLE),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_5000_delays_of_each_distribution_are_not_rejected(bench: Bench, shape: str) -> None:
    asked = SHAPES[shape]
    found: list[tuple[int, float]] = []

    def fits() -> bool:
        draws = bench.draws(asked, DELAYS)
        found.append((draws.delays_ms.size, draws.p_value()))
        return draws.delays_ms.size >= DELAYS and found[-1][1] > 0.01

    assert holds(fits), found


def test_no_delay_is_shorter_than_asked(bench: Bench) -> None:
    delays_ms = bench.draws(SHAPES["uniform"], 1000).delays_ms
    assert delays_ms.min() > 50 - 0.05  # kernel stamps and ours are of one clock


def related(delay: float, rho: float) -> Impairment:
    return ms(delay, jitter=8, distribution="normal", correlation=rho)


def _measured(bench: Bench, asked: Impairment) -> float:
    delivery = bench.send(asked, DELAYS, 3000, flows=DELAYS)
    by_number = np.full(delivery.sent, np.nan)
    by_number[~delivery.missing] = delivery.delays_ns / 1e6
    return correlation(by_number)


@pytest.mark.parametrize("rho", [0.25, 0.8])
def test_successive_delays_are_correlated_as_asked(bench: Bench, rho: float) -> None:
    allowed = 2.6 * np.sqrt((1 - rho**2) / DELAYS) + 0.01
    found: list[float] = []

    def is_right() -> bool:
        found.append(_measured(bench, related(60, rho)))
        return bool(abs(found[-1] - rho) < allowed)

    assert holds(is_right), found


def test_and_their_distribution_stays_what_it_was(bench: Bench) -> None:
    asked = related(60, 0.25)

    def fits() -> bool:
        return bench.draws(asked, DELAYS).p_value(every=4) > 0.01

    assert holds(fits)


def test_delays_are_independent_if_nothing_else_is_asked(bench: Bench) -> None:
    if bench.backend != "wire":
        pytest.skip("netem keeps the order of a link, so delays of close packets are related")
    allowed = 2.6 / np.sqrt(DELAYS)
    assert holds(lambda: abs(_measured(bench, related(60, 0))) < allowed)
