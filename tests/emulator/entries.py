"""When packets entered a link: stamped by the kernel, on the same clock as the journal."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

import numpy as np

from wanlat.emulator import addressing
from wanlat.emulator.arrivals import Arrivals, instants_ns
from wanlat.emulator.lab import Lab
from wanlat.emulator.prober import ETHERNET_BYTES, ONE_WAY_BYTES

_ETH_P_IP = 0x0800
# From the start of the packet, in 16-bit words: turn, number (emulator.prober).
_TURN, _NUMBER = 14, 16


class Entries(Arrivals):
    """Packets that enter the WAN link between the first two sites from the given side.

    On ``wire`` they are stamped on the interface from which it takes them, and with the very
    stamp that it reads. On ``netem``, where the link is a queueing discipline, they are stamped
    one step before: where the router receives them from its first node.
    """

    def __init__(self, lab: Lab, side: int, capacity: int) -> None:
        if lab.backend == "wire":
            end = addressing.splice("wan", 0)[side]
        else:
            first = lab.plan.sites[side].nodes[0]
            end = addressing.router_lan_end(first.site, lab.plan.nodes.index(first))
        _, (fd,) = lab._ask("socket", end.namespace, int(socket.AF_PACKET), int(socket.SOCK_RAW), 0)
        self._missed = 0
        self._socket = socket.socket(fileno=fd)
        try:
            self._ring = self._map(capacity)
            self._socket.bind((end.name, _ETH_P_IP))
        except BaseException:
            self._socket.close()
            raise

    def by_number(self, turn: int, count: int) -> np.ndarray:
        """Return the instants of entry (CLOCK_REALTIME, ns) of a turn's packets; 0: none seen."""
        frames = self.frames()
        frames = frames[frames["length"] == ONE_WAY_BYTES + ETHERNET_BYTES]
        words = np.ascontiguousarray(frames["packet"]).view(">u2").astype(np.int64)
        turns = words[:, _TURN] << 16 | words[:, _TURN + 1]
        numbers = words[:, _NUMBER] << 16 | words[:, _NUMBER + 1]
        result = np.zeros(count, dtype=np.int64)
        mine = turns == turn
        result[numbers[mine]] = instants_ns(frames)[mine]
        return result


@dataclass(frozen=True)
class Clocks:
    """CLOCK_REALTIME against CLOCK_MONOTONIC at one moment."""

    at_ns: int
    ahead_ns: int

    @classmethod
    def read(cls) -> Clocks:
        """Return the reading that took the least time, of ten."""
        best: tuple[int, int, int] | None = None
        for _ in range(10):
            before = time.monotonic_ns()
            wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
            took = time.monotonic_ns() - before
            if best is None or took < best[0]:
                best = (took, wall, wall - before - took // 2)
        assert best is not None
        return cls(best[1], best[2])


def monotonic(wall_ns: np.ndarray, first: Clocks, last: Clocks) -> np.ndarray:
    """Return CLOCK_MONOTONIC instants, of wall-clock ones between two readings of both."""
    if first.at_ns == last.at_ns:
        return wall_ns - first.ahead_ns
    part = (wall_ns - first.at_ns) / (last.at_ns - first.at_ns)
    drift = np.round(part * (last.ahead_ns - first.ahead_ns)).astype(np.int64)
    return wall_ns - first.ahead_ns - drift
