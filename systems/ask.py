"""One HTTP request to a node, sent from inside the lab: for readiness and administration.

Not for measuring: that is the probe's, which is compiled and shares nothing with this.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

PATIENCE_S = 2.0  # for an answer that needs nobody else


class NoAnswer(Exception):
    """Nobody answered, or not in HTTP, or not in time. The message says which."""


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the status is 200."""
        return self.status == HTTPStatus.OK

    def json(self) -> Any:
        """Return the body's JSON; NoAnswer when it is none."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise NoAnswer(f"HTTP {self.status} with a body that is not JSON") from error

    def brief(self) -> str:
        """Return status and the beginning of the body, for a message."""
        text = " ".join(self.body.decode("utf-8", "replace").split())
        return f"HTTP {self.status} {text[:200]}".rstrip()


def ask(
    lab: Lab,
    node: str,
    port: int,
    path: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = PATIENCE_S,
) -> Answer:
    """Send a request from a node to itself, so that no link delays it. Raises NoAnswer."""
    try:
        connection = lab.http(node, lab.node(node).address, port, timeout_s)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()
    except TimeoutError as error:
        raise NoAnswer(f"port {port} did not answer within {timeout_s:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"port {port} does not answer: {error or type(error).__name__}") from error
