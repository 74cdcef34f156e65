"""Real clusters in a real lab: started, used from every node, and failing readably."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from lab_s3 import client

from tests.needs import lab_of, needs
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.request import ask
from wanlat.systems.engine.wait import Wait
from wanlat.systems.errors import SystemFailed

READY_S = 90.0

REAL = [pytest.param(name, marks=pytest.mark.stores) for name in ("garage", "minio")]


@pytest.fixture(scope="module", params=["quorum", *REAL])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    needs(request.param)
    system = registry.get(request.param)
    logs = tmp_path_factory.mktemp("logs")
    # On disk: MinIO wants O_DIRECT, which a tmpfs has from Linux 6.6 on only.
    with lab_of("one-site", storage="disk") as lab:
        yield system.start(lab, system.parse_options(), logs, READY_S, print)


def s3(cluster: Cluster, node: str) -> Any:
    return client(cluster.lab, node, cluster.s3(node))


@pytest.fixture(scope="module")
def bucket(cluster: Cluster) -> str:
    """Made as a study makes it: by the administrator where there is one, then through S3."""
    name = "real-stores"
    cluster.create_bucket(name)
    try:
        s3(cluster, next(iter(cluster.nodes))).create_bucket(Bucket=name)
    except ClientError as there:
        assert cluster.system == "garage"
        assert there.response["Error"]["Code"] == "BucketAlreadyOwnedByYou"
    return name


def test_what_one_node_stores_every_node_serves(cluster: Cluster, bucket: str) -> None:
    nodes = list(cluster.nodes)
    for writer in nodes:
        body = writer.encode() * 5000
        s3(cluster, writer).put_object(Bucket=bucket, Key=f"from/{writer}", Body=body)
        for reader in nodes:
            got = s3(cluster, reader).get_object(Bucket=bucket, Key=f"from/{writer}")
            assert got["Body"].read() == body
    for reader in nodes:
        listed = s3(cluster, reader).list_objects_v2(Bucket=bucket, Prefix="from/")
        assert [each["Key"] for each in listed["Contents"]] == [f"from/{n}" for n in nodes]
        assert bucket in [each["Name"] for each in s3(cluster, reader).list_buckets()["Buckets"]]


def test_what_one_node_removes_is_gone_on_every_node(cluster: Cluster, bucket: str) -> None:
    nodes = list(cluster.nodes)
    s3(cluster, nodes[0]).put_object(Bucket=bucket, Key="short-lived", Body=b"x")
    s3(cluster, nodes[1]).delete_object(Bucket=bucket, Key="short-lived")
    for reader in nodes:
        with pytest.raises(Exception, match=r"Not Found|NoSuchKey"):
            s3(cluster, reader).head_object(Bucket=bucket, Key="short-lived")


def test_a_wrong_secret_is_refused(cluster: Cluster, bucket: str) -> None:
    node = next(iter(cluster.nodes))
    stranger = client(cluster.lab, node, replace(cluster.s3(node), secret_key="0" * 64))
    with pytest.raises(Exception, match=r"SignatureDoesNotMatch|AccessDenied|Forbidden|signature"):
        stranger.list_objects_v2(Bucket=bucket)


def test_version_and_hash_are_those_of_the_program(cluster: Cluster) -> None:
    found = registry.get(cluster.system).find()
    assert (cluster.version, cluster.sha256) == (found.version, found.sha256)
    assert cluster.version[-1].isalnum()
    assert any(char.isdigit() for char in cluster.version)


def layout(cluster: Cluster) -> Any:
    """The layout in force: who holds how many partitions."""
    token = cluster.scene["admin_token"]
    headers = {"Authorization": f"Bearer {token}"}
    return ask(cluster.lab, "n1", 3903, "/v2/GetClusterLayout", headers=headers).json()


def test_the_recorded_options_are_those_that_the_store_itself_tells(cluster: Cluster) -> None:
    first = next(iter(cluster.nodes))
    if cluster.system == "garage":
        held = sum(role["storedPartitions"] for role in layout(cluster)["roles"])
        assert held == 256 * cluster.options["replication_factor"] == 256 * 3
    elif cluster.system == "minio":
        said = cluster.ask_s3(first, "/minio/admin/v3/info").json()
        assert said["backend"]["standardSCParity"] == cluster.options["parity"] == 1
    else:
        said = ask(cluster.lab, first, 9002, "/healthz").json()
        assert said["protocol"] == cluster.options["protocol"] == "leaderless"


@pytest.mark.stores
def test_garage_over_datacenters_has_a_zone_a_site(tmp_path: Path) -> None:
    needs("garage")
    garage = registry.get("garage")
    with lab_of("three-datacenters", storage="disk") as lab:
        cluster = garage.start(lab, garage.parse_options(), tmp_path, READY_S, print)
        roles = layout(cluster)["roles"]
        zones = {role["tags"][0]: role["zone"] for role in roles}
        assert zones == {node.name: node.site for node in lab.nodes}
        # Three zones and three copies: each zone has every partition once, on one of its nodes.
        held = Counter[str]()
        for role in roles:
            held[role["zone"]] += role["storedPartitions"]
        assert set(held.values()) == {256}


def test_a_killed_node_is_noticed_and_can_be_started_again(cluster: Cluster, bucket: str) -> None:
    node = list(cluster.nodes.values())[-1]
    assert node.process is not None
    node.process.kill()
    node.process.wait(10)
    with pytest.raises(SystemFailed, match=rf"node {node.node}: its process was ended by SIGKILL"):
        cluster.check()
    node.start(cluster.lab)
    Wait(cluster.nodes, READY_S, print).each(
        "S3", lambda name: None if cluster.ask_s3(name).ok else "it does not list"
    )
    cluster.check()


# Options that no study can give: they are built past the checks, so that the store refuses them.
REFUSED = {
    "garage": ({"db_engine": "nonsense"}, "nonsense"),
    "minio": ({"parity": 3}, "parity 3 should be less than"),
}


@pytest.mark.stores
@pytest.mark.parametrize("system", REFUSED)
def test_a_store_that_refuses_its_configuration_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    needs(system)
    wrong, reason = REFUSED[system]
    known = registry.get(system)
    options = known.options_model.model_construct(**{**dict(known.parse_options()), **wrong})
    monkeypatch.setattr(type(known), "check_topology", lambda *_: None)
    with lab_of("one-site", storage="disk") as lab, pytest.raises(SystemFailed) as caught:
        known.start(lab, options, tmp_path, READY_S, print)
    message = str(caught.value)
    assert "its process ended with exit code" in message
    assert reason in message
    assert f"The whole log: {tmp_path}/{system}-n" in message
