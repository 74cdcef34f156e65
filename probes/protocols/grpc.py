"""Calls of unary methods of any gRPC service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from wanlat.probes.header import MAX_MESSAGE_BYTES, Header, Terms, Window
from wanlat.probes.protocols.base import Planner
from wanlat.systems.engine.protocols import GrpcTarget


@dataclass(frozen=True)
class GrpcHeader(Header):
    """The first line of a plan for gRPC."""

    subcommand: ClassVar[str] = "grpc"

    host: str
    port: int
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """In both directions."""
    window: Window = "large"
    protos: Sequence[str] = ()
    """Paths of .proto files: what methods other than Bob's are looked up in."""
    includes: Sequence[str] = ()
    """Directories in which what they import is looked for."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request."""


class GrpcPlanner(Planner[GrpcTarget]):
    """Methods that definitions and studies name."""

    name, target, header = "grpc", GrpcTarget, GrpcHeader
    written: ClassVar[str] = "the methods of its own service, written `package.Service/Method`"

    def header_to(self, target: GrpcTarget, terms: Terms) -> GrpcHeader:
        """Return the first line of a plan of requests to a node."""
        own = not target.is_known
        return GrpcHeader(
            host=target.host,
            port=target.port,
            connection=terms.connection,
            deadline_ms=terms.deadline_ms,
            max_message_bytes=terms.max_message_bytes,
            window=terms.window,
            metadata=target.metadata,
            protos=[str(path.absolute()) for path in target.protos] if own else [],
            includes=[str(path.absolute()) for path in target.includes] if own else [],
        )
