"""Delays are draws from the distribution that was requested, and as related as asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.calibration.bench import STRAGGLERS, Bench, Draws, Misfit
from tests.emulator.plans import ms
from wanlat.emulator.calibration.delays import Values
from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment

DELAYS = 10_000
"""Show a distribution that is early by 0.026 somewhere, which chance does once in a million."""
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
ALIKE = {**SHAPES, "uniform": ms(60, jitter=5 * 3**0.5), "pareto": ms(60, 5, distribution="pareto")}
"""Of the same standard deviation."""
STALLS_MS = ((300, 150), (900, 300), (2000, 150))  # when, and for how long


@pytest.mark.parametrize("shape", SHAPES)
def test_delays_are_of_the_distribution_that_was_asked_for(bench: Bench, shape: str) -> None:
    asked = SHAPES[shape]
    misfit = Misfit.of(bench.draws(asked, DELAYS), asked)
    assert misfit.is_right, misfit


def sample(drawn_of: Impairment, spoilt: str) -> Draws:
    """Return what a link that draws like that would deliver beside stragglers, or stalls."""
    random = np.random.default_rng(1)
    quantiles = shapes.shape(drawn_of.distribution, drawn_of.table)
    drawn = random.uniform(-1, 1, DELAYS) if quantiles is None else random.choice(quantiles, DELAYS)
    sent_ms: Values = np.linspace(0, 0.3 * DELAYS, DELAYS)
    arrived_ms: Values = sent_ms + drawn_of.delay_ns / 1e6 + drawn_of.jitter_ns / 1e6 * drawn
    if spoilt == "stragglers":
        arrived_ms[random.choice(DELAYS, round(STRAGGLERS * DELAYS), replace=False)] += 100
    else:
        for begin_ms, lasts_ms in STALLS_MS:
            held = (begin_ms <= arrived_ms) & (arrived_ms < begin_ms + lasts_ms)
            arrived_ms[held] = begin_ms + lasts_ms
    return Draws(sent_ms, arrived_ms - sent_ms)


@pytest.mark.parametrize("spoilt", ["stragglers", "stalls"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("other", SHAPES)
def test_such_a_sample_shows_every_other_distribution(shape: str, other: str, spoilt: str) -> None:
    """With as many packets held up as are tolerated, or by stalls of a fifth of the time."""
    misfit = Misfit.of(sample(ALIKE[shape], spoilt), ALIKE[other])
    assert misfit.is_right == (shape == other), misfit


@pytest.mark.parametrize("spoilt", ["stragglers", "stalls"])
@pytest.mark.parametrize("shape", SHAPES)
def test_such_a_sample_shows_more_jitter_and_another_delay(shape: str, spoilt: str) -> None:
    asked = SHAPES[shape]
    wider = Misfit.of(sample(replace(asked, jitter_ns=asked.jitter_ns * 5 // 4), spoilt), asked)
    assert wider.early > 0, wider
    earlier = Misfit.of(sample(replace(asked, delay_ns=58_000_000), spoilt), asked)
    assert earlier.early > 0, earlier
    later = Misfit.of(sample(replace(asked, delay_ns=63_000_000), spoilt), asked)
    assert later.late > STRAGGLERS, later
