"""Object sizes: the table of the published comparison, from samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chart_checks import assert_readable, texts_of
from sweep_bundles import MINIO_NGINX, plausible, write_sweep
from synthetic_bundles import BOB, MINIO

from wanlat.analysis.charts.sizes import charts_of
from wanlat.analysis.sizes import At, Sizes, sizes_of
from wanlat.analysis.sizes_table import format_size, percent_more
from wanlat.analysis.sweep import read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
SIZES = ("1KiB", "1MiB", "100MiB")


def slower_with_one_key(system: str, at: Mapping[str, Any], endpoint: str, size: int) -> np.ndarray:
    values: np.ndarray = plausible(30)(system, {**at, "key_mode": "fresh"}, endpoint, size)
    again = system == "bob" and endpoint == "Put" and at["key_mode"] == "same"
    return values * 1.5 if again else values


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep over sizes, with fresh keys and with one."""
    path = tmp_path_factory.mktemp("sizes") / "sweep"
    write_sweep(
        path,
        {"nodes": [2], "object_size": SIZES, "key_mode": ["fresh", "same"]},
        systems=(BOB, MINIO, MINIO_NGINX),
        values=slower_with_one_key,
        placed={"bob": ("local", "remote")},
    )
    return path


@pytest.fixture(scope="module")
def sizes(directory: Path) -> Sizes:
    """What the sweep says of sizes."""
    found = sizes_of(read_sweep(directory))
    assert found is not None
    return found


def at(size: int, operation: str = "write", keys: str = "fresh", placement: str = "local") -> At:
    return At(2, operation, size, keys, placement)


def test_every_row_is_of_one_system_operation_size_and_kind_of_keys(sizes: Sizes) -> None:
    # Bob local and remote, two MinIOs; reads and writes; three sizes; fresh and one key.
    assert len(sizes.entries) == len({(e.series, e.at) for e in sizes.entries}) == 4 * 2 * 3 * 2


def test_rates_are_of_the_mean_of_single_requests(sizes: Sizes, directory: Path) -> None:
    entry = sizes.find("bob", at(2**20))
    assert entry is not None
    name = "bob-nodes-2-object_size-1MiB-key_mode-fresh"
    rows = pd.read_parquet(directory / "points" / name / "samples.parquet")
    rows = rows[(rows.endpoint == "Put") & (rows.placement == "local") & (rows.phase == "measure")]
    mean_s = rows.total_ns.mean() / 1e9
    assert entry.rate.requests_per_s == pytest.approx(1 / mean_s)
    assert entry.rate.bytes_per_s == pytest.approx(2**20 / mean_s)
    assert entry.skew.estimate == pytest.approx(rows.total_ns.mean() / rows.total_ns.median())


def test_one_key_is_held_against_fresh_ones(sizes: Sizes) -> None:
    of_bob = {(d.at.operation, d.at.object_bytes): d for d in sizes.keys if d.series == BOB}
    slower = of_bob["write", 1024]
    assert slower.of_means.estimate == pytest.approx(1.5)
    assert slower.of_means.ci95 is not None and slower.of_means.ci95[0] > 1.2
    assert of_bob["read", 1024].of_means.estimate == pytest.approx(1.0)
    grid = sizes.grids()[1]
    cells = dict(zip(grid.headers, grid.rows[-1], strict=True))
    assert "means differ by [95 %]" in cells


def test_the_table_has_what_the_published_one_has_and_more(sizes: Sizes) -> None:
    grid = sizes.grids()[0]
    assert grid.headers == (
        *("nodes", "operation", "size", "system", "placement", "keys", "ok"),
        *("mean ms [95 %]", "median ms [95 %]", "requests/s", "MiB/s"),
        *("outliers (severe)", "mean − median"),
    )
    assert len(grid.rows) == len(sizes.entries)


def test_columns_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    write_sweep(tmp_path / "s", {"object_size": ["1KiB", "50KiB"]}, systems=(MINIO,))
    found = sizes_of(read_sweep(tmp_path / "s"))
    assert found is not None
    assert found.grids()[0].headers[:4] == ("nodes", "operation", "size", "system")
    assert "keys" not in found.grids()[0].headers
    assert len(found.grids()) == 1


def test_one_size_is_a_size_too_and_one_placement_is_a_note(tmp_path: Path) -> None:
    placed = {"bob": ("local",)}
    write_sweep(tmp_path / "s", {"object_size": ["1MiB"]}, systems=(BOB,), placed=placed)
    found = sizes_of(read_sweep(tmp_path / "s"))
    assert found is not None
    grid = found.grids()[0]
    assert "placement" not in grid.headers
    assert "Every key whose place is known was local." in grid.notes
    assert_readable(charts_of(found)["sizes-time"])


def test_failures_are_counted_and_in_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_sweep(path, {"object_size": ["1KiB", "50KiB"]}, systems=(MINIO,), values=plausible(30))
    samples = path / "points" / "minio-object_size-1KiB" / "samples.parquet"
    rows = pd.read_parquet(samples)
    puts = rows.index[(rows.endpoint == "PutObject") & (rows.phase == "measure")]
    rows.loc[puts[:4], "outcome"] = "fail"
    rows.loc[puts[:4], "total_ns"] = 1
    rows.to_parquet(samples)
    found = sizes_of(read_sweep(path))
    assert found is not None
    entry = next(e for e in found.entries if (e.at.object_bytes, e.endpoint) == (1024, "PutObject"))
    assert (entry.ok, entry.failed) == (26, 4)
    assert entry.latency.min_ms > 0.5
    grid = found.grids()[0]
    assert len(grid.troubled) == 1
    assert any("Failures are in no figure" in note for note in grid.notes)


def test_a_budget_and_the_probes_own_work_are_told(tmp_path: Path) -> None:
    path = tmp_path / "s"
    planned = {"system": "minio", "endpoint": "GetObject", "placement": "unknown"}
    planned |= {"wanted": 100, "request_s": 1.0, "why": "all fit into the budget"}
    write_sweep(
        path,
        {"object_size": ["1KiB", "1MiB"]},
        systems=(MINIO,),
        point_manifest={"budget": [{**planned, "samples": 30, "limited_by": "bytes"}]},
    )
    samples = path / "points" / "minio-object_size-1MiB" / "samples.parquet"
    rows = pd.read_parquet(samples)
    rows["verify_ns"] = (
        (rows.total_ns * 0.04).round().astype("Int64").where(rows.endpoint == "GetObject")
    )
    rows.to_parquet(samples)
    found = sizes_of(read_sweep(path))
    assert found is not None
    notes = " ".join(found.grids()[0].notes)
    assert "because of the budget: bytes for 2 rows" in notes
    assert "took at most 4.0 % of them (MinIO, 1MiB)" in notes


def test_nothing_is_said_of_sizes_where_none_are_swept(tmp_path: Path) -> None:
    write_sweep(tmp_path / "s", {"nodes": [1, 2]}, systems=(MINIO,))
    assert sizes_of(read_sweep(tmp_path / "s")) is None


def test_a_point_whose_network_was_wrong_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s"
    write_sweep(path, {"object_size": ["1KiB", "1MiB"]}, systems=(MINIO,))
    point = path / "points" / "minio-object_size-1MiB"
    failed = {"from": "n1", "to": "n2", "verdict": "fail", "requested_rtt_ms": 0.0}
    pair = {**failed, "system": "minio", "reasons": ["off"], "rtt_ms": None, "error_ms": None}
    calibration = {"topology": "lan", "backend": "wire", "pairs": [pair], "verdict": "fail"}
    (point / "calibration.json").write_text(json.dumps(calibration))
    found = sizes_of(read_sweep(path))
    assert found is not None
    assert {e.at.object_bytes for e in found.entries} == {1024}


def test_the_charts_are_readable_and_hold_the_published_ratios(sizes: Sizes) -> None:
    fresh = tuple(entry for entry in sizes.entries if entry.at.keys == "fresh")
    charts = charts_of(replace(sizes, entries=fresh))
    assert list(charts) == ["sizes-time", "sizes-ratio", "sizes-throughput", "sizes-keys"]
    for name in ("sizes-ratio", "sizes-keys"):
        assert_readable(charts[name])
    assert "published: MinIO behind nginx" in texts_of(charts["sizes-ratio"])
    assert "published: MinIO behind nginx" not in texts_of(charts["sizes-time"])


def test_one_key_has_charts_of_its_own(sizes: Sizes) -> None:
    one = tuple(e for e in sizes.entries if e.at.keys == "one" and e.series == MINIO)
    charts = charts_of(replace(sizes, entries=one, keys=()))
    assert list(charts) == ["sizes-time-one-key", "sizes-throughput-one-key"]


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(1024, "1KiB"), (4194303, "4194303B"), (104857600, "100MiB")]
)
def test_sizes_are_written_exactly(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text


def test_ratios_are_written_as_percent_more() -> None:
    assert percent_more(1.193) == "+19 %"
    assert percent_more(0.951) == "−4.9 %"
    assert percent_more(1.00001) == "0.0 %"
