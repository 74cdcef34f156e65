"""Clusters that speak Bob's API, in real labs: the reference store's, and real ones of Bob."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_bob import body_of, calls, key, put, rounds

from tests.needs import lab_of, needs
from wanlat.emulator.lab import Lab
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.request import ask
from wanlat.systems.engine.wait import Wait
from wanlat.systems.errors import SystemFailed
from wanlat.systems.placement import vdisk_of

pytest.importorskip("grpc_tools")

READY_S = 90.0


def started(lab: Lab, system: str, logs: Path, **options: object) -> Cluster:
    needs(system)
    known = registry.get(system)
    if system == "quorum":
        options["api"] = "bob"
    chosen = known.parse_options(options)
    known.check_topology(lab.plan, chosen)
    return known.start(lab, chosen, logs, READY_S, print)


SYSTEMS = ["quorum", pytest.param("bob", marks=pytest.mark.stores)]


@pytest.fixture(scope="module", params=SYSTEMS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Four nodes in two sites with two replicas each, so that no node holds every key."""
    needs(request.param)
    topology = tmp_path_factory.mktemp("topology") / "near.yaml"
    topology.write_text(
        "name: near\nsites: [{name: dc1, nodes: 2}, {name: dc2, nodes: 2}]\n"
        "links: {default: {rtt: 5ms}}\n"
    )
    logs = tmp_path_factory.mktemp("logs")
    with lab_of(str(topology)) as lab:
        yield started(lab, request.param, logs, replication_factor=2)


def a_key(vdisk: int, number: int = 0) -> bytes:
    return (4 * number + vdisk).to_bytes(8, "little")


def test_what_one_node_stores_every_node_serves(cluster: Cluster) -> None:
    nodes = list(cluster.nodes)
    bodies = {a_key(place, 100): name.encode() * 5000 for place, name in enumerate(nodes)}
    stored = calls(
        cluster,
        nodes[0],
        [(n, "Put", put(k, b)) for n, (k, b) in zip(nodes, bodies.items(), strict=True)],
    )
    assert stored == [{}] * 4
    for reader in nodes:
        got = calls(cluster, reader, [(reader, "Get", {"key": key(k)}) for k in bodies])
        assert [body_of(answer) for answer in got] == list(bodies.values())


def test_every_endpoint_does_what_it_says(cluster: Cluster) -> None:
    first, second, *_ = cluster.nodes
    there, never = a_key(1, 7), a_key(2, 8)
    answers = calls(
        cluster,
        second,
        [
            (first, "Ping", {}),
            (first, "Put", put(there, b"blob")),
            (second, "Exist", {"keys": [key(there), key(never)]}),
            (second, "Delete", {"key": key(there), "meta": {"timestamp": "1700000001"}}),
            (first, "Get", {"key": key(there)}),
            (first, "Get", {"key": key(never)}),
        ],
    )
    assert answers[:2] == [{}, {}]
    assert answers[2] == {"exist": [True, False]}
    assert answers[3] == {}
    assert [answer["status"] for answer in answers[4:]] == ["NOT_FOUND", "NOT_FOUND"]
    assert all("KeyNotFound" in answer["details"] for answer in answers[4:])


def test_a_blob_is_where_the_placement_says_and_nowhere_else(cluster: Cluster) -> None:
    nodes = list(cluster.nodes)
    keys = [a_key(vdisk, 200) for vdisk in range(4)]
    # At the last node for all: who is asked must not matter.
    calls(cluster, nodes[0], [(nodes[-1], "Put", put(k, b"placed")) for k in keys])
    for k in keys:
        assert holders(cluster, k) == set(cluster.replicas(k) or ()), (cluster.system, k)


def holders(cluster: Cluster, k: bytes) -> set[str]:
    """The nodes that have a blob themselves.

    The reference store says how many round trips an answer took; Bob, asked with force_node,
    answers from the node's own disks alone.
    """
    first = next(iter(cluster.nodes))
    if cluster.system == "quorum":
        took = rounds(cluster, first, [(name, "Get", {"key": key(k)}) for name in cluster.nodes])
        return {name for name, count in zip(cluster.nodes, took, strict=True) if count == 0}
    alone = {"forceNode": True, "source": "NORMAL"}
    asked = [(name, "Get", {"key": key(k), "options": alone}) for name in cluster.nodes]
    answers = calls(cluster, first, asked)
    held = zip(cluster.nodes, answers, strict=True)
    return {name for name, answer in held if "status" not in answer}


def test_version_and_hash_are_those_of_the_program(cluster: Cluster) -> None:
    found = registry.get(cluster.system).find()
    assert (cluster.version, cluster.sha256) == (found.version, found.sha256)


def test_a_killed_node_is_noticed_and_can_be_started_again(cluster: Cluster) -> None:
    name, node = list(cluster.nodes.items())[-1]
    assert node.process is not None
    node.process.kill()
    node.process.wait(10)
    with pytest.raises(SystemFailed, match=rf"node {name}: its process was ended by SIGKILL"):
        cluster.check()
    node.start(cluster.lab)
    cluster.make_ready(Wait(cluster.nodes, READY_S, print))
    cluster.check()


@pytest.fixture(scope="module")
def bob(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    needs("bob")
    with lab_of("three-datacenters") as lab:
        made = started(lab, "bob", tmp_path_factory.mktemp("logs"))
        yield made


@pytest.mark.stores
def test_bob_itself_tells_the_placement_that_was_planned(bob: Cluster) -> None:
    planned = bob.options["placement"]
    for name in bob.nodes:
        told = {
            vdisk["id"]: vdisk["replicas"] for vdisk in ask(bob.lab, name, 8000, "/vdisks").json()
        }
        assert sorted(told) == list(range(len(planned))) == list(range(6))
        for number, replicas in told.items():
            assert [replica["node"] for replica in replicas] == planned[number]


@pytest.mark.stores
def test_bob_counts_records_where_the_placement_says(bob: Cluster) -> None:
    nodes = list(bob.nodes)
    # A quorum acknowledges; the third replica comes later. So all three are waited for.
    keys = [number.to_bytes(8, "little") for number in range(60)]
    calls(bob, nodes[0], [(nodes[0], "Put", put(k, b"counted")) for k in keys])
    wanted = Counter(vdisk_of(k, 6) for k in keys)
    assert set(wanted.values()) == {10}

    def counted(name: str) -> str | None:
        for number, replicas in enumerate(bob.options["placement"]):
            answer = ask(bob.lab, name, 8000, f"/vdisks/{number}/records/count")
            records = answer.json() if answer.ok else None
            if name in replicas and records != wanted[number]:
                return f"vdisk {number} has {records} records"
            if name not in replicas:
                assert not records, (name, number, replicas)
        return None

    Wait(bob.nodes, 30, print).each("records", counted)


@pytest.mark.stores
def test_bob_sees_a_dead_peer_with_its_own_pings(tmp_path: Path) -> None:
    with lab_of("one-site") as lab:
        cluster = started(lab, "bob", tmp_path)
        first, *_, last = cluster.nodes
        cluster.nodes[last].stop()

        def sees_two(name: str) -> str | None:
            metrics = ask(cluster.lab, name, 8000, "/metrics").json()["metrics"]
            seen = metrics["link_manager.nodes_number"]["value"]
            return None if seen == 2 else f"it sees {seen}"

        Wait(cluster.nodes, 30, print).each("noticed", sees_two, [first])


@pytest.mark.stores
def test_a_refused_configuration_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bob")
    known = registry.get("bob")

    # Past our own checks, so that Bob sees it.
    monkeypatch.setattr(type(known), "check_topology", lambda *_: None)
    with lab_of("one-site") as lab, pytest.raises(SystemFailed) as caught:
        known.start(lab, known.parse_options({"quorum": 9}), tmp_path, READY_S, print)
    message = str(caught.value)
    assert "its process was ended by SIGABRT" in message  # how this program ends when it panics
    assert "Quorum is more than amount of replicas for VDisk with id 0" in message
    assert f"The whole log: {tmp_path}/bob-n" in message


@pytest.mark.stores
def test_bob_runs_on_five_sites_and_logs_no_request(tmp_path: Path) -> None:
    with lab_of("five-sites") as lab:
        cluster = started(lab, "bob", tmp_path)
        nodes = list(cluster.nodes)
        sizes = {name: (tmp_path / f"bob-{name}.log").stat().st_size for name in nodes}
        keys = [number.to_bytes(8, "little") for number in range(20)]
        assert calls(cluster, "n1", [("n1", "Put", put(k, b"x")) for k in keys]) == [{}] * 20
        got = calls(cluster, "n5", [("n5", "Get", {"key": key(k)}) for k in keys])
        assert [body_of(answer) for answer in got] == [b"x"] * 20
        assert sizes == {name: (tmp_path / f"bob-{name}.log").stat().st_size for name in nodes}, (
            json.dumps({n: (tmp_path / f"bob-{n}.log").read_text()[-300:] for n in nodes})
        )


@pytest.mark.stores
def test_puts_that_other_nodes_keep_are_remarked_on(tmp_path: Path) -> None:
    with lab_of("one-site") as lab:
        cluster = started(lab, "bob", tmp_path, operation_timeout="5s")
        assert calls(cluster, "n1", [("n1", "Put", put(bytes(8), b"on time"))]) == [{}]
        assert cluster.remarks() == []
        for name in ("n2", "n3"):
            cluster.nodes[name].stop()
        assert calls(cluster, "n1", [("n1", "Put", put(a_key(1), b"kept"))]) == [{}]
        (remark,) = cluster.remarks()
        assert "operation_timeout (5s), so n1 kept them instead" in remark
