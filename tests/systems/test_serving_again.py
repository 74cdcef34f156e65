"""Nodes that were killed and started again: when they serve as before, and who leads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_bob import body_of, calls, key, put
from lab_s3 import client
from systems_doubles import StandInLab, plan_of, toy

from tests.needs import lab_of, needs
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.wait import Wait
from wanlat.systems.errors import SystemFailed

pytestmark = pytest.mark.minutes

READY_S = 90.0
TOPOLOGY = """
name: near
sites: [{name: dc1, nodes: 2}, {name: dc2, nodes: 2}]
links: {default: {rtt: 2ms}}
"""
OPTIONS: dict[str, dict[str, object]] = {
    "quorum": {},
    "quorum-bob": {"api": "bob"},
    "garage": {},
    "minio": {"parity": 2},
    "bob": {"replication_factor": 2, "quorum": 1},
}
REAL = [pytest.param(name, marks=pytest.mark.stores) for name in ("garage", "minio", "bob")]


@pytest.fixture(scope="module", params=["quorum", "quorum-bob", *REAL])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    system = registry.get(request.param.partition("-")[0])
    needs(system.name)
    topology = tmp_path_factory.mktemp("topology") / "near.yaml"
    topology.write_text(TOPOLOGY)
    logs = tmp_path_factory.mktemp("logs")
    with lab_of(str(topology), storage="disk") as lab:
        options = system.parse_options(OPTIONS[request.param])
        started = system.start(lab, options, logs, READY_S, print)
        if started.api == "s3":
            started.create_bucket("again")
            first = next(iter(started.nodes))
            if system.name != "garage":  # there its administrator has made it
                s3(started, first).create_bucket(Bucket="again")
        yield started


def s3(cluster: Cluster, node: str) -> Any:
    return client(cluster.lab, node, cluster.s3(node))


def write(cluster: Cluster, node: str, number: int) -> None:
    if cluster.api == "s3":
        s3(cluster, node).put_object(Bucket="again", Key=f"k{number}", Body=b"body %d" % number)
        return
    blob = put(number.to_bytes(8, "little"), b"body %d" % number)
    assert calls(cluster, node, [(node, "Put", blob)]) == [{}]


def read(cluster: Cluster, node: str, number: int) -> bytes:
    if cluster.api == "s3":
        body = s3(cluster, node).get_object(Bucket="again", Key=f"k{number}")["Body"].read()
        assert isinstance(body, bytes)
        return body
    request = {"key": key(number.to_bytes(8, "little"))}
    (answer,) = calls(cluster, node, [(node, "Get", request)])
    return body_of(answer)


def restart(cluster: Cluster, names: list[str]) -> float:
    """Kill the nodes, start them again, wait until they serve; return the seconds that took."""
    for name in names:
        cluster.nodes[name].stop()
    for name in names:
        cluster.nodes[name].start(cluster.lab)
    begun = time.monotonic()
    cluster.await_serving(Wait(cluster.nodes, READY_S, print))
    return time.monotonic() - begun


@pytest.mark.parametrize("how_many", [1, 4])
def test_nodes_that_were_killed_serve_again_what_was_written_before(
    cluster: Cluster, how_many: int
) -> None:
    names = list(cluster.nodes)
    for number in range(8):
        write(cluster, names[number % 4], 100 * how_many + number)
    print(f"{cluster.label}: {restart(cluster, names[-how_many:]):.1f} s")
    for number in range(8):
        for name in names:
            body = read(cluster, name, 100 * how_many + number)
            assert body == b"body %d" % (100 * how_many + number)
    for name in names:
        write(cluster, name, 100 * how_many + 50)
    cluster.check()


def test_those_that_are_named_are_waited_for_while_others_are_down(cluster: Cluster) -> None:
    names = list(cluster.nodes)
    for name in names[2:]:
        cluster.nodes[name].stop()
    cluster.nodes[names[2]].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print), names[:3])
    if cluster.system != "bob":  # which says no more than how many nodes it sees
        with pytest.raises(SystemFailed, match="not ready after 1 s"):
            cluster.await_serving(Wait(cluster.nodes, 1, print))
    cluster.nodes[names[3]].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print), names)


def test_one_that_is_left_alone_counts_as_serving_when_it_runs(cluster: Cluster) -> None:
    first, *others = cluster.nodes
    for name in others:
        cluster.nodes[name].stop()
    cluster.nodes[first].stop()
    cluster.nodes[first].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print), [first])
    for name in others:
        cluster.nodes[name].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print))


def test_a_service_is_waited_for_until_it_has_printed_its_line_again(tmp_path: Path) -> None:
    program = "import socket,sys,time; s=socket.create_server((sys.argv[1],int(sys.argv[2])));"
    program += "time.sleep(0.5); print('up', flush=True); time.sleep(60)"
    system = registry.get("service")
    lab = StandInLab(plan_of(2), tmp_path / "nodes")
    command = ["/usr/bin/env", "python3", "-c", program, "{address}", "{port}"]
    options = system.parse_options({"command": command, "port": 50999, "ready_line": "up"})
    try:
        cluster = system.start(lab, options, tmp_path, 60, print)  # type: ignore[arg-type]
        cluster.nodes["n1"].stop()
        cluster.nodes["n1"].start(cluster.lab)
        begun = time.monotonic()
        cluster.await_serving(Wait(cluster.nodes, 60, print), ["n1"])
        assert time.monotonic() - begun > 0.4, "the line of its first life is in the same log"
    finally:
        lab.close()


def test_a_node_is_not_started_twice_and_not_before_its_former_process_has_ended(
    tmp_path: Path,
) -> None:
    system = toy()
    lab = StandInLab(plan_of(2), tmp_path / "nodes")
    try:
        cluster = system.start(lab, system.parse_options(), tmp_path, 60, print)  # type: ignore[arg-type]
        node = cluster.nodes["n2"]
        with pytest.raises(SystemFailed, match="it was to be started, and runs already"):
            node.start(cluster.lab)
        node.stop()
        node.start(cluster.lab)
        assert lab.spawned[1].poll() is not None
        cluster.await_serving(Wait(cluster.nodes, 60, print), ["n2"])
    finally:
        lab.close()


def test_quorum_has_a_leader_in_the_protocol_that_has_one(cluster: Cluster) -> None:
    quorum = registry.get("quorum")
    plan = plan_of(3)
    assert quorum.roles(plan, quorum.parse_options({"protocol": "leader"})) == {"leader": ("n1",)}
    named = quorum.parse_options({"protocol": "leader", "leader": "n2"})
    assert quorum.roles(plan, named) == {"leader": ("n2",)}
    assert quorum.roles(plan, quorum.parse_options()) == {}
    assert cluster.roles == {}
