"""The smallest gRPC call: what passes for an answer, and what does not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from systems_doubles import StandInLab

from wanlat.systems.engine.request import NoAnswer, serves

PING = "/bob_storage.BobApi/Ping"

grpc = pytest.importorskip("grpc")

SETTINGS = bytes.fromhex("000000 04 00 00000000")
HEADERS = bytes.fromhex("000001 01 04 00000001 88")  # :status 200, from the static table
TRAILERS_ONLY = bytes.fromhex("000001 01 05 00000001 88")  # how gRPC says that it failed
DATA = bytes.fromhex("000005 00 00 00000001 0000000000")
RESET = bytes.fromhex("000004 03 00 00000001 00000007")
GOAWAY = bytes.fromhex("000008 07 00 00000000 0000000000000001")


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A server on node n1's address that says the same to everybody, then hangs up."""
    with socket.create_server(("127.0.1.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


def ask(lab: StandInLab, port: int, timeout_s: float = 5) -> None:
    serves(lab, "n1", port, PING, timeout_s)  # type: ignore[arg-type]


def test_a_message_is_an_answer(lab: StandInLab) -> None:
    with answering(SETTINGS + HEADERS + DATA) as port:
        ask(lab, port)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SETTINGS + TRAILERS_ONLY, "with an error"),
        (SETTINGS + RESET, "with an error"),
        (SETTINGS + GOAWAY, "with an error"),
        (SETTINGS + HEADERS, "closed the connection without an answer"),
        (b"", "closed the connection without an answer"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
    ],
)
def test_anything_else_is_none(lab: StandInLab, answer: bytes, reason: str) -> None:
    with answering(answer) as port, pytest.raises(NoAnswer, match=reason):
        ask(lab, port)


def test_silence_is_none_after_the_time(lab: StandInLab) -> None:
    with socket.create_server(("127.0.1.1", 0)) as server, pytest.raises(NoAnswer, match="within"):
        ask(lab, server.getsockname()[1], timeout_s=0.2)


def test_nobody_there_is_none(lab: StandInLab) -> None:
    with socket.create_server(("127.0.1.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NoAnswer, match="does not answer"):
        ask(lab, port)


@contextmanager
def grpc_server(handler: Callable[[bytes, object], bytes] | None) -> Iterator[int]:
    """Python's own gRPC server; without a handler it serves nothing at all."""
    from concurrent.futures import ThreadPoolExecutor

    server = grpc.server(ThreadPoolExecutor(1))
    if handler:
        method = grpc.unary_unary_rpc_method_handler(handler)
        service = grpc.method_handlers_generic_handler("bob_storage.BobApi", {"Ping": method})
        server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.1.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def test_a_server_of_another_make_understands_it(lab: StandInLab) -> None:
    asked: list[bytes] = []

    def ping(request: bytes, _: object) -> bytes:
        asked.append(request)
        return b""

    with grpc_server(ping) as port:
        ask(lab, port)
    assert asked == [b""]


def test_a_method_that_is_not_served_is_no_answer(lab: StandInLab) -> None:
    with grpc_server(None) as port, pytest.raises(NoAnswer, match="Ping with an error"):
        ask(lab, port)
