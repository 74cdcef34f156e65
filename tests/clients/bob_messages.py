"""Python's classes for Bob's messages, generated when a client starts: nothing is kept."""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.serve import Check, body_of, nothing_to_check, same_as


class BobMessages:
    """What to send for a request to Bob, and how to check what came back."""

    def __init__(self, protos: Sequence[str], includes: Sequence[str]) -> None:
        from grpc_tools import protoc

        proto = next((Path(each) for each in protos if Path(each).name == "bob.proto"), None)
        if proto is None:
            raise ValueError(f"there is no bob.proto among the protos {list(protos)}")
        with tempfile.TemporaryDirectory() as made:
            paths = [f"-I{each}" for each in (*includes, str(proto.parent))]
            arguments = ["protoc", *paths, f"--python_out={made}", f"--grpc_python_out={made}"]
            if protoc.main([*arguments, str(proto)]) != 0:
                raise ValueError(f"{proto} could not be compiled")
            sys.path.insert(0, made)
            try:
                self._pb2: Any = importlib.import_module("bob_pb2")
                grpc: Any = importlib.import_module("bob_pb2_grpc")
            finally:
                sys.path.remove(made)
        self.stub: Any = grpc.BobApiStub

    def make(self, request: dict[str, Any]) -> tuple[Any, Check]:
        """Return the message that a request sends, and the check of the one that answers it."""
        pb2, endpoint = self._pb2, request["endpoint"]
        if endpoint == "Ping":
            return pb2.Null(), nothing_to_check
        key = pb2.BlobKey(key=bytes.fromhex(request["key"]))
        now = pb2.BlobMeta(timestamp=int(time.time()))
        if endpoint == "Put":
            blob = pb2.Blob(data=body_of(request), meta=now)
            return pb2.PutRequest(key=key, data=blob), _went_well
        if endpoint == "Get":
            same = same_as(body_of(request))
            return pb2.GetRequest(key=key), lambda got: same(got.data)
        if endpoint == "Exist":
            right = request.get("exists", True)
            return pb2.ExistRequest(keys=[key]), (
                lambda got: None if list(got.exist) == [right] else f"exist is {list(got.exist)}"
            )
        if endpoint == "Delete":
            return pb2.DeleteRequest(key=key, meta=now), _went_well
        raise ValueError(f"Bob has no endpoint {endpoint}")


def _went_well(status: Any) -> str | None:
    return f"{status.error.code}: {status.error.desc}" if status.HasField("error") else None
