"""The block "load": figures of known loads, checks that can fail, tables whose units agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chart_checks import assert_readable, texts_of
from load_bundles import OBJECT_BYTES, ZERO_NS, Store, rows_of, write_load

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.load import load_of, load_of_sweep
from wanlat.analysis.load.block import LoadBlock
from wanlat.analysis.load.json_of import load_json
from wanlat.analysis.load.model import Load
from wanlat.analysis.load.published import published_loads
from wanlat.analysis.load.raw import read_raw
from wanlat.analysis.load.sweep_block import LoadSweepBlock
from wanlat.analysis.sweep import read_sweep
from wanlat.bundle.errors import BundleError

READ_MS, WRITE_MS = 11.4, 43.1


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> LoadBlock:
    directory = tmp_path_factory.mktemp("load") / "bundle"
    write_load(directory, duration_s=60)
    return block_of(directory)


@pytest.fixture(scope="module")
def one(block: LoadBlock) -> Load:
    return block.loads[0]


def block_of(directory: Path) -> LoadBlock:
    block = load_of(read_bundle(directory))
    assert block is not None
    return block


def only(directory: Path) -> Load:
    (load,) = block_of(directory).loads
    return load


def test_rates_and_latencies_are_those_of_the_store(one: Load) -> None:
    load = one
    read, write = load.operations
    assert (read.operation, write.operation) == ("GetObject", "PutObject")
    assert load.steady.verdict == "steady"
    assert read.object_bytes == OBJECT_BYTES
    for operation, truth_ms in ((read, READ_MS), (write, WRITE_MS)):
        mean = operation.figures.mean_ms
        assert mean is not None and mean.ci95 is not None
        assert mean.value == pytest.approx(truth_ms, rel=0.04)
        assert operation.figures.bytes == operation.figures.ok * OBJECT_BYTES
    # Sixteen workers, each a read and a write in turn: as many a second as Little says.
    truth = 16 / (READ_MS + WRITE_MS + 0.04) * 1e3
    assert read.figures.per_s.value == pytest.approx(truth, rel=0.04)
    tail = np.exp(0.4 * 2.3263 - 0.08)
    assert read.figures.p99_ms is not None
    assert read.figures.p99_ms.value == pytest.approx(READ_MS * tail, rel=0.05)


def test_the_ramp_is_in_no_figure(tmp_path: Path) -> None:
    rows = rows_of(Store(), duration_s=30)
    is_ramp = rows["phase"] == "ramp"
    # What began and ended in the ramp was absurdly slow to begin with.
    ended = rows["start_ns"] + rows["elapsed_ns"] < ZERO_NS
    rows.loc[is_ramp & ended, "object_bytes"] = 10**12
    write_load(tmp_path, rows=rows, duration_s=30)
    load = only(tmp_path)
    assert sum(o.whole.ok for o in load.operations) == int(
        ((rows["start_ns"] + rows["elapsed_ns"]).between(ZERO_NS, ZERO_NS + 30 * 10**9)).sum()
    )
    assert all(o.whole.bytes < 10**12 for o in load.operations)


def test_figures_are_of_the_whole_load_where_there_is_no_steady_state(tmp_path: Path) -> None:
    write_load(tmp_path, store=Store(slowness=lambda at: 1 + at / 15), duration_s=30)
    load = only(tmp_path)
    assert load.steady.verdict == "no steady state"
    assert all(o.steady is None and o.figures is o.whole for o in load.operations)
    assert any("No steady state" in note for note in load.notes)
    assert any("of the whole load" in note for note in load.notes)


def test_failures_are_counted_by_kind_and_in_no_latency(tmp_path: Path) -> None:
    rows = write_load(tmp_path, store=Store(fails=0.02), duration_s=30)
    load = only(tmp_path)
    failed = rows[rows["outcome"] == "fail"]
    assert sum(f.count for f in load.failures) == len(failed)
    assert {(f.outcome, f.kind) for f in load.failures} == {("fail", "http 503 SlowDown")}
    whole = [o.whole for o in load.operations]
    assert sum(w.fail for w in whole) > 0
    # Failures moved nothing and are not among the operations a second.
    assert sum(w.bytes for w in whole) == OBJECT_BYTES * sum(w.ok for w in whole)


def test_littles_law_accounts_for_every_worker(one: Load) -> None:
    little = one.little
    assert little is not None
    assert little.fits
    assert little.in_flight == pytest.approx(16, abs=0.1)
    assert little.between == pytest.approx(16 * 20e-6 / 0.02725, rel=0.1)


Change = Callable[[pd.DataFrame], pd.DataFrame]


def _a_worker_hung(rows: pd.DataFrame) -> pd.DataFrame:
    late = (rows["worker"] == 3) & (rows["start_ns"] > ZERO_NS + 10 * 10**9)
    return rows[~late]


def _two_at_once(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(worker=rows["worker"].replace(5, 4))


def _wrong_unit(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(elapsed_ns=rows["elapsed_ns"] // 1000, total_ns=rows["total_ns"] // 1000)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_a_worker_hung, "not accounted for"),
        (_two_at_once, "cannot be true"),
        (_wrong_unit, "between two requests"),
    ],
)
def test_records_that_lie_break_littles_law(tmp_path: Path, change: Change, said: str) -> None:
    rows = change(rows_of(Store(), duration_s=25))
    write_load(tmp_path, rows=rows, duration_s=25)
    assert any(said in note for note in only(tmp_path).notes)


def test_the_quiet_user_is_compared_with_himself(one: Load) -> None:
    for quiet in one.quiet:
        assert quiet.median_ratio is not None and quiet.median_ratio.ci95 is not None
        assert quiet.median_ratio.ci95[0] < 3.0 < quiet.median_ratio.ci95[1]
        times = 2 if quiet.endpoint == "PutObject" else 1
        assert quiet.mean_more_ms is not None and quiet.mean_more_ms.ci95 is not None
        assert quiet.mean_more_ms.ci95[0] < 8.0 * times < quiet.mean_more_ms.ci95[1]


def test_what_the_quiet_user_sees_of_the_ramp_is_in_no_figure(tmp_path: Path) -> None:
    write_load(tmp_path, duration_s=10)
    path = tmp_path / "samples.parquet"
    samples = pd.read_parquet(path)
    ramp = samples.head(20).assign(
        phase="loaded", start_ns=ZERO_NS - 500_000_000, total_ns=90_000_000_000
    )
    pd.concat([samples, ramp]).to_parquet(path)
    load = only(tmp_path)
    assert load.steady.verdict != "steady" or load.steady.begin_s >= 0
    assert all(q.loaded.max_ms is not None and q.loaded.max_ms < 1000 for q in load.quiet)
    assert all(ms.max() < 1000 for _, ms in load.course.quiet_ms.values())


def stalled(directory: Path, **recorded: Any) -> pd.DataFrame:
    """A quiet user who asks ten times a second of a store that stands still for 3 s at 10 s.

    Answers take 4 ms alone and 8 ms beside the load; those who came in the 3 s wait for its end,
    one after the other. Returns his samples as they are on disk.
    """
    write_load(directory, duration_s=60, load=recorded)
    path = directory / "samples.parquet"
    rows = pd.read_parquet(path).sort_values("start_ns", ignore_index=True)
    rows["endpoint"] = "GetObject"
    rows["due_ns"] = rows["start_ns"]
    rows["total_ns"] = np.where(rows["phase"] == "idle", 4_000_000, 8_000_000)
    still_ns, free_ns = ZERO_NS + 13 * 10**9, rows["due_ns"].min()
    for number, row in rows.iterrows():
        start_ns = max(row["due_ns"], free_ns)
        in_stall = ZERO_NS + 10 * 10**9 <= start_ns < still_ns
        total_ns = still_ns - start_ns if in_stall else row["total_ns"]
        rows.loc[number, ["start_ns", "total_ns"]] = (start_ns, total_ns)
        free_ns = start_ns + total_ns
    rows["elapsed_ns"] = rows["total_ns"]
    rows.to_parquet(path)
    return rows


def counted(rows: pd.DataFrame, load: Load) -> pd.DataFrame:
    """Those beside the load that its figures are of."""
    due_s = (rows["due_ns"] - ZERO_NS) / 1e9
    assert load.steady.is_steady
    inside = (due_s >= load.steady.begin_s) & (due_s < load.steady.end_s)
    return rows[(rows["phase"] == "loaded") & inside]


FROM_DUE: dict[str, Any] = {
    "probe_from": "due",
    "probe_interval_ms": 100.0,
    "probe_late": 32,
    "probe_left_out": 0,
}


def test_a_stall_is_felt_at_every_instant_at_which_the_quiet_user_was_due(tmp_path: Path) -> None:
    rows = stalled(tmp_path, **FROM_DUE)
    load = only(tmp_path)
    (quiet,) = load.quiet
    felt = counted(rows, load)
    felt_ms = (felt["start_ns"] + felt["total_ns"] - felt["due_ns"]) / 1e6
    assert (felt_ms > 1000).sum() > 20  # of 3 s, ten a second, those of the first two
    assert quiet.loaded.ok == len(felt)
    assert quiet.loaded.mean_ms is not None
    assert quiet.loaded.mean_ms.value == pytest.approx(felt_ms.mean())
    assert quiet.loaded.p99_ms == pytest.approx(np.percentile(felt_ms, 99), rel=0.05)
    assert quiet.loaded.p99_ms > 2000
    assert quiet.loaded.max_ms == pytest.approx(3000, rel=0.05)
    # From when they were sent all but one are as fast as ever.
    assert quiet.loaded.from_start_ms is not None
    mean_ms, median_ms, p99_ms = quiet.loaded.from_start_ms
    assert (median_ms, p99_ms) == (8, 8)
    assert mean_ms == pytest.approx(felt["total_ns"].mean() / 1e6)
    # Alone he was answered at once.
    assert quiet.idle.p99_ms == pytest.approx(4)
    at_s, ms = load.course.quiet_ms[quiet.endpoint, quiet.placement]
    assert ms.max() == quiet.loaded.max_ms
    assert at_s[ms.argmax()] == pytest.approx(10.0, abs=0.11)


def test_older_bundles_have_the_figures_that_they_had(tmp_path: Path) -> None:
    rows = stalled(tmp_path, probe_missed=30)
    load = only(tmp_path)
    (quiet,) = load.quiet
    total_ms = counted(rows, load)["total_ns"] / 1e6
    assert quiet.loaded.mean_ms is not None
    assert quiet.loaded.mean_ms.value == pytest.approx(total_ms.mean())
    assert quiet.loaded.p99_ms == 8
    assert quiet.loaded.from_start_ms is None
    assert any("at 30 instants the quiet user" in note for note in load.notes)
    document = json.dumps(load_json(load))
    assert '"probe_missed": 30' in document
    assert "from_start" not in document
    assert "probe_late" not in document


@pytest.mark.minutes
def test_what_was_never_sent_is_counted_as_failed_and_told(tmp_path: Path) -> None:
    rows = stalled(tmp_path, **{**FROM_DUE, "probe_left_out": 7})
    unsent = rows.index[rows["phase"] == "loaded"][300:307]
    for name in ("start_ns", "total_ns", "elapsed_ns"):
        rows[name] = rows[name].astype("Int64")
        rows.loc[unsent, name] = pd.NA
    rows.loc[unsent, "outcome"] = "fail"
    rows.to_parquet(tmp_path / "samples.parquet")
    load = only(tmp_path)
    (quiet,) = load.quiet
    assert (quiet.loaded.fail, quiet.loaded.ok) == (7, len(counted(rows, load)) - 7)
    (late,) = [note for note in load.notes if " instants the quiet" in note]
    assert "at 7 instants the quiet user" in late
    assert "probe_interval" in late
    document = load_json(load)
    assert (document["probe_late"], document["probe_left_out"]) == (32, 7)
    assert document["probe_client"][0]["loaded"]["from_start_ms"]["median"] == 8
    (table,) = [grid for grid in block_of(tmp_path).grids() if "quiet user" in grid.title]
    assert [row[2] for row in table.rows] == ["mean", "median", "p99", "median from start"]


@pytest.mark.minutes
def test_a_line_that_only_grows_is_told_of(tmp_path: Path) -> None:
    stalled(tmp_path, **{**FROM_DUE, "probe_interval_ms": 7.9})
    assert any("his line grew" in note for note in only(tmp_path).notes)
    stalled(tmp_path, **FROM_DUE)
    assert not any("his line grew" in note for note in only(tmp_path).notes)


def test_a_quiet_user_whom_the_load_does_not_touch_is_not_said_to_suffer(tmp_path: Path) -> None:
    wrong = 0
    for seed in range(8):
        directory = tmp_path / str(seed)
        write_load(
            directory, store=Store(loaded_ms=4.0), duration_s=8, seed=seed, quiet=("GetObject",)
        )
        (quiet,) = only(directory).quiet
        assert quiet.mean_more_ms is not None and quiet.mean_more_ms.ci95 is not None
        wrong += not quiet.mean_more_ms.ci95[0] <= 0 <= quiet.mean_more_ms.ci95[1]
    assert wrong <= 1


def test_a_killed_runs_raw_records_are_read_as_the_table_would_be(tmp_path: Path) -> None:
    store = Store(fails=0.01)
    write_load(tmp_path / "table", store=store, duration_s=20)
    rows = write_load(tmp_path / "raw", store=store, duration_s=20, raw=True)
    (tmp_path / "raw" / "load.raw").rename(tmp_path / "raw" / "load-minio.raw")
    assert only(tmp_path / "raw").operations == only(tmp_path / "table").operations
    frame, torn = read_raw(tmp_path / "raw" / "load-minio.raw")
    assert (len(frame), torn) == (len(rows), False)


def test_several_systems_of_a_bundle_are_kept_apart_also_where_one_was_killed(
    tmp_path: Path,
) -> None:
    garage = ("garage", "2.5.0")
    slow = Store(mean_ms={"GetObject": 30.0, "PutObject": 90.0})
    write_load(tmp_path / "g", store=slow, series=garage, duration_s=15, raw=True, seed=2)
    write_load(tmp_path, duration_s=15)
    (tmp_path / "load-garage.raw").write_bytes((tmp_path / "g" / "load.raw").read_bytes())
    samples = [pd.read_parquet(d / "samples.parquet") for d in (tmp_path, tmp_path / "g")]
    pd.concat(samples).to_parquet(tmp_path / "samples.parquet")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["systems"].append({"name": garage[0], "version": garage[1], "options": {}})
    manifest["status"] = "running"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    block = block_of(tmp_path)
    assert [load.series.system for load in block.loads] == ["minio", "garage"]
    fast, slow_one = (load.operations[0].figures.mean_ms for load in block.loads)
    assert fast is not None and slow_one is not None
    assert slow_one.value / fast.value == pytest.approx(30 / READ_MS, rel=0.1)
    assert [load.client.cpu_share for load in block.loads] == [0.21, None]
    for figure in block.charts().values():
        assert_readable(figure)


def test_a_torn_last_record_is_left_out_and_told(tmp_path: Path) -> None:
    rows = write_load(tmp_path, duration_s=10, raw=True)
    path = tmp_path / "load.raw"
    path.write_bytes(path.read_bytes()[:-30])
    frame, torn = read_raw(path)
    assert (len(frame), torn) == (len(rows) - 1, True)
    assert any("torn" in note for note in only(tmp_path).notes)


@pytest.mark.parametrize("content", [b"", b"wanlat load"])
def test_a_generator_killed_before_its_first_record_left_nothing_to_tell(
    tmp_path: Path, content: bytes
) -> None:
    write_load(tmp_path, duration_s=5, raw=True)
    (tmp_path / "load.raw").write_bytes(content)
    assert load_of(read_bundle(tmp_path)) is None


@pytest.mark.parametrize("content", [b"something else", b"wanlat load 1\n\0\0" + b"\xfe" * 200])
def test_other_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "load-minio.raw"
    path.write_bytes(content)
    with pytest.raises(BundleError, match=r"load-minio\.raw"):
        read_raw(path)


def test_a_run_killed_before_it_recorded_what_it_did_is_read_all_the_same(tmp_path: Path) -> None:
    write_load(tmp_path, duration_s=20, raw=True, manifest={"status": "running", "load": {}})
    load = only(tmp_path)
    assert load.client.workers == 16  # as the study asks
    assert load.client.cpu_share is None
    assert load.operations[0].figures.ok > 0


def test_a_client_that_was_the_bottleneck_is_told_first(tmp_path: Path) -> None:
    write_load(tmp_path, duration_s=10, load={"bottleneck": "it used 97 % of its cores."})
    assert "client was the bottleneck" in only(tmp_path).notes[0]


def test_with_a_rate_that_was_asked_for_latency_is_watched_and_waiting_counts(
    tmp_path: Path,
) -> None:
    rows = rows_of(Store(), duration_s=15)
    rows["due_ns"] = rows["start_ns"] - 5_000_000
    load = {"offered": {"workers": 16, "rate": 580.0}, "left_out": 7}
    write_load(tmp_path, rows=rows, duration_s=15, load=load)
    found = only(tmp_path)
    assert found.steady.of == "latency"
    for operation in found.operations:
        due, mean = operation.figures.from_due_ms, operation.figures.mean_ms
        assert due is not None and mean is not None
        assert due[0] == pytest.approx(mean.value + 5.0)
    assert any("7 requests that were due" in note for note in found.notes)


def test_what_slows_reads_and_writes_alike_hardly_touches_their_ratio(tmp_path: Path) -> None:
    rough = np.exp(np.random.default_rng(1).normal(0, 0.5, 100))
    write_load(tmp_path, store=Store(slowness=lambda at: rough[int(at)]), duration_s=40)
    load = only(tmp_path)
    found, write = load.write_over_read, load.operations[1].figures.mean_ms
    assert found is not None and found.ci95 is not None
    assert write is not None and write.ci95 is not None
    assert found.ci95[0] < WRITE_MS / READ_MS < found.ci95[1]
    assert found.ci95[1] / found.ci95[0] < 0.5 * (write.ci95[1] / write.ci95[0] - 1) + 1


def test_a_study_without_load_has_no_block(tmp_path: Path) -> None:
    write_load(tmp_path, duration_s=5, study={"load": None})
    samples = pd.read_parquet(tmp_path / "samples.parquet").assign(phase="measure")
    samples.to_parquet(tmp_path / "samples.parquet")
    assert load_of(read_bundle(tmp_path)) is None


def test_summary_is_json_and_the_same_for_the_same_bundle(tmp_path: Path) -> None:
    write_load(tmp_path, duration_s=10)
    first, second = (json.dumps(block_of(tmp_path).to_json(), allow_nan=False) for _ in range(2))
    assert first == second
    (entry,) = json.loads(first)["systems"]
    assert entry["little"]["fits"] is True
    assert {op["operation"] for op in entry["operations"]} == {"GetObject", "PutObject"}


def test_charts_can_be_read(block: LoadBlock) -> None:
    charts = block.charts()
    assert set(charts) == {"load", "load-latency"}
    for figure in charts.values():
        assert_readable(figure)
    words = " ".join(texts_of(charts["load"]))
    assert "steady from" in words
    assert "16 workers" in words


def test_the_published_table_is_its_own_check() -> None:
    by_deployment: dict[str, float] = {}
    for each in published_loads():
        assert each.per_s * OBJECT_BYTES / 1e6 == pytest.approx(each.mb_per_s, rel=0.001)
        assert each.operations / each.per_s == pytest.approx(600, rel=0.005)
        assert each.gigabytes * 1e9 / each.operations == pytest.approx(OBJECT_BYTES, rel=0.001)
        in_flight = by_deployment.get(each.deployment, 0.0) + each.in_flight
        by_deployment[each.deployment] = in_flight
    # Sixteen workers cannot have more than sixteen requests in flight.
    assert all(13 < in_flight < 16 for in_flight in by_deployment.values())


DEPLOYMENTS = (
    ("minio", 1, 1, 11.4, 43.1),
    ("minio", 1, 4, 34.0, 230.0),
    ("minio-nginx", 4, 4, 45.0, 145.0),
    ("garage", 4, None, 20.0, 60.0),
)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> LoadSweepBlock:
    """The published deployments, as slow as published, and Garage; one point never ended."""
    directory = tmp_path_factory.mktemp("load-sweep")
    points: list[dict[str, Any]] = []
    for number, (system, nodes, drives, read_ms, write_ms) in enumerate(DEPLOYMENTS):
        name = f"{system}-{nodes}-{drives}"
        option = f"options.{system}.drives"
        write_load(
            directory / "points" / name,
            series=(system, "1.0"),
            store=Store(mean_ms={"GetObject": read_ms, "PutObject": write_ms}),
            duration_s=40,
            seed=number,
            load={"probe_missed": 12} if system == "garage" else {},
            study={"nodes": nodes, "options": {system: {"drives": drives} if drives else {}}},
        )
        values = {"nodes": nodes, **({option: drives} if drives else {})}
        points.append(_point(number, name, system, values, "complete"))
    points.append(_point(9, "garage-lost", "garage", {"nodes": 1}, "failed"))
    swept = ("nodes", "options.minio.drives", "options.minio-nginx.drives")
    parameters = [{"name": name, "values": [1, 4]} for name in swept]
    (directory / "points.json").write_text(json.dumps({"parameters": parameters, "points": points}))
    manifest = {
        "schema_version": 2,
        "kind": "matrix",
        "status": "failed",
        "seed": 3,
        "study": {"name": "mixed-load", "load": {"workers": 16}},
        "topologies": {"one-site": {"name": "one-site"}},
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    block = load_of_sweep(read_sweep(directory))
    assert block is not None
    return block


def _point(
    number: int, name: str, system: str, values: dict[str, Any], status: str
) -> dict[str, Any]:
    return {
        "point": number,
        "name": name,
        "system": system,
        "values": values,
        "directory": f"points/{name}",
        "status": status,
        "reason": None,
        "attempts": 1,
    }


def test_deployments_are_known_by_nodes_and_drives(sweep: LoadSweepBlock) -> None:
    assert [(d.load.series.system, d.published, d.name) for d in sweep.deployments] == [
        ("minio", "one-node-one-drive", "1 node of 1 drive"),
        ("minio", "one-node-four-drives", "1 node of 4 drives"),
        ("minio-nginx", "four-nodes-four-drives-behind-nginx", "4 nodes of 4 drives"),
        ("garage", None, "4 nodes"),
    ]
    assert [tuple(d.where.items()) for d in sweep.deployments] == [
        (("nodes", "1"), ("drives", "1")),
        (("nodes", "1"), ("drives", "4")),
        (("nodes", "4"), ("drives", "4")),
        (("nodes", "4"), ("drives", "–")),
    ]


def test_ours_and_the_published_ones_stand_side_by_side_as_ratios(sweep: LoadSweepBlock) -> None:
    both = [each for each in sweep.against if each.ours is not None and each.theirs is not None]
    assert len(both) == 2 * 4 + 3
    for each in both:
        assert each.ours is not None and each.ours.ci95 is not None
        assert each.theirs is not None
        assert each.ours.estimate == pytest.approx(each.theirs, rel=0.15)
        assert each.ours.ci95[0] < each.ours.estimate < each.ours.ci95[1]
    alone = [each for each in sweep.against if each.theirs is None]
    assert {each.system for each in alone} == {"garage"}


def test_a_quiet_user_who_could_not_ask_in_time_is_told_of_in_a_sweep(
    sweep: LoadSweepBlock,
) -> None:
    quiet = next(grid for grid in sweep.grids() if "quiet user" in grid.title)
    (note,) = quiet.notes
    assert note.startswith("Garage 4 nodes: at 12 instants the quiet user")


def test_charts_of_a_sweep_can_be_read(sweep: LoadSweepBlock) -> None:
    charts = sweep.charts()
    assert set(charts) == {"load", "load-published"}
    for figure in charts.values():
        assert_readable(figure)
