"""HTTP/2 as it passed: the client's preface, the server's SETTINGS, requests and answers."""

from __future__ import annotations

from typing import Any

from wanlat.experiments.crosscheck.http1 import Emit
from wanlat.experiments.crosscheck.reading import Step, Unreadable, take

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_DATA, _HEADERS, _SETTINGS, _CONTINUATION = 0, 1, 4, 9
_ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x4, 0x8, 0x20
_LARGEST_FRAME = (1 << 24) - 1


class Http2:
    """The two directions of one connection. ``emit(kind, text)`` is told what passed."""

    def __init__(self, emit: Emit) -> None:
        from hpack import Decoder

        self._emit = emit
        # One for the connection: a name that was sent before is a number from then on.
        self._decoder: Any = Decoder()

    def client(self, buffer: bytearray) -> Step:
        """Read what the client sent."""
        if (yield from take(buffer, len(PREFACE))) != PREFACE:
            raise Unreadable("not HTTP/2")
        self._emit("preface")
        block = b""
        while True:
            kind, flags, payload = yield from _frame(buffer)
            if kind in (_HEADERS, _CONTINUATION):
                block += _fragment(kind, flags, payload)
                if flags & _END_HEADERS:
                    self._emit("head", self._request(block))
                    block = b""
            else:
                self._emit("body" if kind == _DATA else "control")

    def server(self, buffer: bytearray) -> Step:
        """Read what the server sent."""
        while True:
            kind, flags, _ = yield from _frame(buffer)
            if kind == _SETTINGS and not flags & _ACK:
                self._emit("settings")
            else:
                self._emit("answer" if kind in (_DATA, _HEADERS, _CONTINUATION) else "control")

    def _request(self, block: bytes) -> str:
        from hpack.exceptions import HPACKError

        try:
            headers = {str(name): str(value) for name, value in self._decoder.decode(block)}
        except HPACKError as error:
            raise Unreadable(f"headers: {error}") from error
        return f"{headers.get(':method', '?')} {headers.get(':path', '?')}"


def _frame(buffer: bytearray) -> Any:
    head = yield from take(buffer, 9)
    length = int.from_bytes(head[:3], "big")
    if length > _LARGEST_FRAME:
        raise Unreadable("a frame that is too long")
    payload = yield from take(buffer, length)
    return head[3], head[4], payload


def _fragment(kind: int, flags: int, payload: bytes) -> bytes:
    if kind == _CONTINUATION:
        return payload
    padding = 0
    if flags & _PADDED:
        padding, payload = payload[0], payload[1:]
    if flags & _PRIORITY:
        payload = payload[5:]
    return payload[: len(payload) - padding]
