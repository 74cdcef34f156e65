"""Object sizes: the table of the published comparison, from samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chart_checks import assert_apart, texts_of
from sweep_bundles import MINIO_NGINX, plausible, write_sweep
from synthetic_bundles import BOB, MINIO

from wanlat.analysis.report.section import Answer
from wanlat.analysis.report.sizes import SIZES
from wanlat.analysis.sweep import read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")


def sizes_of(directory: Path) -> Answer | None:
    return SIZES.of_matrix(read_sweep(directory))


def entries(directory: Path) -> list[dict[str, Any]]:
    found = sizes_of(directory)
    assert found is not None
    return found.to_json()["entries"]


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


@pytest.fixture(scope="module")
def answer(directory: Path) -> Answer:
    found = sizes_of(directory)
    assert found is not None
    return found


def test_rows_are_of_one_system_operation_size_and_kind_of_keys_with_rates_of_the_mean(
    answer: Answer, directory: Path
) -> None:
    rows = answer.to_json()["entries"]
    keys = ("system", "operation", "object_bytes", "keys", "placement")
    by_key = {tuple(row[key] for key in keys): row for row in rows}
    # Bob local and remote, two MinIOs; reads and writes; three sizes; fresh and one key.
    assert len(rows) == len(by_key) == 4 * 2 * 3 * 2
    entry = by_key["bob", "write", 2**20, "fresh", "local"]
    name = "bob-nodes-2-object_size-1MiB-key_mode-fresh"
    samples = pd.read_parquet(directory / "points" / name / "samples.parquet")
    own = (samples.endpoint == "Put") & (samples.placement == "local")
    ns = samples[own & (samples.phase == "measure")].total_ns
    assert entry["requests_per_s"] == pytest.approx(1e9 / ns.mean())
    assert entry["bytes_per_s"] == pytest.approx(2**20 * 1e9 / ns.mean())
    assert entry["mean_over_median"]["ratio"] == pytest.approx(ns.mean() / ns.median(), abs=1e-6)


def test_one_key_is_compared_with_fresh_ones(answer: Answer) -> None:
    rows = [row for row in answer.to_json()["one_key"] if row["system"] == "bob"]
    of = {(row["operation"], row["object_bytes"]): row["one_over_fresh_means"] for row in rows}
    assert of["write", 1024]["ratio"] == pytest.approx(1.5)
    assert of["write", 1024]["ci95"][0] > 1.2
    assert of["read", 1024]["ratio"] == pytest.approx(1.0)


def test_tables_name_what_differs_and_say_the_rest_once(answer: Answer, tmp_path: Path) -> None:
    rates, keys = answer.grids()
    assert {"keys", "requests/s", "MiB/s", "outliers (severe)"} <= set(rates.headers)
    assert "nodes 2" in " ".join(rates.notes)
    assert ("Bob", "read, local", "1KiB") in {row[:3] for row in rates.rows}
    assert "means differ by [95 %]" in keys.headers
    write_sweep(tmp_path, {"object_size": ["1KiB", "50KiB"]}, systems=(MINIO,))
    found = sizes_of(tmp_path)
    assert found is not None
    (only,) = found.grids()
    assert "keys" not in only.headers
    assert found.to_json()["one_key"] == []


def test_failures_the_budget_and_the_probes_own_work_are_told(tmp_path: Path) -> None:
    planned = {"system": "minio", "endpoint": "GetObject", "placement": "unknown"}
    planned |= {"wanted": 100, "samples": 30, "request_s": 1.0, "limited_by": "bytes"}
    sizes = {"object_size": ["1KiB", "1MiB"]}
    budget = {"budget": [{**planned, "why": "all fit into the budget"}]}
    values = plausible(30)
    write_sweep(tmp_path, sizes, systems=(MINIO,), values=values, point_manifest=budget)
    samples = tmp_path / "points" / "minio-object_size-1KiB" / "samples.parquet"
    rows = pd.read_parquet(samples)
    spent = (rows.total_ns * 0.04).round().astype("Int64")
    rows["verify_ns"] = spent.where(rows.endpoint == "GetObject")
    puts = rows.index[(rows.endpoint == "PutObject") & (rows.phase == "measure")]
    rows.loc[puts[:4], ["outcome", "total_ns"]] = ["fail", 1]
    rows.to_parquet(samples)
    found = sizes_of(tmp_path)
    assert found is not None
    failed = next(row for row in found.to_json()["entries"] if row["n"] > row["ok"])
    assert (failed["endpoint"], failed["object_bytes"], failed["ok"]) == ("PutObject", 1024, 26)
    assert failed["median_ms"] > 0.5  # what failed is in no figure
    grid = found.grids()[0]
    assert len(grid.troubled) == 1
    notes = " ".join(grid.notes)
    assert "because of the budget: bytes for 2 rows" in notes
    assert "took at most 4 % of them (MinIO, 1KiB)" in notes


def test_only_a_matrix_over_sizes_whose_network_was_right_is_looked_at(tmp_path: Path) -> None:
    write_sweep(tmp_path / "nodes", {"nodes": [1, 2]}, systems=(MINIO,))
    assert sizes_of(tmp_path / "nodes") is None
    path = tmp_path / "sizes"
    write_sweep(path, {"object_size": ["1KiB", "1MiB"]}, systems=(MINIO,))
    pair = {"from": "n1", "to": "n2", "verdict": "fail", "requested_rtt_ms": 0.0}
    pair |= {"system": "minio", "reasons": ["off"], "rtt_ms": None, "error_ms": None}
    calibration = {"topology": "lan", "backend": "wire", "pairs": [pair], "verdict": "fail"}
    point = path / "points" / "minio-object_size-1MiB"
    (point / "calibration.json").write_text(json.dumps(calibration))
    assert {row["object_bytes"] for row in entries(path)} == {1024}


def test_the_charts_are_readable_and_hold_the_published_ratios(answer: Answer) -> None:
    charts = answer.charts()
    kinds = ("time", "ratio", "throughput")
    own = {f"sizes-{kind}{keys}" for kind in kinds for keys in ("", "-one-key")}
    assert set(charts) == own | {"sizes-keys"}
    for name in ("sizes-ratio", "sizes-keys"):
        assert_apart(charts[name])
    axes = charts["sizes-time"].axes[0]
    assert axes.get_xscale() == "log"
    assert axes.get_xlim()[0] < 1024 < 100 * 2**20 < axes.get_xlim()[1]
    said = [" ".join(texts_of(charts[name])) for name in ("sizes-ratio", "sizes-time")]
    assert ["Published: stored estimates" in each for each in said] == [True, False]
    assert "times as long as Bob" in said[0]
