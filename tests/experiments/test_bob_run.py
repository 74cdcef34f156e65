"""Studies over gRPC and the bundles they leave: Bob's API, and a user's own service."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.experiments.commands import (
    manifest_of,
    measure,
    round_trips,
    run,
    samples_of,
    study,
    topology,
)
from wanlat.emulator.binaries import binary
from wanlat.probes.bob_plan import bob_plan
from wanlat.systems import registry
from wanlat.systems.engine.cache import sha256_of
from wanlat.systems.errors import SystemMissing

SAMPLES = 12
RTT_MS = 50.0
PROTO = Path(__file__).parents[2] / "proto" / "bob.proto"

KEYED = ("Put", "Get", "Exist", "Delete")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bob")
    outcome = measure(
        "endpoint-latency",
        directory / "bundle",
        topology=topology(directory, f"{RTT_MS:g}ms", sites=4),
        options={"quorum": {"api": "bob"}},
        samples=SAMPLES,
        seed=42,
        resources=False,
    )
    assert outcome.status == "complete", outcome.reason
    return outcome.directory


def test_a_request_costs_the_round_trips_of_its_placement(bundle: Path) -> None:
    samples = samples_of(bundle)
    assert set(samples.outcome) == {"ok"}
    expected = {(endpoint, placement): 1 for endpoint in KEYED for placement in ("local", "remote")}
    expected |= {("Ping", "unknown"): 0, ("Get", "local"): 0, ("Exist", "local"): 0}
    assert round_trips(bundle, RTT_MS, by=("endpoint", "placement")) == expected


def test_every_placement_is_sampled_as_often_as_asked_in_the_seeds_order(bundle: Path) -> None:
    samples = samples_of(bundle)
    counted = samples.groupby(["phase", "endpoint", "placement"]).size()
    assert len(counted["measure"]) == len(counted["warmup"]) == 2 * len(KEYED) + 1
    assert (set(counted["measure"]), set(counted["warmup"])) == ({SAMPLES}, {5})
    assert (set(samples.grpc_status), set(samples.status)) == ({0}, {200})
    assert (samples.acks_sent >= 0).all()
    manifest = manifest_of(bundle)
    (system,) = manifest["systems"]
    assert (system["api"], system["endpoints"]) == ("bob", [*KEYED, "Ping"])
    vdisks = system["options"]["placement"]
    assert [len(set(replicas)) for replicas in vdisks] == [3] * 4
    plan = bob_plan(
        system["endpoints"],
        samples=SAMPLES,
        warmup=5,
        object_bytes=1024,
        seed=42,
        target="n1",
        replicas=lambda key: vdisks[int.from_bytes(key, "little") % len(vdisks)],
    )
    order = samples[samples.phase == "measure"][["endpoint", "placement"]].to_numpy().tolist()
    assert order == [[request.endpoint, request.placement] for request in plan.measure]
    # What other tests beside it make late is the machine's, and of no interest here.
    assert [each for each in manifest["warnings"] if "The machine was busy" not in each] == []


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
    outcome = measure(file, tmp_path / "b")
    assert outcome.status == "complete", outcome.reason
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
