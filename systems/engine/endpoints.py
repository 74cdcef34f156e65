"""What can be asked of a store, as YAML: a gRPC method, an HTTP request, a program's operation.

A study has them in a list, a definition by their names. Which of the three one is, its keys say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, StrictStr, Tag

from wanlat.systems.engine import protocols
from wanlat.systems.engine.protocols import Api
from wanlat.topologies.findings import Finding, Path
from wanlat.topologies.wording import closest, did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel, refused

METHOD = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*/[A-Za-z_]\w*", re.ASCII)
"""``package.Service/Method``."""

PLACEHOLDERS = ("{body}", "{key}", "{seq}", "{now}")
"""What a text can stand for or contain: the object, the key, the request's number, the time."""

BOB_SERVICE, BOB_KEY_BYTES = "bob_storage.BobApi/", 8
"""What the methods begin with that take keys of one length only."""


def method_name(text: str) -> str:
    """Return the name of a method, if it can be one."""
    if METHOD.fullmatch(text) is None:
        raise ValueError(f"{show(text)} is no method; it is written `package.Service/Method`")
    return text


def _misspelt(value: Any, path: Path = (), *, within: bool) -> Iterator[Finding]:
    """Find placeholders that are misspelt, or lack the quotes that YAML needs.

    ``within``: they may be a part of a text, but for the object.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if inner is None and len(value) == 1 and f"{{{key}}}" in PLACEHOLDERS:
                text = f'without quotes this is a mapping to YAML; write "{{{key}}}"'
                yield Finding(path, text)
            else:
                yield from _misspelt(inner, (*path, key), within=within)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _misspelt(inner, (*path, index), within=within)
    elif isinstance(value, str):
        for found in re.findall(r"\{\w+\}" if within else r"\A\{.*\}\Z", value):
            if found not in PLACEHOLDERS and (near := did_you_mean(found, PLACEHOLDERS)):
                text = f"{show(found)} is no placeholder{near}; there are {listing(PLACEHOLDERS)}"
                yield Finding(path, text)
            if found == "{body}" != value:
                yield Finding(path, "`{body}` is a text by itself, and no part of one")


def _placeholders(*, within: bool) -> AfterValidator:
    def check(value: Any) -> Any:
        if found := list(_misspelt(value, within=within)):
            raise refused(found)
        return value

    return AfterValidator(check)


def _path(text: str) -> str:
    if not text.startswith("/") or "{body}" in text:
        raise ValueError(f"{show(text)} is no path: it begins with a slash and holds no object")
    return text


Filled = _placeholders(within=True)
HttpPath = Annotated[StrictStr, AfterValidator(_path), Filled]
Status = Annotated[int, Field(ge=200, le=599)]
VERBS = ("get", "head", "put", "post", "patch", "delete")


class Method(YamlModel):
    """A call of a unary method of gRPC."""

    api: ClassVar[Api] = "grpc"

    method: Annotated[StrictStr, AfterValidator(method_name)] = Field(
        description="a unary method, as `package.Service/Method`"
    )
    request: Annotated[dict[str, Any], _placeholders(within=False)] = Field(
        default={}, description="the message, as proto3 JSON has it; default: an empty one"
    )

    @property
    def called(self) -> str:
        """What samples call it where nobody has named it."""
        return self.method

    @property
    def sent(self) -> Mapping[str, Any]:
        """What is sent, as plans have it."""
        return self.request


class HttpRequest(YamlModel):
    """A request over HTTP: a method with its path."""

    api: ClassVar[Api] = "http"

    get: HttpPath | None = None
    """the path, where this is the method"""
    head: HttpPath | None = None
    """the path, where this is the method"""
    put: HttpPath | None = None
    """the path, where this is the method"""
    post: HttpPath | None = None
    """the path, where this is the method"""
    patch: HttpPath | None = None
    """the path, where this is the method"""
    delete: HttpPath | None = None
    """the path, where this is the method"""
    headers: Annotated[dict[str, StrictStr], Filled] = Field(default_factory=dict)
    """besides those of the definition"""
    body: Annotated[StrictStr, Filled] | None = Field(
        default=None, description='a text; "{body}" is the object'
    )
    json_: Annotated[Any, Filled] = Field(
        default=None, alias="json", description="a body in JSON, in which the object is base64"
    )
    expect: Status | list[Status] = Field(
        default_factory=list, description="the status that is right; default: any 2xx"
    )
    contains: Annotated[StrictStr, Filled] | None = Field(
        default=None, description="a text that the body of an answer that is right has in it"
    )

    def misfits(self) -> list[Finding]:
        """It has one method, and one body at most."""
        given = [verb for verb in VERBS if getattr(self, verb) is not None]
        found = []
        if len(given) != 1:
            text = f"one of {listing(VERBS, 'or')} is wanted, not {len(given)} of them"
            found.append(Finding((), text))
        if self.body is not None and self.json_ is not None:
            found.append(Finding(("json",), "there is a `body` already"))
        return found

    @property
    def _verb(self) -> str:
        return next(verb for verb in VERBS if getattr(self, verb) is not None)

    @property
    def called(self) -> str:
        """As `Method.called`."""
        return f"{self._verb.upper()} {getattr(self, self._verb)}"

    @property
    def sent(self) -> Mapping[str, Any]:
        """As `Method.sent`."""
        expect = [self.expect] if isinstance(self.expect, int) else self.expect
        parts = {"headers": self.headers, "body": self.body, "json": self.json_, "expect": expect}
        parts["contains"] = self.contains
        given = {key: value for key, value in parts.items() if value not in (None, {}, [])}
        return {"method": self._verb.upper(), "path": getattr(self, self._verb), **given}


class Operation(YamlModel):
    """A request that the definition's own program makes."""

    api: ClassVar[Api] = "exec"

    op: Annotated[StrictStr, Field(min_length=1)] = Field(description="what the program calls it")
    request: Annotated[dict[str, Any], Filled] = Field(
        default={}, description="what the program is told besides"
    )

    def misfits(self) -> list[Finding]:
        """What it is told has no `op` of its own."""
        is_double = "op" in self.request
        return [Finding(("request", "op"), "it stands beside `request`")] if is_double else []

    @property
    def called(self) -> str:
        """As `Method.called`."""
        return self.op

    @property
    def sent(self) -> Mapping[str, Any]:
        """As `Method.sent`."""
        return self.request


class Measured(YamlModel):
    """What is said of a request that is measured, whatever it is."""

    key_bytes: int = Field(default=8, ge=4, le=1024, description="how long `{key}` is")
    name: StrictStr | None = Field(
        default=None, pattern=r"^[A-Za-z]\w{0,39}$", description="what samples and charts call it"
    )


class MethodEndpoint(Method, Measured):
    """A unary method of a gRPC service, and what it is sent."""

    response_object: StrictStr | None = Field(
        default=None, description="the answer's bytes field that must hold the object, by its path"
    )
    prepare: Method | None = Field(
        default=None, description="what is called for each key beforehand"
    )

    def misfits(self) -> list[Finding]:
        """Bob's keys have one length."""
        calls = [self.method, *([self.prepare.method] if self.prepare else [])]
        is_bob = any(name.startswith(BOB_SERVICE) for name in calls)
        if not is_bob or self.key_bytes == BOB_KEY_BYTES:
            return []
        text = f"Bob's keys are {BOB_KEY_BYTES} bytes; another length ends its server's process"
        return [Finding(("key_bytes",), text)]


_Before = Annotated[
    Annotated[Literal["objects_on_disk"], Tag("(text)")] | Annotated[HttpRequest, Tag("(map)")],
    Discriminator(lambda raw: "(text)" if isinstance(raw, str) else "(map)"),
]


class HttpEndpoint(HttpRequest, Measured):
    """A request over HTTP, and what must come back."""

    response_object: Literal["body", "content-length"] | None = Field(
        default=None, description="the body must be the object; or is announced with its length"
    )
    prepare: _Before | None = Field(
        default=None,
        description="what is requested for each key beforehand; `objects_on_disk`: the object is "
        "a file before the start, as the definition says where",
    )

    def misfits(self) -> list[Finding]:
        """What its answer must be is said once."""
        is_double = self.contains is not None and self.response_object is not None
        text = "`response_object` says already what the body must be"
        return [*super().misfits(), *([Finding(("contains",), text)] if is_double else [])]


class OperationEndpoint(Operation, Measured):
    """An operation of the definition's program, and what must come back."""

    response_object: Literal["body", "sha256"] | None = Field(
        default=None, description="the answer must have the object, in base64, or its hash"
    )
    prepare: Operation | None = Field(
        default=None, description="what is requested for each key beforehand"
    )


Requested = MethodEndpoint | HttpEndpoint | OperationEndpoint
_BY_TAG: Mapping[str, type[Requested]] = {
    "(method)": MethodEndpoint,
    "(http)": HttpEndpoint,
    "(operation)": OperationEndpoint,
}


def tag_of(raw: Any) -> str:
    """Return which of them a mapping is meant to be: the one that most of its keys fit."""
    if isinstance(raw, Requested):
        return next(tag for tag, kind in _BY_TAG.items() if isinstance(raw, kind))

    def fit(tag: str) -> float:
        fields = [field.alias or name for name, field in _BY_TAG[tag].model_fields.items()]
        keys = map(str, raw) if isinstance(raw, dict) else ()
        return sum(1 if key in fields else bool(closest(key, fields)) / 2 for key in keys)

    return max(_BY_TAG, key=fit)


Request = Annotated[
    Annotated[MethodEndpoint, Tag("(method)")]
    | Annotated[HttpEndpoint, Tag("(http)")]
    | Annotated[OperationEndpoint, Tag("(operation)")],
    Discriminator(tag_of),
]


def lacks(endpoint: Requested, does: protocols.Operation) -> str | None:
    """Say what keeps an endpoint from doing this to objects; None: nothing."""
    asked = endpoint.model_dump_json(exclude={"prepare"})
    if does != "list" and "{key}" not in asked:
        return f"{show(endpoint.called)} is sent no `{{key}}`, so that it is of no object"
    if does == "write" and "{body}" not in asked:
        return f"{show(endpoint.called)} is sent no `{{body}}`: what would it write?"
    if does == "read" and endpoint.response_object is None:
        return f"{show(endpoint.called)} has no `response_object`: what did it read?"
    if does in ("write", "delete") and endpoint.response_object is not None:
        return (
            f"{show(endpoint.called)} has a `response_object`: a write whose answer is another one "
            "would count as not executed"
        )
    return None
