"""The cost of growth: medians by size, and a change whose interval is of repeated runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers import answer_of

from tests.bundles import MINIO, write_sweep
from wanlat.analysis.figures.growth import GROWTH, change_over, noise_of

NODES = [3, 6, 12, 24]
SWEEPS = 100


def levels(medians_ms: Mapping[int, Sequence[float]]) -> list[dict[str, Any]]:
    """Levels of one endpoint: the medians of all runs at each size."""
    return [
        {"x": x, "median_ms": ms, "two_modes": False}
        for x, values in medians_ms.items()
        for ms in values
    ]


def test_the_interval_of_a_change_holds_the_true_one_as_often_as_it_says() -> None:
    contained, shares = 0, []
    for sweep in range(SWEEPS):
        rng = np.random.default_rng((sweep, 5))
        runs = levels({x: (1 + x / 24) * (1 + 0.05 * rng.normal(size=3)) for x in NODES})
        noise = noise_of([runs])
        assert noise is not None and noise.runs == 8
        shares.append(noise.share)
        _, low, high = change_over(runs, noise)
        contained += low <= 2 / (1 + 3 / 24) - 1 <= high
    assert np.median(shares) == pytest.approx(0.05, rel=0.15)
    assert 0.9 * SWEEPS <= contained <= SWEEPS


def test_without_repeated_runs_a_change_has_no_interval() -> None:
    runs = levels({3: [2.0], 24: [3.0]})
    assert noise_of([runs]) is None
    assert change_over(runs, None) == [0.5]
    assert change_over(levels({3: [2.0]}), None) == []


@pytest.mark.parametrize(
    ("shares", "has_two_modes"),
    [
        ((0.7, 0.6, 0.0, 0.1), True),
        ((0.15, 0.12, 0.17, 0.1), False),  # the median stays in one of the modes
    ],
)
def test_medians_that_may_jump_are_marked_and_have_no_change(
    tmp_path: Path, shares: Sequence[float], has_two_modes: bool
) -> None:
    def delayed(_: str, at: Mapping[str, Any], endpoint: str, __: int) -> np.ndarray:
        """A share of the requests waits 41 ms for an acknowledgement."""
        rng = np.random.default_rng([at["nodes"], len(endpoint)])
        waits = np.arange(100) < 100 * shares[NODES.index(at["nodes"])]
        return np.asarray((1 + 0.3 * at["nodes"]) * rng.lognormal(0, 0.15, 100) + 41.0 * waits)

    write_sweep(tmp_path, {"nodes": NODES}, systems=[MINIO], values=delayed)
    answer = answer_of(GROWTH, tmp_path)
    rows = answer.to_json()["endpoints"]
    assert {row["change"] is None for row in rows} == {has_two_modes}
    assert ("*" in answer.grids()[0].rows[0][2]) == has_two_modes
