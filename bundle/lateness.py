"""How late the network was at which time, and so during which requests.

What emulates a network tells it in bins of time (`lateness.parquet`): the greatest lateness of the
packets that left within a bin, and of a sentinel that only wakes up. What left late by 80 ms was
held up for 80 ms: a request that was on its way at any moment of these may be late because of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

BIN_NS = 4_000_000
"""Width of a bin, as `wire` has it."""

Instants = np.ndarray[Any, np.dtype[np.int64]]


class Lateness:
    """The greatest lateness at any time, from the bins that are known."""

    def __init__(self, bins: Iterable[tuple[int, int]] = ()) -> None:
        """``bins``: when each begins, and the greatest lateness in it, ns."""
        self._greatest: dict[int, int] = {}
        for start_ns, max_ns in bins:
            self.add(start_ns, max_ns)

    def add(self, start_ns: int, max_ns: int) -> None:
        """Take in a bin."""
        for place in range((start_ns - max_ns) // BIN_NS, start_ns // BIN_NS + 1):
            self._greatest[place] = max(max_ns, self._greatest.get(place, 0))

    def during(self, begins_ns: Instants, ends_ns: Instants) -> Instants:
        """Return the greatest lateness between each two instants, ns; 0: none worth mentioning."""
        places = np.array(sorted(self._greatest), dtype=np.int64)
        greatest = np.array([*(self._greatest[place] for place in places.tolist()), 0])
        first = np.searchsorted(places, begins_ns // BIN_NS, side="left")
        behind = np.searchsorted(places, ends_ns // BIN_NS, side="right")
        ranges = np.stack((first, behind), axis=-1).ravel()
        found: Instants = np.zeros(first.shape, dtype=np.int64)
        if ranges.size:
            found = np.maximum.reduceat(greatest, ranges)[::2]
        return np.where(behind > first, found, 0)
