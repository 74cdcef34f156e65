"""gRPC: unary methods of a service that .proto files define."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictStr

from wanlat.systems.engine.protocols.base import Place, Protocol, Target
from wanlat.systems.engine.protocols.requests import Call, Requested, placeholders
from wanlat.systems.engine.steps import Step
from wanlat.systems.engine.text import Json, Text, fill, filled
from wanlat.topologies.findings import Finding
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_model import YamlModel

METHOD = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*/[A-Za-z_]\w*", re.ASCII)
"""``package.Service/Method``."""

BOB_SERVICE, BOB_KEY_BYTES = "bob_storage.BobApi/", 8
"""What the methods begin with that take keys of one length only."""


class Grpc(YamlModel):
    """Where a node answers gRPC; protos beside this file, or where an expression has them."""

    port: Text | int = "{ports.grpc}"
    """where it listens"""
    protos: Json = ()
    """the .proto files"""
    includes: Json = ()
    """directories that their imports are looked for in"""
    metadata: dict[str, Text] = Field(
        default_factory=dict, description="what every call is sent with: a token"
    )


@dataclass(frozen=True)
class GrpcTarget(Target):
    """The gRPC interface of one node.

    ``protos`` define its services; what they import is looked for in ``includes``. Of
    ``is_known`` ones oneshot has the definition. ``metadata`` goes with every call.
    """

    host: str
    port: int
    protos: tuple[Path, ...] = ()
    includes: tuple[Path, ...] = ()
    is_known: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


def method_name(text: str) -> str:
    """Return the name of a method, if it can be one."""
    if METHOD.fullmatch(text) is None:
        raise ValueError(f"{show(text)} is no method; it is written `package.Service/Method`")
    return text


class Method(Call):
    """A call of a unary method of gRPC."""

    method: Annotated[StrictStr, AfterValidator(method_name)] = Field(
        description="a unary method, as `package.Service/Method`"
    )
    request: Annotated[dict[str, Any], placeholders(within=False)] = Field(
        default={}, description="the message, as proto3 JSON has it; default: an empty one"
    )

    @property
    def called(self) -> str:
        """The method."""
        return self.method

    @property
    def sent(self) -> Mapping[str, Any]:
        """The message."""
        return self.request


class MethodEndpoint(Requested, Method):
    """A unary method of a gRPC service, and what it is sent."""

    api: ClassVar[str] = "grpc"

    response_object: StrictStr | None = Field(
        default=None, description="the answer's bytes field that must hold the object, by its path"
    )
    prepare: Method | None = Field(
        default=None, description="what is called for each key beforehand"
    )

    def invalid(self) -> list[Finding]:
        """Bob's keys have one length."""
        calls = [self.method, *([self.prepare.method] if self.prepare else [])]
        is_bob = any(name.startswith(BOB_SERVICE) for name in calls)
        if not is_bob or self.key_bytes == BOB_KEY_BYTES:
            return []
        text = f"Bob's keys are {BOB_KEY_BYTES} bytes; another length ends its server's process"
        return [Finding(("key_bytes",), text)]


class GrpcProtocol(Protocol[Grpc]):
    """Methods that definitions and studies name."""

    name, spoken = "grpc", "gRPC, as its own .proto files define it"
    section, section_key, file_keys = Grpc, "grpc", ("protos",)
    endpoint: ClassVar[type[Requested] | None] = MethodEndpoint
    in_messages = True
    templates: ClassVar[tuple[tuple[str, str], ...]] = (("system.yaml", "new-grpc.yaml"),)
    protos: ClassVar[tuple[Path, ...]] = ()
    """Of every system that speaks it, known to oneshot; none: each has its own."""

    def target(self, section: Grpc, place: Place) -> GrpcTarget:
        """Return where a node answers."""
        own = [place.directory / path for path in fill(section.protos, place.scene)]
        protos = own or list(self.protos)
        includes = [place.directory / path for path in fill(section.includes, place.scene)]
        return GrpcTarget(
            place.address,
            place.port(section.port),
            tuple(protos),
            tuple(includes or dict.fromkeys(proto.parent for proto in protos)),
            bool(self.protos),
            {name: filled(text, place.scene) for name, text in section.metadata.items()},
        )

    def is_named(self, text: str) -> bool:
        """Methods have a slash in their names; a service with endpoints of its own has none."""
        return self.endpoint is not None and "/" in text

    def named(self, text: str) -> Requested:
        """Return a call of a method, with an empty message."""
        return MethodEndpoint(method=method_name(text))

    def ready(self, section: Grpc) -> list[Step]:
        """An open port."""
        return [Step(name="port", tcp=section.port)]
