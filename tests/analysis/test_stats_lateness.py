"""The tests of late requests against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wanlat.analysis.stats.lateness import LEAST_N, difference, fisher_exact, rank_z


@pytest.mark.parametrize("table", [(8, 2, 1, 5), (0, 7, 12, 90), (3, 0, 5, 2), (10, 10, 10, 10)])
def test_fishers_exact_test_is_scipys(table: tuple[int, int, int, int]) -> None:
    expected = scipy.stats.fisher_exact([table[:2], table[2:]]).pvalue
    assert fisher_exact(table) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_ranks_are_scipys_mann_whitney_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    some, others = rng.integers(0, 9, 12).astype(float), rng.integers(seed, 9, 40).astype(float)
    expected = scipy.stats.mannwhitneyu(some, others, method="asymptotic").pvalue
    z = rank_z(some, others)
    assert 2 * scipy.stats.norm.sf(abs(z)) == pytest.approx(expected, rel=1e-9)
    above = scipy.stats.mannwhitneyu(some, others).statistic - some.size * others.size / 2
    assert z * above >= 0


def test_what_stalls_may_have_added_makes_no_difference() -> None:
    late = np.arange(100) < 10
    took_ms = np.linspace(100, 101, 100)
    held_up_ms = np.where(late, 12.0, 0.0)
    longer_ms = took_ms + held_up_ms
    ok = np.ones(100, dtype=bool)
    assert difference(late, ok, longer_ms, np.zeros(100)) < 1e-4  # type: ignore[operator]
    assert difference(late, ok, longer_ms, held_up_ms * 1.1) == 1.0


def test_of_few_late_requests_nothing_is_concluded() -> None:
    late, ones = np.arange(100) < LEAST_N - 1, np.ones(100)
    assert difference(late, ones.astype(bool), ones, ones * 0) is None
    assert difference(~late, ones.astype(bool), ones, ones * 0) is None
