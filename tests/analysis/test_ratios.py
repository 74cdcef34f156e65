"""Ratios of times: what their intervals hold, and what can be said of them."""

from __future__ import annotations

import numpy as np
import pytest

from wanlat.analysis.outliers import outliers_of
from wanlat.analysis.ratios import (
    MIN_N_FOR_RATIO,
    Ratio,
    Verdict,
    of_estimates,
    of_mean_to_median,
    of_means,
    of_medians,
    opposite,
)

pytestmark = pytest.mark.usefixtures("few_resamples")
RNG = np.random.default_rng(20260701)


@pytest.mark.parametrize(("n", "sigma", "least"), [(40, 0.25, 0.90), (40, 1.0, 0.86)])
def test_the_interval_of_a_ratio_of_means_holds_the_truth(
    n: int, sigma: float, least: float
) -> None:
    held = 0
    for number in range(100):
        over, under = 2 * RNG.lognormal(0, sigma, n), RNG.lognormal(0, sigma, n)
        low, high = of_means(over, under, [7, number]).ci95 or (0, 0)
        held += low <= 2 <= high
    assert held / 100 >= least  # what it holds of 600: docs/statistics.md


def test_a_ratio_does_not_know_of_units_nor_of_machines() -> None:
    over, under = RNG.lognormal(0, 0.3, 50), RNG.lognormal(1, 0.3, 50)
    slow, fast = of_means(over * 17, under * 17, [1]), of_means(over, under, [1])
    assert slow.estimate == pytest.approx(fast.estimate)
    assert slow.ci95 == pytest.approx(fast.ci95)


def test_turned_around_a_ratio_is_its_inverse() -> None:
    over, under = RNG.lognormal(0, 0.3, 50), RNG.lognormal(1, 0.3, 50)
    for ratio in (of_means, lambda a, b, _: of_medians(a, b)):
        one, other = ratio(over, under, [1]), ratio(under, over, [1])
        assert one.estimate == pytest.approx(1 / other.estimate)
        assert one.ci95 is not None and other.ci95 is not None
        assert one.ci95[0] == pytest.approx(1 / other.ci95[1], rel=0.02)


def test_of_few_or_equal_values_nothing_is_claimed() -> None:
    few, many = RNG.lognormal(0, 0.3, MIN_N_FOR_RATIO - 1), RNG.lognormal(0, 0.3, 50)
    assert of_means(few, many, [1]).ci95 is None
    assert of_means(np.full(50, 2.0), many, [1]).ci95 is None
    assert of_mean_to_median(RNG.lognormal(0, 1, 19), [1]).ci95 is None
    assert of_means(few, many, [1]).is_above(1) is Verdict.UNDECIDED


def test_of_published_estimates_the_ratio_is_of_the_figures_with_their_intervals() -> None:
    ratio = of_estimates((4.0, (3.8, 4.2)), (2.0, (1.9, 2.1)))
    assert ratio.estimate == 2.0
    # Relative errors of 5 % each add up as squares: 7 %.
    assert ratio.ci95 == pytest.approx((2 * 0.93, 2 * 1.072), rel=0.01)
    assert of_estimates((4.0, None), (2.0, (1.9, 2.1))).ci95 is None


def test_mean_and_median_of_a_skewed_sample_differ_as_they_must() -> None:
    ratio = of_mean_to_median(RNG.lognormal(0, 1, 2000), [1])
    assert ratio.estimate == pytest.approx(np.exp(0.5), rel=0.1)
    assert ratio.is_within(0.95, 1.05) is Verdict.FAILS
    even = of_mean_to_median(RNG.uniform(9, 11, 200), [1])
    assert even.is_within(0.95, 1.05) is Verdict.HOLDS


def test_an_interval_that_holds_the_bound_decides_nothing() -> None:
    assert Ratio(1.2, (0.9, 1.5)).is_above(1) is Verdict.UNDECIDED
    assert Ratio(1.2, (1.1, 1.5)).is_above(1) is Verdict.HOLDS
    assert Ratio(0.8, (0.7, 0.9)).is_above(1) is Verdict.FAILS
    assert Ratio(1.04, (1.0, 1.08)).is_within(0.95, 1.05) is Verdict.UNDECIDED
    assert opposite(Verdict.HOLDS) is Verdict.FAILS
    assert opposite(Verdict.UNDECIDED) is Verdict.UNDECIDED


def test_outliers_are_told_apart_as_criterion_does() -> None:
    # Quartiles 25 and 77: fences at -53 and 155, outer ones at -131 and 233.
    values = np.array([*np.arange(1, 100.0), -60, -140, 160, 170, 240])
    found = outliers_of(values)
    assert (found.low_severe, found.low_mild, found.high_mild, found.high_severe) == (1, 1, 2, 1)
    assert found.share == pytest.approx(5 / values.size)
