"""The protocols that wanlat asks stores over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, StrictStr

from wanlat.emulator.binaries import PACKAGE
from wanlat.topologies.units import Size
from wanlat.topologies.yaml_model import YamlModel

Api = Literal["s3", "bob", "grpc", "http", "exec"]
"""What is measured: S3, Bob's gRPC service, or requests that a user defines: of a gRPC service,
over HTTP, or made by a program."""

BOB_PROTO = PACKAGE / "proto" / "bob.proto"
"""Bob's gRPC interface, as wanlat has written it down."""


Operation = Literal["write", "read", "delete", "exists", "list"]
"""What can be done to objects."""
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


class Objects(YamlModel):
    """Which endpoint does what to objects. With the first three a system is a store."""

    write: StrictStr | None = Field(default=None, description="puts `{body}` at `{key}`")
    read: StrictStr | None = Field(default=None, description="its answer holds the object")
    delete: StrictStr | None = Field(default=None, description="removes the object")
    exists: StrictStr | None = Field(default=None, description="says whether it is there")
    list: StrictStr | None = Field(default=None, description="lists keys")
    largest: Size | None = Field(default=None, description="the largest object that it takes")

    @property
    def names(self) -> dict[Operation, str]:
        """The endpoints that there are, by what they do."""
        return {each: name for each in OPERATIONS if (name := getattr(self, each)) is not None}

    @property
    def is_whole(self) -> bool:
        """Whether objects can be written, read and removed."""
        return {"write", "read", "delete"} <= self.names.keys()

    def does(self, endpoint: str) -> Operation | None:
        """Return what an endpoint does to an object; None of others."""
        return next((each for each, name in self.names.items() if name == endpoint), None)


_NONE = Objects()


@dataclass(frozen=True)
class Protocol:
    """One of them: how a message names it, what it defines, and how it has objects."""

    spoken: str
    protos: tuple[Path, ...] = ()
    """None: each system has its own."""
    objects: Objects = _NONE
    in_messages: bool = False
    """Whether requests and answers are messages, of which the longest is known."""
    is_loaded: bool = True
    """Whether oneshot can have many requests in flight."""


PROTOCOLS: dict[Api, Protocol] = {
    "s3": Protocol(
        "S3",
        objects=Objects(
            write="PutObject",
            read="GetObject",
            delete="RemoveObject",
            exists="HeadObject",
            list="ListObjects",
        ),
    ),
    "bob": Protocol(
        "Bob's gRPC API",
        (BOB_PROTO,),
        Objects(write="Put", read="Get", delete="Delete", exists="Exist"),
        in_messages=True,
    ),
    "grpc": Protocol("gRPC, as its own .proto files define it", in_messages=True),
    "http": Protocol("HTTP, as its definition says", is_loaded=False),
    "exec": Protocol("what a program of its definition speaks", is_loaded=False),
}


@cache
def does(endpoint: str) -> Operation | None:
    """Return what an endpoint of S3 or of Bob's does to an object."""
    return next(filter(None, (each.objects.does(endpoint) for each in PROTOCOLS.values())), None)


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

    ``protos`` define its services; what they import is looked for in ``includes``. Of
    ``is_known`` ones oneshot has the definition. ``metadata`` goes with every call.
    """

    host: str
    port: int
    protos: tuple[Path, ...] = ()
    includes: tuple[Path, ...] = ()
    is_known: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


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


Target = S3Target | GrpcTarget | HttpTarget | ProgramTarget
