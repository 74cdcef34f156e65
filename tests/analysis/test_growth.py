"""The cost of growth: the right shape or none, and never a shape that the points do not tell."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chart_checks import assert_readable, texts_of
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, GARAGE, MINIO

from wanlat.analysis.growth import growth_of
from wanlat.analysis.growth.block import GrowthBlock
from wanlat.analysis.growth.fit import judge, noise_of
from wanlat.analysis.growth.model import AXES, NODES, OBJECTS, Axis, Growth, Level, Noise
from wanlat.analysis.growth.modes import gap_of, splits_of
from wanlat.analysis.sweep import read_sweep

SHAPES = ("constant", "logarithmic", "linear")
OBJECT_COUNTS = (100.0, 1000.0, 10_000.0, 100_000.0)
NODE_COUNTS = (3.0, 6.0, 12.0, 24.0)
SWEEPS = 200


def points(
    axis: Axis,
    at: Sequence[float],
    truth: tuple[str, float],
    rng: np.random.Generator,
    *,
    runs: int = 1,
    differ: float = 0.05,
) -> list[Level]:
    """Medians of a store whose time grows by `truth`: a shape, and by how much over the range."""
    shape, total = truth
    levels = []
    for x in at:
        steps = axis.along(shape, x, at[0]) / (axis.along(shape, at[-1], at[0]) or 1.0)  # type: ignore[arg-type]
        for run in range(runs):
            true_ms = 2.0 * (1 + total * steps)
            spread_ms = 0.02 * true_ms
            ms = true_ms * (1 + differ * rng.normal()) + spread_ms * rng.normal()
            ci95 = (ms - 1.96 * spread_ms, ms + 1.96 * spread_ms)
            levels.append(Level(x, f"run {run}", 100, 0, ms, ci95, spread_ms))
    return levels


def verdicts(
    axis: Axis, at: Sequence[float], truth: tuple[str, float], *, runs: int
) -> Counter[str]:
    found: Counter[str] = Counter()
    for sweep in range(SWEEPS):
        rng = np.random.default_rng([sweep, runs, len(at)])
        levels = points(axis, at, truth, rng, runs=runs)
        found[judge(levels, axis, noise_of([levels], axis)).verdict] += 1
    return found


@pytest.mark.minutes
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("truth", [("constant", 0.0), ("logarithmic", 0.7), ("linear", 0.7)])
@pytest.mark.parametrize(
    ("axis", "at"), [(OBJECTS, OBJECT_COUNTS), (NODES, NODE_COUNTS)], ids=["objects", "nodes"]
)
def test_a_wrong_shape_is_named_less_than_once_in_twenty(
    axis: str, at: Sequence[float], truth: tuple[str, float], runs: int
) -> None:
    found = verdicts(AXES[axis], at, truth, runs=runs)
    wrong = sum(found[shape] for shape in SHAPES if shape != truth[0])
    if truth[0] == "constant":
        wrong += found["grows, shape not decided"] + found["falls"]
    assert wrong < 0.05 * SWEEPS, found


@pytest.mark.parametrize("shape", ["logarithmic", "linear"])
def test_growth_that_is_plain_is_named(shape: str) -> None:
    assert verdicts(AXES[OBJECTS], OBJECT_COUNTS, (shape, 2.0), runs=2)[shape] > 0.8 * SWEEPS


def test_points_that_do_not_separate_a_logarithm_from_a_line_are_not_decided() -> None:
    found = verdicts(AXES[NODES], (3.0, 4.0, 5.0), ("linear", 0.6), runs=2)
    assert found["linear"] + found["logarithmic"] < 0.05 * SWEEPS
    assert found["grows, shape not decided"] > 0.5 * SWEEPS


def test_what_neither_shape_explains_is_said_to_be_neither() -> None:
    levels = [
        Level(x, "p", 100, 0, ms, (0.98 * ms, 1.02 * ms), 0.01 * ms)
        for x, ms in zip(OBJECT_COUNTS, (1.0, 9.0, 1.0, 9.0), strict=True)
    ]
    assert judge(levels, AXES[OBJECTS], Noise(0.05, None)).verdict == "neither shape"


def test_two_sizes_are_too_few_for_any_shape() -> None:
    levels = points(AXES[NODES], (1.0, 4.0), ("linear", 2.0), np.random.default_rng(1), runs=3)
    found = judge(levels, AXES[NODES], Noise(0.05, None))
    assert found.verdict == "too few points"
    assert found.fits == ()


def test_how_much_runs_differ_is_learnt_from_runs_that_were_repeated() -> None:
    axis = AXES[OBJECTS]
    shares = []
    for sweep in range(100):
        rng = np.random.default_rng(sweep)
        levels = points(axis, OBJECT_COUNTS, ("linear", 1.0), rng, runs=3, differ=0.15)
        noise = noise_of([levels], axis)
        assert noise.runs == 8
        shares.append(noise.share)
    assert np.median(shares) == pytest.approx(0.15, rel=0.1)


def test_points_far_off_every_curve_make_runs_differ_more_than_assumed() -> None:
    axis = AXES[OBJECTS]
    rng = np.random.default_rng(1)
    quiet = [points(axis, OBJECT_COUNTS, ("constant", 0), rng, differ=0.01) for _ in range(5)]
    noisy = [points(axis, OBJECT_COUNTS, ("constant", 0), rng, differ=0.3) for _ in range(5)]
    assert noise_of(quiet, axis) == Noise(0.05, None)
    assert noise_of(noisy, axis).share > 0.2


def test_slopes_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for sweep in range(SWEEPS):
        rng = np.random.default_rng([sweep, 5])
        levels = points(AXES[OBJECTS], OBJECT_COUNTS, ("logarithmic", 0.9), rng, runs=3)
        found = judge(levels, AXES[OBJECTS], noise_of([levels], AXES[OBJECTS]))
        fit = next(fit for fit in found.fits if fit.shape == "logarithmic")
        assert fit.slope_ci95_ms is not None
        held += fit.slope_ci95_ms[0] <= 0.6 <= fit.slope_ci95_ms[1]
    assert held >= 0.9 * SWEEPS


def test_a_forecast_holds_the_next_run_and_is_not_given_where_it_would_be_a_guess() -> None:
    axis = AXES[OBJECTS]
    held = given = 0
    for sweep in range(SWEEPS):
        rng = np.random.default_rng([sweep, 6])
        levels = points(axis, OBJECT_COUNTS, ("logarithmic", 1.5), rng, runs=2)
        found = judge(levels, axis, noise_of([levels], axis), to=1e6).forecast
        if found is not None:
            given += 1
            next_ms = 2.0 * (1 + 1.5 * 4 / 3) * (1 + 0.05 * rng.normal())
            held += found.ci95_ms[0] <= next_ms <= found.ci95_ms[1]
    assert given > 0.8 * SWEEPS
    assert held >= 0.9 * given
    rng = np.random.default_rng(1)
    levels = points(axis, (10.0, 100.0, 1000.0), ("linear", 2.0), rng, runs=3)
    too_far = judge(levels, axis, noise_of([levels], axis), to=1e6)
    assert too_far.verdict == "linear"
    assert too_far.forecast is None  # a thousand times beyond what was measured


ENDPOINTS = {"garage": ("ListObjects", "GetObject", "ListObjectsPage"), "bob": ("Get",)}


def values(system: str, at: Mapping[str, Any], endpoint: str, _: int) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(repr((system, sorted(at.items()), endpoint)).encode()))
    x = at["prefill.objects"]
    own = 1.0
    if endpoint == "ListObjects":
        own += 0.8 * np.log10(x / 100)
    if endpoint == "ListObjectsPage":
        own = min(x, 1000) / 1000 * (1 + x / 20_000)
    return np.asarray(own * (1 + 0.02 * rng.normal()) * rng.lognormal(0, 0.1, 60))


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> GrowthBlock:
    directory = tmp_path_factory.mktemp("growth") / "sweep"
    write_sweep(
        directory,
        {"prefill.objects": [100, 1000, 10_000, 100_000], "seed": [1, 2]},
        systems=[GARAGE, BOB],
        values=values,
        endpoints=ENDPOINTS,
        placed={"bob": ("local", "remote")},
        study={"name": "bucket-growth"},
        statuses={"bob-prefill.objects-100-seed-2": "failed"},
    )
    found = growth_of(read_sweep(directory))
    assert found is not None
    return found


def find(block: GrowthBlock, endpoint: str) -> Growth:
    return next(each for each in block.growths if each.endpoint == endpoint)


def test_a_swept_seed_is_another_run_of_the_same_point(block: GrowthBlock) -> None:
    listing = find(block, "ListObjects")
    assert [level.x for level in listing.levels] == [x for x in OBJECT_COUNTS for _ in range(2)]
    assert listing.verdict == "logarithmic"
    assert listing.noise.runs == 4
    fit = listing.decided
    assert fit is not None and fit.slope_ci95_ms is not None
    assert fit.slope_ci95_ms[0] < 0.8 < fit.slope_ci95_ms[1]
    assert find(block, "GetObject").verdict == "constant"


def test_points_that_failed_are_left_out_and_placements_kept_apart(block: GrowthBlock) -> None:
    bobs = [each for each in block.growths if each.series.system == "bob"]
    assert [each.placement for each in bobs] == ["local", "remote"]
    assert all(len(each.levels) == 7 for each in bobs)


def test_a_page_is_compared_from_a_full_page_on(block: GrowthBlock) -> None:
    page = find(block, "ListObjectsPage")
    assert min(level.x for level in page.levels) == 1000
    assert page.verdict == "linear"


def test_tables_say_what_a_step_adds_and_on_what_it_rests(block: GrowthBlock) -> None:
    costs, medians = block.grids()
    by_endpoint = {row[1]: dict(zip(costs.headers, row, strict=True)) for row in costs.rows}
    assert "a tenfold" in by_endpoint["ListObjects"]["adds, ms [95 %]"]
    assert "per 1,000 objects" in by_endpoint["ListObjectsPage"]["adds, ms [95 %]"]
    assert by_endpoint["GetObject"]["adds, ms [95 %]"] == "–"
    assert any("4 repeated runs" in note for note in costs.notes)
    assert any("nobody measured it" in note for note in costs.notes)
    assert medians.headers[-5:-1] == ("100", "1,000", "10,000", "100,000")
    json.dumps(block.to_json(), allow_nan=False)


def test_the_chart_can_be_read(block: GrowthBlock) -> None:
    (chart,) = block.charts().values()
    assert_readable(chart)
    assert "Garage: logarithmic" in " ".join(texts_of(chart))


def test_a_cluster_that_grows_is_told_in_nodes(tmp_path: Path) -> None:
    def by_nodes(_: str, at: Mapping[str, Any], endpoint: str, __: int) -> np.ndarray:
        rng = np.random.default_rng([at["nodes"], len(endpoint)])
        return np.asarray((1 + 0.2 * at["nodes"]) * rng.lognormal(0, 0.1, 60))

    write_sweep(tmp_path, {"nodes": [3, 6, 12, 24]}, systems=[MINIO], values=by_nodes)
    found = growth_of(read_sweep(tmp_path))
    assert found is not None
    assert {each.verdict for each in found.growths} == {"linear"}
    assert set(found.charts()) == {"growth-nodes"}
    assert "a node" in found.grids()[0].rows[0][-1]


def test_sweeps_in_which_nothing_grows_have_no_block(tmp_path: Path) -> None:
    write_sweep(tmp_path / "sizes", {"object_size": ["1KiB", "4MiB"], "nodes": [1, 2, 4]})
    assert growth_of(read_sweep(tmp_path / "sizes")) is None


SLOW_MS = 41.0
"""A delayed acknowledgement, and what it makes of a request of one millisecond."""


def delayed(share: Mapping[float, float], growth: float = 0.0) -> Any:
    """Latencies of which `share` by number of nodes took SLOW_MS longer."""

    def of(_: str, at: Mapping[str, Any], endpoint: str, __: int) -> np.ndarray:
        nodes = at["nodes"]
        rng = np.random.default_rng([nodes, len(endpoint)])
        ms = (1 + growth * nodes) * rng.lognormal(0, 0.15, 100)
        return np.asarray(ms + SLOW_MS * (np.arange(100) < 100 * share[nodes]))

    return of


def grown(directory: Path, latencies: Any) -> tuple[GrowthBlock, Growth]:
    write_sweep(directory, {"nodes": [3, 6, 12, 24]}, systems=[GARAGE], values=latencies)
    found = growth_of(read_sweep(directory))
    assert found is not None
    return found, found.growths[0]


def test_medians_that_jump_between_two_modes_are_given_no_shape(tmp_path: Path) -> None:
    shares = {3: 0.7, 6: 0.6, 12: 0.0, 24: 0.1}
    block, growth = grown(tmp_path, delayed(shares))
    assert growth.verdict == "two modes"
    assert growth.splits is not None
    assert [split.slow for split in growth.splits] == pytest.approx(list(shares.values()))
    assert growth.decided is None and growth.change is None
    _, medians = block.grids()
    assert medians.rows[0][-5].endswith("(70 %)")
    assert medians.rows[0][-3].endswith("(0 %)") and "/" not in medians.rows[0][-3]
    assert "two modes" in " ".join(texts_of(*block.charts().values()))
    json.dumps(block.to_json(), allow_nan=False)


def test_a_median_that_stays_in_one_mode_grows_as_that_mode_does(tmp_path: Path) -> None:
    _, fast = grown(tmp_path / "fast", delayed({3: 0.15, 6: 0.12, 12: 0.2, 24: 0.1}, growth=0.3))
    assert fast.verdict == "linear"
    _, slow = grown(tmp_path / "slow", delayed({3: 0.9, 6: 0.85, 12: 0.8, 24: 0.9}))
    assert slow.verdict == "constant"


def test_what_falls_is_no_cost() -> None:
    levels = [
        Level(x, "p", 100, 0, ms, (0.99 * ms, 1.01 * ms), 0.005 * ms)
        for x, ms in zip(OBJECT_COUNTS, (9.0, 7.0, 5.0, 3.0), strict=True)
    ]
    judged = judge(levels, AXES[OBJECTS], Noise(0.02, None))
    assert judged.verdict == "falls"


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0])
def test_one_mode_with_a_long_tail_is_not_taken_for_two(shape: float) -> None:
    for seed in range(200):
        ms = np.random.default_rng(seed).lognormal(0, shape, 100)
        assert gap_of(ms) is None, seed


def test_the_two_modes_are_those_on_both_sides_of_the_widest_gap() -> None:
    rng = np.random.default_rng(3)
    ms = np.concatenate([rng.lognormal(0, 0.2, 60), 40 + rng.lognormal(0, 0.2, 40)])
    (split,) = splits_of([rng.permutation(ms)]) or ()
    assert split.slow == pytest.approx(0.4)
    assert split.fast_ms == pytest.approx(1.0, rel=0.1)
    assert split.slow_ms == pytest.approx(41.0, rel=0.1)
    assert gap_of(ms[:62]) is None  # two of sixty are a tail
