"""Differences of two estimates: what their intervals hold, and how often chance looks like more."""

from __future__ import annotations

import numpy as np
import pytest

from wanlat.analysis.compare import difference
from wanlat.analysis.compare.difference import (
    holm,
    of_draws,
    of_intervals,
    of_shares,
    of_statistic,
    wilson,
)
from wanlat.analysis.compare.distribution import Distribution, gained, gained_at, visit_effect


def ways(*parts: tuple[float, int], visits: int = 15) -> Distribution:
    """So many requests of so many round trips each, over all visits alike."""
    trips = np.concatenate([np.full(n, level) for level, n in parts])
    return Distribution(trips, np.arange(trips.size) % visits)


def test_the_interval_of_two_shares_is_the_published_one() -> None:
    # Newcombe 1998, table II, method 10: (a) 56/70 less 48/80, and (g) 10/10 less 0/20.
    for (hits, n), (other_hits, other_n), low, high in (
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((5, 56), (0, 29), -0.0381, 0.1926),
    ):
        found = of_shares(other_hits, other_n, hits, n)
        assert found.ci95 == pytest.approx((low, high), abs=5e-5)
        assert found.estimate == pytest.approx(hits / n - other_hits / other_n)


def test_the_probability_of_two_shares_is_fishers() -> None:
    from scipy.stats import fisher_exact

    for old, new in (((0, 100), (8, 100)), ((3, 60), (9, 45)), ((9, 45), (3, 60))):
        table = [[new[0], new[1] - new[0]], [old[0], old[1] - old[0]]]
        side = "greater" if new[0] / new[1] > old[0] / old[1] else "less"
        expected = fisher_exact(table, alternative=side).pvalue
        assert of_shares(*old, *new).p == pytest.approx(expected)


def test_a_share_of_nothing_is_known_within_limits() -> None:
    low, high = wilson(0, 100)
    assert low == 0
    assert high == pytest.approx(0.03699, abs=1e-5)
    assert of_shares(0, 100, 0, 100).p == 0.5


def test_intervals_that_are_not_symmetric_stay_so() -> None:
    found = of_intervals(1.0, (0.9, 1.0), 2.0, (1.7, 2.1))
    assert found.estimate == 1.0
    assert found.ci95 == pytest.approx((0.7, 1 + np.hypot(0.1, 0.1)))


def test_the_difference_of_two_means_is_held_19_times_in_20(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(difference, "RESAMPLES", 499)
    rng = np.random.default_rng(1)
    held = alarms = 0
    for _ in range(200):
        old, new = rng.exponential(10, 100), 5 + rng.exponential(10, 60)
        found = of_statistic(old, new, np.mean, rng)
        held += found.ci95[0] <= 5 <= found.ci95[1]
        same = of_statistic(old, rng.exponential(10, 100), np.mean, rng)
        alarms += same.p < 0.005
    assert 180 <= held <= 198
    assert alarms <= 5  # 2 of 200 are expected, one on each side


def test_the_tail_beyond_the_draws_is_judged_too() -> None:
    rng = np.random.default_rng(2)
    old, new = rng.normal(1, 0.1, 2000), rng.normal(2, 0.1, 2000)
    found = of_draws(1.0, 2.0, old, new)
    assert found.ci95 == pytest.approx((1 - 0.277, 1 + 0.277), abs=0.02)
    assert 1e-14 < found.p < 1e-10  # 7.07 standard deviations: 8e-13
    assert of_draws(1.0, 1.0, old, old).p == 0.5


def test_draws_without_any_width_leave_no_doubt() -> None:
    assert of_draws(1.0, 2.0, np.ones(10), np.full(10, 2.0)).p == 0
    assert of_draws(1.0, 1.0, np.ones(10), np.ones(10)).ci95 == (0, 0)


def test_holms_correction_is_that_of_the_paper() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_requests_that_gained_are_counted_wherever_they_stand() -> None:
    found = gained(ways((1, 200)), ways((1, 140), (2, 60)), 0.25).difference
    assert found.estimate == pytest.approx(0.3)
    assert found.p < 1e-6
    found = gained(ways((1, 70), (3, 30)), ways((1, 60), (3, 40)), 0.25).difference
    assert found.estimate == pytest.approx(0.1)
    assert found.p > 0.05
    found = gained(ways((1, 70), (3, 30)), ways((1, 70), (4, 30)), 0.25).difference
    assert found.estimate == pytest.approx(0.3)


def test_requests_that_lost_round_trips_are_a_negative_share() -> None:
    found = gained(ways((1, 140), (2, 60)), ways((1, 200)), 0.25).difference
    assert found.estimate == pytest.approx(-0.3)
    assert found.ci95[1] < -0.2
    assert found.p < 1e-6


def test_who_gained_is_told_before_who_lost() -> None:
    found = gained(ways((2, 200)), ways((1, 120), (3, 80)), 0.25).difference
    assert found.estimate == pytest.approx(0.4)


def test_a_step_within_the_threshold_is_none() -> None:
    found = gained(ways((1, 100)), ways((1.2, 100)), 0.25).difference
    assert found.estimate == 0
    assert found.p == 0.5
    assert gained_at(ways((1, 100)), ways((1.3, 100)), 1, 0.25).difference.estimate == 1


def test_requests_of_one_visit_that_all_go_one_way_count_as_one() -> None:
    rng = np.random.default_rng(3)
    visit = np.repeat(np.arange(15), 15)
    by_visit = np.repeat(rng.random(15) < 0.4, 15).astype(float)
    assert visit_effect(by_visit, visit) == pytest.approx(15, rel=0.2)
    alone = [visit_effect((rng.random(225) < 0.4).astype(float), visit) for _ in range(200)]
    assert 1 <= np.mean(alone) < 1.3
    assert visit_effect(np.ones(225), visit) == 1


def test_ways_that_change_with_the_visit_are_no_alarm() -> None:
    """A leader that moves now and then: two runs differ in shares by far more than requests say."""
    rng = np.random.default_rng(4)
    visit = np.repeat(np.arange(15), 15)

    def run() -> Distribution:
        return Distribution(1.0 + np.repeat(rng.random(15) < 0.5, 15), visit)

    found = [gained(run(), run(), 0.25).difference for _ in range(200)]
    assert sum(abs(each.estimate) > 0.1 for each in found) > 75
    assert sum(each.p < 0.005 for each in found) <= 4  # 2 are expected at the most
