"""One node's part of the traffic: a paced TCP stream to and from each of its peers.

    python -m benchmarks.links.traffic JSON

The document: `address`, `peers` (addresses), `rate` (bytes a second and stream), `begin_ns` and
`end_ns` (CLOCK_MONOTONIC). Prints what arrived between the two, and what was sent again.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any

_PORT = 5300
_SO_MAX_PACING_RATE = 47  # asm-generic/socket.h
_TOTAL_RETRANSMITS = 100  # struct tcp_info, linux/tcp.h
_RAMP_NS = 1_000_000_000  # windows open, nothing is counted
_PATIENCE_S = 20.0
_CHUNK = bytes(1 << 17)


@dataclass
class Found:
    """What one node found: bytes that arrived, and packets that were sent again."""

    received: int = 0
    retransmitted: int = 0


def main(job: dict[str, Any]) -> None:
    """Carry the traffic and print what was found."""
    with socket.create_server((job["address"], _PORT), backlog=256) as server:
        sending = [_connect(peer, job) for peer in job["peers"]]
        receiving = [server.accept()[0] for _ in job["peers"]]
    found = _carry(sending, receiving, job["begin_ns"], job["end_ns"])
    print(json.dumps(vars(found)))


def _connect(peer: str, job: dict[str, Any]) -> socket.socket:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, job["rate"])
        try:
            made.connect((peer, _PORT))
        except ConnectionRefusedError:  # it does not listen yet
            made.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return made


def _carry(
    sending: list[socket.socket], receiving: list[socket.socket], begin_ns: int, end_ns: int
) -> Found:
    found, room = Found(), bytearray(1 << 20)
    time.sleep(max(0, begin_ns - _RAMP_NS - time.monotonic_ns()) / 1e9)
    with selectors.DefaultSelector() as ready:
        for one in sending:
            ready.register(one, selectors.EVENT_WRITE)
        for one in receiving:
            ready.register(one, selectors.EVENT_READ)
        for one in sending + receiving:
            one.setblocking(False)
        sent_again, counting = 0, False
        while (now_ns := time.monotonic_ns()) < end_ns:
            if not counting and now_ns >= begin_ns:
                counting, sent_again = True, sum(map(_retransmitted, sending))
            for key, events in ready.select(0.01):
                one: Any = key.fileobj
                with contextlib.suppress(BlockingIOError):
                    if events & selectors.EVENT_WRITE:
                        one.send(_CHUNK)
                    elif counting:
                        found.received += one.recv_into(room)
                    else:
                        one.recv_into(room)
    found.retransmitted = sum(map(_retransmitted, sending)) - sent_again
    # Others are not over yet: what still arrives from here does them no harm, a reset would.
    time.sleep(0.5)
    return found


def _retransmitted(one: socket.socket) -> int:
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOTAL_RETRANSMITS + 4)
    total: int = struct.unpack_from("I", info, _TOTAL_RETRANSMITS)[0]
    return total


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
