"""What a store takes comes out right on a machine that stands still now and then.

By simulation, with known truth: what is sent, judged and sent again is what a study sends, judges
and sends again; the intervals are those of its tables.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from tests.experiments.simulated_machine import (
    Draw,
    Run,
    Stalls,
    at_random,
    every_700_ms,
    in_bursts,
    run,
)
from wanlat.analysis import statistics
from wanlat.analysis.stats.intervals import wilson
from wanlat.analysis.stats.lateness import difference

REQUESTS = 100
MACHINES = [every_700_ms, at_random, in_bursts]


class Store(NamedTuple):
    """A store, and what it takes by itself, ms; None: that is not looked at."""

    draw: Draw
    mean_ms: float | None = None
    median_ms: float | None = None
    hanging: float = 0.0


STORES = {
    "bimodal": Store(lambda rng, _: 50.0 if rng.random() < 0.5 else 600.0, mean_ms=325.0),
    "heavy-tailed": Store(
        lambda rng, _: rng.lognormal(math.log(120), 0.8),
        mean_ms=120 * math.exp(0.8**2 / 2),
        median_ms=120.0,
    ),
    "hanging": Store(
        lambda rng, _: math.inf if rng.random() < 0.25 else rng.normal(100, 5),
        mean_ms=100.0,
        median_ms=100.0,
        hanging=0.25,
    ),
    # One request after another: more are sent while it is quick, so that their mean is harmonic.
    "drifting": Store(
        lambda rng, at_s: 150 + 100 * math.sin(2 * math.pi * at_s / 1.7) + rng.normal(0, 5),
        mean_ms=math.sqrt(150**2 - 100**2),
    ),
}


def runs(store: str, stalls: Stalls, count: int) -> list[Run]:
    return [run(STORES[store].draw, stalls, REQUESTS, seed) for seed in range(count)]


@pytest.mark.parametrize("stalls", MACHINES)
def test_slow_requests_are_left_out_no_more_often_than_quick_ones(stalls: Stalls) -> None:
    ended = runs("bimodal", stalls, 40)
    took_ms = np.concatenate([each.took_ms for each in ended])
    late = np.concatenate([each.late for each in ended])
    assert late.mean() > 0.03
    slow = took_ms > 300
    of_slow, of_quick = late[slow].mean(), late[~slow].mean()
    error = math.sqrt(late.mean() * (1 / slow.sum() + 1 / (~slow).sum()))
    assert abs(of_slow - of_quick) < 4 * error
    means_ms = [r.took_ms[r.timed].mean() for r in ended]
    error_ms = np.std(means_ms) / math.sqrt(len(means_ms))
    assert abs(np.mean(means_ms) - 325) < 4 * error_ms + 6  # what stalls themselves add
    # Left out by their whole length, as far as the same runs tell, they would be the quick ones.
    by_length_ms = np.mean([r.took_ms[r.held_up_ms == 0].mean() for r in ended])
    assert by_length_ms < np.mean(means_ms) - 4 * error_ms


def test_requests_that_hang_stay_as_frequent_as_they_are() -> None:
    ended = runs("hanging", every_700_ms, 40)
    ok = np.concatenate([r.ok for r in ended])
    assert abs((~ok).mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / ok.size)


@pytest.mark.minutes
@pytest.mark.parametrize("store", STORES)
def test_intervals_contain_the_truth_93_times_in_100(store: str) -> None:
    """Of an interval that is right 95 times in 100, 900 runs show 0.95 ± 0.015."""
    truth, hits = STORES[store], dict[str, list[bool]]()
    for seed, ended in enumerate(ended for each in MACHINES for ended in runs(store, each, 300)):
        kept = ended.timed
        found = statistics.describe(ended.took_ms[kept], [1, seed], ended.held_up_ms[kept])
        assert found is not None
        for name, value_ms, interval in (
            ("mean", truth.mean_ms, found.mean_ci95_ms),
            ("median", truth.median_ms, found.median_ci95_ms),
            ("failed", truth.hanging or None, wilson(int((~ended.ok).sum()), ended.ok.size)),
        ):
            if value_ms is not None and interval is not None:
                hits.setdefault(name, []).append(interval[0] <= value_ms <= interval[1])
    covered = {name: np.mean(inside) for name, inside in hits.items()}
    assert min(covered.values()) >= 0.93, covered


def by_its_own_work(ended: Run, rng: np.random.Generator) -> Run:
    """The same, had the store's slow requests made the machine late."""
    late = (ended.took_ms > np.median(ended.took_ms)) & (rng.random(ended.late.size) < 0.3)
    return ended.__class__(ended.took_ms, ended.held_up_ms * 0, ended.ok, late)


def test_lateness_of_the_stores_own_making_is_noticed_and_chance_is_not() -> None:
    rng = np.random.default_rng(1)
    by_chance, by_store = [], []
    for ended in runs("heavy-tailed", every_700_ms, 60):
        by_chance.append(difference(ended.late, ended.ok, ended.took_ms, ended.held_up_ms))
        planted = by_its_own_work(ended, rng)
        by_store.append(difference(planted.late, planted.ok, planted.took_ms, planted.held_up_ms))
    assert sum(p is not None and p < 0.01 for p in by_chance) <= 2
    assert sum(p is not None and p < 0.01 for p in by_store) >= 55
