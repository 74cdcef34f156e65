"""The first line of a plan: where its requests go, and what holds for all of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

Connection = Literal["keep-alive", "new"]

MAX_MESSAGE_BYTES = 128 * 1024 * 1024
"""Bob's message with an object of 100 MiB fits."""

Window = Literal["large", "tonic", "default"]
"""HTTP/2's windows, which a client opens for answers: how much a server may send before it hears
from the client again. ``large`` holds a whole answer, ``tonic`` is what Bob's own client has
(2 MiB a stream, 5 MiB the connection), ``default`` is HTTP/2's (65,535 bytes)."""


@dataclass(frozen=True)
class Terms:
    """What holds for all requests of a study."""

    deadline_ms: int
    connection: Connection = "keep-alive"
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """Of protocols with messages."""
    window: Window = "large"
    """Of HTTP/2."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first line of a plan, without what the protocol adds."""

    subcommand: ClassVar[str]
    """Of oneshot."""
    starting_s: ClassVar[float] = 0.0
    """How long it may take until requests can be sent, beside connecting."""

    connection: Connection = "keep-alive"
    deadline_ms: int = 30_000

    def line(self) -> bytes:
        """Return the line that oneshot reads."""
        return as_line(asdict(self))


def as_line(fields: dict[str, object]) -> bytes:
    """Return a line of JSON."""
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"
