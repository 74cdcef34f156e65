"""The figures are those of the textbooks, and the intervals hold what they promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from wanlat.analysis import statistics

if TYPE_CHECKING:
    from wanlat.analysis.statistics import Values

# NIST/SEMATECH e-Handbook of Statistical Methods, 7.1.6, "What are outliers in the data?"
NIST_OUTLIERS = np.fromstring(
    """
    30 171 184 201 212 250 265 270 272 289 305 306 322 322 336 346 351 370 390 404 409 411 436
    437 439 441 444 448 451 453 470 480 482 487 494 495 499 503 514 521 522 527 548 550 559 560
    570 572 574 578 585 592 592 607 616 618 621 629 637 638 640 656 668 707 709 719 737 739 752
    758 766 792 792 794 802 818 830 832 843 858 860 869 918 925 953 991 1000 1005 1068 1441
    """,
    sep=" ",
)


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
    assert got.p99_ms == pytest.approx(scipy.stats.mstats.mquantiles(values, [0.99], 1, 1)[0])


def test_percentiles_are_type_7_of_hyndman_and_fan() -> None:
    # R: quantile(1:10, c(.05, .25, .5, .95), type = 7)
    got = statistics.percentiles(np.arange(1.0, 11.0), (5, 25, 50, 95))
    assert got == pytest.approx([1.45, 3.25, 5.5, 9.55])


def test_nothing_comes_of_nothing() -> None:
    assert statistics.describe(np.array([]), seed=1) is None


def test_the_one_outlier_of_the_nist_handbook_is_found() -> None:
    assert np.median(NIST_OUTLIERS) == 559.5  # as printed there
    low, high = statistics.tukey_fences(NIST_OUTLIERS)
    assert low < 30
    assert 1068 < high < 1441
    assert statistics.tukey_outliers(NIST_OUTLIERS) == 1


def test_outliers_stay_in_every_figure() -> None:
    values = np.append(np.linspace(99, 101, 99), 30_000.0)
    got = statistics.describe(values, seed=1)
    assert got is not None
    assert (got.outliers, got.n, got.max_ms) == (1, 100, 30_000.0)
    assert got.mean_ms == pytest.approx((99 * 100 + 30_000) / 100)


@pytest.mark.parametrize(
    ("n", "ranks"),
    # Ranks of the 95 % interval of a median, as tables of order statistics print them
    # (Hahn and Meeker, Statistical Intervals, table for two-sided intervals of the median).
    [(6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (100, (40, 61))],
)
def test_interval_of_the_median_has_the_ranks_of_the_tables(n: int, ranks: tuple[int, int]) -> None:
    assert statistics.median_interval(np.arange(1.0, n + 1)) == ranks


def test_five_samples_have_no_interval_of_the_median() -> None:
    assert statistics.median_interval(np.arange(5.0)) is None


def test_interval_of_the_mean_is_scipys_bca() -> None:
    import scipy.stats

    values = np.random.default_rng(2).lognormal(4, 0.5, 80)
    expected = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng([7, 8])
    ).confidence_interval
    assert statistics.mean_interval(values, [7, 8]) == pytest.approx((expected.low, expected.high))


def test_interval_of_the_mean_agrees_with_student_on_normal_data() -> None:
    import scipy.stats

    values = np.random.default_rng(3).normal(100, 10, 200)
    low, high = scipy.stats.t.interval(0.95, 199, loc=values.mean(), scale=scipy.stats.sem(values))
    got = statistics.mean_interval(values, 1)
    assert got == pytest.approx((low, high), abs=0.1 * (high - low))


def test_interval_of_the_mean_depends_on_values_and_seed_only() -> None:
    values = np.random.default_rng(4).normal(100, 10, 50)
    assert statistics.mean_interval(values, 1) == statistics.mean_interval(values, 1)
    assert statistics.mean_interval(values, 1) != statistics.mean_interval(values, 2)


def test_too_few_and_equal_values_have_no_interval_of_the_mean() -> None:
    assert statistics.mean_interval(np.arange(19.0), 1) is None
    assert statistics.mean_interval(np.arange(20.0), 1) is not None
    assert statistics.mean_interval(np.full(100, 5.0), 1) is None


def test_student_takes_over_without_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).lognormal(4, 0.3, 4000)
    bootstrap = statistics.mean_interval(values, 1)
    monkeypatch.setattr(statistics, "MAX_N_FOR_BOOTSTRAP", 3999)
    student = statistics.mean_interval(values, 1)
    assert bootstrap is not None
    assert student is not None
    width = student[1] - student[0]
    assert bootstrap == pytest.approx(student, abs=0.05 * width)


@pytest.mark.parametrize(
    ("draw", "truth", "at_least"),
    [
        (lambda rng: rng.uniform(80, 120, 100), 100.0, 0.92),
        (lambda rng: 100 * rng.lognormal(0, 0.25, 100), 100 * np.exp(0.25**2 / 2), 0.92),
        (lambda rng: 100 * rng.lognormal(0, 1, 100), 100 * np.exp(0.5), 0.87),
    ],
    ids=["uniform jitter", "a slight tail", "a heavy tail"],
)
def test_interval_of_the_mean_covers_the_truth(
    monkeypatch: pytest.MonkeyPatch,
    draw: Callable[[np.random.Generator], Values],
    truth: float,
    at_least: float,
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 999)  # coverage hardly depends on it; time does
    rng = np.random.default_rng(6)
    covered = 0
    for seed in range(500):
        interval = statistics.mean_interval(draw(rng), seed)
        assert interval is not None
        covered += interval[0] <= truth <= interval[1]
    assert at_least <= covered / 500 <= 0.98


def test_interval_of_the_median_covers_the_truth() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        interval = statistics.median_interval(100 * rng.lognormal(0, 1, 100))
        assert interval is not None
        covered += interval[0] <= 100 <= interval[1]
    assert 0.95 <= covered / 2000 <= 0.98  # the table says 96.5 %
