"""Parsers as generators: each takes what it needs from a buffer and yields where that ends."""

from __future__ import annotations

from collections.abc import Generator

Step = Generator[None, None, None]


class Unreadable(Exception):
    """The bytes are not of the protocol that they were read as."""


def until(buffer: bytearray, mark: bytes) -> Generator[None, None, bytes]:
    """Take everything up to ``mark``; the mark is taken too and not returned."""
    while mark not in buffer:
        if len(buffer) > 1 << 20:
            raise Unreadable(f"no {mark!r} in a mebibyte")
        yield
    taken, _, rest = bytes(buffer).partition(mark)
    buffer[:] = rest
    return taken


def take(buffer: bytearray, length: int) -> Generator[None, None, bytes]:
    """Take ``length`` bytes."""
    while len(buffer) < length:
        yield
    taken = bytes(buffer[:length])
    del buffer[:length]
    return taken
