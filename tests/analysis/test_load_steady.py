"""A steady state is found where there is one, and never where there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from wanlat.analysis.load.resampling import block_length, percentile, ratio
from wanlat.analysis.load.steady import judge, transient

RUNS = 40
BINS = 300


def remembering(rng: np.random.Generator, bins: int, memory: float) -> np.ndarray:
    """Noise of variance 1 in which a slow second follows a slow one."""
    drawn = rng.normal(0, 1, bins + 100)
    for n in range(1, drawn.size):
        drawn[n] += memory * drawn[n - 1]
    return np.asarray(drawn[100:] * np.sqrt(1 - memory**2))


def verdicts(shape: Callable[[np.ndarray], np.ndarray], memory: float) -> Counter[str]:
    at = np.linspace(0, 1, BINS)
    found: Counter[str] = Counter()
    for run in range(RUNS):
        noise = remembering(np.random.default_rng([run, 1]), BINS, memory)
        found[judge(500 * shape(at) * (1 + 0.05 * noise), 1.0, [run]).verdict] += 1
    return found


@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_a_store_that_is_always_as_fast_is_found_steady(memory: float) -> None:
    found = verdicts(np.ones_like, memory)
    assert found["steady"] > 0.9 * RUNS
    assert found["no steady state"] <= 0.05 * RUNS


@pytest.mark.parametrize(
    "shape",
    [
        lambda at: 1.25 - 0.5 * at,
        lambda at: np.where(at > 0.7, 0.7, 1.0),
        lambda at: np.where(at > 0.85, 0.0, 1.0),
    ],
    ids=["slows down all the time", "falls at 70 %", "dies at 85 %"],
)
def test_what_does_not_come_to_rest_is_not_called_steady(
    shape: Callable[[np.ndarray], np.ndarray],
) -> None:
    found = verdicts(shape, 0.6)
    assert found["steady"] <= 0.05 * RUNS
    assert found["no steady state"] > 0.8 * RUNS


def test_noise_that_hides_a_drift_makes_no_steady_state() -> None:
    rng = np.random.default_rng(4)
    noise = remembering(rng, 60, 0.9)
    found = judge(500 * (1 + 0.3 * noise), 1.0, [1])
    assert found.verdict == "not decided"
    assert "longer load" in found.why


def test_a_warm_up_is_cut_off_and_no_more_than_that() -> None:
    at = np.arange(BINS)
    begins = []
    for run in range(20):
        noise = remembering(np.random.default_rng(run), BINS, 0.3)
        series = 500 * (1 - 0.6 * np.exp(-at / 10)) * (1 + 0.05 * noise)
        begins.append(transient(series))
    # After 30 s less than 3 % of it is left; half an hour of load is not thrown away for that.
    assert 15 <= np.median(begins) <= 60


def test_a_load_too_short_says_so() -> None:
    found = judge(np.full(12, 100.0), 0.1, [1])
    assert found.verdict == "not decided"
    assert "12 bins" in found.why


def test_a_store_that_answers_nothing_is_not_steady() -> None:
    assert judge(np.zeros(100), 1.0, [1]).verdict == "no steady state"


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


def test_blocks_are_as_long_as_the_memory() -> None:
    rng = np.random.default_rng(3)
    assert block_length(rng.normal(0, 1, 600)) <= 4
    assert block_length(remembering(rng, 600, 0.9)) >= 10


def test_no_interval_is_given_of_what_is_too_little() -> None:
    few = ratio(np.array([3.0, 4.0, 5.0]), np.ones(3), [1])
    assert few is not None
    assert (few.value, few.ci95) == (4.0, None)
    assert ratio(np.zeros(20), np.zeros(20), [1]) is None
    p99 = percentile(np.arange(50.0), np.arange(50), 50, 99, [1])
    assert p99 is not None and p99.ci95 is None
