"""MinIO's grid: what its nodes request of each other over a websocket, by the handler's name.

A websocket frame (RFC 6455) holds a message of seven values in MessagePack: number of the call,
sequence, deadline, handler, operation, flags, payload (MinIO's internal/grid/msg.go). Handlers are
numbered in internal/grid/handlers.go, which promises that a number never changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import yaml

_FINAL_BINARY = 0x82
_SEVEN_VALUES = 0x97
_VALUES_BEFORE_PAYLOAD = 6
_WIDTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_REQUEST, _RESPONSE, _MERGED = 14, 15, 17
_NUMBERS = yaml.safe_load(Path(__file__).with_name("grid.yaml").read_text(encoding="utf-8"))
_OPERATIONS: dict[int, str] = _NUMBERS["operations"]
_HANDLERS: list[str] = _NUMBERS["handlers"]  # from 1
_NAMED_AT_MOST = 3


class GridMessages:
    """The calls seen so far, so that an answer, which has only a number, can be labelled."""

    def __init__(self) -> None:
        self._handlers: dict[tuple[int, int], str] = {}

    def label(self, payload: bytes, connection: int, *, is_request: bool) -> str | None:  # noqa: ARG002
        """ "LockLock", "reply to LockLock", "ping"; None for what is no message of the grid."""
        names = [self._name(message, connection) for message in _messages(payload)]
        known = list(dict.fromkeys(name for name in names if name))
        more = f" + {len(known) - _NAMED_AT_MOST} more" if len(known) > _NAMED_AT_MOST else ""
        return " + ".join(known[:_NAMED_AT_MOST]) + more or None

    def _name(self, message: Message, connection: int) -> str | None:
        if message.operation == _REQUEST:
            handler = message.handler
            is_known = 0 < handler <= len(_HANDLERS)
            name = _HANDLERS[handler - 1] if is_known else f"handler {handler}"
            self._handlers[connection, message.number] = name
            return name
        if message.operation == _RESPONSE:
            call = self._handlers.pop((connection, message.number), None)
            return f"reply to {call}" if call else "reply"
        return _OPERATIONS.get(message.operation)


class Message(NamedTuple):
    """The head of a message of the grid."""

    number: int
    handler: int
    operation: int


def _messages(payload: bytes) -> Iterator[Message]:
    """The messages in a packet that begins with one, as far as the record kept them."""
    body = _unmasked(payload)
    with suppress(LookupError):  # cut off, or no message
        message, at = _message(body, 0)
        if message.operation != _MERGED:
            yield message
            return
        # Its own payload is empty; those that were put together follow it, each as bytes.
        while True:
            length, begin = _number(body, at)
            if length:
                yield _message(body, begin)[0]
            at = begin + length


def _unmasked(payload: bytes) -> bytes:
    """What a final binary frame of a websocket holds; empty if there is none."""
    if len(payload) < 3 or payload[0] != _FINAL_BINARY:
        return b""
    at = 2 + {126: 2, 127: 8}.get(payload[1] & 0x7F, 0)
    if not payload[1] & 0x80:
        return payload[at:]
    key, masked = payload[at : at + 4], payload[at + 4 :]  # a client's, masked
    return bytes(octet ^ key[place % 4] for place, octet in enumerate(masked))


def _message(body: bytes, at: int) -> tuple[Message, int]:
    """The message that begins at `at`, and where its payload does."""
    if body[at] != _SEVEN_VALUES:
        raise LookupError
    values, at = list[int](), at + 1
    while len(values) < _VALUES_BEFORE_PAYLOAD:
        value, at = _number(body, at)
        values.append(value)
    return Message(values[0], values[3], values[4]), at


def _number(body: bytes, at: int) -> tuple[int, int]:
    """An integer of MessagePack, or the length of bytes, and where what follows it begins."""
    first, begin = body[at], at + 1
    if first < 0x80:
        return first, begin
    end = begin + _WIDTHS[first]
    if end > len(body):
        raise LookupError
    return int.from_bytes(body[begin:end], "big"), end
