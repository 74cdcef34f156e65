"""The client's half: requests come in as lines, are timed one by one, and answered as lines.

A client is a program. It reads a first line that says where the store is, and makes itself ready:

    {"host", "port", "region", "access_key", "secret_key"}            of a store that speaks S3
    {"host", "port", "protos", "includes"}                            of a service that speaks gRPC

It answers with ``{"name", "version", "configured"}``. From then on every line is a request, with
the fields of a plan for oneshot, and every answer is

    {"seq", "start_ns", "end_ns", "ok", "error"}

on CLOCK_MONOTONIC, around the call and nothing else: what the call takes is made before, what it
returned is checked after. There is never more than one request in flight, since the next line
comes when the one before it is answered. The end of its input is the end of the client.
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from wanlat.probes.body import body

Call = Callable[[], Any]
Check = Callable[[Any], str | None]
"""Takes what the call returned; returns why it is wrong, None when it is right."""


class IndependentClient(ABC):
    """A client as a user would make one. ``configured`` says what differs from the defaults."""

    name: str
    version: str
    configured: str

    @abstractmethod
    def prepare(self, request: dict[str, Any]) -> tuple[Call, Check]:
        """Return the call that is timed, and the check of what it returned."""


def nothing_to_check(_: Any) -> str | None:
    """Accept whatever was returned: the call would have raised."""
    return None


def body_of(request: dict[str, Any]) -> bytes:
    """Return the bytes of a request's object."""
    return body(request["body_seed"], request["object_bytes"])


def same_as(expected: bytes) -> Check:
    """Return the check that an object came back as it was stored."""

    def check(got: Any) -> str | None:
        if got == expected:
            return None
        return f"{len(got)} bytes came back that are not the {len(expected)} stored"

    return check


def serve(make: Callable[[dict[str, Any]], IndependentClient]) -> None:
    """Make a client for the store of the first line and carry out the requests after it."""
    client = make(json.loads(sys.stdin.readline()))
    _answer(name=client.name, version=client.version, configured=client.configured)
    for line in sys.stdin:
        request = json.loads(line)
        call, check = client.prepare(request)
        error: str | None = None
        returned = None
        start_ns = time.perf_counter_ns()
        try:
            returned = call()
        except Exception as raised:  # whatever a library raises is how the request went
            error = f"{type(raised).__name__}: {raised}"[:300]
        end_ns = time.perf_counter_ns()
        error = error or check(returned)
        _answer(seq=request["seq"], start_ns=start_ns, end_ns=end_ns, ok=error is None, error=error)


def _answer(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
