"""A program that makes requests for `oneshot exec`: it gets one a line, and answers with one line.

    import base64
    from wanlat.systems.program import Fail, serve

    store = connect()                        # not timed: it is ready when it serves

    def write(key, value):                   # {op: write, request: {key: "{key}", value: "{body}"}}
        store.set(key, base64.b64decode(value))

    serve(write=write, read=lambda key: store.get(key))

An operation gets its parameters by name. It returns nothing, the bytes of the object that it read,
or a mapping that is added to the answer, such as ``{"sha256": ...}``. It raises `Fail` where the
request was certainly not executed, `NotFound` where the object is not there; whatever else it
raises leaves that open. What it prints goes to standard error; its last line is reported when the
program dies.

This module needs nothing but Python's standard library, and little of it: programs that are started
for each request import it.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Fail", "NotFound", "serve"]


class Fail(Exception):
    """The request was certainly not executed, or answered in the negative. The text has why."""


class NotFound(Fail):
    """The store answered that there is no such object."""


def serve(**operations: Callable[..., Any]) -> None:
    """Answer until there are no more requests. ``nothing`` is known already, and does nothing."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    known = {"nothing": lambda: None, **operations}
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_answer(known, json.loads(line))).encode() + b"\n")
        answers.flush()


def _answer(known: Mapping[str, Callable[..., Any]], request: dict[str, Any]) -> dict[str, Any]:
    name = request.pop("op")
    if name not in known:
        return {"fail": f"there is no operation {name}; there are {', '.join(known)}"}
    try:
        result = known[name](**request)
    except Fail as refusal:
        outcome = "not_found" if isinstance(refusal, NotFound) else "fail"
        return {outcome: str(refusal) or type(refusal).__name__}
    except Exception as error:
        return {"unknown": " ".join(f"{type(error).__name__}: {error}".split())}
    if isinstance(result, (bytes, bytearray, memoryview)):
        result = {"body": b64encode(result).decode()}
    return {"ok": True, **(result or {})}
