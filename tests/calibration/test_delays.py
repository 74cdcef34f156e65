"""Delays are draws from the distribution that was requested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.calibration.bench import Bench
from tests.emulator.plans import ms
from wanlat.emulator.calibration.delays import EARLY_MS, Values, path_law
from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment

DELAYS = 10_000
"""Show a distribution that is early by 0.026 somewhere, which chance does once in a million."""
STRAGGLERS = 0.02
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
ALIKE = {
    **SHAPES,
    "uniform": ms(60, jitter=5 * 3**0.5),
    "pareto": ms(60, 5, distribution="pareto"),
}
"""Of the same standard deviation."""


def are_early(delays_ms: Values, asked: Impairment) -> bool:
    """Whether more delays are short than were to be; by chance, once in a million times.

    A machine that stalls makes nothing early, and every other distribution of the same mean has
    more short delays somewhere. Of late ones calibration judges the median.
    """
    return path_law([asked]).p_value(delays_ms + EARLY_MS, early=True)[1] < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_delays_are_of_the_distribution_that_was_asked_for(bench: Bench, shape: str) -> None:
    asked = SHAPES[shape]
    delays_ms = bench.delays_ms(asked, DELAYS)
    assert delays_ms.min() + EARLY_MS >= asked.range_ns[0] / 1e6
    assert not are_early(delays_ms, asked)


def sample(drawn_of: Impairment) -> Values:
    """Return what a link that draws like that would deliver beside stragglers."""
    random = np.random.default_rng(1)
    quantiles = shapes.shape(drawn_of.distribution, drawn_of.table)
    drawn = random.uniform(-1, 1, DELAYS) if quantiles is None else random.choice(quantiles, DELAYS)
    delays_ms: Values = drawn_of.delay_ns / 1e6 + drawn_of.jitter_ns / 1e6 * drawn
    delays_ms[random.choice(DELAYS, round(STRAGGLERS * DELAYS), replace=False)] += 100
    return delays_ms


@pytest.mark.parametrize("shape", SHAPES)
def test_such_a_sample_shows_every_other_distribution_more_jitter_and_a_shorter_delay(
    shape: str,
) -> None:
    drawn = sample(ALIKE[shape])
    assert [other for other in ALIKE if not are_early(drawn, ALIKE[other])] == [shape]
    asked = SHAPES[shape]
    assert are_early(sample(replace(asked, jitter_ns=asked.jitter_ns * 5 // 4)), asked)
    assert are_early(sample(replace(asked, delay_ns=58_000_000)), asked)
