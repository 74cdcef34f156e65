"""What is measured on several clusters: estimates over clusters, and how often they hold."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from answers import changing
from chart_checks import assert_apart, texts_of

from tests.bundles import GARAGE, MINIO, write_sweep
from wanlat.analysis.figures.clusters import CLUSTERS_ROUND_TRIPS
from wanlat.analysis.figures.round_trips import NOT_KNOWN, Status, decided, ways, ways_cell
from wanlat.analysis.stats.intervals import of_mean
from wanlat.analysis.summary import Summary, summarize
from wanlat.bundle.matrix import read_matrix

pytestmark = pytest.mark.usefixtures("few_resamples")

REPLICATES = [1, 2, 3, 4, 5]
MEDIAN_MS = {"minio": 200.0, "garage": 100.0}
BETWEEN = 0.15


def start_of(system: str, endpoint: str, cluster: int) -> float:
    """What this start of the store makes of an endpoint's median."""
    rng = np.random.default_rng(zlib.crc32(f"{system}{endpoint}{cluster}".encode()))
    return float(MEDIAN_MS[system] * rng.normal(1, BETWEEN))


def values(system: str, at: Mapping[str, Any], endpoint: str, _bytes: int) -> np.ndarray:
    """One millisecond of spread in a cluster, and much more between clusters."""
    middle = start_of(system, endpoint, at["replicate"])
    return middle + np.linspace(-1, 1, 41)


def summary_of(path: Path, parameters: Mapping[str, list[Any]], **settings: Any) -> Summary:
    write_sweep(path, parameters, **{"systems": (MINIO, GARAGE), "values": values, **settings})
    return summarize(read_matrix(path))


def test_a_figure_over_clusters_has_the_interval_of_clusters(tmp_path: Path) -> None:
    summary = summary_of(tmp_path / "s", {"replicate": REPLICATES})
    rows = summary.blocks["clusters"].to_json()["entries"]
    assert [(r["system"], r["endpoint"], r["clusters"], r["n"]) for r in rows] == [
        (system, endpoint, 5, 5 * 41)
        for endpoint in ("GetObject", "PutObject")
        for system in ("minio", "garage")
    ]
    for row in rows:
        of_each = np.array([start_of(row["system"], row["endpoint"], n) for n in REPLICATES])
        assert row["median_ms"] == pytest.approx(of_each.mean())
        assert row["median_ms_ci95"] == pytest.approx(of_mean(of_each))
        assert (row["least"], row["most"]) == pytest.approx((of_each.min(), of_each.max()))
        assert row["spread"] == pytest.approx(of_each.std(ddof=1) / of_each.mean(), rel=1e-4)
    # What each cluster was is there as well, with the interval of its requests.
    each = summary.blocks["endpoints"].to_json()
    assert len(each) == 20
    assert all(high - low < 2 for low, high in (row["median_ci95_ms"] for row in each))


def test_n_counts_the_requests_that_the_figures_of_clusters_rest_on(tmp_path: Path) -> None:
    write_sweep(tmp_path, {"replicate": REPLICATES}, systems=(GARAGE,), values=values)
    place = tmp_path / "points" / "garage-replicate-2" / "samples.parquet"
    samples = pd.read_parquet(place)
    samples.loc[samples["endpoint"] == "GetObject", "outcome"] = "fail"
    samples["late"] = (samples["endpoint"] == "PutObject") & (samples["seq"] % 2 == 0)
    is_counted = (samples["endpoint"] == "PutObject") & (samples["phase"] == "measure")
    kept = int((is_counted & ~samples["late"]).sum())
    samples.to_parquet(place)
    rows = summarize(read_matrix(tmp_path)).blocks["clusters"].to_json()["entries"]
    n = {row["endpoint"]: (row["clusters"], row["n"]) for row in rows}
    assert 0 < kept < 41
    assert n == {"GetObject": (4, 4 * 41), "PutObject": (5, 4 * 41 + kept)}


def test_a_cluster_that_is_missing_or_wrong_is_in_no_estimate(tmp_path: Path) -> None:
    statuses = {"minio-replicate-2": "failed", "garage-replicate-1": "failed"}
    statuses |= {f"garage-replicate-{n}": "planned" for n in (2, 3, 4)}
    summary = summary_of(tmp_path / "s", {"replicate": REPLICATES}, statuses=statuses)
    found = {
        row["system"]: (row["clusters"], row["median_ms_ci95"] is None)
        for row in summary.blocks["clusters"].to_json()["entries"]
    }
    assert found == {"minio": (4, False), "garage": (1, True)}


def test_the_chart_names_the_endpoint_whose_clusters_differ_most(tmp_path: Path) -> None:
    block = summary_of(tmp_path / "s", {"replicate": REPLICATES}).blocks["clusters"]
    (figure,) = block.charts().values()
    assert_apart(figure)
    most = max(block.to_json()["entries"], key=lambda row: row["spread"])
    title = next(text for text in texts_of(figure) if text.endswith("by cluster"))
    assert most["endpoint"] in title
    assert f"{most['most']:.3g} ms" in title


def test_students_interval_covers_with_few_clusters_where_a_bootstrap_does_not() -> None:
    rng, rounds = np.random.default_rng(5), 2000
    clusters = rng.normal(100, 15, (rounds, 5))
    covers = np.mean([low <= 100 <= high for low, high in map(of_mean, clusters)])
    drawn = clusters[:, rng.integers(0, 5, (400, 5))].mean(axis=2)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
    assert 0.94 <= covers <= 0.96
    assert np.mean((low <= 100) & (high >= 100)) < 0.88


def test_clusters_of_several_hosts_say_so(tmp_path: Path) -> None:
    write_sweep(tmp_path / "s", {"replicate": REPLICATES}, systems=(MINIO, GARAGE), values=values)
    for point in (tmp_path / "s" / "points").iterdir():
        host = "b" if point.name in ("minio-replicate-4", "minio-replicate-5") else "a"
        with changing(point / "manifest.json") as manifest:
            manifest["host"] = host
    summary = summarize(read_matrix(tmp_path / "s"))
    rows = summary.blocks["clusters"].to_json()["entries"]
    assert {row["system"]: row["hosts"] for row in rows} == {
        "minio": {"a": 3, "b": 2},
        "garage": {"a": 5},
    }
    assert summary.to_json()["matrix"]["hosts"] == {"a": 8, "b": 2}
    said = " ".join(summary.notes)
    assert "Points were measured on 2 hosts (a: 8; b: 2): a difference between" in said
    (grid,) = (grid for name, grid in summary.grids() if name == "clusters")
    assert any("how these differ is in the interval" in note for note in grid.notes)
    assert {row[grid.headers.index("hosts")] for row in grid.rows} == {"1", "2"}
    # One host is not worth a column.
    alone = summary_of(tmp_path / "t", {"replicate": REPLICATES}, point_manifest={"host": "a"})
    (grid,) = (grid for name, grid in alone.grids() if name == "clusters")
    assert "hosts" not in grid.headers
    assert not any("host" in note for note in alone.notes)


def cluster(
    *modes: tuple[float, float], status: Status = Status.LINE, decides: str | None = None
) -> dict[str, Any]:
    """A row of round trips: a share of the requests on a line of that slope each."""
    found = [
        {"share": share, "round_trips": slope, "ci95": (slope - 0.01, slope + 0.01)}
        for share, slope in modes
    ]
    return {"modes": found, "status": status, "decides": decides}


def test_a_number_of_round_trips_has_its_share_over_clusters() -> None:
    rows = [
        cluster((0.6, 2.0), (0.2, 2.98), (0.1, 3.02)),
        cluster((0.5, 3.0), (0.4, 2.0)),
        cluster((0.5, 2.0), (0.4, 3.0), (0.06, 3.6)),
    ]
    two, three = ways(rows)
    assert two["share"] == pytest.approx(0.5)
    assert two["share_ci95"] == pytest.approx(of_mean(np.array([0.6, 0.4, 0.5])))
    assert three["round_trips"] == pytest.approx(np.mean([2.98, 3.0, 3.0]))
    assert ways_cell([two, three]) == "2: 50 % [25, 75], 3: 40 % [15, 65], 10 % other"
    assert ways_cell(ways(rows[:1])) == "2: 60 %, 3: 30 %, 10 % other"
    # Where no line was found, no request is on one; where none was sought, nothing is known.
    without = [*rows, cluster(status=Status.NOT_A_LINE), cluster(status=Status.NO_NUMBER)]
    assert ways(without)[0]["share"] == pytest.approx(1.5 / 4)


def test_what_decides_is_said_where_requests_differ_or_is_not_known() -> None:
    one, several = cluster((0.98, 4.0), decides="chance"), cluster((0.5, 0.0), (0.5, 1.0))
    assert ways_cell(ways([one])) == "4.00 [3.99, 4.01]"
    assert decided([one]) is None
    # A slope that most requests are not on is no answer.
    few = cluster((0.4, 2.0))
    assert ways_cell(ways([few])) == "2: 40 %, 60 % other"
    assert decided([few]) == NOT_KNOWN and decided([cluster()]) is None
    assert decided([several]) == NOT_KNOWN
    assert decided([{**several, "decides": "chance"}]) == "chance"


def test_clusters_at_one_rtt_have_no_round_trips_and_a_table_all_the_same() -> None:
    (column,) = CLUSTERS_ROUND_TRIPS.columns[-1:]
    assert column.text({"ways": [], "rest": None}) == "–"
    assert column.text({"ways": [], "rest": 1.0}) == "100 % other"
