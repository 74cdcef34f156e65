"""Messages between processes: one a line, over a Unix socket or a program's pipes.

What is between the newlines is JSON, or a pickled object where both ends are ours and no other
process can write to the stream. One end may still trust the other no further than for plain data:
`pickled` has the classes that it takes.

Over a socket, descriptors ride on a message. Every wait may have a deadline, and none is by
select(), which cannot have descriptors above 1,023.
"""

from __future__ import annotations

import array
import binascii
import contextlib
import io
import json
import os
import pickle
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

_LONGEST_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 15  # a larger buffer is mapped, and its pages faulted in, at every read
_MAX_FDS = 16


class Closed(ConnectionError):
    """The other end is gone, or what it sent is no message."""


File = socket.socket | IO[bytes]


class Codec(NamedTuple):
    """How an object becomes a line, and a line an object."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


_PLAIN = (bool, int, float, str, list)


class _Writer(pickle.Pickler):
    """Writes numpy's numbers and arrays as plain ones: a reader may import nothing for them.

    And errors as themselves, whatever has been registered for them (`distributed` has tblib do so).
    """

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, BaseException):
            return value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        if type(value).__module__ != "numpy" or not hasattr(value, "tolist"):
            return NotImplemented
        plain = value.tolist()
        return (type(plain), (plain,)) if type(plain) in _PLAIN else NotImplemented


def _pickle(message: Any) -> bytes:
    written = io.BytesIO()
    _Writer(written).dump(message)
    return binascii.b2a_base64(written.getbuffer(), newline=False)


JSON = Codec(lambda message: json.dumps(message, allow_nan=False).encode(), json.loads)
PICKLE = Codec(_pickle, lambda line: pickle.loads(binascii.a2b_base64(line)))


def pickled(*classes: type) -> Codec:
    """Return the codec of pickled objects that makes none of other classes, and calls nothing.

    What is built in and plain (numbers, texts, lists, …) is always allowed. Anything else raises
    `pickle.UnpicklingError`.
    """
    allowed = {(cls.__module__, cls.__qualname__): cls for cls in classes}

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> type:
            if (module, name) not in allowed:
                raise pickle.UnpicklingError(f"{module}.{name} is not what may be sent here")
            return allowed[module, name]

    return PICKLE._replace(decode=lambda line: Reader(io.BytesIO(binascii.a2b_base64(line))).load())


class Stream:
    """One end of a stream of messages: a Unix socket, or two ends of pipes.

    One thread may send while another receives. Close it yourself; `close` closes what it is over.
    """

    def __init__(
        self, reader: File | None, writer: File | None = None, *, codec: Codec = JSON
    ) -> None:
        assert reader is not None  # Popen's types say that a pipe may be
        self._reader = reader
        self._writer = reader if writer is None else writer
        self._codec = codec
        self._buffer = bytearray()
        self._received = 0
        """How many bytes have come; those of the buffer are the last of them."""
        self._riders: deque[tuple[int, list[int]]] = deque()
        """Descriptors, each with the count of bytes that had come by then."""
        for file in (self._reader, self._writer):
            os.set_blocking(file.fileno(), False)

    def fileno(self) -> int:
        """Return the descriptor on which messages arrive, for poll(). See `has_message`."""
        return int(self._reader.fileno())

    @property
    def has_message(self) -> bool:
        """Whether `receive` has one without waiting: poll() knows only of what is not read yet."""
        return b"\n" in self._buffer

    def query(self, message: Any, timeout_s: float | None = None) -> Any:
        """Send a message and return the next one that comes. Raises as `send` and `receive`."""
        self.send(message, timeout_s=timeout_s)
        return self.receive(timeout_s)[0]

    def send(self, message: Any, fds: Sequence[int] = (), timeout_s: float | None = None) -> None:
        """Send a message with copies of descriptors. Raises Closed, TimeoutError."""
        left = memoryview(self._codec.encode(message) + b"\n")
        deadline = _deadline(timeout_s)
        while left:
            try:
                _await(self._writer, select.POLLOUT, deadline)
                if fds and isinstance(self._writer, socket.socket):
                    rider = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
                    left = left[self._writer.sendmsg([left], [rider]) :]
                    fds = ()
                else:
                    left = left[os.write(self._writer.fileno(), left) :]
            except BlockingIOError:
                continue
            except (Closed, TimeoutError):
                raise
            except OSError as error:
                raise Closed(str(error)) from error

    def receive(self, timeout_s: float | None = None) -> tuple[Any, list[int]]:
        """Return the next message and its descriptors, which are the caller's to close.

        Raises Closed at the end of the stream, TimeoutError.
        """
        deadline = _deadline(timeout_s)
        while not self.has_message:
            if len(self._buffer) > _LONGEST_BYTES:
                raise Closed("the line is too long")
            try:
                _await(self._reader, select.POLLIN, deadline)
                self._read()
            except BlockingIOError:
                continue
            except (Closed, TimeoutError):
                raise
            except OSError as error:
                raise Closed(str(error)) from error
        line, _, self._buffer = self._buffer.partition(b"\n")
        fds: list[int] = []
        while self._riders and self._riders[0][0] <= self._received - len(self._buffer):
            fds += self._riders.popleft()[1]
        try:
            return self._codec.decode(bytes(line)), fds
        except ValueError as error:
            raise Closed(f"not a message: {error}") from error

    def _read(self) -> None:
        fds = array.array("i")
        if isinstance(self._reader, socket.socket):
            # The kernel ends a read with the bytes that descriptors came with: they belong to the
            # message that the last of them is of. (socket.recv_fds() has flags and ignores them.)
            room = socket.CMSG_SPACE(_MAX_FDS * fds.itemsize)
            data, riders, _, _ = self._reader.recvmsg(_CHUNK_BYTES, room, socket.MSG_CMSG_CLOEXEC)
            for _, _, raw in riders:
                fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
        else:
            data = os.read(self._reader.fileno(), _CHUNK_BYTES)
        self._buffer += data
        self._received += len(data)
        if fds:
            self._riders.append((self._received, list(fds)))
        if not data:
            raise Closed("end of stream")

    def finish(self) -> None:
        """Send nothing more; the other end sees the end of the stream."""
        with contextlib.suppress(OSError):
            if isinstance(self._writer, socket.socket):
                self._writer.shutdown(socket.SHUT_WR)
            else:
                self._writer.close()

    def abandon(self) -> None:
        """Close this process's copy alone; another process goes on using this end."""
        self._reader.close()
        self._writer.close()
        while self._riders:
            for fd in self._riders.popleft()[1]:
                os.close(fd)

    def close(self) -> None:
        """Close this end, and descriptors that were not taken."""
        with contextlib.suppress(OSError):
            if isinstance(self._reader, socket.socket):
                self._reader.shutdown(socket.SHUT_RDWR)
        self.abandon()


def _deadline(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else time.monotonic() + timeout_s


def _await(file: File, event: int, deadline: float | None) -> None:
    if file.fileno() < 0:
        raise Closed("closed at this end")
    poll = select.poll()
    poll.register(file, event)
    left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
    if not poll.poll(left_ms):
        raise TimeoutError("no answer in time")
