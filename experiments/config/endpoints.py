"""What a study may ask for: S3's endpoints, Bob's, and methods of any gRPC service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, StrictStr, Tag, model_validator

from wanlat.probes.bob_plan import BobEndpoint
from wanlat.probes.method_plan import BOB_SERVICE, METHOD, PLACEHOLDERS, Call, Measured
from wanlat.probes.objects import ObjectApi
from wanlat.probes.plan import KEY_BYTES
from wanlat.probes.s3_plan import S3Endpoint
from wanlat.systems.base import Api, Options, System
from wanlat.systems.engine.protocols import does as does_of
from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel, refused

S3: tuple[S3Endpoint, ...] = get_args(S3Endpoint)
BOB: tuple[BobEndpoint, ...] = get_args(BobEndpoint)


def _method(text: str) -> str:
    if METHOD.fullmatch(text) is None:
        raise ValueError(f"{show(text)} is no method; it is written `package.Service/Method`")
    return text


def _name(text: str) -> str:
    if "/" in text:
        return _method(text)
    known = (*S3, *BOB)
    if text not in known:
        raise ValueError(
            f"{show(text)} is no endpoint{did_you_mean(text, known)}; of S3 there are "
            f"{listing(S3)}, of Bob {listing(BOB)}, of another gRPC service "
            "`package.Service/Method`"
        )
    return text


def _placeholders(value: Any, path: Path = ()) -> Iterator[Finding]:
    """Find placeholders that are misspelt, or lack the quotes that YAML needs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None and len(value) == 1 and f"{{{key}}}" in PLACEHOLDERS:
                text = f'without quotes this is a mapping to YAML; write "{{{key}}}"'
                yield Finding(path, text)
            else:
                yield from _placeholders(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _placeholders(inner, (*path, index))
    elif isinstance(value, str) and value[:1] + value[-1:] == "{}" and value not in PLACEHOLDERS:
        near = did_you_mean(value, PLACEHOLDERS)
        text = f"{show(value)} is no placeholder{near}; there are {listing(PLACEHOLDERS)}"
        yield from [Finding(path, text)] if near else []


def _message(request: dict[str, Any]) -> dict[str, Any]:
    if found := list(_placeholders(request)):
        raise refused(found)
    return request


class PreparingCall(YamlModel):
    """A call that makes, for one key, what a measured method needs."""

    method: Annotated[StrictStr, AfterValidator(_method)] = Field(
        description="a unary method, as `package.Service/Method`"
    )
    request: Annotated[dict[str, Any], AfterValidator(_message)] = Field(
        default={}, description="the message, as proto3 JSON has it; default: an empty one"
    )


class MethodEndpoint(PreparingCall):
    """A unary method of a gRPC service, and what it is sent."""

    response_object: StrictStr | None = Field(
        default=None, description="the answer's bytes field that must hold the object, by its path"
    )
    prepare: PreparingCall | None = Field(
        default=None, description="what is called for each key beforehand"
    )
    key_bytes: int = Field(default=8, ge=4, le=1024, description="how long `{key}` is")
    name: StrictStr | None = Field(
        default=None, pattern=r"^[A-Za-z]\w{0,39}$", description="what samples and charts call it"
    )

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        calls = [self.method, *([self.prepare.method] if self.prepare else [])]
        if self.key_bytes != KEY_BYTES and any(name.startswith(BOB_SERVICE) for name in calls):
            text = f"Bob's keys are {KEY_BYTES} bytes; another length ends its server's process"
            raise refused([Finding(("key_bytes",), text)])
        return self

    def measured(self) -> Measured:
        """Return it as plans have it."""
        before = self.prepare
        return Measured(
            method=self.method,
            request=self.request,
            response_object=self.response_object,
            prepare=None if before is None else Call(before.method, before.request),
            key_bytes=self.key_bytes,
            name=self.name,
        )


def _kind(raw: Any) -> str:
    return "(method)" if isinstance(raw, dict | MethodEndpoint) else "(name)"


Endpoint = Annotated[
    Annotated[StrictStr, AfterValidator(_name), Tag("(name)")]
    | Annotated[MethodEndpoint, Tag("(method)")],
    Discriminator(_kind),
]


def name_of(endpoint: str | MethodEndpoint) -> str:
    """Return what samples call an endpoint."""
    return endpoint if isinstance(endpoint, str) else endpoint.name or endpoint.method


def endpoints_of(system: System) -> list[MethodEndpoint]:
    """Return what a system's own definition says can be asked of it."""
    return [
        MethodEndpoint.model_validate({**each.model_dump(exclude_none=True), "name": name})
        for name, each in system.definition.endpoints.items()
    ]


def objects_of(system: System, options: Options) -> ObjectApi | None:
    """Return how a system is asked for objects; None where its definition does not say."""
    own = {name_of(each): each.measured() for each in endpoints_of(system)}
    return ObjectApi.of(system.api(options), system.objects(options), own)


def asked_of(
    api: Api,
    endpoints: Sequence[str | MethodEndpoint],
    own: Sequence[MethodEndpoint] = (),
    objects: ObjectApi | None = None,
) -> tuple[str | MethodEndpoint, ...]:
    """Return the endpoints of a study that an API has, in their order.

    Where it has none of them, its ``own``: for an operation on objects that the study names, by
    S3's word or Bob's, the one that does that; for anything else, all those that do no such thing.
    """
    if has := tuple(endpoint for endpoint in endpoints if api_of(endpoint) == api):
        return has
    if objects is None:
        return tuple(own)
    does = {blank.called: operation for operation, blank in objects.blanks.items()}
    named = {does_of(name_of(each)) for each in endpoints}
    return tuple(each for each in own if does.get(name_of(each)) in named)


def api_of(endpoint: str | MethodEndpoint) -> Api:
    """Return the API that has an endpoint. No two have one of the same name."""
    if endpoint in S3:
        return "s3"
    return "bob" if endpoint in BOB else "grpc"


def has(api: Api) -> str:
    """Say which endpoints an API has."""
    own: dict[Api, Sequence[str]] = {"s3": S3, "bob": BOB}
    return listing(
        own.get(api, ["the methods of its own service, written `package.Service/Method`"])
    )
