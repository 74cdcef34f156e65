"""A quick look at the rates of paths: short trains of full packets, beside whatever else runs.

Each packet of a train waits for the one before, so it is spread over its length by the slowest rate
on its way. Other packets on the path spread it further. `emulator.calibration.rate` is the exact
measurement, for links that carry nothing else.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from wanlat.emulator.calibration.pairs import Pair
from wanlat.emulator.lab import Lab
from wanlat.emulator.patience import wait

FRAME_BYTES = 1514
_DATA_BYTES = FRAME_BYTES - 14 - 20 - 8
_HEADER = struct.Struct("!II")  # train, number
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; also the type of its control message
_TIMESPEC = struct.Struct("qq")
_SEEN = 0.6  # of a train's packets, at least
_AT_ONCE, _NAP_S = 30, 0.001  # what every receive buffer has room for, and then a pause
_LATE_S = 0.05


@dataclass(frozen=True)
class Spread:
    """A train that arrived: so many packets in so much time after the first."""

    packets: int
    seconds: float

    def rate_bps(self, earlier_s: float = 0.0) -> float:
        """Return the rate at which it arrived, had its last packet been that much earlier."""
        return 8 * FRAME_BYTES * self.packets / max(self.seconds - earlier_s, 1e-6)


class Trains:
    """Sockets for trains between nodes of a lab."""

    def __init__(self, lab: Lab, ways: Sequence[Pair]) -> None:
        self._lab = lab
        self._turn = 0
        self._open = ExitStack()
        self._senders: dict[Pair, socket.socket] = {}
        self._sinks: dict[Pair, socket.socket] = {}
        try:
            for way in ways:
                self._connect(way)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        self._open.close()

    def _connect(self, way: Pair) -> None:
        source, target = way
        sink, sender = (
            self._open.enter_context(self._lab.socket(node, socket.AF_INET, socket.SOCK_DGRAM))
            for node in (target, source)
        )
        sink.bind((self._lab.node(target).address, 0))
        sink.setblocking(False)
        sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        sender.connect(sink.getsockname())
        self._senders[way], self._sinks[way] = sender, sink

    def measure(
        self, lengths: Mapping[Pair, int], times: int, lasts_s: float, patience_s: float
    ) -> dict[Pair, list[Spread]]:
        """Send trains of so many packets; return those of each way that arrived, mostly whole.

        Each way's are sent ``times`` times. ``lasts_s``: how long the longest is expected to be.
        """
        first = self._turn + 1
        for _ in range(times):
            self._turn += 1
            for way, length in lengths.items():
                self._send(way, length)
            self._lab.check()
            time.sleep(1.3 * lasts_s + 0.005)
        wait(patience_s + _LATE_S)
        return {way: _spreads(self._arrived(way, first), lengths[way]) for way in lengths}

    def _send(self, way: Pair, length: int) -> None:
        sender, padding = self._senders[way], bytes(_DATA_BYTES - _HEADER.size)
        for number in range(length):
            if number and number % _AT_ONCE == 0:
                time.sleep(_NAP_S)
            sender.send(_HEADER.pack(self._turn, number) + padding)

    def _arrived(self, way: Pair, first: int) -> dict[int, list[int]]:
        """Return the instants of arrival (ns) of the packets of each train."""
        trains: dict[int, list[int]] = {}
        while True:
            try:
                data, control, _, _ = self._sinks[way].recvmsg(_DATA_BYTES, 64)
            except BlockingIOError:
                return trains
            stamp = next((one for _, kind, one in control if kind == _SO_TIMESTAMPNS), None)
            turn, _ = _HEADER.unpack_from(data)
            if stamp is not None and turn >= first:  # else a straggler of an earlier look
                seconds, nanoseconds = _TIMESPEC.unpack(stamp[: _TIMESPEC.size])
                trains.setdefault(turn, []).append(seconds * 1_000_000_000 + nanoseconds)


def _spreads(trains: Mapping[int, Sequence[int]], length: int) -> list[Spread]:
    return [
        Spread(len(instants) - 1, (max(instants) - min(instants)) / 1e9)
        for instants in trains.values()
        if len(instants) >= max(2, _SEEN * length)
    ]
