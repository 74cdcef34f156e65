"""GridFS's protocol, against a stand-in: de.bwaldvogel:mongo-java-server, and no mongod.

It shows that client.py writes, reads and deletes objects through pymongo. Nothing of a replica set,
nor of MongoDB's own round trips, is seen here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests import mongo_stand_in
from tests.needs import needs
from wanlat.emulator.binaries import SEARCH_PATH
from wanlat.experiments.config.endpoints import objects_of
from wanlat.experiments.requests import is_not_found
from wanlat.probes.oneshot import run_requests
from wanlat.probes.process import spawn_here
from wanlat.probes.protocols.exec import ExecHeader
from wanlat.systems import registry
from wanlat.systems.engine.scene import at
from wanlat.systems.engine.text import filled
from wanlat.topologies.load import load
from wanlat.topologies.resolve import resolve


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    needs("mvn", "javac")
    server = subprocess.Popen(
        mongo_stand_in.brought(tmp_path_factory.mktemp("stand-in")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdin is not None and server.stdout is not None
        yield f"mongodb://127.0.0.1:{int(server.stdout.readline())}/?directConnection=true"
        server.stdin.close()


@pytest.mark.registry
def test_objects_are_written_read_and_deleted_through_gridfs(uri: str) -> None:
    system = registry.get("mongodb")
    api = objects_of(system, system.parse_options())
    assert api is not None
    client = [sys.executable, str(system.directory / "client.py"), uri, uri]
    header = ExecHeader(client, {"PYTHONPATH": str(SEARCH_PATH)})
    asked: list[Any] = []
    for object_bytes in (31_596, 1 << 20):
        more: dict[str, Any] = {"bucket": "", "object_bytes": object_bytes, "body_seed": 5}
        key = api.native(f"{object_bytes}")
        asked += [
            api.request(does, 0, key, **more)
            for does in ("read", "write", "read", "delete", "read", "delete")
        ]
    came: list[str] = []
    run_requests(
        spawn_here,
        header,
        asked,
        lambda _, sample: came.append("absent" if is_not_found(sample) else sample.outcome),
    )
    assert came == ["absent", "ok", "ok", "ok", "absent", "absent"] * 2


def test_every_node_is_a_member_and_the_primary_comes_first() -> None:
    system, plan = registry.get("mongodb"), resolve(load("three-datacenters"))
    scene = system.scene(plan, system.parse_options({"primary": "n2"}))
    (step, *_) = system.definition.after_start
    assert step.run is not None
    told = json.loads(filled(step.run[-1], at(scene, scene["nodes"][0])))["replSetInitiate"]
    hosts = [f"{node.address}:27017" for node in scene["nodes"]]
    assert [each["host"] for each in told["members"]] == hosts
    assert [each["priority"] for each in told["members"]] == [1, 2, 1, 1, 1, 1]
