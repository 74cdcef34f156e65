"""HTTP/1.1: requests that definitions and studies write out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, StrictStr, Tag

from wanlat.systems.engine.protocols.base import Place, Protocol, Target
from wanlat.systems.engine.protocols.requests import Call, Filled, Requested
from wanlat.systems.engine.steps import Step, one_of
from wanlat.systems.engine.text import Text, filled
from wanlat.topologies.findings import Finding
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_model import YamlModel


class HttpService(YamlModel):
    """Where a node answers HTTP, and what every request is sent with."""

    port: Text | int = "{ports.http}"
    """where it listens"""
    headers: dict[str, Text] = Field(default_factory=dict)
    """of every request"""


@dataclass(frozen=True)
class HttpTarget(Target):
    """The HTTP interface of one node, and the headers of every request."""

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict)


def _path(text: str) -> str:
    if not text.startswith("/") or "{body}" in text:
        raise ValueError(f"{show(text)} is no path: it begins with a slash and holds no object")
    return text


HttpPath = Annotated[StrictStr, AfterValidator(_path), Filled]
Status = Annotated[int, Field(ge=200, le=599)]
VERBS = ("get", "head", "put", "post", "patch", "delete")


class HttpRequest(Call):
    """A request over HTTP: a method with its path."""

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

    def invalid(self) -> list[Finding]:
        """It has one method, and one body at most."""
        findings = one_of(self, VERBS)
        if self.body is not None and self.json_ is not None:
            findings.append(Finding(("json",), "there is a `body` already"))
        return findings

    @property
    def _verb(self) -> str:
        return next(verb for verb in VERBS if getattr(self, verb) is not None)

    @property
    def called(self) -> str:
        """The method and the path."""
        return f"{self._verb.upper()} {getattr(self, self._verb)}"

    @property
    def sent(self) -> Mapping[str, Any]:
        """Method, path, headers, body, and what is right."""
        expect = [self.expect] if isinstance(self.expect, int) else self.expect
        parts = {"headers": self.headers, "body": self.body, "json": self.json_, "expect": expect}
        parts["contains"] = self.contains
        given = {key: value for key, value in parts.items() if value not in (None, {}, [])}
        return {"method": self._verb.upper(), "path": getattr(self, self._verb), **given}


_Before = Annotated[
    Annotated[Literal["objects_on_disk"], Tag("(text)")] | Annotated[HttpRequest, Tag("(map)")],
    Discriminator(lambda raw: "(text)" if isinstance(raw, str) else "(map)"),
]


class HttpEndpoint(Requested, HttpRequest):
    """A request over HTTP, and what must come back."""

    api: ClassVar[str] = "http"

    response_object: Literal["body", "content-length"] | None = Field(
        default=None, description="the body must be the object; or is announced with its length"
    )
    prepare: _Before | None = Field(
        default=None,
        description="what is requested for each key beforehand; `objects_on_disk`: the object is "
        "a file before the start, as the definition says where",
    )

    def invalid(self) -> list[Finding]:
        """What its answer must be stands once."""
        is_double = self.contains is not None and self.response_object is not None
        text = "`response_object` states already what the body must be"
        return [*super().invalid(), *([Finding(("contains",), text)] if is_double else [])]


class HttpProtocol(Protocol[HttpService]):
    """Requests that definitions and studies write out."""

    name, spoken = "http", "HTTP, as its definition says"
    section, section_key, default = HttpService, "http", HttpService()
    endpoint = HttpEndpoint
    templates = (("system.yaml", "new-http.yaml"),)

    def target(self, section: HttpService, place: Place) -> HttpTarget:
        """Return where a node answers."""
        headers = {name: filled(text, place.scene) for name, text in section.headers.items()}
        return HttpTarget(place.address, place.port(section.port), headers)

    def ready(self, section: HttpService) -> list[Step]:
        """An open port."""
        return [Step(name="port", tcp=section.port)]

    def invalid(self, section: HttpService, ports: Mapping[str, int]) -> str | None:
        """Return that its port is not known."""
        is_missing = section.port == HttpService().port and "http" not in ports
        return "`ports` has no `http` to ask" if is_missing else None
