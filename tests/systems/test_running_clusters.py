"""Real clusters in real labs: used from every node, killed and started again, and recorded."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
from systems_doubles import send

from tests.needs import lab_of, needs
from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.faults.links import Partition
from wanlat.emulator.lab import Lab
from wanlat.probes.plan import Request
from wanlat.probes.records import Sample
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.request import NoAnswer
from wanlat.systems.engine.request import send as send_http
from wanlat.systems.engine.wait import Wait
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve

READY_S = 90.0
TOPOLOGY = """
name: near
sites: [{name: dc1, nodes: 2}, {name: dc2, nodes: 2}]
links: {default: {rtt: 2ms}}
"""
BOTH = {"replication_factor": 2, "quorum": 2}
"""With a quorum of one, the other replica deletes only after the answer."""
OPTIONS: dict[str, dict[str, object]] = {
    "quorum": {},
    "quorum-bob": {"api": "bob", **BOTH},
    "garage": {},
    "minio": {"parity": 2},
    "bob": {**BOTH},
}
REAL = [pytest.param(name, marks=pytest.mark.stores) for name in ("garage", "minio", "bob")]
BUCKET = "real"


@pytest.fixture(scope="module", params=["quorum", "quorum-bob", *REAL])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    system = registry.get(request.param.partition("-")[0])
    needs(system.name)
    directory = tmp_path_factory.mktemp("near")
    (directory / "near.yaml").write_text(TOPOLOGY)
    # On disk: MinIO wants O_DIRECT, which a tmpfs has from Linux 6.6 on only.
    with lab_of(str(directory / "near.yaml"), storage="disk") as lab:
        options = system.parse_options(OPTIONS[request.param])
        started = system.start(lab, options, directory, READY_S, print)
        if started.api == "s3":
            started.create_bucket(BUCKET)
            made = started.send_s3(next(iter(started.nodes)), f"/{BUCKET}", method="PUT")
            assert made.ok or system.name == "garage"  # there its administrator has made it
        yield started


@pytest.mark.stores
@pytest.mark.parametrize(
    "name", ["etcd", "nats", "postgresql", "redis", "zookeeper", "nginx", "apache"]
)
def test_a_store_takes_nodes_as_sites_of_several_name_them(name: str, tmp_path: Path) -> None:
    needs(name)
    (tmp_path / "near.yaml").write_text(TOPOLOGY)
    system = registry.get(name)
    with lab_of(str(tmp_path / "near.yaml")) as lab:
        started = system.start(lab, system.parse_options({}), tmp_path, READY_S, print)
        assert "dc1-1" in started.nodes
        wrong = [f"{s}" for s in started.read_settings() if not s.is_as_expected]
        assert wrong == []


def asked(cluster: Cluster, node: str, endpoint: str, *numbers: int) -> list[Sample]:
    """Send the requests about those objects from the first node to another."""
    s3 = cluster.api == "s3"
    requests = [
        Request(
            *(seq, "measure", (S3 if s3 else BOB)[endpoint], BUCKET if s3 else None),
            key=f"k{number}" if s3 else number.to_bytes(8, "little").hex(),
            object_bytes=None if endpoint == "delete" else 5000,
            body_seed=None if endpoint == "delete" else number,
        )
        for seq, number in enumerate(numbers)
    ]
    return send(cluster, node, requests)


S3 = {"write": "PutObject", "read": "GetObject", "delete": "RemoveObject"}
BOB = {"write": "Put", "read": "Get", "delete": "Delete"}


def outcomes(samples: list[Sample]) -> set[str]:
    return {sample.outcome for sample in samples}


def test_what_one_node_stores_and_removes_every_node_serves_and_misses(cluster: Cluster) -> None:
    for number, writer in enumerate(cluster.nodes):
        assert outcomes(asked(cluster, writer, "write", number)) == {"ok"}
    for reader in cluster.nodes:  # each body is compared with what was written
        assert outcomes(asked(cluster, reader, "read", 0, 1, 2, 3)) == {"ok"}
    assert outcomes(asked(cluster, list(cluster.nodes)[1], "delete", 0)) == {"ok"}
    for reader in cluster.nodes:
        assert outcomes(asked(cluster, reader, "read", 0)) == {"fail"}


def test_it_is_recorded_as_it_is(cluster: Cluster) -> None:
    found, first = cluster.defined.find(), next(iter(cluster.nodes))
    assert (cluster.version, cluster.sha256) == (found.version, found.sha256)
    if cluster.system == "garage":
        token = cluster.scene["admin_token"]
        headers = {"Authorization": f"Bearer {token}"}
        roles = send_http(cluster.lab, first, 3903, "/v2/GetClusterLayout", headers=headers).json()
        held = Counter[str]()
        for role in roles["roles"]:
            held[role["zone"]] += role["storedPartitions"]
        assert sum(held.values()) == 256 * cluster.options["replication_factor"]
        assert {role["tags"][0]: role["zone"] for role in roles["roles"]} == {
            node.name: node.site for node in cluster.lab.nodes
        }
    elif cluster.system == "minio":
        assert outcomes(asked(cluster, first, "write", 9)) == {"ok"}
        said = cluster.send_s3(first, "/minio/admin/v3/info").json()
        assert said["backend"]["standardSCParity"] == cluster.options["parity"] == 2
        drives = [node.host_directory / "minio" / "drive" for node in cluster.lab.nodes]
        assert all((drive / BUCKET / "k9" / "xl.meta").exists() for drive in drives)
    elif cluster.system == "bob":
        told = send_http(cluster.lab, first, 8000, "/vdisks").json()
        # Bob tells all of it in an order of its own, another one from start to start.
        told.sort(key=lambda vdisk: vdisk["id"])
        planned = [sorted(each["node"] for each in vdisk["replicas"]) for vdisk in told]
        assert planned == [sorted(each) for each in cluster.options["placement"]]
    elif cluster.api == "s3":
        said = send_http(cluster.lab, first, 9002, "/healthz").json()
        assert said["protocol"] == cluster.options["protocol"] == "leaderless"


@pytest.mark.parametrize("how_many", [1, 4])
def test_nodes_that_were_killed_serve_again_what_was_written_before(
    cluster: Cluster, how_many: int
) -> None:
    names, numbers = list(cluster.nodes), [100 * how_many + number for number in range(8)]
    assert outcomes(asked(cluster, names[0], "write", *numbers)) == {"ok"}
    for name in names[-how_many:]:
        process = cluster.nodes[name].process
        assert process is not None
        process.kill()
        process.wait(10)
        with pytest.raises(SystemFailed, match=rf"node {name}: its process was ended by SIGKILL"):
            cluster.check()
        cluster.nodes[name].stop()
    for name in names[-how_many:]:
        cluster.nodes[name].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print))
    for name in names:
        assert outcomes(asked(cluster, name, "read", *numbers)) == {"ok"}
        assert outcomes(asked(cluster, name, "write", 1000)) == {"ok"}
    cluster.check()


@pytest.mark.parametrize("left", [3, 1])
def test_those_that_are_named_are_waited_for_while_others_are_down(
    cluster: Cluster, left: int
) -> None:
    names = list(cluster.nodes)
    for name in (*names[left:], names[left - 1]):
        cluster.nodes[name].stop()
    cluster.nodes[names[left - 1]].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print), names[:left])
    if cluster.system != "bob":  # which says no more than how many nodes it sees
        with pytest.raises(SystemFailed, match="not ready after 1 s"):
            cluster.await_serving(Wait(cluster.nodes, 1, print))
    for name in names[left:]:
        cluster.nodes[name].start(cluster.lab)
    cluster.await_serving(Wait(cluster.nodes, READY_S, print))


@pytest.mark.stores
@pytest.mark.parametrize(
    ("system", "wrong", "reason"),
    [
        ("garage", {"db_engine": "nonsense"}, "nonsense"),
        ("minio", {"parity": 3}, "parity 3 should be less than"),
        ("bob", {"quorum": 9}, "Quorum is more than amount of replicas"),
    ],
)
def test_a_store_that_refuses_its_configuration_is_quoted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    wrong: dict[str, object],
    reason: str,
) -> None:
    needs(system)
    known = registry.get(system)
    # Past our own checks, so that the store sees it.
    options = known.options_model.model_construct(**{**dict(known.parse_options()), **wrong})
    monkeypatch.setattr(type(known), "check_topology", lambda *_: None)
    with lab_of("one-site", storage="disk") as lab, pytest.raises(SystemFailed) as caught:
        known.start(lab, options, tmp_path, READY_S, print)
    assert reason in str(caught.value)
    assert f"The whole log: {tmp_path}/{system}-n" in str(caught.value)


@pytest.mark.stores
def test_puts_that_bobs_other_nodes_keep_are_remarked_on(tmp_path: Path) -> None:
    needs("bob")
    bob = registry.get("bob")
    with lab_of("one-site") as lab:
        options = bob.parse_options({"operation_timeout": "5s"})
        cluster = bob.start(lab, options, tmp_path, READY_S, print)
        assert outcomes(asked(cluster, "n1", "write", 0)) == {"ok"}
        assert cluster.remarks() == []
        for name in ("n2", "n3"):
            cluster.nodes[name].stop()
        assert outcomes(asked(cluster, "n1", "write", 1)) == {"ok"}
        (remark,) = cluster.remarks()
        assert "operation_timeout (5s), so n1 kept them instead" in remark


def test_the_node_whose_disk_is_full_is_named_and_its_death_says_so_too(tmp_path: Path) -> None:
    quorum = registry.get("quorum")
    with lab_of("one-site", volumes={"n2": 8 << 20}) as lab:
        cluster = quorum.start(lab, quorum.parse_options(), tmp_path, 60, print)
        cluster.check_space()
        filler = (lab.node("n2").host_directory / "filler").open("wb", buffering=0)
        with filler, pytest.raises(OSError, match="No space left"):
            while True:
                filler.write(bytes(1 << 20))
        with pytest.raises(SystemFailed, match=r"node n2: it has no room left\. .*Make room there"):
            cluster.check_space()
        told: SimpleQueue[str] = SimpleQueue()
        cluster.on_exit(told.put)
        cluster.nodes["n3"].stop()  # on purpose: nothing to tell
        process = cluster.nodes["n2"].process
        assert process is not None
        process.kill()
        message = told.get(timeout=300)
        assert told.empty()
        for part in ("was ended by SIGKILL. The disk of", "--storage memory or disk", "ready"):
            assert part in message


# -- the reference store after a partition ---------------------------------------------------

SOON_S = 9.0
"""About three are promised. TCP by itself, whose pauses double, would go on eleven seconds after
a partition of fourteen."""


def serves(cluster: Cluster, node: str, timeout_s: float) -> bool:
    try:
        return cluster.send_s3(node, f"/healing/{node}", timeout_s, method="PUT").ok
    except NoAnswer:
        return False


@pytest.mark.minutes
@pytest.mark.parametrize("for_s", [3.0, 14.0])  # shorter and longer than a connection is kept
def test_after_two_were_cut_from_two_every_node_writes_again_within_seconds(
    tmp_path: Path, for_s: float
) -> None:
    with lab_of("four-sites"):
        pass  # where there can be none, this skips
    quorum = registry.get("quorum")
    with Lab(resolve(load("four-sites")), splice="all") as lab:
        cluster = quorum.start(lab, quorum.parse_options(), tmp_path, READY_S, print)
        assert cluster.send_s3("n1", "/healing", method="PUT").ok
        scene = Scene(lab, cluster.nodes)
        partition = Partition.parse([["n1", "n2"], ["n3", "n4"]], {}, lab.plan, {})
        partition.begin(scene)
        begun = time.monotonic()
        try:
            assert not serves(cluster, "n1", for_s - 1)
            assert not serves(cluster, "n3", 0.5)
            time.sleep(max(0.0, begun + for_s - time.monotonic()))
        finally:
            partition.end(scene)
        healed = time.monotonic()
        for name in cluster.nodes:
            while not serves(cluster, name, 1.0):
                assert time.monotonic() - healed < SOON_S, name
                time.sleep(0.05)
        cluster.await_serving(Wait(cluster.nodes, SOON_S, print))
