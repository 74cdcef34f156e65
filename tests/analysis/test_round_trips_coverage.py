"""The intervals contain the truth as often as they say, with the noise that was measured."""

from __future__ import annotations

import numpy as np
import pytest
from round_trips_noise import requests

from wanlat.analysis.round_trips import estimate
from wanlat.analysis.slopes.bootstrap import line_through
from wanlat.analysis.slopes.levels import levels_of
from wanlat.analysis.slopes.visits import points_of

pytestmark = pytest.mark.minutes


def test_the_interval_contains_the_truth_93_to_97_times_in_100() -> None:
    rng, held, slopes = np.random.default_rng(20), 0, []
    for repetition in range(1000):
        asked = requests(rng, 1.0)
        points = points_of(
            asked.rtt_ms,
            asked.latency_ms,
            asked.visit,
            levels_of(asked.rtt_ms).of,
            np.ones(asked.visit.size, dtype=bool),
        )
        line = line_through(points, np.random.default_rng(repetition), draws=240)
        low, high = np.percentile(line.draws[:, 0], (2.5, 97.5))
        held += low <= 1.0 <= high
        slopes.append(line.slope)
    assert 930 <= held <= 970
    assert np.abs(np.array(slopes) - 1).max() < 0.03


def test_so_it_does_after_the_search_for_modes_which_finds_none_that_is_not_there() -> None:
    rng, held, alone, refused, shares = np.random.default_rng(30), 0, 0, 0, 0
    for repetition in range(120):
        asked = requests(rng, 2.0)
        found = estimate(asked.rtt_ms, asked.latency_ms, asked.visit, repetition, draws=200)
        refused += not found.fit.is_line
        held += found.main.ci95[0] <= 2.0 <= found.main.ci95[1]
        alone += len(found.modes) == 1
        shares += found.main.share > 0.93
    assert 108 <= held <= 119
    assert refused <= 2
    assert alone >= 117
    assert shares >= 102


def test_so_it_does_in_a_mixture_with_delayed_acknowledgements() -> None:
    rng, held, shares, refused = np.random.default_rng(40), 0, 0, 0
    for repetition in range(100):
        asked = requests(rng, 1.0)
        lots = rng.random(asked.visit.size)
        extra = np.where(lots < 0.6, 2 * asked.rtt_ms, 0) + np.where(lots > 0.9, 40, 0)
        found = estimate(asked.rtt_ms, asked.latency_ms + extra, asked.visit, repetition, draws=200)
        refused += not found.fit.is_line
        held += found.main.ci95[0] <= 3.0 <= found.main.ci95[1]
        shares += found.main.share_ci95[0] <= 0.6 <= found.main.share_ci95[1]
    assert refused <= 2
    assert held >= 90
    assert shares >= 87
