"""What the packets of one connection say: an event for everything that somebody may wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    # from the client
    "syn",
    "preface",  # of HTTP/2, with the client's SETTINGS
    "head",  # of a request; `text` says which
    "body",  # of a request, or whatever else is not understood
    # from the server
    "syn-ack",
    "settings",  # of HTTP/2
    "continue",  # 100 Continue
    "answer",  # any part of a response
    "ack",  # an acknowledgement alone
    # from either: nothing that a request waits for
    "control",
    "end",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a packet brought, at the client's interface, on CLOCK_MONOTONIC."""

    at_ns: int
    out: bool
    kind: Kind
    text: str = ""
    expects_continue: bool = False
