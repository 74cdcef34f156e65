"""What is said of resources is what was put into the rows: usage per node and request, space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from chart_checks import texts_of
from resources_bundles import (
    BACKGROUND_BYTES_PER_S,
    BACKGROUND_CPU,
    CPU_MS,
    IDLE_S,
    MIB,
    OBJECT_BYTES,
    REQUEST_S,
    WAN_BYTES,
    write_reclaim,
    write_resources,
)
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, GARAGE, MINIO, MakeBundle, write_bundle

from wanlat.analysis.blocks import hidden_from_terminal
from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.report.reclaim import RECLAIM
from wanlat.analysis.report.resources import RESOURCES, resources_of_matrix
from wanlat.analysis.sweep import read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
WAN, CPU, OBJECT = (sum(of.values()) / 3 for of in (WAN_BYTES, CPU_MS, OBJECT_BYTES))


def used(directory: Path) -> tuple[dict[str, Any], str]:
    """The entry of summary.json of the only system, and the notes."""
    answer = RESOURCES.of_bundle(read_bundle(directory))
    assert answer is not None
    (system,) = answer.to_json()["systems"]
    return system, " ".join(note for grid in answer.grids() for note in grid.notes)


@pytest.fixture
def directory(make_bundle: MakeBundle) -> Path:
    """Of Garage, without resources; sampling took 0.4 % of a core."""
    sampling = {"every_s": 1.0, "cost_cpu_share": 0.004, "late_p99_ms": 1.0, "samples": 9}
    sampling |= {"stretched": None, "failed": None, "systems": {}}
    return make_bundle(
        systems=(GARAGE,), endpoints=tuple(WAN_BYTES), manifest={"resources": sampling}
    )


def test_usage_is_that_of_the_rows_less_what_the_cluster_uses_when_idle(directory: Path) -> None:
    bundle = read_bundle(directory)
    assert RESOURCES.of_bundle(bundle) is RECLAIM.of_bundle(bundle) is None
    write_resources(directory)
    found, notes = used(directory)
    assert found["idle_usage_subtracted"]
    each = {"requests": 600, "object_bytes": OBJECT, "wan_bytes": WAN, "sent_bytes": WAN}
    each |= {"cpu_ms": CPU, "wan_over_object_bytes": WAN / OBJECT}
    assert found["per_request"] == pytest.approx(each, rel=0.01)
    first = found["nodes"][0]
    assert (first["name"], first["idle"]["rss_bytes_median"]) == ("n1", 120 * MIB)
    assert first["idle"]["cpu_share"] == pytest.approx(BACKGROUND_CPU / 3, rel=0.01)
    busy = BACKGROUND_CPU + CPU / 1e3 / REQUEST_S
    assert first["loaded"]["cpu_share"] == pytest.approx(busy / 3, rel=0.01)
    assert (first["loaded"]["threads"], first["space_bytes"], len(found["nodes"])) == (9, MIB, 3)
    assert found["node_rss_bytes"]["loaded"] == pytest.approx(121 * MIB, rel=1e-5)
    assert "0.40 % of one core" in notes


def test_without_a_whole_idle_window_idle_usage_stays_in_and_that_is_said(directory: Path) -> None:
    """Between two samples a counter is a straight line, and what follows idleness is steeper."""
    write_resources(directory)
    rows = pd.read_parquet(directory / "resources.parquet")
    since_s = (rows.t_ns - rows.t_ns.min()) / 1e9
    rows[(since_s < 2) | (since_s > IDLE_S + 5)].to_parquet(directory / "resources.parquet")
    found, notes = used(directory)
    assert not found["idle_usage_subtracted"]
    assert [node["idle"] for node in found["nodes"]] == [None] * 3
    gross = WAN + BACKGROUND_BYTES_PER_S * REQUEST_S
    assert found["per_request"]["wan_bytes"] == pytest.approx(gross, rel=0.01)
    assert "no idle window" in notes


def test_space_given_back_is_a_share_of_what_the_removed_objects_took(
    make_bundle: MakeBundle,
) -> None:
    directory = make_bundle(systems=(BOB, MINIO, GARAGE))
    full = [110.0] * 30
    write_reclaim(
        directory,
        {
            "bob": ([110.0] * 40, [0.0] * 40),
            # After five minutes the trash is emptied, by a tenth more than was removed.
            "minio": ([*full, *[55.0] * 10], [*[45.0] * 30, *[0.0] * 10]),
            # Nine tenths are given back after a minute, and not for good.
            "garage": ([*full[:6], 62.0, *[85.0] * 33], [0.0] * 40),
        },
    )
    answer = RECLAIM.of_bundle(read_bundle(directory))
    assert answer is not None
    bob, minio, garage = answer.to_json()["systems"]
    assert (bob["freed_at_end"], bob["freed_most_after_s"]) == (0, None)
    assert minio["freed_at_end"] == pytest.approx(1.1)
    shares = [each["share"] for each in minio["freed"]]
    assert shares == [0, 0, pytest.approx(1.1), None]  # it was not watched for ten minutes
    assert minio["freed_most_after_s"] == pytest.approx(300)
    assert (minio["trash_at_most"], minio["trash_at_end"]) == (pytest.approx(0.9), 0)
    assert (garage["freed_at_end"], garage["freed_most_after_s"]) == (pytest.approx(0.5), None)
    assert {"110 %", "300 s"} <= {cell for row in answer.grids()[0].rows for cell in row}
    (chart,) = answer.charts().values()
    assert any("MinIO gives 90 % back within 5 min" in text for text in texts_of(chart))


def test_a_matrix_has_a_row_a_point(tmp_path: Path) -> None:
    def point(directory: Path, series: tuple[str, str], at: Any) -> None:
        directory.mkdir(parents=True)
        write_bundle(directory, systems=(series,), endpoints=tuple(WAN_BYTES))
        write_resources(directory, systems={series[0]: 25.0 * at["nodes"]}, requests=120)

    write_sweep(tmp_path, {"nodes": [1, 2, 4]}, systems=(BOB,), write_point=point)
    found = resources_of_matrix(read_sweep(tmp_path))
    assert found is not None
    assert "resources" in hidden_from_terminal({"resources": found})
    points = found.to_json()["points"]
    assert points[1]["values"] == {"nodes": 2}
    rss = [row["node_rss_bytes"]["loaded"] / MIB for row in points]
    assert rss == pytest.approx([26, 51, 101], rel=1e-4)
    charts = found.charts()
    assert set(charts) == {"resources-memory", "resources-cpu", "resources-sent"}
    assert "101 MiB at nodes 4" in " ".join(texts_of(charts["resources-memory"]))
