"""Figures, intervals, ratios, bootstrap: those of the textbooks, holding what they promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from wanlat.analysis import statistics
from wanlat.analysis.statistics import (
    of_means,
)
from wanlat.analysis.stats import intervals
from wanlat.analysis.stats.intervals import holm, of_mean, of_median, wilson

if TYPE_CHECKING:
    from wanlat.analysis.stats.intervals import Values

# NIST/SEMATECH e-Handbook of Statistical Methods, 7.1.6, "What are outliers in the data?"


def test_plain_figures_are_those_of_numpy_and_scipy() -> None:
    import scipy.stats

    values = np.random.default_rng(1).lognormal(4, 0.5, 137)
    got = statistics.describe(values, seed=1)
    assert got is not None
    assert got.n == 137
    assert got.mean_ms == pytest.approx(scipy.stats.describe(values).mean)
    assert got.median_ms == pytest.approx(np.sort(values)[68])
    assert (got.min_ms, got.max_ms) == scipy.stats.describe(values).minmax
    assert got.p95_ms == pytest.approx(scipy.stats.mstats.mquantiles(values, [0.95], 1, 1)[0])
    assert statistics.describe(np.array([]), seed=1) is None
    # R: quantile(1:10, c(.05, .25, .5, .95), type = 7)
    tenths = statistics.percentiles(np.arange(1.0, 11.0), (5, 25, 50, 95))
    assert tenths == pytest.approx([1.45, 3.25, 5.5, 9.55])


@pytest.mark.parametrize(
    ("n", "ranks"),
    # Ranks of the 95 % interval of a median, as tables of order statistics print them
    # (Hahn and Meeker, Statistical Intervals, table for two-sided intervals of the median).
    [
        *((5, None), (6, (1, 6)), (9, (2, 8)), (10, (2, 9))),
        *((20, (6, 15)), (30, (10, 21)), (100, (40, 61))),
    ],
)
def test_interval_of_the_median_has_the_ranks_of_the_tables(
    n: int, ranks: tuple[int, int] | None
) -> None:
    assert of_median(np.arange(1.0, n + 1)) == ranks


def test_intervals_are_scipys() -> None:
    import scipy.stats

    values = np.random.default_rng(2).lognormal(4, 0.5, 80)
    bca = scipy.stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=intervals.RESAMPLES,
        method="BCa",
        rng=np.random.default_rng([7, 8]),
    ).confidence_interval
    assert statistics.mean_interval(values, [7, 8]) == pytest.approx((bca.low, bca.high))
    sem = scipy.stats.sem(values)
    student = scipy.stats.t.interval(0.95, 79, loc=values.mean(), scale=sem)
    assert of_mean(values) == pytest.approx(student)
    for hits, n in ((0, 9), (1, 9), (4, 9), (9, 9), (152, 162)):
        wilsons = scipy.stats.binomtest(hits, n).proportion_ci(method="wilson")
        assert wilson(hits, n) == pytest.approx((wilsons.low, wilsons.high))
    assert wilson(0, 0) == (0, 1)


def test_holms_correction_is_that_of_the_paper() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert (holm([]), holm([0.9, 0.8])) == ([], [1.0, 1.0])


@pytest.mark.parametrize(
    ("draw", "truth", "at_least"),
    [
        (lambda rng: rng.uniform(80, 120, 100), 100.0, 0.92),
        (lambda rng: 100 * rng.lognormal(0, 1, 100), 100 * np.exp(0.5), 0.87),
    ],
    ids=["uniform jitter", "a heavy tail"],
)
@pytest.mark.usefixtures("few_resamples")
def test_intervals_of_mean_and_median_cover_the_truth(
    draw: Callable[[np.random.Generator], Values], truth: float, at_least: float
) -> None:
    rng, means, medians = np.random.default_rng(6), 0, 0
    for seed in range(300):
        values = draw(rng)
        low, high = statistics.mean_interval(values, seed) or (0, 0)
        means += low <= truth <= high
        low, high = of_median(values) or (0, 0)
        medians += low <= 100 <= high
    assert at_least <= means / 300 <= 0.98
    assert 0.94 <= medians / 300 <= 0.99  # the table says 96.5 %


@pytest.mark.usefixtures("few_resamples")
def test_what_clusters_share_is_in_the_interval_where_clusters_are_drawn() -> None:
    """Eight clusters differ by 10 ms, their requests by 1: requests alone know too much."""
    rng, held = np.random.default_rng(8), {"clusters": 0, "requests": 0}
    cluster = np.repeat(np.arange(8), 20)
    step = np.tile(np.repeat(np.arange(4), 5), 8)
    order = rng.permutation(cluster.size)  # rows need not lie in the order of their clusters
    for seed in range(60):
        values = rng.normal(0, 10, 8)[cluster] + rng.normal(0, 1, 32)[4 * cluster + step]
        values += rng.normal(0, 1, cluster.size)
        for what, levels in (("clusters", (cluster[order], step[order])), ("requests", ())):
            drawn = intervals.draws(values[order], intervals.mean, seed, levels)
            low, high = intervals.percentile_interval(drawn)
            held[what] += low <= 0 <= high
    assert held["clusters"] >= 48  # percentiles of eight clusters are a little narrow: 88 in 100
    assert held["requests"] < 30


@pytest.mark.parametrize(("sigma", "least"), [(0.25, 0.90), (1.0, 0.86)])
@pytest.mark.usefixtures("few_resamples")
def test_the_interval_of_a_ratio_of_means_holds_the_truth(sigma: float, least: float) -> None:
    rng, held = np.random.default_rng(20260701), 0
    for number in range(100):
        over, under = 2 * rng.lognormal(0, sigma, 40), rng.lognormal(0, sigma, 40)
        low, high = of_means(over, under, [7, number]).ci95 or (0, 0)
        held += low <= 2 <= high
    assert held / 100 >= least  # what it holds of 600: docs/results/instrument/README.md
