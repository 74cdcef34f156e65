"""Which visits were at the same RTT: measured RTTs of one asked RTT differ a little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]

SAME_RTT_MS = 0.5
"""Nearer than what calibration tolerates is the same RTT, measured twice."""
SAME_RTT_SHARE = 0.01
"""The same, as a share of the range of RTTs; the greater of the two counts."""


@dataclass(frozen=True)
class Levels:
    """RTTs in ascending order, shape (L,), and the index of its own for each given point."""

    rtt_ms: Values
    of: Indexes

    @property
    def count(self) -> int:
        """How many different RTTs there are."""
        return int(self.rtt_ms.size)


def levels_of(rtt_ms: Values) -> Levels:
    """The levels of `rtt_ms`, shape (n,): a gap between neighbours begins a new one."""
    import numpy as np

    order = np.argsort(rtt_ms, kind="stable")
    gap = max(SAME_RTT_MS, SAME_RTT_SHARE * float(np.ptp(rtt_ms)))
    steps = np.diff(rtt_ms[order]) > gap
    of = np.empty(rtt_ms.size, dtype=np.int_)
    of[order] = np.concatenate(([0], np.cumsum(steps)))
    return Levels(np.bincount(of, weights=rtt_ms) / np.bincount(of), of)
