"""The probe beside clients of other makers: the same request takes the same round trips.

All ask the same node from another site, in turns, over kept connections. What a client does more
is known, and is in the table: boto3 waits for `100 Continue` before it sends a body, grpcurl opens
a connection for each call and waits for the server's SETTINGS.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.client import Client
from tests.needs import lab_of, needs
from wanlat.emulator.lab import Lab
from wanlat.probes.bob_plan import bob_plan
from wanlat.probes.oneshot import Oneshot
from wanlat.probes.oneshot import prepare as prepare_objects
from wanlat.probes.plan import GrpcHeader, Header, Plan, PlanHeader, Request
from wanlat.probes.process import Process, Spawn
from wanlat.probes.s3_plan import s3_plan
from wanlat.systems import registry
from wanlat.systems.base import Cluster

TIMES = 3
"""So often each client makes each request. No network makes one faster than its round trips; so
the fastest counts, and of that whole round trips: what a busy machine adds is less than one."""
EARLY = 0.05
"""Of a round trip: how much later the probe's fastest may be than its own round trips."""

THREE = """
name: three
sites: [{{name: a, nodes: [n1]}}, {{name: b, nodes: [n2]}}, {{name: c, nodes: [n3]}}]
links: {{default: {{rtt: {rtt_ms:g}ms}}}}
"""
S3 = ("ListBuckets", "ListObjects", "PutObject", "GetObject", "HeadObject", "RemoveObject")
BOB = ("Ping", "Put", "Get", "Exist", "Delete")
MORE = {("boto3", "PutObject"): 1, **{("grpcurl", endpoint): 2 for endpoint in BOB}}
"""Round trips that a client takes more than the probe."""


@pytest.mark.parametrize(
    ("api", "clients", "rtt_ms"),
    [
        ("s3", ("boto3", "minio-py"), 60.0),
        ("bob", ("grpcio",), 60.0),
        # A process a call: a busy machine takes a tenth of a second and more to start one.
        pytest.param("bob", ("grpcurl",), 400.0, marks=pytest.mark.programs),
    ],
)
def test_they_take_the_round_trips_that_the_probe_takes_but_for_those_that_are_known(
    tmp_path: Path, api: str, clients: Sequence[str], rtt_ms: float
) -> None:
    if "grpcurl" in clients:
        needs("grpcurl")
    topology = tmp_path / "three.yaml"
    topology.write_text(THREE.format(rtt_ms=rtt_ms))
    lanes = ("oneshot", *clients)
    least: defaultdict[tuple[str, str, str], float] = defaultdict(lambda: float("inf"))
    with lab_of(str(topology)) as lab, ExitStack() as stack:
        system = registry.get("quorum")
        options = system.parse_options({"api": api})
        cluster = system.start(lab, options, tmp_path, 60.0, lambda _: None)
        header, plan = asked(cluster, api, len(lanes))
        prepare_objects(on_node(lab, "n1"), header, plan.prepare, lambda *_: None)
        probe = stack.enter_context(Oneshot(on_node(lab, "n2"), header))
        others = {
            name: stack.enter_context(Client(name, lab, cluster, "n1", "n2")) for name in clients
        }
        for phase in (plan.warmup, plan.measure):
            least.clear()
            for turn, request in enumerate(in_turns(phase, len(lanes))):
                name = lanes[turn % len(lanes)]
                took = others[name].ask(request) if turn % len(lanes) else of_probe(probe, request)
                key = (name, request.endpoint, request.placement)
                least[key] = min(least[key], took)
    assert {endpoint for _, endpoint, _ in least} == set(S3 if api == "s3" else BOB)
    more = {
        key: math.floor((took - least["oneshot", *key[1:]]) / rtt_ms + EARLY)
        for key, took in least.items()
    }
    assert more == {key: MORE.get(key[:2], 0) for key in more}, least


def on_node(lab: Lab, node: str) -> Spawn:
    def spawn(argv: list[str], stdin: int, stdout: int, stderr: int) -> Process:
        return lab.spawn(node, argv, stdin=stdin, stdout=stdout, stderr=stderr)

    return spawn


def of_probe(probe: Oneshot, request: Request) -> float:
    """How long a request took, in ms."""
    probe.send(request)
    sample = probe.receive()
    assert sample.outcome == "ok", sample
    assert sample.total_ns is not None
    return sample.total_ns / 1e6


def asked(cluster: Cluster, api: str, lanes: int) -> tuple[Header, Plan]:
    """Where n1 is asked, and what: as much as all of them together send."""
    if api == "s3":
        s3 = cluster.s3("n1")
        cluster.create_bucket("wanlat")
        plan = s3_plan(
            S3, samples=lanes * TIMES, warmup=lanes, object_bytes=1024, seed=1, bucket="wanlat"
        )
        return PlanHeader(s3.host, s3.port, s3.region, s3.access_key, s3.secret_key), plan
    grpc = cluster.grpc("n1")
    plan = bob_plan(
        BOB,
        samples=lanes * TIMES,
        warmup=lanes,
        object_bytes=1024,
        seed=1,
        target="n1",
        replicas=cluster.replicas,
    )
    return GrpcHeader(grpc.host, grpc.port), plan


def in_turns(requests: Sequence[Request], lanes: int) -> list[Request]:
    """The requests, so many of one endpoint (and placement) after another."""
    kinds: defaultdict[tuple[str, str], list[Request]] = defaultdict(list)
    for request in requests:
        kinds[request.endpoint, request.placement].append(request)
    groups = [
        (at, kind, of_kind[at : at + lanes])
        for kind, of_kind in kinds.items()
        for at in range(0, len(of_kind) - lanes + 1, lanes)
    ]
    return [request for *_, group in sorted(groups, key=lambda it: it[:2]) for request in group]
