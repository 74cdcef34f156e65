"""python grpcio: the stub that protoc makes, on a plain channel. Run as a program."""

from __future__ import annotations

from typing import Any

import grpc

from tests.clients.bob_messages import BobMessages
from tests.clients.serve import Call, Check, IndependentClient, serve


class Grpcio(IndependentClient):
    """One channel for all calls, with its defaults, except that it never retries."""

    name = "grpcio"
    version = grpc.__version__
    configured = "insecure_channel, grpc.enable_retries 0; the rest is default"

    def __init__(self, at: dict[str, Any]) -> None:
        self._messages = BobMessages(at["protos"], at["includes"])
        channel = grpc.insecure_channel(
            f"{at['host']}:{at['port']}", options=[("grpc.enable_retries", 0)]
        )
        self._stub = self._messages.stub(channel)

    def prepare(self, request: dict[str, Any]) -> tuple[Call, Check]:
        """Make the message; the call serialises it, sends it and waits for the answer."""
        message, check = self._messages.make(request)
        method = getattr(self._stub, request["endpoint"])
        return lambda: method(message, timeout=30), check


if __name__ == "__main__":
    serve(Grpcio)
