"""A mode reduced to one latency a visit: requests of one visit are no independent witnesses.

What disturbs one request of a visit (the machine is busy, the RTT is not what was measured)
disturbs the next one too. So the visit is the unit of evidence, and its latency is the median of
the mode's requests in it: half of them were faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]

NEAR_RTT_MS = 2.0
"""Below this RTT a request hardly waits, and the machine does not fall idle within it."""


@dataclass(frozen=True)
class Points:
    """One point a visit: shape (V,).

    `precision` is the reciprocal of the variance of `latency_ms`, relative to a visit with an
    average number of requests. `near`: the RTT is below NEAR_RTT_MS. `within_ms`: the standard
    error that the spread of the requests within the visit gives, no more.
    """

    rtt_ms: Values
    latency_ms: Values
    precision: Values
    near: NDArray[np.bool_]
    within_ms: Values
    level: Indexes

    @property
    def count(self) -> int:
        """How many visits."""
        return int(self.rtt_ms.size)


def points_of(
    rtt_ms: Values, latency_ms: Values, visit: Indexes, level: Indexes, chosen: NDArray[np.bool_]
) -> Points:
    """The visits' medians of the `chosen` requests; arrays of shape (n,)."""
    import numpy as np

    names, of = np.unique(visit[chosen], return_inverse=True)
    latency, rtt = latency_ms[chosen], rtt_ms[chosen]
    order = np.lexsort((latency, of))
    counts = np.bincount(of, minlength=names.size)
    begin = np.concatenate(([0], np.cumsum(counts)[:-1]))
    sorted_latency = latency[order]
    medians = (sorted_latency[begin + (counts - 1) // 2] + sorted_latency[begin + counts // 2]) / 2
    x = np.bincount(of, weights=rtt) / counts
    off = np.abs(latency - medians[of])
    # Half of the deviations of a visit of two or one are 0 by construction.
    spread = 1.4826 * float(np.median(off[counts[of] >= 3])) if (counts >= 3).any() else 0.0
    first = np.zeros(names.size, dtype=np.int_)
    first[of] = level[chosen]
    return Points(
        rtt_ms=x,
        latency_ms=medians,
        # Half of the variance is the visit's own, half that of a median of so many requests.
        precision=2 / (1 + counts.mean() / counts),
        near=x < NEAR_RTT_MS,
        within_ms=1.2533 * spread / np.sqrt(counts),
        level=first,
    )
