"""A study on the reference store, from the command line to the bundle."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.command_line import here
from tests.experiments.commands import (
    manifest_of,
    measure,
    measuring,
    round_trips,
    run,
    samples_of,
    study,
    topology,
)
from wanlat.probes.s3_plan import s3_plan

ENDPOINTS = ("ListBuckets", "ListObjects", "GetObject", "PutObject", "RemoveObject")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    directory = tmp_path_factory.mktemp("run")
    return run(
        *("endpoint-latency", "--topology", topology(directory), "--samples", "20"),
        *("--seed", "42", "--json"),
        out=directory / "bundle",
    )


@pytest.fixture(scope="module")
def bundle(done: subprocess.CompletedProcess[str]) -> Path:
    assert done.returncode == 0, done.stderr
    return Path(done.args[-1])


def test_the_bundle_is_whole_and_says_what_was_measured_on_what(
    done: subprocess.CompletedProcess[str], bundle: Path
) -> None:
    names = {path.name for path in bundle.iterdir()}
    assert names >= {
        *("manifest.json", "calibration.json", "samples.parquet", "events.parquet"),
        *("summary.json", "charts", "logs"),
    }
    assert "samples.jsonl" not in names
    manifest = manifest_of(bundle)
    assert (manifest["status"], manifest["seed"]) == ("complete", 42)
    assert manifest["client"] == {"node": "n1", "site": "dc1"}
    (system,) = manifest["systems"]
    assert (system["name"], system["api"]) == ("quorum", "s3")
    assert len(system["sha256"]) == 64
    assert tuple(system["endpoints"]) == ENDPOINTS
    assert [each["round_trips"] for each in system["least_round_trips"]] == [1] * 5
    assert manifest["tcp"]["slow_start_after_idle"] in (0, 1)
    assert manifest["topology"]["name"] == "small"
    printed = json.loads(done.stdout)
    assert printed == json.loads((bundle / "summary.json").read_text())
    assert {row["endpoint"] for row in printed["endpoints"]} == set(ENDPOINTS)
    assert "chart: " in done.stderr


def test_every_sample_is_there_in_the_order_that_the_seed_gives(bundle: Path) -> None:
    samples = samples_of(bundle)
    counted = samples.groupby(["phase", "endpoint"]).size()
    assert (set(counted["measure"]), set(counted["warmup"])) == ({20}, {5})
    assert (set(samples.outcome), set(samples.placement)) == ({"ok"}, {"unknown"})
    assert samples.grpc_status.isna().all()
    assert set(samples.rtt_ms) == {20.0}
    # One request in flight, never two: each starts after the one before has ended.
    ordered = samples.sort_values("start_ns")
    ends = (ordered.start_ns + ordered.total_ns).to_numpy()
    assert (ordered.start_ns.to_numpy()[1:] >= ends[:-1]).all()
    order = list(samples[samples.phase == "measure"].endpoint)
    counts = {"samples": 20, "warmup": 5, "object_bytes": 1024, "seed": 42}
    plan = s3_plan(list(ENDPOINTS), bucket="wanlat", **counts)
    assert order == [request.endpoint for request in plan.measure] != sorted(order)
    assert round_trips(bundle, rtt_ms=20) == dict.fromkeys(ENDPOINTS, 1)


def test_the_events_are_on_the_samples_clock_with_every_change_of_a_link(bundle: Path) -> None:
    events, samples = pd.read_parquet(bundle / "events.parquet"), samples_of(bundle)
    lifecycle = events[events.kind != "impairment"]
    assert list(lifecycle.kind) == ["lab up", "calibrated", "ready", "loaded", "lab down"]
    up, calibrated, ready, _, down = lifecycle.t_ns
    assert ready < samples.start_ns.min() < samples.start_ns.max() < down
    changes = events[events.kind == "impairment"]
    assert up < changes.t_ns.min() <= changes.t_ns.max() < calibrated
    # Calibration takes the impairments away for a moment, to measure the bare path.
    details = [json.loads(detail) for detail in changes.detail]
    assert {each["origin"] for each in details} == {"calibration"}
    of_one: list[Any] = [
        each for each, name in zip(details, changes.subject, strict=True) if name == "dc1->dc2"
    ]
    assert len(of_one) >= 2
    assert [each["after"] for each in of_one[:-1]] == [each["before"] for each in of_one[1:]]
    assert of_one[0]["before"] == of_one[-1]["after"]
    assert of_one[0]["before"]["delay_ns"] > 0


@pytest.mark.minutes
@pytest.mark.parametrize(
    ("options", "client", "expected"),
    [
        ("{protocol: 'rounds:3'}", "dc1", {"GetObject": 3, "PutObject": 3}),
        ("{protocol: leader, leader: n1}", "dc1", {"GetObject": 0, "PutObject": 1}),
        ("{protocol: leader, leader: n1}", "dc2", {"GetObject": 1, "PutObject": 2}),
    ],
)
def test_k_rounds_cost_k_round_trips_of_the_client_at_its_own_node(
    options: str, client: str, expected: dict[str, int], tmp_path: Path
) -> None:
    text = "endpoints: [GetObject, PutObject]\nsamples: 15\nwarmup: 2\n"
    file = study(tmp_path, f"{text}options: {{quorum: {options}}}\n")
    outcome = measure(file, tmp_path / "b", client=client)
    assert outcome.status == "complete", outcome.reason
    assert manifest_of(tmp_path / "b")["target"]["site"] == client
    assert round_trips(tmp_path / "b", rtt_ms=20) == expected


@pytest.mark.minutes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_cut_short_leaves_a_bundle_that_can_be_reported(
    number: signal.Signals, tmp_path: Path
) -> None:
    file = study(tmp_path, "endpoints: [GetObject]\nsamples: 5000\nwarmup: 1\n")
    out = tmp_path / "bundle"
    started = measuring(file, out)
    started.send_signal(number)
    _, stderr = started.communicate(timeout=180)
    if number == signal.SIGINT:
        assert started.returncode == 130, stderr
        assert "Interrupted" in stderr
        assert str(out) in stderr
        assert manifest_of(out)["status"] == "interrupted"
        assert 20 <= len(samples_of(out)) < 5000
    reported = here("report", str(out), "--json")
    assert reported.returncode == 0, reported.stderr
    assert 15 <= json.loads(reported.stdout)["endpoints"][0]["ok"] < 5000


@pytest.mark.minutes
def test_a_store_that_never_gets_ready_fails_the_run_with_its_last_words(tmp_path: Path) -> None:
    broken = tmp_path / "quorum"
    broken.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo 'quorum 9' && exit\necho no disk\nexit 1\n"
    )
    broken.chmod(0o755)
    file = study(tmp_path, "endpoints: [GetObject]\nsamples: 5\n")
    out = tmp_path / "bundle"
    done = run(file, "--json", out=out, WANLAT_QUORUM_BINARY=str(broken))
    assert done.returncode == 1, done.stderr
    assert "no disk" in done.stderr
    # Which of its nodes ends first is not said.
    assert re.search(re.escape(str(out / "logs" / "quorum-n")) + r"\d\.log", done.stderr)
    assert json.loads(done.stdout)["bundle"]["status"] == "failed"
    assert manifest_of(out)["status"] == "failed"
