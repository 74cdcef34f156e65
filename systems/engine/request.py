"""One request to a node, sent from inside the lab: for readiness and administration.

Over HTTP, signed where it is S3; and over gRPC, to see whether a method is served. Not for
measuring: that is the probe's, which is compiled and shares nothing with this.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import socket
import struct
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import hpack

from wanlat.systems.engine.protocols import S3Target

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

PATIENCE_S = 2.0  # for an answer that needs nobody else


class NoAnswer(Exception):
    """Nobody answered, or not in that protocol, or not in time. The message says which."""


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


# -- gRPC ------------------------------------------------------------------------------------

# RFC 9113: the preface, frame types, flags.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 0, 1, 3, 4, 7
_END_STREAM, _END_HEADERS = 0x1, 0x4
_STREAM = 1
_EMPTY_MESSAGE = b"\0\0\0\0\0"  # not compressed, of length 0


def serves(lab: Lab, node: str, port: int, method: str, timeout_s: float = PATIENCE_S) -> None:
    """Call ``/package.Service/Method`` on a node, from itself, with an empty message.

    The call is the connection's only stream, and of the answer only the kinds of frames are looked
    at. Returns when a message came back. Raises NoAnswer: nobody there, not HTTP/2, or an answer
    without a message, which is how an error looks.
    """
    address = lab.node(node).address
    try:
        with lab.connect(node, (address, port), timeout_s) as connection:
            connection.sendall(_call(f"{address}:{port}", method))
            for kind, flags, stream in _frames(connection):
                if stream == _STREAM and kind == _DATA:
                    return
                if kind in (_RST_STREAM, _GOAWAY) or (stream == _STREAM and flags & _END_STREAM):
                    raise NoAnswer(f"port {port} answers {method} with an error")
    except TimeoutError as error:
        raise NoAnswer(f"port {port} did not answer within {timeout_s:g} s") from error
    except OSError as error:
        raise NoAnswer(f"port {port} does not answer: {error or type(error).__name__}") from error
    raise NoAnswer(f"port {port} closed the connection without an answer")


def _call(authority: str, method: str) -> bytes:
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = hpack.Encoder().encode(headers.items())
    return (
        _PREFACE
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_HEADERS, _STREAM, block)
        + _frame(_DATA, _END_STREAM, _STREAM, _EMPTY_MESSAGE)
    )


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _frames(connection: socket.socket) -> Iterator[tuple[int, int, int]]:
    """Yield kind, flags and stream of each frame until the connection ends."""
    with connection.makefile("rb") as stream:
        while len(head := stream.read(9)) == 9:
            length = int.from_bytes(head[:3])
            kind, flags, number = struct.unpack(">BBI", head[3:])
            if length > 1 << 20:
                raise OSError("it does not speak HTTP/2")
            stream.read(length)
            yield kind, flags, number & 0x7FFF_FFFF
