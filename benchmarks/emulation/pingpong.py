"""One round trip at a time over TCP, timed the same way whatever stands in between.

    python -m benchmarks.emulation.pingpong serve PORT
    python -m benchmarks.emulation.pingpong ask HOST PORT COUNT      prints a JSON list of ns

The clock stops at the kernel's receive timestamp, so a late wake-up of the asking process counts
for no emulator. That of the answering process counts, for all alike. TCP, since one of those that
are compared is a TCP proxy.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import sys
import time

PORT = 7000
SERVE = (sys.executable, "-m", "benchmarks.emulation.pingpong", "serve", str(PORT))

_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; also the type of its control message
_TIMESPEC = struct.Struct("qq")
_MESSAGE_BYTES = 64
_LONGEST_PAUSE_S = 0.004  # a pause of random length, or all would meet the same phase of a timer
_CONNECT_TRIES = 100


def ask_command(host: str, port: int, count: int) -> list[str]:
    """Return the command that prints ``count`` round-trip times."""
    program = [sys.executable, "-m", "benchmarks.emulation.pingpong", "ask"]
    return [*program, host, str(port), str(count)]


def serve(port: int) -> None:
    """Send back every message of one connection after the other, until killed."""
    with socket.create_server(("0.0.0.0", port)) as listening:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while message := connection.recv(_MESSAGE_BYTES):
                    connection.sendall(message)


def ask(host: str, port: int, count: int) -> list[int]:
    """Return the round-trip times of ``count`` messages, ns; the first ones are not counted."""
    warm_up = 5
    pauses = random.Random(1)
    with _connected(host, port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        times = []
        for _ in range(warm_up + count):
            time.sleep(pauses.uniform(0, _LONGEST_PAUSE_S))
            sent_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
            connection.sendall(b"x" * _MESSAGE_BYTES)
            times.append(_receive(connection) - sent_ns)
    return times[warm_up:]


def _connected(host: str, port: int) -> socket.socket:
    for _ in range(_CONNECT_TRIES):
        try:
            return socket.create_connection((host, port), timeout=10)
        except ConnectionRefusedError:  # the other end is still starting
            time.sleep(0.05)
    raise ConnectionRefusedError(f"nobody listens on {host}:{port}")


def _receive(connection: socket.socket) -> int:
    """Return the instant at which the kernel received the last part of a message."""
    received, instant_ns = 0, 0
    while received < _MESSAGE_BYTES:
        data, control, _, _ = connection.recvmsg(_MESSAGE_BYTES, 64)
        if not data:
            raise ConnectionResetError("the other end closed the connection")
        received += len(data)
        for _, kind, stamp in control:
            if kind == _SO_TIMESTAMPNS:
                seconds, nanoseconds = _TIMESPEC.unpack(stamp[: _TIMESPEC.size])
                instant_ns = seconds * 1_000_000_000 + nanoseconds
    return instant_ns


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        print(json.dumps(ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
