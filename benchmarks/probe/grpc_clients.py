"""Those that speak gRPC: Bob's Get."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.null_server import NullServer
from benchmarks.probe.contenders import (
    OBJECT_BYTES,
    PAUSE_US,
    Contender,
    Target,
    bare_loop,
    oneshot_driven,
    oneshot_from_file,
    python_client,
)
from wanlat.probes.plan import GrpcHeader, Request

_BARE, _PACED = "bare tonic", "bare tonic, pausing"
_ONESHOT, _GRPCIO = "oneshot grpc, plan from a file", "python grpcio"
_KEY = "0706050403020100"
_PROTO = Path(__file__).resolve().parent.parent.parent / "proto" / "bob.proto"

TARGETS = (
    Target(_ONESHOT, _BARE, at_most=2.0),
    Target(_ONESHOT, _GRPCIO, at_most=1 / 3),
)


def contenders(server: NullServer) -> list[Contender]:
    """Return all of them; those that others are compared with come first."""
    header = GrpcHeader(server.host, server.port)
    return [
        Contender(_BARE, bare_loop("bare-grpc", server.address, pause_us=0), _BARE),
        Contender(_ONESHOT, oneshot_from_file(header, _requests), _BARE),
        Contender(_GRPCIO, python_client(_grpcio(server)), _BARE),
        Contender(_PACED, bare_loop("bare-grpc", server.address, pause_us=PAUSE_US), _PACED),
        Contender("oneshot grpc, driven by a study", oneshot_driven(header, _requests), _PACED),
    ]


def _request(seq: int) -> Request:
    return Request(seq, "measure", "Get", key=_KEY, object_bytes=OBJECT_BYTES, body_seed=0)


def _requests(count: int) -> list[Request]:
    return [_request(seq) for seq in range(count)]


def _grpcio(server: NullServer) -> Callable[[], bytes]:
    import grpc

    sys.path.append(str(_PROTO.parent))  # where grpcio looks for .proto files
    messages, services = grpc.protos_and_services(_PROTO.name)
    stub = services.BobApiStub(grpc.insecure_channel(server.address))
    message = messages.GetRequest(key=messages.BlobKey(key=bytes.fromhex(_KEY)))

    def get() -> bytes:
        body: bytes = stub.Get(message).data
        return body

    return get
