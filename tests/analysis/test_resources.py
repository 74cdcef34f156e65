"""What is said of resources is what was put into the rows: usage per node and request, space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answers import answer_of, notes_of
from chart_checks import texts_of

from tests.bundles import (
    BACKGROUND_BYTES_PER_S,
    BOB,
    BODY_BYTES,
    CPU_MS,
    GARAGE,
    IDLE_S,
    MIB,
    REQUEST_S,
    WAN_BYTES,
    MakeBundle,
    write_bundle,
    write_resources,
    write_sweep,
)
from wanlat.analysis.figures.resources import RESOURCES, resources_of
from wanlat.analysis.summary import Summary
from wanlat.bundle.matrix import read_matrix

pytestmark = pytest.mark.usefixtures("few_resamples")
WAN, CPU, OBJECT = (sum(of.values()) / 3 for of in (WAN_BYTES, CPU_MS, BODY_BYTES))


def used(directory: Path) -> tuple[dict[str, Any], str]:
    """The entry of summary.json of the only system, and the notes."""
    answer = answer_of(RESOURCES, directory)
    (system,) = answer.to_json()["systems"]
    return system, notes_of(answer)


@pytest.fixture
def directory(make_bundle: MakeBundle) -> Path:
    """Of Garage, without resources; sampling took 0.4 % of a core."""
    sampling = {"every_s": 1.0, "cost_cpu_share": 0.004, "late_p99_ms": 1.0, "samples": 9}
    sampling |= {"stretched": None, "failed": None, "systems": {}}
    return make_bundle(
        systems=(GARAGE,), endpoints=tuple(WAN_BYTES), manifest={"resources": sampling}
    )


def test_without_a_whole_idle_window_idle_usage_stays_in_and_that_is_said(directory: Path) -> None:
    """Between two samples a counter is a straight line, and what follows idleness is steeper."""
    write_resources(directory)
    rows = pd.read_parquet(directory / "resources.parquet")
    since_s = (rows.t_ns - rows.t_ns.min()) / 1e9
    rows[(since_s < 2) | (since_s > IDLE_S + 5)].to_parquet(directory / "resources.parquet")
    found, notes = used(directory)
    assert not found["idle_usage_subtracted"]
    assert [node["idle"]["cpu_share"] for node in found["nodes"]] == [None] * 3
    gross = WAN + BACKGROUND_BYTES_PER_S * REQUEST_S
    assert found["per_request"]["wan_bytes"] == pytest.approx(gross, rel=0.01)
    assert "no idle window" in notes


def test_the_busiest_node_is_compared_with_the_mean_of_all(directory: Path) -> None:
    write_resources(directory)
    assert used(directory)[0]["busiest_node_over_mean"] == pytest.approx(1, abs=1e-3)
    rows = pd.read_parquet(directory / "resources.parquet")
    rows.loc[rows["subject"] == "n1", "cpu_ns"] *= 4
    rows.to_parquet(directory / "resources.parquet")
    assert used(directory)[0]["busiest_node_over_mean"] == pytest.approx(2, abs=1e-3)


def point(directory: Path, series: tuple[str, str], at: Any) -> None:
    """A cluster whose nodes take 25 MiB for each of them."""
    directory.mkdir(parents=True)
    write_bundle(directory, systems=(series,), endpoints=tuple(WAN_BYTES))
    write_resources(directory, systems={series[0]: 25.0 * at["nodes"]}, requests=120)


def test_a_matrix_has_a_row_a_point(tmp_path: Path) -> None:
    write_sweep(tmp_path, {"nodes": [1, 2, 4]}, systems=(BOB,), write_point=point)
    found = resources_of(read_matrix(tmp_path))
    assert found is not None
    assert "resources" in Summary(read_matrix(tmp_path), {"resources": found}, ()).hidden
    points = found.to_json()["points"]
    assert points[1]["values"] == {"nodes": 2}
    rss = [row["node_rss_bytes"]["loaded"] / MIB for row in points]
    assert rss == pytest.approx([26, 51, 101], rel=1e-4)
    charts = found.charts()
    assert set(charts) == {"resources-memory", "resources-cpu", "resources-sent"}
    assert "101 MiB at nodes 4" in " ".join(texts_of(charts["resources-memory"]))


def test_what_no_node_sends_has_no_chart(tmp_path: Path) -> None:
    def silent(directory: Path, series: tuple[str, str], at: Any) -> None:
        point(directory, series, at)
        rows = pd.read_parquet(directory / "resources.parquet")
        rows.loc[rows.kind == "node", "tx_bytes"] = 0
        rows.to_parquet(directory / "resources.parquet")

    write_sweep(tmp_path, {"nodes": [1, 2]}, systems=(BOB,), write_point=silent)
    found = resources_of(read_matrix(tmp_path))
    assert found is not None
    assert set(found.charts()) == {"resources-memory", "resources-cpu"}
