"""The cost of growth: the right shape or none, and never a shape that the points do not tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers import answer_of
from sweep_bundles import write_sweep
from synthetic_bundles import MINIO

from wanlat.analysis.figures.growth import (
    AXES,
    GROWTH,
    Levels,
    Noise,
    Verdict,
    judge,
    noise_of,
)

pytestmark = pytest.mark.usefixtures("few_resamples")
OBJECTS, NODES = AXES
COUNTS = {"objects": (100.0, 1000.0, 10_000.0, 100_000.0), "nodes": (3.0, 6.0, 12.0, 24.0)}
SWEEPS = 100


def grown(
    axis: Any, truth: tuple[str, float], seed: Sequence[int], runs: int = 1, differ: float = 0.05
) -> Levels:
    """Medians of a store whose time grows by `truth`: a shape, and by how much over the range."""
    rng = np.random.default_rng(seed)
    x = np.repeat(np.array(COUNTS[axis.noun]), runs)
    steps = axis.steps(Verdict(truth[0]), x)  # (of a constant as of a logarithm, times 0)
    true_ms = 2.0 * (1 + truth[1] * steps / steps.max())
    ms = true_ms * (1 + differ * rng.normal(size=x.size) + 0.02 * rng.normal(size=x.size))
    return Levels(x, ms, 0.02 * true_ms)


@pytest.mark.minutes
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("truth", [("constant", 0.0), ("logarithmic", 2.0), ("linear", 2.0)])
@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.noun)
def test_a_wrong_shape_is_named_less_than_once_in_twenty_and_plain_growth_is_named(
    axis: Any, truth: tuple[str, float], runs: int
) -> None:
    many = [grown(axis, truth, (sweep, 1), runs=runs) for sweep in range(SWEEPS)]
    found = Counter(judge(each, axis, noise_of([each], axis)).verdict for each in many)
    is_open = {"grows, shape not decided"} if truth[1] else {"not decided"}
    wrong = sum(found[each] for each in found if each not in {truth[0], *is_open})
    assert wrong < 0.05 * SWEEPS, found
    if truth[1] and axis is OBJECTS and runs == 2:
        assert found[Verdict(truth[0])] > 0.8 * SWEEPS, found


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
    ms = np.array(medians_ms)
    levels = Levels(np.array(COUNTS["objects"][: ms.size]), ms, 0.02 * ms)
    assert judge(levels, OBJECTS, Noise(noise, None)).verdict == verdict


def test_how_much_runs_differ_comes_from_repeated_ones_or_from_how_far_points_scatter() -> None:
    held, shares = 0, []
    for sweep in range(SWEEPS):
        points = grown(OBJECTS, ("logarithmic", 0.9), (sweep, 5), runs=3, differ=0.15)
        noise = noise_of([points], OBJECTS)
        assert noise.runs == 8
        shares.append(noise.share)
        low, high = judge(points, OBJECTS, noise).curves[0].to_json()["slope_ci95_ms"]
        held += low <= 0.6 <= high
    assert np.median(shares) == pytest.approx(0.15, rel=0.1)
    assert 0.9 * SWEEPS <= held < SWEEPS  # as often as it says
    calm, wild = (
        [grown(OBJECTS, ("linear", 0.0), (1, n), differ=differ) for n in range(5)]
        for differ in (0.01, 0.3)
    )
    assert noise_of(calm, OBJECTS) == Noise(0.05, None)
    assert noise_of(wild, OBJECTS).share > 0.2


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ((0.7, 0.6, 0.0, 0.1), "two modes"),
        ((0.15, 0.12, 0.17, 0.1), "linear"),  # the median stays in one of the modes
    ],
)
def test_no_curve_is_laid_through_medians_that_may_jump(
    tmp_path: Path, shares: Sequence[float], verdict: str
) -> None:
    def delayed(_: str, at: Mapping[str, Any], endpoint: str, __: int) -> np.ndarray:
        """A share of the requests waits 41 ms for an acknowledgement."""
        rng = np.random.default_rng([at["nodes"], len(endpoint)])
        waits = np.arange(100) < 100 * shares[COUNTS["nodes"].index(at["nodes"])]
        return np.asarray((1 + 0.3 * at["nodes"]) * rng.lognormal(0, 0.15, 100) + 41.0 * waits)

    write_sweep(tmp_path, {"nodes": [3, 6, 12, 24]}, systems=[MINIO], values=delayed)
    found = answer_of(GROWTH, tmp_path)
    rows = found.to_json()["endpoints"]
    assert {row["verdict"] for row in rows} == {verdict}
    assert (rows[0]["fits"] == []) == (rows[0]["change"] is None) == (verdict == "two modes")
    assert ("*" in found.grids()[0].rows[0][2]) == (verdict == "two modes")
