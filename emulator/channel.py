"""Python objects and file descriptors over one Unix stream socket.

Both ends are ours (the supervisor is started by its peer and nothing inside a lab inherits
the socket), which is why plain pickle is enough.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
from typing import Any

_HEADER = struct.Struct("!IB")
_MAX_FDS = 16


class Closed(Exception):
    """The other end is gone."""


class Channel:
    """One end of the socket. Not thread-safe for two senders or two receivers at once."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        """Return the socket's descriptor, for select()."""
        return self._socket.fileno()

    def send(self, message: Any, fds: tuple[int, ...] = ()) -> None:
        """Send one object with copies of ``fds``. Raises Closed."""
        body = pickle.dumps(message)
        header = _HEADER.pack(len(body), len(fds))
        try:
            # The descriptors ride on the header, so that they arrive with its first byte.
            sent = socket.send_fds(self._socket, [header], list(fds))
            self._socket.sendall(header[sent:] + body)
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> tuple[Any, list[int]]:
        """Return the next object and its descriptors, which the caller now owns.

        Raises Closed at the end of the stream.
        """
        fds: list[int] = []
        try:
            header = b""
            while len(header) < _HEADER.size:
                chunk, new_fds, _, _ = socket.recv_fds(
                    self._socket, _HEADER.size - len(header), _MAX_FDS, socket.MSG_CMSG_CLOEXEC
                )
                fds += new_fds
                if not chunk:
                    raise Closed("end of stream")
                header += chunk
            length, _count = _HEADER.unpack(header)
            body = bytearray()
            while len(body) < length:
                chunk = self._socket.recv(min(1 << 20, length - len(body)))
                if not chunk:
                    raise Closed("end of stream")
                body += chunk
        except OSError as error:
            raise Closed(str(error)) from error
        return pickle.loads(bytes(body)), fds

    def abandon(self) -> None:
        """Close this process's copy only; another process goes on using this end."""
        self._socket.close()

    def finish(self) -> None:
        """Say that nothing more will be sent; the other end sees the end of the stream."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close this end; the other end sees the end of the stream."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
