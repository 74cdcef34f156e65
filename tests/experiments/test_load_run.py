"""Studies of mixed load on the reference store, from the command line to the bundle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.commands import (
    command,
    manifest_of,
    node_of,
    samples_of,
    study,
)
from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.load.records import read_records as read_records_of_bundle
from wanlat.experiments.config.study import load
from wanlat.experiments.prepare import prepare
from wanlat.experiments.run import run
from wanlat.probes.load_records import read_records

LOAD = """
endpoints: [GetObject, PutObject, Get, Put]
warmup: 1
object_size: 8KiB
prefill: {objects: 20, buckets: 2, writers: 4}
"""


def loaded(directory: Path, keys: str, more: str = "") -> str:
    """Write a study of load on one site, where nothing needs calibration."""
    return study(
        directory, f"{LOAD}{more}load: {{workers: 4, probe_interval: 20ms, {keys}}}\n", sites=1
    )


def loading(file: str, out: Path) -> subprocess.Popen[str]:
    """Start a study; return when its load is on and the probe client was answered beside it."""
    started = subprocess.Popen(
        command("run", file, "--out", str(out)), stderr=subprocess.PIPE, text=True
    )
    raw, probed = out / "load-quorum.raw", out / "samples.jsonl"
    deadline = time.monotonic() + 120
    while (
        not raw.exists()
        or len(read_records(raw).rows) < 100
        or b'"loaded"' not in probed.read_bytes()
    ):
        assert started.poll() is None, started.communicate()
        assert time.monotonic() < deadline, "there is no load"
        time.sleep(0.05)
    return started


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("load")
    mix = "mix: {Get: 0.4, Put: 0.3, HeadObject: 0.2, Delete: 0.1}"
    study = load(loaded(directory, f"duration: 2s, idle: 500ms, {mix}"))
    outcome = run(prepare(study, directory=directory / "bundle"), lambda *_: None)
    assert outcome.status == "complete", outcome.reason
    return outcome.directory


def test_every_request_of_the_load_is_a_row(bundle: Path) -> None:
    rows = pd.read_parquet(bundle / "load.parquet")
    load = manifest_of(bundle)["load"]["quorum"]
    assert not list(bundle.glob("load*.raw"))
    assert len(rows) == load["done"] > 50
    assert set(rows.system) == {"quorum"}
    assert set(rows.outcome) == {"ok"}
    assert set(rows.bucket) == {0, 1}
    assert set(rows.endpoint) == {"GetObject", "PutObject", "HeadObject", "RemoveObject"}
    # What is read was there before, what is put was not.
    reads = rows.endpoint.isin(["GetObject", "HeadObject"])
    assert rows[reads].object.max() < 20 <= rows[~reads].object.min()
    assert rows.groupby("endpoint").object_bytes.sum()["GetObject"] == load["bytes_read"]
    assert rows[rows.phase == "ramp"].start_ns.max() < rows[rows.phase == "load"].start_ns.min()
    assert load["began_ns"] <= rows.start_ns.min()
    # A worker may lose its core between looking at the clock and sending, once.
    assert (rows.start_ns >= load["ended_ns"]).sum() <= load["offered"]["workers"]


def test_offered_and_achieved_load_and_the_clients_cpu_are_told(bundle: Path) -> None:
    load = manifest_of(bundle)["load"]["quorum"]
    rows = pd.read_parquet(bundle / "load.parquet")
    lasted_s = (load["ended_ns"] - load["began_ns"]) / 1e9
    assert load["offered"] == {"workers": 4, "rate": None}
    assert lasted_s >= 2, "until the last request in flight was answered"
    assert load["achieved_per_s"] == pytest.approx(len(rows) / lasted_s, rel=0.1)
    client = load["client"]
    assert client["threads"] == 5
    assert client["cores"] == len(os.sched_getaffinity(0))
    assert client["cpu_share"] == pytest.approx(
        client["cpu_s"] / client["cores"] / lasted_s, rel=0.1
    )
    assert 0 < client["verify_share"] < client["busiest_thread_share"] < 1
    # Little's law: workers are in flight, or between two requests.
    in_flight = rows.elapsed_ns.sum() / 1e9 / lasted_s
    assert in_flight < 4


def test_the_quiet_user_is_measured_alone_and_beside_the_load(bundle: Path) -> None:
    samples = samples_of(bundle)
    assert set(samples.phase) == {"warmup", "idle", "loaded"}
    assert set(samples.outcome) == {"ok"}
    load = manifest_of(bundle)["load"]["quorum"]
    idle, beside = (samples[samples.phase == phase] for phase in ("idle", "loaded"))
    # Whose answer came before the load began, and who was asked beside it.
    assert (idle.start_ns + idle.elapsed_ns).max() < load["began_ns"]
    assert beside.due_ns.min() > idle.due_ns.max()
    # It is told that the load has ended; until then it goes on asking.
    lasted_ns = load["ended_ns"] - beside.due_ns.min()
    assert (beside.due_ns < load["ended_ns"]).sum() >= lasted_ns // 20_000_000 > 0
    for phase in (idle, beside):
        # Its instants are 20 ms apart, and every one has a row, however late it was asked at.
        assert set(phase.due_ns.diff().dropna()) == {20_000_000}
        assert (phase.start_ns >= phase.due_ns).all()
    assert (load["quiet_from"], load["quiet_every_ms"]) == ("due", 20)
    ends = samples.start_ns + samples.elapsed_ns
    waited = sum(
        (phase.due_ns.iloc[1:].to_numpy() < ends[phase.index].iloc[:-1].to_numpy()).sum()
        for phase in (idle, beside)
    )
    assert load["quiet_late"] >= waited
    assert load["quiet_left_out"] == 0
    # One request in flight, never two.
    ordered = samples.sort_values("start_ns")
    ends = (ordered.start_ns + ordered.elapsed_ns).to_numpy()
    assert (ordered.start_ns.to_numpy()[1:] >= ends[:-1]).all()


@pytest.mark.minutes
def test_ctrl_c_under_load_keeps_what_was_asked_and_what_it_cost(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    bob = "options: {quorum: {api: bob}}\n"
    started = loading(loaded(tmp_path, "duration: 10min, idle: 0s", bob), out)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=300)
    assert started.returncode == 130, said
    manifest = manifest_of(out)
    assert manifest["status"] == "interrupted"
    load = manifest["load"]["quorum"]
    rows = pd.read_parquet(out / "load.parquet")
    assert load["end"] == "stopped"
    assert load["client"]["cpu_s"] > 0
    assert len(rows) == load["done"] >= 100
    assert set(rows.endpoint) == {"Get", "Put"}
    assert "loaded" in set(samples_of(out).phase)


@pytest.mark.minutes
def test_a_run_that_is_killed_under_load_leaves_the_records(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    started = loading(loaded(tmp_path, "duration: 10min, idle: 0s"), out)
    started.kill()
    started.communicate()
    rows = read_records(out / "load-quorum.raw").rows
    assert len(rows) >= 100
    assert manifest_of(out)["status"] == "running"
    (records,) = read_records_of_bundle(read_bundle(out))
    assert len(records.outcome) == len(rows)
    assert set(records.outcome) == {"ok"}


@pytest.mark.minutes
def test_a_store_that_dies_under_load_fails_the_run_and_the_bundle_has_what_was_before(
    tmp_path: Path,
) -> None:
    out = tmp_path / "bundle"
    started = loading(loaded(tmp_path, "duration: 10min, idle: 0s, rate: 200"), out)
    os.kill(node_of(started.pid, "n1"), signal.SIGKILL)
    _, said = started.communicate(timeout=300)
    assert started.returncode == 1, said
    manifest = manifest_of(out)
    assert manifest["status"] == "failed"
    assert "n1" in manifest["reason"]
    rows = pd.read_parquet(out / "load.parquet")
    assert (rows.outcome == "ok").sum() >= 90
    assert rows.due_ns.notna().all()
    events = pd.read_parquet(out / "events.parquet")
    said_of_load = [json.loads(each)["what"] for each in events[events.kind == "load"].detail]
    assert said_of_load == ["idle begins", "idle ends", "begins", "ends"]
