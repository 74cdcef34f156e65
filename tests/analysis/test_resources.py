"""What is said of resources is what was put into the rows: usage per node and request, space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from chart_checks import assert_apart, texts_of
from resources_bundles import (
    BACKGROUND_BYTES_PER_S,
    BACKGROUND_CPU,
    CPU_MS,
    IDLE_S,
    MIB,
    OBJECT_BYTES,
    REQUEST_S,
    WAN_BYTES,
    stored,
    write_prefill,
    write_reclaim,
    write_resources,
)
from sweep_bundles import write_sweep
from synthetic_bundles import BOB, GARAGE, MINIO, MakeBundle, write_bundle

from wanlat.analysis.blocks import hidden_from_terminal
from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.report.reclaim import RECLAIM
from wanlat.analysis.report.resources import RESOURCES, resources_of_matrix, sampling_note
from wanlat.analysis.sweep import read_sweep

pytestmark = pytest.mark.usefixtures("few_resamples")
ALL = sum(WAN_BYTES.values()) / len(WAN_BYTES)
BUSY_CPU = BACKGROUND_CPU + sum(CPU_MS.values()) / 3 / 1e3 / REQUEST_S


def used(directory: Path) -> dict[str, Any]:
    """The entry of summary.json of the only system."""
    answer = RESOURCES.of_bundle(read_bundle(directory))
    assert answer is not None
    (system,) = answer.to_json()["systems"]
    return system


def noted(directory: Path) -> str:
    answer = RESOURCES.of_bundle(read_bundle(directory))
    assert answer is not None
    return " ".join(note for grid in answer.grids() for note in grid.notes)


def test_usage_is_that_of_the_rows_less_what_the_cluster_uses_when_idle(
    make_bundle: MakeBundle,
) -> None:
    prefilled = stored("garage", 480, 30 * MIB, 45 * MIB)
    directory = make_bundle(
        systems=(GARAGE,), endpoints=tuple(WAN_BYTES), manifest={"resources": prefilled}
    )
    write_resources(directory)
    found = used(directory)
    assert found["idle_usage_subtracted"]
    mean_bytes = sum(OBJECT_BYTES.values()) / 3
    assert found["per_request"] == pytest.approx(
        {
            "requests": 600,
            "object_bytes": mean_bytes,
            "wan_bytes": ALL,
            "sent_bytes": ALL,
            "cpu_ms": sum(CPU_MS.values()) / 3,
            "wan_over_object_bytes": ALL / mean_bytes,
        },
        rel=0.01,
    )
    first = found["nodes"][0]
    assert (first["name"], first["idle"]["rss_bytes_median"]) == ("n1", 120 * MIB)
    assert first["idle"]["cpu_share"] == pytest.approx(BACKGROUND_CPU / 3, rel=0.01)
    assert first["loaded"]["cpu_share"] == pytest.approx(BUSY_CPU / 3, rel=0.01)
    assert first["loaded"]["threads"] == 9
    assert found["node_rss_bytes"]["loaded"] == pytest.approx(121 * MIB, rel=1e-5)
    assert found["stored"]["disk_bytes_per_stored_byte"] == pytest.approx(90 / 30, rel=0.01)
    assert found["stored"]["written_bytes_per_put_byte"] == pytest.approx(2 * 90 / 45, rel=0.02)
    assert "0.40 % of one core" in noted(directory)


def test_without_an_idle_window_idle_usage_stays_in_and_that_is_said(
    make_bundle: MakeBundle,
) -> None:
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    write_resources(directory, idles=False)
    found = used(directory)
    assert not found["idle_usage_subtracted"]
    gross = ALL + BACKGROUND_BYTES_PER_S * REQUEST_S
    assert found["per_request"]["wan_bytes"] == pytest.approx(gross, rel=0.01)
    assert "no idle window" in noted(directory)


def test_an_idle_window_without_samples_to_its_end_is_none(make_bundle: MakeBundle) -> None:
    """Between two samples a counter is a straight line, and what follows is steeper."""
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    write_resources(directory)
    rows = pd.read_parquet(directory / "resources.parquet")
    since_s = (rows.t_ns - rows.t_ns.min()) / 1e9
    rows[(since_s < 2) | (since_s > IDLE_S + 5)].to_parquet(directory / "resources.parquet")
    found = used(directory)
    assert not found["idle_usage_subtracted"]
    assert [window["kind"] for window in found["windows"]] == ["loaded"]
    assert [node["idle"] for node in found["nodes"]] == [None] * 3


@pytest.mark.parametrize(("noted", "per_byte"), [(True, 2.0), (False, 2 * 48 / 60)])
def test_a_scan_that_began_before_the_end_of_a_prefill_is_not_what_it_takes(
    make_bundle: MakeBundle, noted: bool, per_byte: float
) -> None:
    directory = make_bundle(systems=(MINIO,))
    write_prefill(directory, noted=noted)
    found = used(directory)["stored"]
    assert found["disk_bytes_per_stored_byte"] == pytest.approx(per_byte)


def test_a_killed_run_is_read_up_to_the_torn_row_and_one_without_samples_has_no_section(
    make_bundle: MakeBundle,
) -> None:
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    bundle = read_bundle(directory)
    assert RESOURCES.of_bundle(bundle) is RECLAIM.of_bundle(bundle) is None
    write_resources(directory, requests=120, as_lines=True)
    assert len(used(directory)["nodes"]) == 3


def test_space_given_back_is_a_share_of_what_the_removed_objects_took(
    make_bundle: MakeBundle,
) -> None:
    directory = make_bundle(systems=(BOB, MINIO, GARAGE))
    minute = [110.0] * 6
    write_reclaim(
        directory,
        {
            "bob": ([110.0] * 40, [0.0] * 40),
            # After five minutes the trash is emptied, by a tenth more than was removed.
            "minio": ([*minute * 5, *[55.0] * 10], [*[45.0] * 30, *[0.0] * 10]),
            "garage": ([*minute, *[85.0] * 34], [0.0] * 40),
        },
    )
    answer = RECLAIM.of_bundle(read_bundle(directory))
    assert answer is not None
    bob, minio, garage = answer.to_json()["systems"]
    assert (bob["freed_at_end"], bob["freed_half_after_s"]) == (0, None)
    assert minio["freed_at_end"] == pytest.approx(1.1)
    assert minio["freed"][1] == {"after_s": 60.0, "share": 0}
    assert minio["freed_most_after_s"] == pytest.approx(300)
    assert (minio["trash_at_most"], minio["trash_at_end"]) == (pytest.approx(0.9), 0)
    assert garage["freed_at_end"] == pytest.approx(0.5)
    cells = [cell for grid in answer.grids() for row in grid.rows for cell in row]
    assert {"110 %", "300 s"} <= set(cells)
    (chart,) = answer.charts().values()
    assert any("MinIO gives 90 % back within 5 min" in text for text in texts_of(chart))


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.004, "which took 0.40 % of one core."),
        (0.022, "which took 2.20 % of one core, more than the 1 % it may take."),
        (0.0, "only where stages begin and end: it was over in less than 1 s"),
    ],
)
def test_what_sampling_cost_is_said_and_whether_that_was_too_much(share: float, said: str) -> None:
    sampling = {"every_s": 1.0, "cost_cpu_share": share, "stretched": None, "failed": None}
    assert said in str(sampling_note([{"sampling": sampling}]))


def test_the_chart_of_a_run_has_one_scale_for_all_systems(make_bundle: MakeBundle) -> None:
    directory = make_bundle(systems=(BOB, MINIO), endpoints=tuple(WAN_BYTES))
    write_resources(directory, systems={"bob": 25.0, "minio": 200.0}, requests=120)
    answer = RESOURCES.of_bundle(read_bundle(directory))
    assert answer is not None
    (figure,) = answer.charts().values()
    assert_apart(figure)
    assert len(figure.axes) == 2 * 6
    assert len({axes.get_ylim() for axes in figure.axes[2:4]}) == 1
    assert "201 MiB" in " ".join(texts_of(figure))


def test_a_matrix_has_a_row_a_point_and_no_panel_with_one_dot(tmp_path: Path) -> None:
    def point(directory: Path, series: tuple[str, str], at: Any) -> None:
        directory.mkdir(parents=True)
        write_bundle(directory, systems=(series,), endpoints=tuple(WAN_BYTES))
        write_resources(directory, systems={series[0]: 25.0 * at["nodes"]}, requests=120)

    def answer(name: str, values: dict[str, list[Any]]) -> Any:
        write_sweep(tmp_path / name, values, systems=(BOB,), write_point=point)
        return resources_of_matrix(read_sweep(tmp_path / name))

    found = answer("nodes", {"nodes": [1, 2, 4]})
    assert "resources" in hidden_from_terminal({"resources": found})
    document = found.to_json()
    assert document["points"][1]["values"] == {"nodes": 2}
    rss = [row["node_rss_bytes"]["loaded"] / MIB for row in document["points"]]
    assert rss == pytest.approx([26, 51, 101], rel=1e-4)
    charts = found.charts()
    assert set(charts) == {"resources-memory", "resources-cpu", "resources-sent"}
    assert "26.0 to 101 MiB, most with Bob at nodes 4" in " ".join(
        texts_of(charts["resources-memory"])
    )
    assert answer("words", {"nodes": [1], "connection": ["new", "keep-alive"]}).charts() == {}
