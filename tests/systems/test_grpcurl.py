"""grpcurl, calling every endpoint of Bob's API."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.needs import lab_of, needs
from wanlat.systems import registry
from wanlat.systems.base import Cluster
from wanlat.systems.engine.protocols import BOB_PROTO as PROTO

# -- calling ------------------------------------------------------------------------------------

SYSTEMS = [
    pytest.param("quorum", marks=pytest.mark.programs),
    pytest.param("bob", marks=pytest.mark.stores),
]
KEY = base64.b64encode(bytes(range(8))).decode()
BODY = base64.b64encode(b"a blob").decode()


@pytest.fixture(scope="module", params=SYSTEMS)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    needs("grpcurl", request.param)
    system = registry.get(request.param)
    options = system.parse_options({"api": "bob"} if request.param == "quorum" else {})
    with lab_of("one-site") as lab:
        yield system.start(lab, options, tmp_path_factory.mktemp("logs"), 60, print)


def call(
    cluster: Cluster, node: str, method: str, request: dict[str, Any]
) -> subprocess.CompletedProcess[str]:
    """As docs/systems.md shows it."""
    at = cluster.grpc(node)
    program = str(registry.find_tool("grpcurl").path)
    proto = ["-import-path", str(PROTO.parent), "-proto", PROTO.name]
    given = ["-emit-defaults", "-d", json.dumps(request)]
    where = [f"{at.host}:{at.port}", f"bob_storage.BobApi/{method}"]
    return cluster.lab.run("n1", [program, "-plaintext", *proto, *given, *where])


def answer(cluster: Cluster, node: str, method: str, request: dict[str, Any]) -> Any:
    done = call(cluster, node, method, request)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_grpcurl_calls_every_endpoint(cluster: Cluster) -> None:
    blob = {"data": BODY, "meta": {"timestamp": 1_700_000_000}}
    assert answer(cluster, "n2", "Ping", {}) == {}
    assert answer(cluster, "n1", "Put", {"key": {"key": KEY}, "data": blob}) == {"error": None}
    got = answer(cluster, "n3", "Get", {"key": {"key": KEY}})
    assert got["data"] == BODY
    other = base64.b64encode(b"otherkey").decode()
    keys = [{"key": KEY}, {"key": other}]
    assert answer(cluster, "n2", "Exist", {"keys": keys}) == {"exist": [True, False]}
    removed = {"key": {"key": KEY}, "meta": {"timestamp": 1_700_000_001}}
    assert answer(cluster, "n2", "Delete", removed) == {"error": None}
    gone = call(cluster, "n1", "Get", {"key": {"key": KEY}})
    assert gone.returncode == 64 + 5  # grpcurl's: the status is NOT_FOUND
    assert "KeyNotFound" in gone.stderr


def test_the_proto_has_exactly_these_endpoints(cluster: Cluster) -> None:
    program = str(registry.find_tool("grpcurl").path)
    proto = ["-import-path", str(PROTO.parent), "-proto", PROTO.name]
    listed = cluster.lab.run("n1", [program, *proto, "list", "bob_storage.BobApi"])
    methods = [line.rpartition(".")[2] for line in listed.stdout.split()]
    assert sorted(methods) == ["Delete", "Exist", "Get", "Ping", "Put"]
