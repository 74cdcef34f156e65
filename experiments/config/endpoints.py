"""What a study may request: S3's endpoints, Bob's, and requests of a system's own definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, StrictStr, Tag

from wanlat.probes.method_plan import Call, Measured
from wanlat.probes.objects import ObjectApi
from wanlat.probes.protocols import PLANNERS
from wanlat.systems.base import Api, DefinedSystem, Options
from wanlat.systems.engine.endpoints import Request
from wanlat.systems.engine.protocols import PROTOCOLS, Protocol
from wanlat.systems.engine.protocols import does as does_of
from wanlat.systems.engine.protocols.requests import Requested
from wanlat.topologies.wording import did_you_mean, listing, show

S3 = PLANNERS["s3"].endpoints
BOB = PLANNERS["bob"].endpoints


def _naming(text: str) -> Protocol[Any] | None:
    """The protocol in which a text alone names a request."""
    return next((known for known in PROTOCOLS.values() if known.is_named(text)), None)


def _name(text: str) -> str:
    if protocol := _naming(text):
        protocol.named(text)
        return text
    known = (*S3, *BOB)
    if text not in known:
        raise ValueError(
            f"{show(text)} is no endpoint{did_you_mean(text, known)}; of S3 there are "
            f"{listing(S3)}, of Bob {listing(BOB)}, of another gRPC service "
            "`package.Service/Method`"
        )
    return text


Endpoint = Annotated[
    Annotated[StrictStr, AfterValidator(_name), Tag("(name)")]
    | Annotated[Request, Tag("(request)")],
    Discriminator(lambda raw: "(name)" if isinstance(raw, str) else "(request)"),
]


def measured(endpoint: str | Requested) -> Measured:
    """Return a request as plans have it."""
    request = PROTOCOLS[api_of(endpoint)].named(endpoint) if isinstance(endpoint, str) else endpoint
    before = request.prepare
    return Measured(
        request.called,
        request.sent,
        request.response_object,
        prepare=None
        if before is None or isinstance(before, str)
        else Call(before.called, before.sent),
        placed=before == "objects_on_disk",
        key_bytes=request.key_bytes,
        name=request.name,
    )


def name_of(endpoint: str | Requested) -> str:
    """Return what samples call an endpoint."""
    return endpoint if isinstance(endpoint, str) else endpoint.name or endpoint.called


def endpoints_of(system: DefinedSystem) -> list[Requested]:
    """Return the endpoints of a system's own definition."""
    return [
        endpoint.model_copy(update={"name": name})
        for name, endpoint in system.definition.endpoints.items()
    ]


def objects_of(system: DefinedSystem, options: Options) -> ObjectApi | None:
    """Return how a system's objects are requested; None where its definition has nothing of it."""
    own = {name_of(endpoint): measured(endpoint) for endpoint in endpoints_of(system)}
    return ObjectApi.over(system.api(options), system.objects(options), own)


def matching_endpoints(
    api: Api,
    endpoints: Sequence[str | Requested],
    own: Sequence[Requested] = (),
    objects: ObjectApi | None = None,
) -> tuple[str | Requested, ...]:
    """Return the endpoints of a study that an API has, in their order.

    Where it has none of them, its ``own``: for an operation on objects that the study names, by
    S3's word or Bob's, the one that does that; for anything else, all those that do no such thing.
    """
    if has := tuple(endpoint for endpoint in endpoints if api_of(endpoint) == api):
        return has
    if objects is None:
        return tuple(own)
    does = {blank.called: operation for operation, blank in objects.blanks.items()}
    named = {does_of(name_of(endpoint)) for endpoint in endpoints}
    return tuple(endpoint for endpoint in own if does.get(name_of(endpoint)) in named)


def api_of(endpoint: str | Requested) -> Api:
    """Return the API that has an endpoint. No two have one of the same name.

    Raises ValueError where none has.
    """
    if not isinstance(endpoint, str):
        return endpoint.api
    owners = (api for api, planner in PLANNERS.items() if endpoint in planner.endpoints)
    if (owner := next(owners, None)) is not None:
        return owner
    if (protocol := _naming(endpoint)) is None:
        raise ValueError(f"{show(endpoint)} is no endpoint")
    return protocol.name
