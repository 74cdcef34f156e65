"""Prefill, load, probe client, resource usage and removals, run for real on the reference store.

On one node, whose lab needs no calibration. One run under load answers most questions.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.experiments.commands import (
    command,
    document_of,
    manifest_of,
    measure,
    node_of,
    samples_of,
    study,
)
from tests.experiments.drill.drills import await_that
from wanlat.bundle.documents import Prefills, Reclaims
from wanlat.bundle.load_records import read_records

SIZE = 64 << 10
LOAD = """
endpoints: [GetObject, PutObject, Get, Put]
warmup: 1
object_size: 64KiB
resources: {interval: 100ms, idle: 500ms}
prefill: {objects: 20, buckets: 2, writers: 4}
"""
MIX = "mix: {Get: 0.4, Put: 0.3, HeadObject: 0.2, Delete: 0.1}"


def loaded(keys: str) -> str:
    return f"{LOAD}load: {{workers: 4, probe_interval: 20ms, {keys}}}\n"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("load")
    file = study(directory, loaded(f"duration: 2s, idle: 500ms, {MIX}"), sites=1)
    outcome = measure(file, directory / "bundle")
    assert outcome.status == "complete", outcome.reason
    return outcome.directory


def events_of(bundle: Path, kind: str) -> list[Any]:
    events = pd.read_parquet(bundle / "events.parquet")
    return [json.loads(detail) for detail in events[events.kind == kind].detail]


def test_every_request_of_the_load_is_a_row_and_its_client_is_accounted_for(bundle: Path) -> None:
    rows = pd.read_parquet(bundle / "load.parquet")
    load = manifest_of(bundle)["load"]["quorum"]
    assert not list(bundle.rglob("load*.raw"))
    assert len(rows) == load["done"] > 50
    assert (set(rows.system), set(rows.outcome), set(rows.bucket)) == ({"quorum"}, {"ok"}, {0, 1})
    assert set(rows.endpoint) == {"GetObject", "PutObject", "HeadObject", "RemoveObject"}
    # What is read was there before, what is put was not.
    reads = rows.endpoint.isin(["GetObject", "HeadObject"])
    assert rows[reads].object.max() < 20 <= rows[~reads].object.min()
    assert rows.groupby("endpoint").object_bytes.sum()["GetObject"] == load["bytes_read"]
    assert rows[rows.phase == "ramp"].start_ns.max() < rows[rows.phase == "load"].start_ns.min()
    assert load["began_ns"] <= rows.start_ns.min()
    # A worker may lose its core between reading the clock and sending, once.
    assert (rows.start_ns >= load["ended_ns"]).sum() <= load["offered"]["workers"]
    lasted_s = (load["ended_ns"] - load["began_ns"]) / 1e9
    assert load["offered"] == {"workers": 4, "rate": None}
    assert lasted_s >= 2, "until the last request in flight was answered"
    assert load["achieved_per_s"] == pytest.approx(len(rows) / lasted_s, rel=0.1)
    client = load["client"]
    assert (client["threads"], client["cores"]) == (5, len(os.sched_getaffinity(0)))
    share = client["cpu_s"] / client["cores"] / lasted_s
    assert client["cpu_share"] == pytest.approx(share, rel=0.1)
    assert 0 < client["verify_share"] < client["busiest_thread_share"] < 1
    # Little's law: workers are in flight, or between two requests.
    assert rows.elapsed_ns.sum() / 1e9 / lasted_s < 4


def test_the_probe_client_is_measured_idle_and_beside_the_load(bundle: Path) -> None:
    samples = samples_of(bundle).sort_values("start_ns")
    assert set(samples.phase) == {"warmup", "idle", "loaded"}
    assert set(samples.outcome) == {"ok"}
    load = manifest_of(bundle)["load"]["quorum"]
    idle, beside = (samples[samples.phase == phase] for phase in ("idle", "loaded"))
    assert (idle.start_ns + idle.elapsed_ns).max() < load["began_ns"]
    assert beside.due_ns.min() > idle.due_ns.max()
    # It hears that the load has ended; until then it sends.
    lasted_ns = load["ended_ns"] - beside.due_ns.min()
    assert (beside.due_ns < load["ended_ns"]).sum() >= lasted_ns // 20_000_000 > 0
    ends, waited = samples.start_ns + samples.elapsed_ns, 0
    assert (samples.start_ns.iloc[1:].to_numpy() >= ends.iloc[:-1].to_numpy()).all()
    for phase in (idle, beside):
        # Its instants are 20 ms apart, and every one has a row, however late it was sent.
        assert set(phase.due_ns.diff().dropna()) == {20_000_000}
        assert (phase.start_ns >= phase.due_ns).all()
        before = ends[phase.index].iloc[:-1].to_numpy()
        waited += (phase.due_ns.iloc[1:].to_numpy() < before).sum()
    assert load["probe_interval_ms"] == 20
    assert load["probe_late"] >= waited
    assert load["probe_left_out"] == 0


def test_a_prefill_is_read_back_and_counted_and_what_nodes_use_is_sampled(bundle: Path) -> None:
    found = document_of(bundle, Prefills)
    (filled,) = found.systems
    assert filled.written == filled.counted == filled.read_back == 40
    assert filled.settled is not None
    assert filled.settled.seconds > 0
    assert [each["what"] for each in events_of(bundle, "prefill")][:2] == ["begins", "ends"]
    node, samples = pd.read_parquet(bundle / "resources.parquet"), samples_of(bundle)
    assert set(node.kind) == {"node"}  # one site has no links
    assert node.t_ns.is_monotonic_increasing
    assert node.t_ns.min() < samples.start_ns.min() - 4 * 10**8  # it was idle first
    assert node.t_ns.max() > samples.start_ns.max()
    events = pd.read_parquet(bundle / "events.parquet")
    filled_ns = events[events.kind == "prefill"].t_ns.iloc[1]
    after = node[node.space_began_ns >= filled_ns].space_bytes.iloc[0]
    assert after - node.space_bytes.dropna().iloc[0] == pytest.approx(40 * SIZE, rel=0.15)
    assert node.rss_bytes.min() > 1_000_000
    assert node.cpu_ns.is_monotonic_increasing
    said = manifest_of(bundle)["resources"]
    assert said["failed"] is None
    assert said["cost_cpu_share"] > 0  # how small it is kept: test_resources.py


def test_objects_that_a_store_acknowledged_and_has_not_got_end_the_run(tmp_path: Path) -> None:
    text = (
        "endpoints: [GetObject]\nresources: false\n"
        "prefill: {objects: 1100, writers: 4, settle: 0s}\n"
        "options: {quorum: {defects: [drop-acked]}}\n"
    )
    outcome = measure(study(tmp_path, text, sites=1), tmp_path / "b")
    assert outcome.status == "failed"
    assert "bucket wanlat was filled with 1,100 objects, all acknowledged" in str(outcome.reason)
    assert samples_of(outcome.directory).empty


@pytest.mark.minutes
def test_a_store_that_frees_at_once_is_seen_to_and_what_stays_can_be_read(tmp_path: Path) -> None:
    text = (
        "endpoints: [RemoveObject]\nobject_size: 64KiB\nresources: {interval: 200ms}\n"
        "reclaim: {objects: 60, remove: 0.5, settle: 300ms, watch: 1s}\n"
    )
    outcome = measure(study(tmp_path, text, sites=1), tmp_path / "b")
    assert outcome.status == "complete", outcome.reason
    found = document_of(outcome.directory, Reclaims)
    (entry,) = found.systems
    assert entry.removed == 30
    assert entry.found is not None
    assert (entry.found.kept, entry.found.lost) == (30, 0)
    assert (entry.found.removed, entry.found.still_there) == (30, 0)
    assert not list(outcome.directory.glob(".reclaim*"))
    usage = pd.read_parquet(outcome.directory / "resources.parquet").space_bytes.dropna()
    assert usage.iloc[-1] - usage.iloc[0] == pytest.approx(30 * SIZE, rel=0.2)


@pytest.mark.minutes
@pytest.mark.parametrize(
    ("end", "code", "status"),
    [
        ("interrupt", 130, "interrupted"),
        ("kill", -signal.SIGKILL, "running"),
        ("kill the store", 1, "failed"),
    ],
)
def test_a_load_that_is_cut_short_says_so_and_keeps_what_was_measured(
    tmp_path: Path, end: str, code: int, status: str
) -> None:
    file = study(tmp_path, loaded("duration: 10min, idle: 0s, rate: 200"), sites=1)
    out = tmp_path / "bundle"
    raw, probed = out / "records" / "load-quorum.raw", out / "samples.jsonl"
    argv = command("run", file, "--out", str(out))
    started = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    await_that(
        lambda: (
            raw.exists()
            and len(read_records(raw).rows) >= 100
            and b'"loaded"' in probed.read_bytes()
        ),
        started,
    )
    if end == "kill the store":
        os.kill(node_of(started.pid, "n1"), signal.SIGKILL)
    else:
        started.send_signal(signal.SIGINT if end == "interrupt" else signal.SIGKILL)
    _, said = started.communicate(timeout=300)
    assert started.returncode == code, said
    manifest = manifest_of(out)
    assert manifest["status"] == status
    if end == "kill":
        assert (read_records(raw).rows["outcome"] == 0).sum() >= 90
        return
    assert "loaded" in set(samples_of(out).phase)
    assert [each["what"] for each in events_of(out, "load")][-1] == "ends"
    rows = pd.read_parquet(out / "load.parquet")
    assert (rows.outcome == "ok").sum() >= 90
    assert rows.due_ns.notna().all()
    if end == "interrupt":
        assert "Interrupted" in said and str(out) in said
        load = manifest["load"]["quorum"]
        assert (load["end"], load["done"]) == ("stopped", len(rows))
        assert load["client"]["cpu_s"] > 0
    else:
        assert "n1" in manifest["reason"]
