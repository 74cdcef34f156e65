"""The section of a load: figures of known loads, and what must be said with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answers import answer_of, changing, notes_of
from chart_checks import assert_apart

from tests.bundles import MINIO, OBJECT_BYTES, ZERO_NS, rows_of, write_load, write_sweep
from wanlat.analysis.figures.load import LOAD, OverTime, Row, load
from wanlat.analysis.section import Answer
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import read_run

READ_MS, WRITE_MS = 11.4, 43.1


@cache
def load_of(directory: Path) -> Answer:
    return answer_of(LOAD, directory)


def only(directory: Path) -> tuple[Row, OverTime]:
    figures = load_of(directory).figures
    assert len(figures.rows) == 1
    return figures.rows[0], figures.arrays[0]


def notes_on(directory: Path) -> str:
    return notes_of(load_of(directory))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("load") / "bundle"
    write_load(directory, duration_s=60)
    return directory


def test_rates_and_latencies_are_those_of_the_store(one: Path) -> None:
    row, _ = only(one)
    assert row["steady"]["verdict"] == "steady"
    read, write = row["operations"]
    assert (read["operation"], write["operation"]) == ("GetObject", "PutObject")
    for operation, truth_ms in ((read, READ_MS), (write, WRITE_MS)):
        assert operation["mean_ms"] == pytest.approx(truth_ms, rel=0.04)
        assert operation["mean_ms_ci95"][0] < operation["mean_ms"] < operation["mean_ms_ci95"][1]
        assert operation["bytes"] == operation["ok"] * OBJECT_BYTES
    # Sixteen workers, each a read and a write in turn: as many a second as Little says.
    assert read["operations_per_s"] == pytest.approx(16e3 / (READ_MS + WRITE_MS), rel=0.04)
    assert read["in_flight"] + write["in_flight"] == pytest.approx(16, abs=0.1)
    assert read["p99_ms"] == pytest.approx(READ_MS * np.exp(0.4 * 2.3263 - 0.08), rel=0.05)
    for probe in row["probe_client"]:
        assert probe["median_ratio_ci95"][0] < 3.0 < probe["median_ratio_ci95"][1]


def test_requests_of_a_late_network_count_and_are_counted(one: Path, tmp_path: Path) -> None:
    rows = pd.read_parquet(one / "load.parquet")
    rows["late"] = rows.index < 30
    write_load(tmp_path, duration_s=60)
    rows.to_parquet(tmp_path / "load.parquet")
    (row, _), (before, _) = only(tmp_path), only(one)
    assert (row["late"], row["operations"]) == (30, before["operations"])
    assert f"(30 of {len(rows):,})" in notes_on(tmp_path)
    assert "made the network late" not in notes_on(one)


def stalled(directory: Path, **recorded: Any) -> pd.DataFrame:
    """A probe client every 100 ms, of a store that stands still for 3 s at 10 s.

    Answers take 4 ms idle and 8 ms loaded; those due in the 3 s wait for its end, one after the
    other. Returns the samples as they are on disk: 7 of them were never sent.
    """
    write_load(directory, duration_s=60, load=recorded)
    rows = pd.read_parquet(directory / "samples.parquet").sort_values("start_ns", ignore_index=True)
    begin_ns, still_ns = ZERO_NS + 10 * 10**9, ZERO_NS + 13 * 10**9
    free_ns, sent = rows["start_ns"].min(), []
    for due_ns, phase in zip(rows["start_ns"], rows["phase"], strict=True):
        start_ns, total_ns = max(due_ns, free_ns), 4_000_000 if phase == "idle" else 8_000_000
        if begin_ns <= start_ns < still_ns:
            total_ns = still_ns - start_ns
        sent.append((start_ns, total_ns))
        free_ns = start_ns + total_ns
    rows = rows.assign(endpoint="GetObject", due_ns=rows["start_ns"])
    columns = ["start_ns", "total_ns"]
    rows[columns] = pd.DataFrame(sent, dtype="Int64")
    unsent = rows.index[rows["phase"] == "loaded"][300:307]
    rows.loc[unsent, columns] = pd.NA
    rows.loc[unsent, "outcome"] = "fail"
    rows.to_parquet(directory / "samples.parquet")
    return rows


def test_a_stall_is_felt_at_every_instant_at_which_the_probe_was_due(tmp_path: Path) -> None:
    rows = stalled(tmp_path, probe_left_out=7, probe_interval_ms=7.9)
    row, over_time = only(tmp_path)
    due_s, steady = (rows["due_ns"] - ZERO_NS) / 1e9, row["steady"]
    inside = (due_s >= steady["begin_s"]) & (due_s < steady["end_s"])
    felt = rows[(rows["phase"] == "loaded") & inside & (rows["outcome"] == "ok")]
    felt_ms = ((felt["start_ns"] + felt["total_ns"] - felt["due_ns"]) / 1e6).astype(float)
    loaded = row["probe_client"][0]["loaded"]
    assert (loaded["ok"], loaded["fail"]) == (len(felt), 7)
    assert loaded["p99_ms"] == pytest.approx(np.percentile(felt_ms, 99), rel=0.05)
    assert loaded["p99_ms"] > 2000
    assert loaded["from_start_median_ms"] == 8
    assert row["probe_client"][0]["idle"]["p99_ms"] == pytest.approx(4)
    assert (felt_ms > 1000).sum() > 20  # of 3 s, ten a second, those of the first two
    at_s, ms = over_time.probe_ms["GetObject"]
    assert ms.max() == pytest.approx(loaded["max_ms"])
    assert at_s[ms.argmax()] == pytest.approx(10.0, abs=0.11)
    assert "ms on average)" in notes_on(tmp_path)  # answers took longer than the interval
    assert "(7 instants)" in notes_on(tmp_path)


def test_a_killed_runs_records_are_read_as_its_table_would_have_been(tmp_path: Path) -> None:
    part = {"duration_s": 15, "fails": 0.01}
    write_load(tmp_path / "table", **part)
    write_load(tmp_path / "raw", raw=True, **part)
    path = tmp_path / "raw" / "records" / "load-minio.raw"
    path.write_bytes(path.read_bytes()[:-30])  # its last record is torn
    with changing(tmp_path / "raw" / "manifest.json") as manifest:
        manifest["status"] = "running"
    (whole, _), (cut, _) = only(tmp_path / "table"), only(tmp_path / "raw")
    assert (whole["client"]["cpu_share"], cut["client"]["cpu_share"]) == (0.21, None)
    for one, other in zip(whole["failures"], cut["failures"], strict=True):
        assert (one["error"], one["count"]) == (other["error"], other["count"])
    means = [each["operations"][0]["mean_ms"] for each in (whole, cut)]
    assert means[0] == pytest.approx(means[1], rel=0.02)
    assert "did not complete" in notes_on(tmp_path / "raw")


def test_a_table_of_something_else_is_refused_by_name(tmp_path: Path) -> None:
    rows = write_load(tmp_path, duration_s=5).assign(system="minio")
    for wrong in (rows.drop(columns="outcome"), rows.assign(outcome="fine")):
        wrong.to_parquet(tmp_path / "load.parquet")
        with pytest.raises(BundleError, match=r"load\.parquet lacks the .*outcome"):
            load(read_run(tmp_path))


def test_at_a_rate_latency_counts_from_when_requests_were_due(tmp_path: Path, one: Path) -> None:
    rows = rows_of(duration_s=60)
    rows["due_ns"] = rows["start_ns"] - 5_000_000
    said = {"offered": {"workers": 16, "rate": 580.0}, "left_out": 7}
    write_load(tmp_path, rows=rows, duration_s=60, load=said | {"bottleneck": "97 % of its cores"})
    row, _ = only(tmp_path)
    assert row["steady"]["of"] == "latency"
    from_due, sent = (
        {each["operation"]: each for each in only(d)[0]["operations"]} for d in (tmp_path, one)
    )
    for name, operation in from_due.items():
        for figure in ("mean_ms", "p50_ms", "p99_ms"):
            assert operation[figure] == pytest.approx(sent[name][figure] + 5.0, rel=0.05)
    for sentence in ("free: MinIO (7)", "bottleneck, so the store can do more: MinIO"):
        assert sentence in notes_on(tmp_path)


def test_a_run_and_a_matrix_have_one_chart_and_the_same_rows(one: Path, tmp_path: Path) -> None:
    def point(directory: Path, series: tuple[str, str], at: Mapping[str, Any]) -> None:
        slowness = 3.0 / at["nodes"]  # the second has the higher rate
        nodes = {"nodes": at["nodes"]}
        write_load(directory, slowness=slowness, series=series, duration_s=6.0, study=nodes)

    study = {"name": "mixed-load", "load": {"workers": 16}}
    write_sweep(tmp_path, {"nodes": [1, 2, 4]}, study=study, systems=(MINIO,), write_point=point)
    damaged = sorted((tmp_path / "points").iterdir())[-1]
    (damaged / "load.parquet").write_bytes(b"PAR1")
    matrix = answer_of(LOAD, tmp_path)
    rows = matrix.to_json()["systems"]
    assert [row["values"] for row in rows] == [{"nodes": 1}, {"nodes": 2}]  # the third is damaged
    (alone,) = load_of(one).to_json()["systems"]
    assert rows[0].keys() - alone.keys() == {"values", "point"}
    for answer in (matrix, load_of(one)):
        (figure,) = answer.charts().values()
        assert_apart(figure)
        for axes, of in zip(figure.axes[::3], answer.figures.arrays, strict=True):
            assert axes.get_ylim()[1] > max(per_s.max() for per_s in of.per_s.values())
