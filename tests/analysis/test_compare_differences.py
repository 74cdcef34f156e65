"""Differences of two runs: what their intervals hold, and what is a start and what a program."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from wanlat.analysis.compare.differences import Ways, gain, of_intervals, of_shares, step_effect
from wanlat.analysis.stats.intervals import of_mean

STEPS = 15


def ways(*parts: tuple[float, int], step_of: np.ndarray | None = None) -> Ways:
    """So many requests of so many round trips each, over all RTT steps alike."""
    costs = np.concatenate([np.full(n, cost, dtype=float) for cost, n in parts])
    return Ways(costs, np.arange(costs.size) % STEPS if step_of is None else step_of)


@pytest.mark.parametrize(
    ("new", "old", "ci95"),
    [
        # Newcombe 1998, table II, method 10.
        ((56, 70), (48, 80), (0.0524, 0.3339)),
        ((10, 10), (0, 20), (0.6791, 1.0)),
        ((5, 56), (0, 29), (-0.0381, 0.1926)),
    ],
)
def test_two_shares_have_the_published_interval_and_fishers_probability(
    new: tuple[int, int], old: tuple[int, int], ci95: tuple[float, float]
) -> None:
    found = of_shares(*old, *new)
    assert found.ci95 == pytest.approx(ci95, abs=5e-5)
    assert found.estimate == pytest.approx(new[0] / new[1] - old[0] / old[1])
    (more, n), (less, m) = new, old
    hits = more + less
    as_great = [comb(n, k) * comb(m, hits - k) for k in range(more, min(n, hits) + 1)]
    assert found.p == pytest.approx(sum(as_great) / comb(n + m, hits))
    assert of_shares(*new, *old).p == pytest.approx(found.p)
    assert of_shares(*old, *old).p == 0.5


def test_intervals_that_are_not_symmetric_stay_so_and_the_tail_beyond_is_judged() -> None:
    found = of_intervals(1.0, (0.9, 1.0), 2.0, (1.7, 2.1))
    assert found.estimate == 1.0
    assert found.ci95 == pytest.approx((0.7, 1 + np.hypot(0.1, 0.1)))
    half = 1.959963984540054 * 0.1
    far = of_intervals(1.0, (1 - half, 1 + half), 2.0, (2 - half, 2 + half))
    assert 1e-14 < far.p < 1e-11  # 7.07 standard deviations: 8e-13
    assert of_intervals(1.0, (1, 1), 2.0, (2, 2)).p == 0
    assert of_intervals(1.0, (1, 1), 1.0, (1, 1)).p == 0.5


def test_the_difference_of_two_means_is_held_19_times_in_20() -> None:
    rng = np.random.default_rng(1)
    held = alarms = 0
    for _ in range(400):
        old, new, same = rng.exponential(10, 100), rng.exponential(10, 60), rng.exponential(10, 60)
        new += 5
        found = of_intervals(old.mean(), of_mean(old), new.mean(), of_mean(new), 59)
        held += found.ci95[0] <= 5 <= found.ci95[1]
        alarms += of_intervals(old.mean(), of_mean(old), same.mean(), of_mean(same), 59).p < 0.005
    assert 365 <= held <= 395
    assert alarms <= 10  # 4 of 400 are expected, 2 on each side


@pytest.mark.parametrize(
    ("old", "new", "sure", "anyhow"),
    [
        # A way that OLD did not have.
        ([(1, 200)], [(1, 140), (2, 60)], 0.3, 0.3),
        ([(1, 70), (3, 30)], [(1, 70), (4, 30)], 0.3, 0.3),
        ([(1, 60), (2, 60), (5, 80)], [(1, 60), (3, 60), (5, 80)], 0.3, 0.3),
        # One more in all of them, though some ways are those of others before.
        ([(1, 140), (2, 60)], [(2, 140), (3, 60)], 0.7, 0.7),
        ([(1, 70), (2, 60), (3, 70)], [(2, 70), (3, 60), (4, 70)], 0.35, 0.35),
        # A way that NEW no longer has.
        ([(1, 120), (2, 80)], [(2, 200)], 0.6, 0.6),
        # Shares of ways that both have: a start draws them, unless nearly all moved.
        ([(1, 140), (3, 60)], [(1, 80), (3, 120)], 0.0, 0.3),
        ([(1, 90), (2, 90), (3, 20)], [(1, 11), (2, 169), (3, 20)], 0.0, 0.395),
        ([(1, 186), (2, 14)], [(1, 12), (2, 188)], 0.87, 0.87),
        # A stray request does not make a way; nothing gained, and some that lost.
        ([(2, 196), (3, 4)], [(2, 140), (3, 60)], 0.28, 0.28),
        ([(1, 200)], [(1.2, 200)], 0.0, 0.0),
        ([(2, 100), (3, 100)], [(2, 200)], 0.0, 0.0),
        ([(5, 100), (9, 100)], [(5, 140), (7, 60)], 0.0, 0.0),
        # What is not known is no gain: slow before, fast after.
        ([(1, 140), (np.nan, 60)], [(1, 140), (2, 60)], 0.0, 0.0),
    ],
)
def test_only_ways_count_that_one_of_the_runs_has_not(
    old: list[tuple[float, int]], new: list[tuple[float, int]], sure: float, anyhow: float
) -> None:
    found = gain(ways(*old), ways(*new), 0.25)
    assert found.sure.estimate == pytest.approx(sure)
    assert found.any.estimate == pytest.approx(anyhow)
    assert (found.sure.p < 1e-6) is (sure > 0)


def test_requests_of_one_rtt_step_that_all_go_one_way_count_as_one() -> None:
    rng = np.random.default_rng(3)
    step = np.repeat(np.arange(STEPS), STEPS)
    together = np.repeat(rng.random(STEPS) < 0.4, STEPS).astype(float)
    assert step_effect(together, step) == pytest.approx(STEPS, rel=0.2)
    alone = [step_effect((rng.random(225) < 0.4).astype(float), step) for _ in range(200)]
    assert 1 <= np.mean(alone) < 1.3
    assert step_effect(np.ones(225), step) == 1
    # A leader that moves now and then, and a way that OLD happened not to go, is no alarm.
    found = []
    for _ in range(100):
        runs = [np.repeat(rng.random(STEPS) < 0.1, STEPS).astype(np.float64) for _ in range(2)]
        found.append(gain(Ways(runs[0], step), Ways(runs[1], step), 0.25).sure)
    assert sum(each.estimate > 0.1 for each in found) > 10
    assert sum(each.p < 0.005 for each in found) <= 2  # none is expected
