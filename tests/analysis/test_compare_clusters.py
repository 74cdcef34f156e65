"""Replicates compared: what a start draws is no change, and what a program does is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bundles import QUORUM, Does, write_round_trips_bundle, write_sweep
from wanlat.analysis.compare import Comparison, Thresholds, compare
from wanlat.analysis.compare.conditions import read
from wanlat.analysis.compare.differences import Figure, of_intervals, over_clusters
from wanlat.analysis.compare.report import document
from wanlat.analysis.stats.intervals import of_mean
from wanlat.bundle.errors import BundleError

CLUSTERS = [1, 2, 3, 4, 5]
SPREAD = 0.15
COMPLETE = {"status": "complete"}

Latencies = Callable[[str, Mapping[str, Any], str, int], np.ndarray]


def starts(seed: int, factor: float = 1.0) -> Latencies:
    """Medians of 200 ms, of which every start makes something else; PutObject `factor` times it."""

    def values(_system: str, at: Mapping[str, Any], endpoint: str, _bytes: int) -> np.ndarray:
        rng = np.random.default_rng([seed, at["replicate"], len(endpoint)])
        middle = 200 * rng.normal(1, SPREAD) * (factor if endpoint == "PutObject" else 1)
        return middle + np.linspace(-2, 2, 30)

    return values


def written(path: Path, values: Latencies, clusters: Sequence[int] = CLUSTERS) -> Path:
    write_sweep(path, {"replicate": clusters}, systems=(QUORUM,), values=values, manifest=COMPLETE)
    return path


def compared(old: Path, new: Path) -> Comparison:
    return compare(read(old), read(new), Thresholds())


def test_another_start_is_no_change_and_half_as_slow_again_is(tmp_path: Path) -> None:
    old, again, slower = (
        written(tmp_path / name, values)
        for name, values in (("a", starts(1)), ("b", starts(2)), ("c", starts(3, 1.8)))
    )
    # One cluster of each differs by more than any threshold, for certain.
    pair = [read(each / "points" / "quorum-replicate-1") for each in (old, again)]
    assert not compare(pair[0], pair[1], Thresholds()).passed
    for one, other in ((old, again), (again, old)):
        comparison = compared(one, other)
        assert comparison.passed, document(comparison)["gate"]["failures"]
        assert "Clusters: 5 against 5" in comparison.notes[0]
    (failing,) = compared(old, slower).failing
    assert failing["endpoint"] == "PutObject"
    median = next(each for each in failing["changes"] if each.quantity == "median_ms")
    of_each = [starts(3, 1.8)("", {"replicate": n}, "PutObject", 0).mean() for n in CLUSTERS]
    assert median.new == pytest.approx(np.mean(of_each))


def test_clusters_are_compared_with_clusters_and_nothing_else_varies(tmp_path: Path) -> None:
    several, one = written(tmp_path / "a", starts(1)), written(tmp_path / "b", starts(2), [1])
    with pytest.raises(BundleError, match=r"of several clusters and .* of one"):
        compared(several, one)
    write_sweep(tmp_path / "c", {"nodes": [1, 2]}, systems=(QUORUM,))
    with pytest.raises(BundleError, match="a matrix over nodes"):
        read(tmp_path / "c")


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    def of_round_trips(name: str, more: int) -> Path:
        directory = tmp_path_factory.mktemp("trips") / name

        def point(path: Path, _series: object, at: Mapping[str, Any]) -> None:
            rng = np.random.default_rng([*name.encode(), at["replicate"]])
            share = float(rng.uniform(0.2, 0.8))  # which replica is asked, each start draws
            does = {
                ("quorum", "PutObject", "unknown"): [Does(1, 1 + more)],
                ("quorum", "GetObject", "unknown"): [Does(share, 1), Does(1 - share, 2)],
            }
            path.mkdir(parents=True)
            write_round_trips_bundle(
                path, does=does, repeats=2, samples=10, seed=int(rng.integers(1 << 30))
            )

        clusters = {"replicate": [1, 2, 3]}
        write_sweep(directory, clusters, systems=(QUORUM,), write_point=point, manifest=COMPLETE)
        return directory

    return of_round_trips


def test_a_round_trip_more_is_found_where_starts_go_other_ways(
    trips: Callable[[str, int], Path],
) -> None:
    old, again, more = trips("old", 0), trips("again", 0), trips("more", 1)
    assert compared(old, again).passed
    comparison = compared(old, more)
    (failing,) = comparison.failing
    assert failing["endpoint"] == "PutObject"
    change = next(each for each in failing["changes"] if each.quantity == "round_trips")
    assert change.difference == pytest.approx(1, abs=0.1)
    assert comparison.at_rtt_ms == 100


def test_alarms_over_clusters_are_as_rare_as_said() -> None:
    rng, rounds, alarms = np.random.default_rng(9), 3000, 0
    for _ in range(rounds):
        old, new = (
            over_clusters([{"median_ms": Figure(float(value))} for value in rng.normal(200, 30, 5)])
            for _ in range(2)
        )
        one, other = old["median_ms"], new["median_ms"]
        assert one.value and other.value and one.ci95 and other.ci95
        found = of_intervals(one.value, one.ci95, other.value, other.ci95, (4, 4))
        alarms += found.p < 0.005
    assert alarms <= 0.015 * rounds  # 5 in a thousand are expected on each side
    # Welch's interval and probability, as scipy.stats.ttest_ind(…, equal_var=False) has them.
    draw = np.random.default_rng(1)
    few, more = draw.normal(0, 1, 5), draw.normal(1, 2, 7)
    welch = of_intervals(few.mean(), of_mean(few), more.mean(), of_mean(more), (4, 6))
    assert welch.ci95 == pytest.approx((0.1277134, 2.4177111))
    assert welch.p == pytest.approx(0.0167390290)
