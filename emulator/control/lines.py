"""JSON documents, one a line, over a Unix socket; descriptors may ride on one."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

_LONGEST_BYTES = 64 << 20  # counters of the largest topology
_MAX_FDS = 3  # stdin, stdout, stderr


class Lines:
    """One end of a connection. Raises ConnectionError when the other is gone or talks rubbish."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.fds: list[int] = []
        self._buffer = bytearray()

    def send(self, document: Any, fds: tuple[int, ...] = ()) -> None:
        """Send one document, with copies of descriptors."""
        data = json.dumps(document, allow_nan=False).encode() + b"\n"
        try:
            sent = socket.send_fds(self.socket, [data], list(fds)) if fds else 0
            self.socket.sendall(data[sent:])
        except OSError as error:
            raise ConnectionError(str(error)) from error

    def receive(self) -> dict[str, Any] | None:
        """Return the next document, or None at the end. Descriptors are in ``fds``."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST_BYTES:
                raise ConnectionError("the line is too long")
            data, fds, _, _ = socket.recv_fds(
                self.socket, 1 << 16, _MAX_FDS, socket.MSG_CMSG_CLOEXEC
            )
            self.fds += fds
            if not data:
                return None
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        try:
            document = json.loads(line)
        except ValueError as error:
            raise ConnectionError(f"not JSON: {error}") from error
        if not isinstance(document, dict):
            raise ConnectionError("not a JSON object")
        return document

    def close(self) -> None:
        """Close the connection and what came over it."""
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()
        self.socket.close()
