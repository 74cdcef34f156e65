"""What is done on nodes, or requested of them, until they are as they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from wanlat.systems.engine.text import KNOWN, Expression, Json, Text
from wanlat.topologies.findings import Finding
from wanlat.topologies.units import Duration
from wanlat.topologies.wording import did_you_mean, listing, show
from wanlat.topologies.yaml_model import YamlModel

HOOKS = "hooks.py"


def one_of(model: YamlModel, keys: Sequence[str]) -> list[Finding]:
    """Find that not exactly one of these keys has a value."""
    given = [key for key in keys if getattr(model, key) is not None]
    text = f"one of {listing(keys, 'or')} is wanted, not {len(given)} of them"
    return [] if len(given) == 1 else [Finding((), text)]


def _hook(name: str) -> str:
    known = KNOWN.get()
    functions = list(known.names["hooks"] or ()) if known else [name]
    if name not in functions:
        raise ValueError(
            f"{HOOKS} has no function {show(name)}{did_you_mean(name, functions)}; it has "
            f"{listing(functions) or 'none'}"
        )
    return name


class Http(YamlModel):
    """A request that a node sends to itself. Its answer, JSON, is `answer`."""

    port: Text | int
    """of the node"""
    path: Text
    """with what follows a `?`"""
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD"] = "GET"
    """of the request"""
    body: Json = Field(default=None, alias="json")
    """the body"""
    token: Text | None = Field(default=None, description="sent as a bearer token")
    timeout: Duration | None = None
    """of the request"""


class Step(YamlModel):
    """Something that is done on nodes, or requested of them, until it is as it should be."""

    name: StrictStr = Field(description="what progress and errors call it")
    at: Literal["each", "first"] = "each"
    """on each node, or on the first alone"""
    when: Expression | None = Field(default=None, description="else it is left out")
    http: Http | None = None
    """a request of the node to itself"""
    tcp: Text | int | None = Field(default=None, description="a port that must be open")
    log: Text | None = Field(default=None, description="what a printed line must contain")
    run: list[Text] | None = Field(default=None, description="a command; `answer` is its output")
    s3: Literal["ListBuckets"] | None = None
    """a signed request that must succeed"""
    hook: Annotated[StrictStr, AfterValidator(_hook)] | None = Field(
        default=None, description="a function of hooks.py: (cluster, node, expected) -> why not"
    )
    status: list[int] = Field(default=[200])
    """of `http`: what is right"""
    where: Expression | None = Field(default=None, description="what must hold of the answer")
    missing: Expression | None = Field(
        default=None, description="the nodes that the answer lacks of those that are expected"
    )
    facts: dict[str, Expression] = Field(default_factory=dict, description="kept as `node.facts`")
    once: bool = Field(default=False, description="a refusal ends the start")

    def invalid(self) -> list[Finding]:
        """It does one thing."""
        return one_of(self, ("http", "tcp", "log", "run", "s3", "hook"))


class Setting(YamlModel):
    """A setting: what a running server has in effect, and what it was meant to have."""

    read: Expression
    """of the answer"""
    expected: Expression
    """equal as numbers, or as texts"""


class ReadBack(YamlModel):
    """A request to nodes once they serve; the answer has settings in effect."""

    at: Literal["each", "first"] = "each"
    """of each node, or of the first alone"""
    when: Expression | None = Field(default=None, description="else it is left out")
    http: Http | None = None
    """a request of the node to itself; an answer that is no JSON is a text"""
    run: list[Text] | None = Field(default=None, description="a command; `answer` is its output")
    s3: Text | None = Field(default=None, description="the path of a signed GET")
    log: Literal[True] | None = None
    """what the node's process has printed"""
    settings: dict[StrictStr, Setting] = Field(min_length=1)
    """by the server's own names"""

    def invalid(self) -> list[Finding]:
        """It does one thing."""
        return one_of(self, ("http", "run", "s3", "log"))
