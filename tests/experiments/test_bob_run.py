"""Studies over gRPC, from the command line to the bundle: Bob's API, and a user's own service."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from tests.experiments.commands import (
    manifest_of,
    measuring,
    node_of,
    round_trips,
    run,
    samples_of,
    study,
    topology,
)
from wanlat.emulator.binaries import binary
from wanlat.systems import registry
from wanlat.systems.errors import SystemMissing
from wanlat.systems.receipt import sha256_of

SAMPLES = 12
RTT_MS = 50.0
PROTO = Path(__file__).parents[2] / "proto" / "bob.proto"

KEYED = ("Put", "Get", "Exist", "Delete")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    directory = tmp_path_factory.mktemp("bob")
    return run(
        *("endpoint-latency", "--topology", topology(directory, f"{RTT_MS:g}ms", sites=4)),
        *("--option", "quorum.api=bob", "--samples", str(SAMPLES), "--seed", "42"),
        "--json",
        out=directory / "bundle",
    )


@pytest.fixture(scope="module")
def bundle(finished: subprocess.CompletedProcess[str]) -> Path:
    assert finished.returncode == 0, finished.stderr
    directory = re.search(r"bundle: (\S+)", finished.stderr)
    assert directory is not None
    return Path(directory[1])


def test_a_request_costs_the_round_trips_of_its_placement(bundle: Path) -> None:
    samples = samples_of(bundle)
    assert set(samples.outcome) == {"ok"}
    expected = {(endpoint, placement): 1 for endpoint in KEYED for placement in ("local", "remote")}
    expected |= {("Ping", "unknown"): 0, ("Get", "local"): 0, ("Exist", "local"): 0}
    assert round_trips(bundle, RTT_MS, by=("endpoint", "placement")) == expected


def test_every_placement_is_sampled_as_often_as_asked(bundle: Path) -> None:
    samples = samples_of(bundle)
    counted = samples.groupby(["phase", "endpoint", "placement"]).size()
    assert len(counted["measure"]) == len(counted["warmup"]) == 2 * len(KEYED) + 1
    assert set(counted["measure"]) == {SAMPLES}
    assert set(counted["warmup"]) == {5}
    assert set(samples.grpc_status) == {0}
    assert set(samples.status) == {200}
    assert set(samples.acks_sent >= 0) == {True}


def test_the_order_is_shuffled_and_the_seed_gives_it_again(bundle: Path) -> None:
    from wanlat.probes.bob_plan import bob_plan

    (system,) = manifest_of(bundle)["systems"]
    vdisks = system["options"]["placement"]
    plan = bob_plan(
        system["endpoints"],
        samples=SAMPLES,
        warmup=5,
        object_bytes=1024,
        seed=42,
        target="n1",
        replicas=lambda key: vdisks[int.from_bytes(key, "little") % len(vdisks)],
    )
    samples = samples_of(bundle)
    order = samples[samples.phase == "measure"][["endpoint", "placement"]].to_numpy().tolist()
    assert order == [[request.endpoint, request.placement] for request in plan.measure]
    assert order != sorted(order)


def test_the_manifest_says_what_was_asked_and_where_keys_lie(bundle: Path) -> None:
    (system,) = manifest_of(bundle)["systems"]
    assert (system["name"], system["api"]) == ("quorum", "bob")
    assert system["endpoints"] == ["Put", "Get", "Exist", "Delete", "Ping"]
    options = system["options"]
    assert (options["replication_factor"], options["quorum"]) == (3, 2)
    assert [len(set(replicas)) for replicas in options["placement"]] == [3] * 4
    # What other tests beside it make late is the machine's, and of no interest here.
    told = manifest_of(bundle)["warnings"]
    assert [each for each in told if "The machine was busy" not in each] == []


def test_the_summary_keeps_the_placements_apart(
    bundle: Path, finished: subprocess.CompletedProcess[str]
) -> None:
    printed = json.loads(finished.stdout)
    rows = {(row["endpoint"], row["placement"]): row for row in printed["endpoints"]}
    assert len(rows) == len(printed["endpoints"]) == 9
    assert rows["Get", "local"]["min_ms"] < RTT_MS <= rows["Get", "remote"]["min_ms"]


@pytest.mark.minutes
def test_fifty_mebibytes_in_a_study(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        "endpoints: [Put, Get]\nsamples: 1\nwarmup: 0\nobject_size: 50MiB\n"
        "options: {quorum: {api: bob, replication_factor: 2}}\n",
    )
    done = run(file, out=tmp_path / "b")
    assert done.returncode == 0, done.stderr
    samples = samples_of(tmp_path / "b")
    assert list(samples.outcome) == ["ok"] * 4
    assert set(samples.object_bytes) == {50 << 20}


@pytest.mark.minutes
def test_what_a_server_does_not_take_fails_the_run_with_its_words(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        "endpoints: [Get]\nsamples: 1\nwarmup: 0\nobject_size: 129MiB\nmax_message: 160MiB\n"
        "options: {quorum: {api: bob}}\n",
    )
    done = run(file, out=tmp_path / "b")
    assert done.returncode == 1, done.stderr
    assert re.search(r"could not be prepared: Put [0-9a-f]{16} failed 3 times", done.stderr)
    assert "message" in done.stderr
    assert "0 of 1 samples" in done.stderr


@pytest.mark.minutes
def test_a_service_of_ones_own_beside_a_store(tmp_path: Path) -> None:
    """The service is the reference store, as a user would describe a program of theirs."""
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "blobs.proto").write_text(PROTO.read_text())
    file = study(
        tmp_path,
        f"""
systems: [quorum, service]
samples: 10
warmup: 1
endpoints:
  - Get
  - bob_storage.BobApi/Ping
  - method: bob_storage.BobApi/Get
    request: {{key: {{key: "{{key}}"}}}}
    response_object: data
    prepare:
      method: bob_storage.BobApi/Put
      request:
        key: {{key: "{{key}}"}}
        data: {{data: "{{body}}", meta: {{timestamp: "{{now}}"}}}}
options:
  quorum: {{api: bob}}
  service:
    command:
      [{binary("quorum")}, serve, --name, "{{node}}", --data, "{{data}}",
       --s3, "{{address}}:9000", --peer-listen, "{{address}}:9001",
       "--peer={{peer.node}}={{peer.address}}:9001",
       --protocol, leaderless, --access-key, a, --secret-key, s,
       --bob, "{{address}}:{{port}}", --vdisk, "n2,n3"]
    port: 7000
    protos: [api/blobs.proto]
    ready: /healthz
    ready_port: 9002
""",
    )
    done = run(file, out=tmp_path / "b")
    assert done.returncode == 0, done.stderr
    samples = samples_of(tmp_path / "b")
    assert set(samples.outcome) == {"ok"}
    measured = samples[samples.phase == "measure"]
    counted = measured.groupby(["system", "endpoint", "placement"]).size().to_dict()
    assert counted == {
        ("quorum", "Get", "local"): 10,
        ("service", "bob_storage.BobApi/Ping", "unknown"): 10,
        ("service", "bob_storage.BobApi/Get", "unknown"): 10,
    }
    asked = {
        system["name"]: system["endpoints"] for system in manifest_of(tmp_path / "b")["systems"]
    }
    assert asked == {
        "quorum": ["Get"],
        "service": ["bob_storage.BobApi/Ping", "bob_storage.BobApi/Get"],
    }
    # n1 holds nothing of it: a Get crosses the network of 20 ms, a Ping does not.
    assert round_trips(tmp_path / "b", rtt_ms=20, system="service") == {
        "bob_storage.BobApi/Ping": 0,
        "bob_storage.BobApi/Get": 1,
    }


@pytest.mark.minutes
def test_a_server_that_dies_fails_the_run_and_keeps_the_samples(tmp_path: Path) -> None:
    file = study(
        tmp_path,
        "endpoints: [Put]\nsamples: 5000\nwarmup: 1\noptions: {quorum: {api: bob}}\n",
    )
    out = tmp_path / "b"
    running = measuring(file, out)
    os.kill(node_of(running.pid, "n1"), signal.SIGKILL)
    _, stderr = running.communicate(timeout=300)
    assert running.returncode == 1, stderr
    assert re.search(r"The run failed: .*\bn1\b.* ended", stderr), stderr
    assert manifest_of(out)["status"] == "failed"
    samples = samples_of(out)
    assert 20 <= len(samples) < 5000
    # The one in flight is `unknown`; those after it, before the lab has ended, are refused.
    kinds = [kind for kind, _ in groupby(samples.outcome)]
    assert kinds == [kind for kind in ("ok", "unknown", "fail") if kind in kinds]


@pytest.mark.stores
def test_a_real_bob_is_measured_alike(tmp_path: Path) -> None:
    try:
        bobd = registry.get("bob").find().path
    except SystemMissing as missing:
        if "bob" in os.environ.get("WANLAT_REQUIRE", "").split():
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    done = run(
        *("endpoint-latency", "--topology", topology(tmp_path, "20ms", sites=4)),
        *("--systems", "bob", "--bobd", str(bobd), "--samples", "10"),
        out=tmp_path / "b",
    )
    assert done.returncode == 0, done.stderr
    (system,) = manifest_of(tmp_path / "b")["systems"]
    assert (system["name"], system["api"]) == ("bob", "bob")
    assert system["sha256"] == sha256_of(bobd)
    samples = samples_of(tmp_path / "b")
    assert set(samples.outcome) == {"ok"}
    found = round_trips(tmp_path / "b", rtt_ms=20, by=("endpoint", "placement"))
    assert len(found) == 9
    here = {("Ping", "unknown"), ("Get", "local"), ("Exist", "local")}
    assert {which for which, count in found.items() if count == 0} == here
