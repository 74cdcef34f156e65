"""The modes of one sample: where requests take one of several times, and none in between."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.stats.intervals import Values

DEEP = 0.6
"""Between two modes the density falls below this part of the lower one's."""
LEAST = 0.1
"""A mode has at least this share of the values; fewer belong to their neighbour."""
_STEPS = 4
"""Of the grid on which the density is looked at, a width."""
_MOST_STEPS = 20_000


class Clump(NamedTuple):
    """A mode: its median, its share of the values, and which they are (`member`, shape (n,))."""

    median: float
    share: float
    member: NDArray[np.bool_]


def clumps(values: Values, width: float | None) -> tuple[Clump, ...]:
    """The modes of `values`, shape (n,), n > 0, ascending; one, where nothing separates them.

    They are the peaks of a kernel density of standard deviation `width`: what is nearer together is
    one. None as width, or a range of far more widths than can be looked at, makes one of all.
    """
    import numpy as np

    edges: list[float] = []
    if width and width > 0 and np.ptp(values) < width * _MOST_STEPS / _STEPS:
        edges = _edges(values, width)
    of = np.searchsorted(edges, values, "right")
    members = [of == number for number in range(len(edges) + 1)]
    return tuple(Clump(float(np.median(values[m])), float(m.mean()), m) for m in members)


def _edges(values: Values, width: float) -> list[float]:
    """Where one mode ends and the next begins: the lowest density between two peaks."""
    import numpy as np

    low, high = values.min() - 2 * width, values.max() + 2 * width
    bins = int((high - low) * _STEPS / width) + 1
    counts, grid = np.histogram(values, bins=bins, range=(low, high))
    reach = np.arange(-4 * _STEPS, 4 * _STEPS + 1) / _STEPS
    density = np.convolve(counts, np.exp(-(reach**2) / 2), mode="same")
    inside = density[1:-1]
    peaks = [int(i) + 1 for i in np.flatnonzero((inside >= density[:-2]) & (inside > density[2:]))]
    while len(peaks) > 1:
        valleys = [a + int(density[a : b + 1].argmin()) for a, b in pairwise(peaks)]
        lower = np.minimum(density[peaks[:-1]], density[peaks[1:]])
        depths, edges = density[valleys] / lower, grid[valleys].tolist()
        shares = np.bincount(np.searchsorted(edges, values, "right"), minlength=len(peaks))
        worst = int(depths.argmax())
        if depths[worst] > DEEP:
            peaks.pop(worst + int(density[peaks[worst]] >= density[peaks[worst + 1]]))
        elif shares.min() < LEAST * values.size:
            peaks.pop(int(shares.argmin()))
        else:
            return list(edges)
    return []
