"""A client of another maker as a process on a node, asked request by request."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.probes.plan import Request
from wanlat.probes.process import Closing
from wanlat.systems.base import Cluster
from wanlat.systems.engine.protocols import BOB_PROTO as PROTO
from wanlat.systems.errors import SystemMissing
from wanlat.systems.registry import find_tool

CHECKOUT = Path(__file__).resolve().parents[2]
MODULES = {
    "boto3": "boto3_client",
    "minio-py": "minio_client",
    "grpcio": "grpcio_client",
    "grpcurl": "grpcurl_client",
}


class Client(Closing):
    """A running client, which asks `asked` from `node`. See `serve` for what it is told."""

    def __init__(self, name: str, lab: Lab, cluster: Cluster, asked: str, node: str) -> None:
        self._stack = ExitStack()
        given, self._write = os.pipe()
        self._read, answered = os.pipe()
        argv = [sys.executable, "-m", f"tests.clients.{MODULES[name]}"]
        env = {"PYTHONPATH": os.pathsep.join([str(CHECKOUT), *filter(None, sys.path)])}
        with suppress(SystemMissing):  # HOME is another directory on a node
            env["WANLAT_GRPCURL_BINARY"] = str(find_tool("grpcurl").path)
        self._process = lab.spawn(node, argv, env=env, stdin=given, stdout=answered)
        os.close(given)
        os.close(answered)
        self._answers = self._stack.enter_context(os.fdopen(self._read))
        self._requests = self._stack.enter_context(os.fdopen(self._write, "w"))
        self._say(json.dumps(_address(cluster, asked)))
        assert self._heard()["version"]

    def ask(self, request: Request) -> float:
        """Return how long a request took, in ms."""
        self._say(request.line().decode().strip())
        answer = self._heard()
        assert answer["ok"], answer
        assert answer["seq"] == request.seq
        return float(answer["end_ns"] - answer["start_ns"]) / 1e6

    def close(self) -> None:
        self._stack.close()
        self._process.wait(30)  # the end of its input is its end

    def _say(self, line: str) -> None:
        self._requests.write(line + "\n")
        self._requests.flush()

    def _heard(self) -> dict[str, Any]:
        line = self._answers.readline()
        assert line, "the client ended; what it said is above"
        heard: dict[str, Any] = json.loads(line)
        return heard


def _address(cluster: Cluster, node: str) -> dict[str, Any]:
    if cluster.api == "s3":
        return asdict(cluster.s3(node))
    grpc = cluster.grpc(node)
    at = {"host": grpc.host, "port": grpc.port}
    return at | {"protos": [str(PROTO)], "includes": [str(PROTO.parent)]}
