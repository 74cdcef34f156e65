"""What can be requested of a store, as YAML: its keys decide which protocol's form one has.

A study has them in a list, a definition by their names.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Tag

from wanlat.systems.engine.protocols import PROTOCOLS, Operation
from wanlat.systems.engine.protocols.requests import Requested
from wanlat.topologies.wording import closest, show

_BY_TAG: dict[str, type[Requested]] = {
    f"({protocol.name})": protocol.endpoint for protocol in PROTOCOLS.values() if protocol.endpoint
}


def tag_of(raw: Any) -> str:
    """Return which of them a mapping is meant to be: the one that most of its keys fit."""
    if isinstance(raw, Requested):
        return f"({raw.api})"

    def fit(tag: str) -> float:
        fields = [field.alias or name for name, field in _BY_TAG[tag].model_fields.items()]
        keys = map(str, raw) if isinstance(raw, dict) else ()
        return sum(1 if key in fields else bool(closest(key, fields)) / 2 for key in keys)

    return max(_BY_TAG, key=fit)


if TYPE_CHECKING:
    Request = Requested
else:
    _forms = (Annotated[kind, Tag(tag)] for tag, kind in _BY_TAG.items())
    Request = Annotated[reduce(or_, _forms), Discriminator(tag_of)]


def lacks(endpoint: Requested, does: Operation) -> str | None:
    """Return what keeps an endpoint from doing this to objects; None: nothing."""
    sent = endpoint.model_dump_json(exclude={"prepare"})
    if does != "list" and "{key}" not in sent:
        return f"{show(endpoint.called)} is sent no `{{key}}`, so that it is of no object"
    if does == "write" and "{body}" not in sent:
        return f"{show(endpoint.called)} is sent no `{{body}}`: what would it write?"
    if does == "read" and endpoint.response_object is None:
        return f"{show(endpoint.called)} has no `response_object`: what did it read?"
    if does in ("write", "delete") and endpoint.response_object is not None:
        return (
            f"{show(endpoint.called)} has a `response_object`: a write whose answer is another one "
            "would count as not executed"
        )
    return None
