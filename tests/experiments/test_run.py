"""A study on the reference store, from the command line to the bundle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.experiments.commands import command, measuring, round_trips, study, topology


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    done = subprocess.run(
        command(
            *("run", "endpoint-latency", "--topology", topology(directory)),
            *("--samples", "20"),
            *("--seed", "42", "--out", str(directory / "bundle"), "--json"),
        ),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (directory / "stdout.json").write_text(done.stdout)
    (directory / "stderr.txt").write_text(done.stderr)
    return directory / "bundle"


def test_the_bundle_is_whole(bundle: Path) -> None:
    names = {path.name for path in bundle.iterdir()}
    assert names >= {
        *("manifest.json", "calibration.json", "samples.parquet", "events.parquet"),
        *("summary.json", "charts", "logs"),
    }
    assert "samples.jsonl" not in names
    charts = {path.name for path in (bundle / "charts").iterdir()}
    assert {"endpoint-latency.png", "endpoint-latency.svg"} <= charts


def test_the_manifest_says_what_was_measured_on_what(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert (manifest["status"], manifest["seed"]) == ("complete", 42)
    assert manifest["client"] == {"node": "n1", "site": "dc1"}
    (system,) = manifest["systems"]
    assert system["name"] == "quorum"
    assert len(system["sha256"]) == 64
    assert system["api"] == "s3"
    assert len(system["endpoints"]) == 5
    assert manifest["tcp"]["slow_start_after_idle"] in (0, 1)
    assert manifest["topology"]["name"] == "small"


def test_every_sample_is_there_with_its_phase(bundle: Path) -> None:
    samples = pd.read_parquet(bundle / "samples.parquet")
    counted = samples.groupby(["phase", "endpoint"]).size()
    assert set(counted["measure"]) == {20}
    assert set(counted["warmup"]) == {5}
    assert set(samples.outcome) == {"ok"}
    assert set(samples.placement) == {"unknown"}
    assert samples.grpc_status.isna().all()
    assert set(samples.rtt_ms) == {20.0}
    # One request in flight, never two: each starts after the one before has ended.
    ordered = samples.sort_values("start_ns")
    ends = (ordered.start_ns + ordered.total_ns).to_numpy()
    assert (ordered.start_ns.to_numpy()[1:] >= ends[:-1]).all()


def test_one_round_trip_costs_one_round_trip(bundle: Path) -> None:
    endpoints = ("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject")
    assert round_trips(bundle, rtt_ms=20) == dict.fromkeys(endpoints, 1)


def test_the_order_is_shuffled_and_the_seed_gives_it_again(bundle: Path) -> None:
    from wanlat.probes.s3_plan import s3_plan

    samples = pd.read_parquet(bundle / "samples.parquet")
    order = list(samples[samples.phase == "measure"].endpoint)
    (system,) = json.loads((bundle / "manifest.json").read_text())["systems"]
    plan = s3_plan(
        system["endpoints"], samples=20, warmup=5, object_bytes=1024, seed=42, bucket="wanlat"
    )
    assert order == [request.endpoint for request in plan.measure]
    assert order != sorted(order)


def test_stdout_is_the_summary_and_nothing_else(bundle: Path) -> None:
    printed = json.loads((bundle.parent / "stdout.json").read_text())
    assert printed == json.loads((bundle / "summary.json").read_text())
    assert {row["endpoint"] for row in printed["endpoints"]} == {
        *("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject")
    }
    assert "chart: " in (bundle.parent / "stderr.txt").read_text()


def test_the_events_are_on_the_samples_clock(bundle: Path) -> None:
    events = pd.read_parquet(bundle / "events.parquet")
    samples = pd.read_parquet(bundle / "samples.parquet")
    lifecycle = events[events.kind != "impairment"]
    assert list(lifecycle.kind) == ["lab up", "calibrated", "ready", "asked", "lab down"]
    ready, down = lifecycle.t_ns.iloc[2], lifecycle.t_ns.iloc[4]
    assert ready < samples.start_ns.min() < samples.start_ns.max() < down


def test_every_change_of_a_link_is_an_event_with_its_instant(bundle: Path) -> None:
    events = pd.read_parquet(bundle / "events.parquet").set_index("kind")
    changes = events.loc[["impairment"]]
    # Calibration takes the impairments away for a moment, to measure the bare path.
    details = [json.loads(detail) for detail in changes.detail]
    assert {each["origin"] for each in details} == {"calibration"}
    of_one = [
        each for each, name in zip(details, changes.subject, strict=True) if name == "dc1->dc2"
    ]
    assert len(of_one) >= 2
    assert [each["after"] for each in of_one[:-1]] == [each["before"] for each in of_one[1:]]
    assert of_one[0]["before"] == of_one[-1]["after"]
    assert of_one[0]["before"]["delay_ns"] > 0
    begin, end = events.t_ns["lab up"], events.t_ns["calibrated"]
    assert begin < changes.t_ns.min() <= changes.t_ns.max() < end


@pytest.mark.minutes
def test_k_rounds_cost_k_round_trips(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        "endpoints: [GetObject, PutObject]\nsamples: 15\nwarmup: 2\n"
        "options: {quorum: {protocol: 'rounds:3'}}\n",
    )
    subprocess.run(command("run", file, "--out", str(tmp_path / "b")), check=True, timeout=180)
    assert round_trips(tmp_path / "b", rtt_ms=20) == {"GetObject": 3, "PutObject": 3}


@pytest.mark.minutes
def test_a_client_elsewhere_asks_the_store_where_it_stands(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        "endpoints: [GetObject, PutObject]\nsamples: 10\nwarmup: 2\n"
        "options: {quorum: {protocol: leader, leader: n1}}\n",
    )
    for client, expected in (
        ("dc1", {"GetObject": 0, "PutObject": 1}),
        ("dc2", {"GetObject": 1, "PutObject": 2}),
    ):
        out = tmp_path / client
        subprocess.run(
            command("run", file, "--client", client, "--out", str(out)),
            check=True,
            timeout=180,
        )
        manifest = json.loads((out / "manifest.json").read_text())
        assert manifest["target"]["site"] == client
        assert round_trips(out, rtt_ms=20) == expected


@pytest.mark.minutes
def test_ctrl_c_ends_the_run_and_keeps_the_samples(tmp_path: Path) -> None:
    file = study(tmp_path, "endpoints: [GetObject]\nsamples: 5000\nwarmup: 1\n")
    out = tmp_path / "bundle"
    run = measuring(file, out)
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=180)
    assert run.returncode == 130, stderr
    assert "Interrupted" in stderr
    assert str(out) in stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    samples = pd.read_parquet(out / "samples.parquet")
    assert 20 <= len(samples) < 5000
    reported = subprocess.run(
        command("report", str(out)), capture_output=True, text=True, timeout=180, check=False
    )
    assert reported.returncode == 0, reported.stderr
    assert "interrupted" in reported.stderr


def test_a_run_that_is_killed_leaves_a_bundle_that_can_be_reported(tmp_path: Path) -> None:
    file = study(tmp_path, "endpoints: [GetObject]\nsamples: 5000\nwarmup: 1\n")
    out = tmp_path / "bundle"
    run = measuring(file, out)
    run.kill()
    run.communicate()
    reported = subprocess.run(
        command("report", str(out), "--json"),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert reported.returncode == 0, reported.stderr
    assert json.loads(reported.stdout)["endpoints"][0]["ok"] >= 15


@pytest.mark.minutes
def test_a_store_that_never_gets_ready_fails_the_run_with_its_last_words(tmp_path: Path) -> None:
    broken = tmp_path / "quorum"
    broken.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo 'quorum 9' && exit\necho no disk\nexit 1\n"
    )
    broken.chmod(0o755)
    file = study(tmp_path, "endpoints: [GetObject]\nsamples: 5\n")
    out = tmp_path / "bundle"
    done = subprocess.run(
        command("run", file, "--out", str(out), "--json"),
        capture_output=True,
        text=True,
        timeout=180,
        env=os.environ | {"WANLAT_QUORUM_BINARY": str(broken)},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "no disk" in done.stderr
    assert json.loads(done.stdout)["bundle"]["status"] == "failed"
    assert str(out / "logs" / "quorum-n1.log") in done.stderr
    assert json.loads((out / "manifest.json").read_text())["status"] == "failed"
