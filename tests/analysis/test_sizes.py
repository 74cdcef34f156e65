"""Object sizes: tables and charts, from samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answers import answer_of
from chart_checks import assert_apart, texts_of

from tests.bundles import BOB, MINIO, MINIO_NGINX, plausible, write_sweep
from wanlat.analysis.figures.growth import GROWTH
from wanlat.analysis.figures.sizes import SIZES
from wanlat.bundle.matrix import read_matrix

pytestmark = pytest.mark.usefixtures("few_resamples")


def slower_with_one_key(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
    values: np.ndarray = plausible(30)(system, {**at, "key_mode": "fresh"}, endpoint, size)
    again = system == "bob" and endpoint == "Put" and at["key_mode"] == "same"
    return values * 1.5 if again else values


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix over sizes, with fresh keys and with one."""
    path = tmp_path_factory.mktemp("sizes") / "sweep"
    write_sweep(
        path,
        {"nodes": [2], "object_size": ("1KiB", "1MiB", "100MiB"), "key_mode": ["fresh", "same"]},
        systems=(BOB, MINIO, MINIO_NGINX),
        values=slower_with_one_key,
        placed={"bob": ("local", "remote")},
    )
    return path


def test_what_failed_and_points_whose_network_was_wrong_are_in_no_figure(tmp_path: Path) -> None:
    write_sweep(tmp_path, {"object_size": ["1KiB", "1MiB"]}, systems=(MINIO,))
    samples = tmp_path / "points" / "minio-object_size-1KiB" / "samples.parquet"
    rows = pd.read_parquet(samples)
    puts = rows.index[(rows.endpoint == "PutObject") & (rows.phase == "measure")]
    rows.loc[puts[:4], ["outcome", "total_ns"]] = ["fail", 1]
    rows.to_parquet(samples)
    pair = {"from": "n1", "to": "n2", "verdict": "fail", "requested_rtt_ms": 0.0}
    pair |= {"system": "minio", "reasons": ["off"], "rtt_ms": None, "error_ms": None}
    calibration = {"topology": "lan", "backend": "wire", "pairs": [pair], "verdict": "fail"}
    wrong = tmp_path / "points" / "minio-object_size-1MiB" / "calibration.json"
    wrong.write_text(json.dumps(calibration))
    found = answer_of(SIZES, tmp_path)
    entries = found.to_json()["entries"]
    assert {row["object_bytes"] for row in entries} == {1024}
    (failed,) = (row for row in entries if row["n"] > row["ok"])
    assert (failed["endpoint"], failed["ok"]) == ("PutObject", failed["n"] - 4)
    assert failed["median_ms"] > 0.5
    (only,) = found.grids()
    assert len(only.troubled) == 1
    assert GROWTH.answer(read_matrix(tmp_path)) is None
    write_sweep(tmp_path / "nodes", {"nodes": [1, 2]}, systems=(MINIO,))
    assert SIZES.answer(read_matrix(tmp_path / "nodes")) is None


def test_the_charts_of_several_clusters_are_over_them(tmp_path: Path) -> None:
    def of_clusters(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
        """Each cluster twice as slow as the one before; Bob thrice as slow as MinIO."""
        ms = 3.0 if system == "bob" else 1.0
        return np.linspace(0.9, 1.1, 30) * ms * 2.0 ** int(at["replicate"])

    swept = {"nodes": [1], "object_size": ["1KiB", "1MiB"], "replicate": [1, 2, 3]}
    write_sweep(tmp_path, swept, systems=(MINIO, BOB), values=of_clusters)
    charts = answer_of(SIZES, tmp_path).charts()
    assert set(charts) == {"sizes-time", "sizes-ratio"}
    said = " ".join(texts_of(charts["sizes-time"]))
    # The means of the clusters are 2, 4 and 8 ms, and 6, 12 and 24.
    assert "over 3 clusters" in said
    heights = {
        round(float(y), 3)
        for axes in charts["sizes-time"].axes
        for line in axes.lines
        for y in np.ravel(line.get_ydata())
        if len(line.get_ydata()) == 2
    }
    assert {round(14 / 3, 3), 14.0} <= heights, heights
    assert "Bob takes 3 to 3 times as long as MinIO" in " ".join(texts_of(charts["sizes-ratio"]))


def test_the_charts_are_readable_and_compare_with_the_first_system(directory: Path) -> None:
    charts = answer_of(SIZES, directory).charts()
    kinds = ("time", "ratio")
    own = {f"sizes-{kind}{keys}" for kind in kinds for keys in ("", "-one-key")}
    assert set(charts) == own
    assert_apart(charts["sizes-ratio"])
    assert "imes as long as Bob" in " ".join(texts_of(charts["sizes-ratio"]))
