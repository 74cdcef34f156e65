"""Bob's API through Python's gRPC library, from a node of a lab: a client that is not ours.

Run as a program it makes the calls it reads from stdin: [[address, method, request], ...].
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from wanlat.emulator.lab import Lab
from wanlat.systems.base import Cluster
from wanlat.systems.engine.protocols import BOB_PROTO as PROTO

Call = tuple[str, str, dict[str, Any]]
"""The node that is asked, the method, and the request as protobuf's JSON."""


def calls(cluster: Cluster, client: str, wanted: list[Call]) -> list[dict[str, Any]]:
    """Make calls one after another from a node; a failed one gives {"status", "details"}."""
    return [answer for answer, _ in _answers(cluster, client, wanted)]


def rounds(cluster: Cluster, client: str, wanted: list[Call]) -> list[int]:
    """Likewise; return how many round trips the reference store says it took for each."""
    return [int(headers["x-quorum-rounds"]) for _, headers in _answers(cluster, client, wanted)]


def _answers(cluster: Cluster, client: str, wanted: list[Call]) -> list[Any]:
    asked = []
    for node, method, request in wanted:
        target = cluster.grpc(node)
        asked.append([f"{target.host}:{target.port}", method, request])
    answers: list[Any] = run(cluster.lab, client, asked)
    return answers


def run(lab: Lab, client: str, asked: list[Any]) -> Any:
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as answered:
        json.dump(asked, given)
        given.seek(0)
        log = sys.stderr.fileno() if hasattr(sys.stderr, "fileno") else None
        program = [sys.executable, str(Path(__file__).absolute())]
        env = {"PYTHONPATH": str(Path(__file__).absolute().parents[2])}
        made = lab.spawn(client, program, env=env, stdin=given, stdout=answered, stderr=log)
        assert made.wait(120) == 0
        answered.seek(0)
        return json.load(answered)


def key(data: bytes) -> dict[str, str]:
    """A BlobKey."""
    return {"key": base64.b64encode(data).decode()}


def put(data: bytes, body: bytes) -> dict[str, Any]:
    blob = {"data": base64.b64encode(body).decode(), "meta": {"timestamp": "1700000000"}}
    return {"key": key(data), "data": blob}


def body_of(answer: dict[str, Any]) -> bytes:
    return base64.b64decode(answer["data"])


def _main() -> None:
    import grpc
    from google.protobuf.json_format import MessageToDict, ParseDict
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as directory:
        out = [f"--python_out={directory}", f"--grpc_python_out={directory}"]
        assert protoc.main(["protoc", f"-I{PROTO.parent}", *out, str(PROTO)]) == 0
        sys.path.insert(0, directory)
        messages, services = __import__("bob_pb2"), __import__("bob_pb2_grpc")
    takes = {
        m.name: m.input_type.name for m in messages.DESCRIPTOR.services_by_name["BobApi"].methods
    }
    answers, channels = [], {}
    for address, method, request in json.load(sys.stdin):
        if address not in channels:
            channels[address] = grpc.insecure_channel(address)
        message = ParseDict(request, getattr(messages, takes[method])())
        try:
            make = getattr(services.BobApiStub(channels[address]), method)
            answer, call = make.with_call(message, timeout=30)
            answers.append([MessageToDict(answer), dict(call.initial_metadata())])
        except grpc.RpcError as error:
            answers.append([{"status": error.code().name, "details": error.details()}, {}])
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    _main()
