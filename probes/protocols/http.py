"""Requests over HTTP/1.1, to any service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from wanlat.probes.header import Header
from wanlat.probes.protocols.base import Planner
from wanlat.systems.engine.protocols import HttpTarget


@dataclass(frozen=True)
class HttpHeader(Header):
    """The first line of a plan for any service over HTTP."""

    subcommand: ClassVar[str] = "http"

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request."""


class HttpPlanner(Planner[HttpTarget]):
    """Requests that definitions and studies write out."""

    name, target, header = "http", HttpTarget, HttpHeader
    written = "what its definition or the study requests over HTTP, such as `{get: /path}`"
