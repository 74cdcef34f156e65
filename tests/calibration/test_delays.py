"""Delays are draws from the distribution that was asked for, and as related as asked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration.bench import STRAGGLERS, Bench, Misfit
from tests.emulator.plans import ms
from wanlat.emulator.calibration.fit import apart, correlation
from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment

DELAYS = 5000
"""Show a distribution that is early by 0.037 somewhere, which chance does once in a million."""
# What ping found on some evening: most at 20 to 26 ms, some at 30 to 36, a few long ones.
_MIXED = [20 + 0.1 * i for i in range(60)] + [30 + 0.2 * i for i in range(30)] + [42, 48, 55]
TABLE = shapes.empirical(tuple(_MIXED))

SHAPES = {
    "uniform": ms(60, jitter=10),
    "normal": ms(60, jitter=5, distribution="normal"),
    # Its delays begin steeply: the wider it is, the less a late timer counts.
    "pareto": ms(60, jitter=8, distribution="pareto"),
    "table": ms(60, jitter=5, distribution="table", table=TABLE),
}
RELATED_DELAYS = 3000
RELATED = 0.12  # how far off their correlation may be: six standard errors


@pytest.mark.parametrize("shape", SHAPES)
def test_delays_are_of_the_distribution_that_was_asked_for(bench: Bench, shape: str) -> None:
    asked = SHAPES[shape]
    delays_ms = bench.draws(asked, DELAYS)
    misfit = Misfit.of(delays_ms, asked)
    assert misfit.is_right, misfit


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("other", SHAPES)
def test_such_a_sample_shows_every_other_distribution(shape: str, other: str) -> None:
    """Of the same standard deviation, and with as many packets held up as are tolerated."""
    alike = {
        **SHAPES,
        "uniform": ms(60, jitter=5 * 3**0.5),
        "pareto": ms(60, 5, distribution="pareto"),
    }
    random = np.random.default_rng(1)
    quantiles = shapes.shape(alike[shape].distribution, alike[shape].table)
    drawn = random.uniform(-1, 1, DELAYS) if quantiles is None else random.choice(quantiles, DELAYS)
    delays_ms = 60 + alike[shape].jitter_ns / 1e6 * drawn
    delays_ms[: round(STRAGGLERS * DELAYS)] += 100
    assert Misfit.of(delays_ms, alike[other]).is_right == (shape == other)


def related(rho: float) -> Impairment:
    return ms(60, jitter=8, distribution="normal", correlation=rho)


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.8])
def test_successive_delays_are_correlated_as_asked(bench: Bench, rho: float) -> None:
    """And their distribution stays what it is without."""
    if bench.backend != "wire":
        pytest.skip("netem keeps the order of a link, so delays of close packets are related")
    asked = related(rho)
    delivery = bench.send(asked, RELATED_DELAYS, 3000, flows=RELATED_DELAYS)
    by_number = np.full(delivery.sent, np.nan)
    by_number[~delivery.missing] = delivery.delays_ns / 1e6
    # Those that were held up have each other's delay: they are few, and known by their length.
    held_up = by_number > asked.range_ns[1] / 1e6 + 1
    assert held_up.mean() < 2 * STRAGGLERS
    kept = np.where(held_up, np.nan, by_number)
    assert correlation(kept) == pytest.approx(rho, abs=RELATED)
    unrelated = kept[~np.isnan(kept)][:: apart([asked])]
    assert Misfit.of(unrelated, asked).is_right
