"""HTTP/1.1 as it passed: requests, their bodies, `100 Continue`, and answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wanlat.experiments.crosscheck.events import Kind
from wanlat.experiments.crosscheck.reading import Step, Unreadable, take, until

Emit = Callable[..., None]
_BODILESS = (204, 304)


class Http1:
    """The two directions of one connection. ``emit(kind, text, expects)`` is told what passed."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._methods: deque[str] = deque()

    def client(self, buffer: bytearray) -> Step:
        """Read what the client sent."""
        while True:
            line, headers = _head((yield from until(buffer, b"\r\n\r\n")))
            words = line.split(" ")
            if len(words) != 3 or not words[2].startswith("HTTP/1."):
                raise Unreadable(f"not a request: {line[:80]!r}")
            self._methods.append(words[0])
            expects = headers.get("expect", "").lower() == "100-continue"
            self._emit("head", f"{words[0]} {words[1]}", expects)
            yield from self._body(buffer, headers, "body")

    def server(self, buffer: bytearray) -> Step:
        """Read what the server sent."""
        while True:
            line, headers = _head((yield from until(buffer, b"\r\n\r\n")))
            words = line.split(" ")
            if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
                raise Unreadable(f"not a response: {line[:80]!r}")
            status = int(words[1])
            if status == 100:
                self._emit("continue")
                continue
            if status == 101:
                raise Unreadable("another protocol from here on")
            self._emit("answer", str(status))
            method = self._methods.popleft() if self._methods else ""
            if method == "HEAD" or status in _BODILESS:
                continue
            if "content-length" not in headers and "transfer-encoding" not in headers:
                raise Unreadable("an answer that ends with its connection")
            yield from self._body(buffer, headers, "answer")

    def _body(self, buffer: bytearray, headers: dict[str, str], kind: Kind) -> Step:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while length := int((yield from until(buffer, b"\r\n")).split(b";")[0], 16):
                yield from take(buffer, length + 2)
                self._emit(kind)
            while (yield from until(buffer, b"\r\n")):  # trailers, up to an empty line
                pass
            self._emit(kind)
            return
        length = int(headers.get("content-length", "0"))
        if length:
            yield from take(buffer, length)
            self._emit(kind)


def _head(head: bytes) -> tuple[str, dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in rest)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}
