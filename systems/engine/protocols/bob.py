"""Bob's gRPC service, with endpoints of its own: keys of eight bytes decide where replicas are."""

from __future__ import annotations

from wanlat.emulator.binaries import PACKAGE
from wanlat.systems.engine.protocols.base import Objects
from wanlat.systems.engine.protocols.grpc import GrpcProtocol

BOB_PROTO = PACKAGE / "proto" / "bob.proto"
"""Bob's gRPC interface, as wanlat has written it down."""


class BobProtocol(GrpcProtocol):
    """Endpoints of its own, which `probes.protocols.bob` has."""

    name, spoken = "bob", "Bob's gRPC API"
    endpoint = None
    objects = Objects(write="Put", read="Get", delete="Delete", exists="Exist")
    templates = ()
    protos = (BOB_PROTO,)
