"""The protocols that requests are made in: a module for each, and the list of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from wanlat.systems.engine.protocols.base import (
    OPERATIONS,
    Objects,
    Operation,
    Place,
    Protocol,
    Target,
)
from wanlat.systems.engine.protocols.bob import BOB_PROTO, BobProtocol
from wanlat.systems.engine.protocols.exec import ExecProtocol, ProgramTarget
from wanlat.systems.engine.protocols.grpc import GrpcProtocol, GrpcTarget
from wanlat.systems.engine.protocols.http import HttpProtocol, HttpTarget
from wanlat.systems.engine.protocols.s3 import S3Protocol, S3Target

__all__ = [
    "BOB_PROTO",
    "DEFAULT",
    "OPERATIONS",
    "PROTOCOLS",
    "Api",
    "GrpcTarget",
    "HttpTarget",
    "Objects",
    "Operation",
    "Place",
    "ProgramTarget",
    "Protocol",
    "S3Target",
    "Target",
    "does",
]

PROTOCOLS: Mapping[str, Protocol[Any]] = {
    protocol.name: protocol
    for protocol in (S3Protocol(), BobProtocol(), GrpcProtocol(), HttpProtocol(), ExecProtocol())
}
"""By the names that definitions use. `wanlat.probes.protocols` lists the same."""

DEFAULT = next(iter(PROTOCOLS))
"""What a definition speaks that names none."""

Api = str
"""The name of one of them."""


@cache
def does(endpoint: str) -> Operation | None:
    """Return what an endpoint of a protocol's own does to an object."""
    operations = (protocol.objects.does(endpoint) for protocol in PROTOCOLS.values())
    return next(filter(None, operations), None)
