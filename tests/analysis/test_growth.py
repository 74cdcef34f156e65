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
from chart_checks import assert_apart, texts_of
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, GARAGE, MINIO

from wanlat.analysis.figures.growth import (
    AXES,
    Levels,
    Noise,
    Verdict,
    has_two_modes,
    judge,
    noise_of,
)
from wanlat.analysis.report.growth import GROWTH
from wanlat.analysis.report.section import Answer
from wanlat.analysis.sweep import read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
OBJECTS, NODES = AXES
SHAPES = ("constant", "logarithmic", "linear")
COUNTS = {OBJECTS: (100.0, 1000.0, 10_000.0, 100_000.0), NODES: (3.0, 6.0, 12.0, 24.0)}
SWEEPS = 200


def levels(at: Sequence[float], medians_ms: Sequence[float], error: float = 0.02) -> Levels:
    ms = np.array(medians_ms, dtype=float)
    return Levels(np.array(at, dtype=float), ms, error * ms)


def grown(
    axis: Any,
    truth: tuple[str, float],
    seed: Sequence[int],
    *,
    runs: int = 1,
    differ: float = 0.05,
    at: Sequence[float] = (),
) -> Levels:
    """Medians of a store whose time grows by `truth`: a shape, and by how much over the range."""
    rng = np.random.default_rng(seed)
    x = np.repeat(np.array(at or COUNTS[axis]), runs)
    steps = axis.steps(Verdict(truth[0]), x)
    true_ms = 2.0 * (1 + truth[1] * steps / (steps.max() or 1.0))
    ms = true_ms * (1 + differ * rng.normal(size=x.size) + 0.02 * rng.normal(size=x.size))
    return Levels(x, ms, 0.02 * true_ms)


def verdicts(
    axis: Any, truth: tuple[str, float], sweeps: int = SWEEPS, **settings: Any
) -> Counter[str]:
    many = (grown(axis, truth, (sweep, 1), **settings) for sweep in range(sweeps))
    return Counter(judge(each, axis, noise_of([each], axis)).verdict for each in many)


@pytest.mark.minutes
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("truth", [("constant", 0.0), ("logarithmic", 0.7), ("linear", 0.7)])
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.noun)
def test_a_wrong_shape_is_named_less_than_once_in_twenty(
    axis: Any, truth: tuple[str, float], runs: int
) -> None:
    found = verdicts(axis, truth, runs=runs)
    wrong = sum(found[shape] for shape in SHAPES if shape != truth[0])
    if truth[0] == "constant":
        wrong += found["grows, shape not decided"] + found["falls"]
    assert wrong < 0.05 * SWEEPS, found


def test_growth_that_is_plain_is_named_and_a_shape_that_is_not_is_left_open() -> None:
    for shape in ("logarithmic", "linear"):
        assert verdicts(OBJECTS, (shape, 2.0), 50, runs=2)[shape] > 0.8 * 50
    found = verdicts(NODES, ("linear", 0.6), 100, runs=2, at=(3.0, 4.0, 5.0))
    assert found["linear"] + found["logarithmic"] < 0.05 * 100
    assert found["grows, shape not decided"] > 0.5 * 100


@pytest.mark.parametrize(
    ("medians_ms", "noise", "verdict"),
    [
        ((1.0, 9.0, 1.0, 9.0), 0.05, "neither shape"),
        ((9.0, 7.0, 5.0, 3.0), 0.02, "falls"),
        ((2.0, 2.02, 1.98, 2.01), 0.02, "constant"),
        # It seems to fall by a quarter, and by nothing as well.
        ((3.16, 2.85, 2.43, 2.44), 0.09, "not decided"),
        ((1.0, 9.0), 0.05, "too few points"),
    ],
)
def test_points_get_the_verdict_that_they_bear(
    medians_ms: Sequence[float], noise: float, verdict: str
) -> None:
    at = COUNTS[OBJECTS][: len(medians_ms)]
    assert judge(levels(at, medians_ms), OBJECTS, Noise(noise, None)).verdict == verdict


def test_how_much_runs_differ_comes_from_repeated_ones_or_from_how_far_points_scatter() -> None:
    repeated = [
        noise_of([grown(OBJECTS, ("linear", 1.0), (sweep,), runs=3, differ=0.15)], OBJECTS)
        for sweep in range(100)
    ]
    assert {noise.runs for noise in repeated} == {8}
    assert np.median([noise.share for noise in repeated]) == pytest.approx(0.15, rel=0.1)
    calm, wild = (
        [grown(OBJECTS, ("constant", 0.0), (1, n), differ=differ) for n in range(5)]
        for differ in (0.01, 0.3)
    )
    assert noise_of(calm, OBJECTS) == Noise(0.05, None)
    assert noise_of(wild, OBJECTS).share > 0.2


def test_slopes_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for sweep in range(SWEEPS):
        points = grown(OBJECTS, ("logarithmic", 0.9), (sweep, 5), runs=3)
        _, curve, _ = judge(points, OBJECTS, noise_of([points], OBJECTS)).curves
        assert curve.slope_ci95_ms is not None
        held += curve.slope_ci95_ms[0] <= 0.6 <= curve.slope_ci95_ms[1]
    assert held >= 0.9 * SWEEPS


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
def answer(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    directory = tmp_path_factory.mktemp("growth") / "sweep"
    write_sweep(
        directory,
        {"prefill.objects": [100, 1000, 10_000, 100_000], "seed": [1, 2]},
        systems=[GARAGE, BOB],
        values=values,
        endpoints={"garage": ("ListObjects", "GetObject", "ListObjectsPage"), "bob": ("Get",)},
        placed={"bob": ("local", "remote")},
        statuses={"bob-prefill.objects-100-seed-2": "failed"},
    )
    found = GROWTH.of_matrix(read_sweep(directory))
    assert found is not None
    return found


def test_a_matrix_gives_each_endpoint_its_own_verdict(answer: Answer) -> None:
    rows = answer.to_json()["endpoints"]
    of = {(row["endpoint"], row["placement"]): row for row in rows}
    listing = of["ListObjects", "unknown"]
    # A varied seed is another run of the same point.
    assert [level["x"] for level in listing["levels"]] == [
        x for x in COUNTS[OBJECTS] for _ in range(2)
    ]
    assert listing["noise"]["from_repeated_runs"] == 4
    assert listing["verdict"] == "logarithmic"
    low, high = listing["fits"][1]["slope_ci95_ms"]
    assert low < 0.8 < high
    assert of["GetObject", "unknown"]["verdict"] == "constant"
    # A page of fewer than a thousand objects is a shorter page.
    page = of["ListObjectsPage", "unknown"]
    assert (min(level["x"] for level in page["levels"]), page["verdict"]) == (1000, "linear")
    # A point that failed is in no figure, and placements are not mixed.
    assert [len(of["Get", each]["levels"]) for each in ("local", "remote")] == [7, 7]
    json.dumps(answer.to_json(), allow_nan=False)


def test_table_and_chart_say_what_a_step_adds_and_on_what_it_rests(answer: Answer) -> None:
    (costs,) = answer.grids()
    added = {
        row[1]: dict(zip(costs.headers, row, strict=True))["adds, ms [95 %]"] for row in costs.rows
    }
    assert "per tenfold" in added["ListObjects"]
    assert "per 1,000 objects" in added["ListObjectsPage"]
    assert added["GetObject"] == "–"
    assert any("4 repeated runs" in note for note in costs.notes)
    (chart,) = answer.charts().values()
    assert_apart(chart)
    assert any("ListObjectsPage grows most" in text for text in texts_of(chart))


def delayed(shares: Mapping[int, float], growth: float) -> Any:
    """Latencies of which a share, by number of nodes, waits 41 ms for an acknowledgement."""

    def of(_: str, at: Mapping[str, Any], endpoint: str, __: int) -> np.ndarray:
        rng = np.random.default_rng([at["nodes"], len(endpoint)])
        ms = (1 + growth * at["nodes"]) * rng.lognormal(0, 0.15, 100)
        return np.asarray(ms + 41.0 * (np.arange(100) < 100 * shares[at["nodes"]]))

    return of


@pytest.mark.parametrize(
    ("shares", "growth", "verdict"),
    [
        ({3: 0.0, 6: 0.0, 12: 0.0, 24: 0.0}, 0.2, "linear"),
        ({3: 0.7, 6: 0.6, 12: 0.0, 24: 0.1}, 0.0, "two modes"),
        # The median stays in one of the modes.
        ({3: 0.15, 6: 0.12, 12: 0.17, 24: 0.1}, 0.3, "linear"),
        ({3: 0.9, 6: 0.85, 12: 0.82, 24: 0.9}, 0.0, "constant"),
    ],
)
def test_no_curve_is_laid_through_medians_that_may_jump(
    tmp_path: Path, shares: Mapping[int, float], growth: float, verdict: str
) -> None:
    values = delayed(shares, growth)
    write_sweep(tmp_path, {"nodes": list(shares)}, systems=[MINIO], values=values)
    found = GROWTH.of_matrix(read_sweep(tmp_path))
    assert found is not None
    rows = found.to_json()["endpoints"]
    assert {row["verdict"] for row in rows} == {verdict}
    assert (rows[0]["fits"] == []) == (rows[0]["change"] is None) == (verdict == "two modes")
    medians = found.grids()[0].rows[0][2]
    assert medians.startswith("3: ")
    assert ("*" in medians) == (verdict == "two modes")
    assert growth or set(found.charts()) == {"growth-nodes"}


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0])
def test_one_mode_with_a_long_tail_is_not_taken_for_two(shape: float) -> None:
    for seed in range(200):
        assert not has_two_modes(np.random.default_rng(seed).lognormal(0, shape, 100)), seed


def test_matrices_in_which_nothing_grows_have_no_section(tmp_path: Path) -> None:
    write_sweep(tmp_path, {"object_size": ["1KiB", "4MiB"], "nodes": [1, 2, 4]})
    assert GROWTH.of_matrix(read_sweep(tmp_path)) is None
