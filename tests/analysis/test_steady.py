"""A steady state is found where there is one, and never where there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from wanlat.analysis.stats.over_time import percentile, ratio, steady_state, transient

RUNS = 20
BINS = 300
Shape = Callable[[np.ndarray], np.ndarray]


def remembering(rng: np.random.Generator, bins: int, memory: float) -> np.ndarray:
    """Noise of variance 1 in which a slow second follows a slow one."""
    drawn = rng.normal(0, 1, bins + 100)
    for n in range(1, drawn.size):
        drawn[n] += memory * drawn[n - 1]
    return np.asarray(drawn[100:] * np.sqrt(1 - memory**2))


@pytest.mark.parametrize(
    ("shape", "memory", "verdict"),
    [
        pytest.param(np.ones_like, 0.6, "steady", id="always as fast, with memory"),
        pytest.param(lambda at: 1.25 - 0.5 * at, 0.6, "no steady state", id="slows down"),
        pytest.param(lambda at: np.where(at > 0.7, 0.7, 1.0), 0.6, "no steady state", id="falls"),
        pytest.param(lambda at: np.where(at > 0.85, 0.0, 1.0), 0.6, "no steady state", id="dies"),
        # No line shows it: the end is where the begin was.
        pytest.param(
            lambda at: 1.3 - 1.6 * (at - 0.5) ** 2, 0.0, "no steady state", id="rises and falls"
        ),
    ],
)
def test_what_is_steady_is_found_and_nothing_else(
    shape: Shape, memory: float, verdict: str
) -> None:
    found: Counter[str] = Counter()
    for run in range(RUNS):
        noise = remembering(np.random.default_rng([run, 1]), BINS, memory)
        series = 500 * shape(np.linspace(0, 1, BINS)) * (1 + 0.05 * noise)
        found[steady_state(series, 1.0, [run]).verdict] += 1
    wrong = "no steady state" if verdict == "steady" else "steady"
    assert found[verdict] > 0.8 * RUNS
    assert found[wrong] <= 0.05 * RUNS


def test_a_warm_up_is_cut_off_and_no_more_than_that() -> None:
    begins = []
    for run in range(20):
        noise = remembering(np.random.default_rng(run), BINS, 0.3)
        series = 500 * (1 - 0.6 * np.exp(-np.arange(BINS) / 10)) * (1 + 0.05 * noise)
        begins.append(transient(series))
    # After 30 s less than 3 % of it is left; half an hour of load is not thrown away for that.
    assert 15 <= np.median(begins) <= 60


def test_intervals_hold_the_truth_though_seconds_are_not_independent() -> None:
    held_rate = held_median = naive = 0
    runs = 60
    for run in range(runs):
        rng = np.random.default_rng([run, 9])
        rate = 100 * np.exp(0.2 * remembering(rng, 200, 0.7) - 0.02)
        counts = rng.poisson(rate).astype(float)
        found = ratio(counts, np.ones(200), [run])
        assert found is not None and found.ci95 is not None
        held_rate += found.ci95[0] <= 100 <= found.ci95[1]
        half = 1.96 * counts.std(ddof=1) / np.sqrt(200)
        naive += abs(counts.mean() - 100) <= half
        bins = np.repeat(np.arange(200), 20)
        slow = np.repeat(np.exp(0.2 * remembering(rng, 200, 0.7)), 20)
        median = percentile(10 * slow * rng.lognormal(0, 0.3, 4000), bins, 200, 50, [run])
        assert median is not None and median.ci95 is not None
        held_median += median.ci95[0] <= 10 <= median.ci95[1]
    assert held_rate >= 0.83 * runs
    assert held_median >= 0.83 * runs
    assert naive < 0.75 * runs  # what an interval of independent seconds would have held
