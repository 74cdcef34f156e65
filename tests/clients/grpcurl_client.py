"""grpcurl: one process a call, as on a command line. Run as a program (see ``serve``).

The time includes the start of the process, which is its overhead; loopback shows how much.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from typing import Any

from tests.clients.serve import (
    Call,
    Check,
    IndependentClient,
    body_of,
    nothing_to_check,
    same_as,
    serve,
)
from wanlat.systems.registry import find_tool

_SERVICE = "bob_storage.BobApi"


class Grpcurl(IndependentClient):
    """grpcurl with the message on its standard input and the service's own .proto."""

    name = "grpcurl"
    configured = "-plaintext -proto (no reflection), a process a call; the rest is default"

    def __init__(self, at: dict[str, Any]) -> None:
        found = find_tool("grpcurl")
        self._start = [str(found.path), "-plaintext"]
        for include in at["includes"]:
            self._start += ["-import-path", include]
        for proto in at["protos"]:
            self._start += ["-proto", proto]
        self._start += ["-d", "@", f"{at['host']}:{at['port']}"]
        self.version = found.version

    def prepare(self, request: dict[str, Any]) -> tuple[Call, Check]:
        """Write the message as JSON; the call is the whole life of a process."""
        message, check = _message(request)
        argv = [*self._start, f"{_SERVICE}/{request['endpoint']}"]
        stdin = json.dumps(message)

        def call() -> dict[str, Any]:
            done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ChildProcessError(" ".join(done.stderr.split()))
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer

        return call, check


def _message(request: dict[str, Any]) -> tuple[dict[str, Any], Check]:
    endpoint = request["endpoint"]
    if endpoint == "Ping":
        return {}, nothing_to_check
    key = {"key": base64.b64encode(bytes.fromhex(request["key"])).decode()}
    meta = {"timestamp": int(time.time())}
    if endpoint == "Put":
        data = base64.b64encode(body_of(request)).decode()
        return {"key": key, "data": {"data": data, "meta": meta}}, _went_well
    if endpoint == "Get":
        same = same_as(body_of(request))
        return {"key": key}, lambda got: same(base64.b64decode(got.get("data", "")))
    if endpoint == "Exist":
        right = request.get("exists", True)
        return {"keys": [key]}, (
            lambda got: None if got.get("exist") == [right] else f"exist is {got.get('exist')}"
        )
    if endpoint == "Delete":
        return {"key": key, "meta": meta}, _went_well
    raise ValueError(f"Bob has no endpoint {endpoint}")


def _went_well(status: dict[str, Any]) -> str | None:
    error = status.get("error")
    return f"{error.get('code', 0)}: {error.get('desc', '')}" if error else None


if __name__ == "__main__":
    serve(Grpcurl)
