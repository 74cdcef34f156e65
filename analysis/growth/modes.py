"""Endpoints that answer at two speeds: their median tells which is more frequent, not a cost.

Where a store waits for an acknowledgement that its peer delays, part of its requests take 40 ms
and the others one. The median of such a point is that of whichever part is greater, and jumps
from point to point as their shares drift across a half. No curve is laid through such medians.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_SHARE = 0.1
"""A part of the requests that is smaller is a tail, and not a mode."""
APART = 2.0
"""Between two modes latency at least doubles from one request to the next slower one."""
BALANCED = (0.25, 0.75)
"""Shares of the slow mode at which another run's median may lie in the other one."""


@dataclass(frozen=True)
class Modes:
    """Requests of one point on both sides of a gap.

    `slow` is the share of those above it; `medians_ms` are the medians below and above.
    """

    gap_ms: tuple[float, float]
    slow: float
    medians_ms: tuple[float, float]


def modes_of(ms: NDArray[np.float64]) -> Modes | None:
    """The two modes of latencies `ms` (n,); None where no gap parts them.

    The widest gap, as a ratio, that has LEAST_SHARE of the requests on either side.
    """
    values = np.sort(ms[ms > 0])
    edge = max(int(np.ceil(LEAST_SHARE * values.size)), 2)
    if values.size < 2 * edge:
        return None
    # ratios[i] is the step from values[edge - 1 + i] to the value behind it.
    ratios = values[edge : values.size - edge + 1] / values[edge - 1 : values.size - edge]
    widest = int(np.argmax(ratios))
    if ratios[widest] < APART:
        return None
    below = edge + widest
    return Modes(
        gap_ms=(float(values[below - 1]), float(values[below])),
        slow=1 - below / values.size,
        medians_ms=(float(np.median(values[:below])), float(np.median(values[below:]))),
    )


def slow_shares(levels: Sequence[NDArray[np.float64]]) -> tuple[float, ...] | None:
    """The share of slow requests of each point (n,), where medians jump between two modes.

    None where no point has two, or the median is of the same mode at all of them for certain.
    """
    own = [modes_of(ms) for ms in levels]
    found = [np.log(modes.gap_ms).mean() for modes in own if modes is not None]
    if not found:
        return None
    # A point whose requests are all of one mode has no gap of its own: the others' tell which.
    border = float(np.exp(np.median(found)))
    shares = tuple(
        float(np.mean(ms > border)) if modes is None else modes.slow
        for ms, modes in zip(levels, own, strict=True)
    )
    jumps = min(shares) < BALANCED[0] and max(shares) > BALANCED[1]
    return shares if jumps or any(_is_balanced(share) for share in shares) else None


def _is_balanced(share: float) -> bool:
    return BALANCED[0] <= share <= BALANCED[1]
