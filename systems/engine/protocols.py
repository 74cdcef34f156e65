"""The protocols that wanlat asks stores over. HTTP and programs of the user's have a place here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wanlat.emulator.binaries import PACKAGE

Api = Literal["s3", "bob", "grpc"]
"""What is measured: S3, Bob's gRPC service, or whatever gRPC service a user brings."""

BOB_PROTO = PACKAGE / "proto" / "bob.proto"
"""Bob's gRPC interface, as wanlat has written it down."""


@dataclass(frozen=True)
class Protocol:
    """One of them: how a message names it, and what defines its services."""

    spoken: str
    protos: tuple[Path, ...] = ()


PROTOCOLS: dict[Api, Protocol] = {
    "s3": Protocol("S3"),
    "bob": Protocol("Bob's gRPC API", (BOB_PROTO,)),
    "grpc": Protocol("gRPC, as its own .proto files define it"),
}


@dataclass(frozen=True)
class S3Target:
    """The S3 interface of one node, as seen from inside the lab."""

    host: str
    port: int
    region: str
    access_key: str
    secret_key: str


@dataclass(frozen=True)
class GrpcTarget:
    """The gRPC interface of one node, as seen from inside the lab.

    ``protos`` define its services; what they import is looked for in ``includes``.
    """

    host: str
    port: int
    protos: tuple[Path, ...] = ()
    includes: tuple[Path, ...] = ()
