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
class Split:
    """The requests of a point on both sides of a border: the share of slow ones, and medians.

    A median is None where no request is on that side.
    """

    slow: float
    fast_ms: float | None
    slow_ms: float | None


def gap_of(ms: NDArray[np.float64]) -> tuple[float, float] | None:
    """The gap between the two modes of latencies `ms` (n,); None where no gap parts them.

    The widest one, as a ratio, that has LEAST_SHARE of the requests on either side.
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
    return float(values[below - 1]), float(values[below])


def splits_of(points: Sequence[NDArray[np.float64]]) -> tuple[Split, ...] | None:
    """The two modes of each point's latencies (n,), where medians jump between them.

    None where no point has two, or the median is of the same mode at all of them for certain.
    """
    own = [_border(ms) for ms in points]
    known = [border for border in own if border is not None]
    if not known:
        return None
    # A point whose requests are all of one mode has no gap of its own: the others' tell which.
    others = float(np.median(known))
    splits = [
        _split(ms, others if border is None else border)
        for ms, border in zip(points, own, strict=True)
    ]
    shares = [split.slow for split in splits]
    jumps = min(shares) < BALANCED[0] and max(shares) > BALANCED[1]
    return tuple(splits) if jumps or any(_is_balanced(share) for share in shares) else None


def _border(ms: NDArray[np.float64]) -> float | None:
    """The middle of the gap, as ratios go."""
    gap = gap_of(ms)
    return None if gap is None else float(np.sqrt(gap[0] * gap[1]))


def _split(ms: NDArray[np.float64], border: float) -> Split:
    fast, slow = ms[ms <= border], ms[ms > border]
    return Split(
        slow=slow.size / ms.size,
        fast_ms=float(np.median(fast)) if fast.size else None,
        slow_ms=float(np.median(slow)) if slow.size else None,
    )


def _is_balanced(share: float) -> bool:
    return BALANCED[0] <= share <= BALANCED[1]
