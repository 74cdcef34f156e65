"""Numbered packets through a lab: when each was sent, and when and in which order they came.

Both sockets are the test's own, and the kernel stamps arrivals: one clock, and no wake-up of a
program between a packet and its instant.

The kernel that runs these shares two processors with whatever else runs on the host, and has no
fine timers. So tests assert what neither can change: counts, order, that no packet is early
(exactly), and of lateness the quickest of many packets.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wanlat.emulator.lab import Lab

_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33  # beyond the limit of the system: a pause of the reader loses nothing
_STAMP = struct.Struct("=IQ")
_PORT = 5005
_CATCH_UP_S = 0.1  # of the schedule, after a stall: more at once could overflow a queue
_STEP_S = 0.01

QUICKEST_LATE_NS = 2e6
"""The quickest of many packets is late by less: its timers take some 0.1 ms, and others on the
host make single packets late."""


@dataclass(frozen=True)
class Passage:
    """Packets that arrived, in the order of arrival: number, delay, instant of sending."""

    sent: int
    number: NDArray[np.int64]
    delay_ns: NDArray[np.int64]
    sent_ns: NDArray[np.int64]

    @property
    def lost(self) -> int:
        """How many never came."""
        return self.sent - len(np.unique(self.number))

    @property
    def doubled(self) -> int:
        """How many came twice."""
        return len(self.number) - len(np.unique(self.number))

    @property
    def overtaken(self) -> int:
        """How many came after one that was sent later."""
        return int(np.sum(self.number < np.maximum.accumulate(self.number)))

    @property
    def arrived_ns(self) -> NDArray[np.int64]:
        """The instant at which each arrived."""
        return self.sent_ns + self.delay_ns

    def quickest_late_ns(self, delay_ns: float) -> float:
        """How late the quickest packet is that is to be delayed by this; negative: early."""
        return float(self.delay_ns.min()) - delay_ns


def send(
    lab: Lab,
    source: str,
    target: str,
    count: int,
    *,
    interval_s: float = 0.0005,
    settle_s: float = 0.3,
    bytes_each: int = 100,
    between: Callable[[int], None] | None = None,
) -> Passage:
    """Send packets from a node to a node. ``between`` is called before each, with its number."""
    out = lab.socket(source, socket.AF_INET, socket.SOCK_DGRAM)
    into = lab.socket(target, socket.AF_INET, socket.SOCK_DGRAM)
    with out, into:
        into.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        with contextlib.suppress(PermissionError):  # of root alone; it is drained all the time
            into.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 << 20)
        into.bind(("", _PORT))
        into.setblocking(False)
        out.connect((lab.node(target).address, _PORT))
        arrived: list[tuple[int, int, int]] = []
        padding = b"\0" * (bytes_each - _STAMP.size)
        due = time.perf_counter()
        for number in range(count):
            if between is not None:
                between(number)
            while True:
                _drain(into, arrived)
                if (left := due - time.perf_counter()) <= 0:
                    break
                time.sleep(min(left, 0.01))
            out.send(_STAMP.pack(number, time.time_ns()) + padding)
            due = max(due + interval_s, time.perf_counter() - _CATCH_UP_S)
        # A stall of the machine, and with it of what is on its way, uses up one step, not all.
        for _ in range(round(settle_s / _STEP_S)):
            time.sleep(_STEP_S)
            _drain(into, arrived)
    table = np.array(arrived, dtype=np.int64).reshape(-1, 3)
    return Passage(count, table[:, 0], table[:, 2] - table[:, 1], table[:, 1])


def _drain(into: socket.socket, arrived: list[tuple[int, int, int]]) -> None:
    while True:
        try:
            data, ancillary, _, _ = into.recvmsg(2048, 64)
        except BlockingIOError:
            return
        seconds, nanoseconds = struct.unpack("=qq", ancillary[0][2][:16])
        number, sent_ns = _STAMP.unpack_from(data)
        arrived.append((number, sent_ns, seconds * 10**9 + nanoseconds))
