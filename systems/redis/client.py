"""Makes wanlat's requests of Redis, in RESP: writes the primary, reads the target node."""

import base64
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import BinaryIO

from wanlat.systems.program import Fail, NotFound, serve

node, primary, port, wait = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
DEADLINE_MS = 3_600_000  # of WAIT; oneshot's comes first
CONNECT_S = 2


class Session:
    """One connection, on which commands that are sent together are answered in their order."""

    def __init__(self, host: str) -> None:
        self._socket = socket.create_connection((host, port), CONNECT_S)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers: BinaryIO = self._socket.makefile("rb")

    def send(self, *commands: Sequence[bytes | str | int]) -> list[bytes | int | Fail | None]:
        """Send commands at once; return their answers, each of which is awaited.

        Raises Fail where the first was refused. Ends the program when the connection breaks.
        """
        try:
            self._socket.sendall(b"".join(map(_encoded, commands)))
            answers = [self._answer() for _ in commands]
        except (OSError, ValueError) as error:
            sys.exit(f"the connection broke: {error}")  # the next request gets a new program
        if isinstance(answers[0], Fail):
            raise answers[0]
        return answers

    def _answer(self) -> bytes | int | Fail | None:
        line = self._whole(self._answers.readline())
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            return Fail(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"$":
            if text == b"-1":
                return None
            length = int(text) + 2
            return self._whole(self._answers.read(length), length)[:-2]
        if kind != b"+":
            raise ValueError(f"an answer begins with {line[:20]!r}")
        return text

    @staticmethod
    def _whole(part: bytes, length: int | None = None) -> bytes:
        if not part.endswith(b"\r\n") or len(part) != (length or len(part)):
            raise ConnectionError("the server closed it")
        return part


def _encoded(command: Sequence[bytes | str | int]) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%s" % (len(parts), b"".join(parts))


@cache
def session(host: str) -> Session:
    """Return the connection to a node; one that could not be made is tried again when wanted."""
    try:
        return Session(host)
    except OSError as error:
        raise Fail(f"{host}: {error}") from error


def _replicated(*command: bytes | str) -> bytes | int | Fail | None:
    """Have the primary do something, and wait for replicas; both commands travel together."""
    answer, reached = session(primary).send(command, ["WAIT", wait, DEADLINE_MS])
    if not isinstance(reached, int) or reached < wait:
        raise TimeoutError(f"{reached!r} replicas have it, not {wait}")
    return answer


def set_(key: str, value: str) -> None:
    """Write an object."""
    _replicated("SET", key, base64.b64decode(value))


def set_no_wait(key: str, value: str) -> None:
    """Write an object to the primary's memory."""
    session(primary).send(["SET", key, base64.b64decode(value)])


def get(key: str) -> bytes:
    """Read an object from the target node."""
    (value,) = session(node).send(["GET", key])
    if not isinstance(value, bytes):
        raise NotFound("no such key")
    return value


def delete(key: str) -> None:
    """Delete an object."""
    if _replicated("DEL", key) != 1:
        raise NotFound("no such key")


for host in (primary, node):
    with suppress(Fail):
        session(host)
serve(set=set_, set_no_wait=set_no_wait, get=get, delete=delete)
