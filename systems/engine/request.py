"""One request to a node, sent from inside the lab: for readiness and administration.

Over HTTP, signed where it is S3. Not for measuring: that is the probe's, which is compiled and
shares nothing with this.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from wanlat.systems.engine.protocols.s3 import S3Target

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

PATIENCE_S = 2.0  # for an answer that needs nobody else


class NoAnswer(Exception):
    """There was no answer, or not in that protocol, or not in time. The message has which."""


@dataclass(frozen=True)
class Answer:
    """A response of HTTP."""

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


def send(
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


# -- S3 --------------------------------------------------------------------------------------

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def sign(
    method: str, at: S3Target, path: str, *, query: str = "", now: datetime | None = None
) -> dict[str, str]:
    """Return the headers of a signed request without a body: AWS Signature Version 4.

    ``path`` is already URI-encoded; ``query`` as `encoded` makes it.
    """
    when = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    host = f"{at.host}:{at.port}"
    headers = {"host": host, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": when}
    names = ";".join(headers)
    listed = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"{method}\n{path}\n{query}\n{listed}\n{names}\n{EMPTY_SHA256}"
    scope = f"{when[:8]}/{at.region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{at.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return {
        **headers,
        "authorization": f"AWS4-HMAC-SHA256 Credential={at.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }


def encoded(query: Mapping[str, str]) -> str:
    """Return a query as the signature wants it: sorted, all but unreserved characters encoded."""
    return urllib.parse.urlencode(sorted(query.items()), safe="", quote_via=urllib.parse.quote)
