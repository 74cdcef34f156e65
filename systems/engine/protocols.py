"""The protocols that wanlat asks stores over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wanlat.emulator.binaries import PACKAGE

Api = Literal["s3", "bob", "grpc", "http", "exec"]
"""What is measured: S3, Bob's gRPC service, or requests that a user defines: of a gRPC service,
over HTTP, or made by a program."""

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
    "http": Protocol("HTTP, as its definition says"),
    "exec": Protocol("what a program of its definition speaks"),
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


@dataclass(frozen=True)
class HttpTarget:
    """The HTTP interface of one node, and the headers of every request."""

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramTarget:
    """The program that makes the requests to one node."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
