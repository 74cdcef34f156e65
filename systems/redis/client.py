"""Asks Redis for what wanlat tells it, in RESP: writes the primary, reads the target node."""

import base64
import socket
import sys
from collections.abc import Sequence
from typing import BinaryIO

from wanlat.probes.program import Fail, serve

node, primary, port, wait = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
DEADLINE_MS = 3_600_000  # of WAIT; oneshot's comes first


class Session:
    """One connection, on which commands that are sent together are answered in their order."""

    def __init__(self, host: str) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers: BinaryIO = self._socket.makefile("rb")

    def ask(self, *commands: Sequence[bytes | str | int]) -> list[bytes | int | None]:
        """Send commands at once; return their answers. Ends the program where one is broken."""
        self._socket.sendall(b"".join(map(_encoded, commands)))
        return [self._answer() for _ in commands]

    def _answer(self) -> bytes | int | None:
        line = self._answers.readline()
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise Fail(text.decode())
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if text == b"-1" else self._answers.read(int(text) + 2)[:-2]
        if kind != b"+":
            sys.exit("the connection ended")  # the next request gets a new program
        return text


def _encoded(command: Sequence[bytes | str | int]) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%s" % (len(parts), b"".join(parts))


writer, reader = Session(primary), Session(node)


def _replicated(*command: bytes | str) -> bytes | int | None:
    """Have the primary do something, and wait for replicas; both commands travel together."""
    answer, reached = writer.ask(command, ["WAIT", wait, DEADLINE_MS])
    if not isinstance(reached, int) or reached < wait:
        raise TimeoutError(f"{reached!r} replicas have it, not {wait}")
    return answer


def set_(key: str, value: str) -> None:
    """Write an object."""
    _replicated("SET", key, base64.b64decode(value))


def set_no_wait(key: str, value: str) -> None:
    """Write an object to the primary's memory."""
    writer.ask(["SET", key, base64.b64decode(value)])


def get(key: str) -> bytes:
    """Read an object from the node that is asked."""
    (value,) = reader.ask(["GET", key])
    if not isinstance(value, bytes):
        raise Fail("no such key")
    return value


def delete(key: str) -> None:
    """Delete an object."""
    if _replicated("DEL", key) != 1:
        raise Fail("no such key")


serve(set=set_, set_no_wait=set_no_wait, get=get, delete=delete)
