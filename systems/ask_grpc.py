"""One gRPC call with an empty request, sent from inside the lab: whether a node serves it.

Just enough of HTTP/2 for that: the call is the connection's only stream, and of the answer only
the kinds of frames are looked at. Not for measuring: that is the probe's.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wanlat.systems.ask import PATIENCE_S, NoAnswer

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab

# RFC 9113: the preface, frame types, flags.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _GOAWAY = 0, 1, 3, 4, 7
_END_STREAM, _END_HEADERS = 0x1, 0x4
_STREAM = 1
_EMPTY_MESSAGE = b"\0\0\0\0\0"  # not compressed, of length 0


def serves(lab: Lab, node: str, port: int, method: str, timeout_s: float = PATIENCE_S) -> None:
    """Call ``/package.Service/Method`` on a node, from itself; return when a message came back.

    Raises NoAnswer: nobody there, not HTTP/2, or an answer without a message, which is how an
    error looks.
    """
    address = lab.node(node).address
    try:
        with lab.connect(node, (address, port), timeout_s) as connection:
            connection.sendall(_request(f"{address}:{port}", method))
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


def _request(authority: str, method: str) -> bytes:
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = b"".join(_literal(name, value) for name, value in headers.items())
    return (
        _PREFACE
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_HEADERS, _STREAM, block)
        + _frame(_DATA, _END_STREAM, _STREAM, _EMPTY_MESSAGE)
    )


def _literal(name: str, value: str) -> bytes:
    """Encode a header field as RFC 7541, 6.2.2: literal, new name, no compression."""
    texts = (name.encode(), value.encode())
    assert all(len(text) < 127 for text in texts), "longer ones need an integer of several bytes"
    return b"\0" + b"".join(bytes([len(text)]) + text for text in texts)


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
