"""What is said of resources is what was put into the rows: usage, space, remarks."""

from __future__ import annotations

from io import StringIO

import pandas as pd
import pytest
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
from rich.console import Console
from synthetic_bundles import BOB, GARAGE, MINIO, MakeBundle

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.grid import print_grid
from wanlat.analysis.report.reclaim import RECLAIM
from wanlat.analysis.resources.block import resources_of
from wanlat.analysis.resources.remarks import remarks_of_bundle
from wanlat.analysis.resources.tables import sampling_notes
from wanlat.analysis.resources.windows import IDLE, LOADED

ALL = sum(WAN_BYTES.values()) / len(WAN_BYTES)
PREFILLED = stored("garage", 480, 30 * MIB, 45 * MIB)


def printed(grids) -> str:
    console = Console(file=StringIO(), width=250)
    for grid in grids:
        print_grid(grid, console)
    return console.file.getvalue()


@pytest.mark.parametrize("nodes", [1, ["n1"], [{"name": "n1"}]])
def test_nodes_may_be_a_count_a_name_or_more(nodes: object) -> None:
    sites = [{"name": "dc1", "nodes": nodes}, {"name": "dc2", "nodes": 2}]
    assert len(sites_by_node({"name": "five-sites", "sites": sites})) == 3


def test_usage_per_request_is_a_mean_without_what_the_cluster_uses_when_idle(
    make_bundle: MakeBundle,
) -> None:
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    write_resources(directory)
    block = resources_of(read_bundle(directory))
    (found,) = block.systems

    assert found.is_idle_known
    assert found.per_request.requests == 600
    assert found.per_request.wan_bytes == pytest.approx(ALL, rel=0.01)
    assert found.per_request.sent_bytes == pytest.approx(ALL, rel=0.01)
    assert found.per_request.cpu_ms == pytest.approx(sum(CPU_MS.values()) / 3, rel=0.01)
    mean_bytes = sum(OBJECT_BYTES.values()) / 3
    assert found.per_request.wan_over_object_bytes == pytest.approx(ALL / mean_bytes, rel=0.01)
    of_json = block.to_json()["systems"][0]["per_request"]
    assert of_json["wan_bytes"] == pytest.approx(ALL, rel=0.01)


def test_without_an_idle_window_idle_usage_stays_in_and_that_is_said(
    make_bundle: MakeBundle,
) -> None:
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    write_resources(directory, idles=False)
    block = resources_of(read_bundle(directory))
    (found,) = block.systems

    assert not found.is_idle_known
    gross = ALL + BACKGROUND_BYTES_PER_S * REQUEST_S
    assert found.per_request.wan_bytes == pytest.approx(gross, rel=0.01)
    assert "no idle window" in printed(block.grids())


def test_memory_cpu_and_disk_are_those_of_the_rows(make_bundle: MakeBundle) -> None:
    directory = make_bundle(
        systems=(GARAGE,), endpoints=tuple(WAN_BYTES), manifest={"resources": PREFILLED}
    )
    write_resources(directory)
    block = resources_of(read_bundle(directory))
    (found,) = block.systems

    first = found.nodes.loc["n1"]
    assert first[IDLE, "rss_bytes_median"] == 120 * MIB
    assert first[IDLE, "cpu_share"] == pytest.approx(BACKGROUND_CPU / 3, rel=0.01)
    busy = BACKGROUND_CPU + sum(CPU_MS.values()) / 3 / 1e3 / REQUEST_S
    assert first[LOADED, "cpu_share"] == pytest.approx(busy / 3, rel=0.01)
    assert found.stored.disk_bytes_per_stored_byte == pytest.approx(90 / 30, rel=0.01)
    assert found.stored.written_bytes_per_put_byte == pytest.approx(2 * 90 / 45, rel=0.02)
    assert "0.40 % of one core" in printed(block.grids())
    node = block.to_json()["systems"][0]["nodes"][0]
    assert node["name"] == "n1"
    assert node["idle"]["rss_bytes_median"] == 120 * MIB
    assert node["loaded"]["threads"] == 9


@pytest.mark.parametrize(("noted", "per_byte"), [(True, 2.0), (False, 2 * 48 / 60)])
def test_a_scan_that_began_before_the_end_of_a_prefill_is_not_what_it_takes(
    make_bundle: MakeBundle, noted: bool, per_byte: float
) -> None:
    directory = make_bundle(systems=(MINIO,))
    write_prefill(directory, noted=noted)
    (found,) = resources_of(read_bundle(directory)).systems
    assert found.stored.disk_bytes_per_stored_byte == pytest.approx(per_byte)


def test_rows_of_a_killed_run_are_read_up_to_the_torn_one(make_bundle: MakeBundle) -> None:
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    write_resources(directory, requests=120, as_lines=True)

    (found,) = resources_of(read_bundle(directory)).systems
    assert len(found.nodes) == 3


def test_a_run_from_before_resources_were_sampled_has_no_block(make_bundle: MakeBundle) -> None:
    bundle = read_bundle(make_bundle(systems=(GARAGE,)))
    assert resources_of(bundle) is None
    assert RECLAIM.of_bundle(bundle) is None
    assert remarks_of_bundle(bundle) is None


@pytest.mark.parametrize(("minio_mib", "verdict"), [(300.0, "holds"), (20.0, "does not hold")])
def test_memory_is_compared_node_by_node(
    make_bundle: MakeBundle, minio_mib: float, verdict: str
) -> None:
    directory = make_bundle(systems=(BOB, MINIO), endpoints=tuple(WAN_BYTES))
    write_resources(directory, systems={"bob": 25.0, "minio": minio_mib})
    remarks = {each.key: each for each in remarks_of_bundle(read_bundle(directory)).remarks}

    assert str(remarks["memory"].verdict) == verdict
    (part,) = remarks["memory"].parts
    assert part.values["ratio"] == pytest.approx((minio_mib + 1) / 26, rel=0.01)
    low, high = part.values["ratio_over_nodes"]
    assert low < part.values["ratio"] < high


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
    bundle = read_bundle(directory)
    answer = RECLAIM.of_bundle(bundle)
    assert answer is not None
    bob, minio, garage = answer.to_json()["systems"]

    assert bob["freed_at_end"] == 0
    assert bob["freed_half_after_s"] is None
    assert minio["freed_at_end"] == pytest.approx(1.1)
    assert minio["freed"][1] == {"after_s": 60.0, "share": 0}
    assert minio["freed_most_after_s"] == pytest.approx(300)
    assert minio["trash_at_most"] == pytest.approx(0.9)
    assert minio["trash_at_end"] == 0
    assert garage["freed_at_end"] == pytest.approx(0.5)
    text = printed(answer.grids())
    assert "110 %" in text
    assert "300 s" in text
    (chart,) = answer.charts().values()
    assert any("MinIO gives 90 % back within 5 min" in each.get_text() for each in chart.texts)
    remarks = {each.key: str(each.verdict) for each in remarks_of_bundle(bundle).remarks}
    assert remarks == {"bob-keeps-disk": "holds", "minio-trash": "holds"}


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
    assert said in " ".join(sampling_notes(sampling))


def test_the_charts_are_drawn_on_one_scale(make_bundle: MakeBundle) -> None:
    directory = make_bundle(systems=(BOB, MINIO), endpoints=tuple(WAN_BYTES))
    write_resources(directory, systems={"bob": 25.0, "minio": 200.0}, requests=120)
    (figure,) = resources_of(read_bundle(directory)).charts().values()
    heads = [text.get_text() for text in figure.texts]
    assert "latency of each request, ms" in heads
    assert "memory of each node, MiB" in heads
    assert len(figure.axes) == 2 * 6
    tops = {axes.get_ylim() for axes in figure.axes[2:4]}
    assert len(tops) == 1  # both systems on one scale


def test_an_idle_window_without_samples_to_its_end_is_none(make_bundle: MakeBundle) -> None:
    """Between two samples a counter is a straight line, and what follows is steeper."""
    directory = make_bundle(systems=(GARAGE,), endpoints=tuple(WAN_BYTES))
    write_resources(directory)
    rows = pd.read_parquet(directory / "resources.parquet")
    since_s = (rows.t_ns - rows.t_ns.min()) / 1e9
    late = rows[(since_s < 2) | (since_s > IDLE_S + 5)]
    late.to_parquet(directory / "resources.parquet")
    (found,) = resources_of(read_bundle(directory)).systems

    assert not found.is_idle_known
    assert [window.kind for window in found.windows] == [LOADED]
    assert found.nodes[IDLE].isna().all(axis=None)
    assert resources_of(read_bundle(directory)).to_json()["systems"][0]["nodes"][0]["idle"] is None
