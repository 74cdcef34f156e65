"""Guesses at lines: through the places where latencies crowd, at any two RTTs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wanlat.analysis.slopes.levels import Levels
from wanlat.analysis.slopes.mixture import MIN_SCALE_MS, densities

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indexes = NDArray[np.int_]

CROWDS_A_LEVEL = 6
MIN_SLOPE = -0.25
"""More distance does not make a request faster. A little less than 0 is allowed for noise."""
_AT_MOST_A_LEVEL = 80
_SHARES = (0.06, 0.25, 0.6)


def typical_scale(latency_ms: Values, groups: list[Indexes]) -> float:
    """How broad (one sigma, ms) a crowd of latencies of one visit is, whichever crowd it is.

    From the shortest interval with a third of a visit's requests, so that it is of one mode even
    where the greatest mode has a third of the requests only. `groups` are the visits' indexes.
    """
    import numpy as np

    widths = []
    for group in groups:
        ordered = np.sort(latency_ms[group])
        inner = max(3, -(-ordered.size // 3))
        if ordered.size >= 3:
            widths.append(float((ordered[inner - 1 :] - ordered[: ordered.size - inner + 1]).min()))
    # A third of a normal distribution lies within 0.43 sigma on either side of its middle; the
    # shortest interval of a small sample is shorter by about a third.
    typical = float(np.median(widths)) / (2 * 0.43 * 0.67) if widths else 1.0
    return max(typical, MIN_SCALE_MS)


def crowds(latency_ms: Values, scale_ms: float) -> Values:
    """Where `latency_ms`, of one RTT, crowd: medians of what lies within 3 scales, most first."""
    import numpy as np

    ordered = np.sort(latency_ms)
    if ordered.size > _AT_MOST_A_LEVEL:  # enough of them to see every mode of some per cent
        ordered = np.quantile(ordered, (np.arange(_AT_MOST_A_LEVEL) + 0.5) / _AT_MOST_A_LEVEL)
    begin = np.searchsorted(ordered, ordered - 3 * scale_ms)
    end = np.searchsorted(ordered, ordered + 3 * scale_ms, side="right")
    found: list[float] = []
    taken = np.zeros(ordered.size, dtype=bool)
    for index in np.argsort(begin - end, kind="stable"):
        if taken[index]:
            continue
        inside = slice(int(begin[index]), int(end[index]))
        taken[inside] = True
        found.append(float(np.median(ordered[inside])))
        if len(found) == CROWDS_A_LEVEL:
            break
    return np.array(found)


def guesses(latency_ms: Values, levels: Levels, scale_ms: float) -> Values:
    """Lines (slope, intercept) through crowds of two RTTs, shape (L, 2)."""
    import numpy as np

    places = [
        (float(levels.rtt_ms[level]), crowds(latency_ms[levels.of == level], scale_ms))
        for level in range(levels.count)
    ]
    lines = []
    for first in range(levels.count):
        for second in range(first + 1, levels.count):
            (x0, low), (x1, high) = places[first], places[second]
            slope = ((high[None, :] - low[:, None]) / (x1 - x0)).ravel()
            intercept = np.repeat(low, high.size) - slope * x0
            lines.append(np.column_stack((slope, intercept)))
    found = np.concatenate(lines)
    return found[found[:, 0] >= MIN_SLOPE]


def gains(
    rtt_ms: Values, latency_ms: Values, lines: Values, scale_ms: float, density: Values
) -> tuple[Values, Values]:
    """By how many nats each of `lines` would raise the likelihood, and the share it would take.

    `density`, shape (n,), is that of the requests under what is there already.
    """
    import numpy as np

    residuals = latency_ms - lines[:, 1:] - lines[:, :1] * rtt_ms
    ratio = densities(residuals, scale_ms) / density
    each = np.stack([np.log1p(share * (ratio - 1)).sum(1) for share in _SHARES])
    best = each.argmax(0)
    return each.max(0), np.array(_SHARES)[best]
