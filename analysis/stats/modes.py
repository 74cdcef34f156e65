"""Modes: the lines that latencies against RTT lie on, how many there are, and who is on which.

Requests of one endpoint may do different things (a replica here or a continent away, a lock taken
twice), so there may be several lines. One rule finds them: at an RTT, requests that do the same
take the same time but for what a busy machine adds, which is NEAR_MS at most. So a mode is a line
with a crowd of requests at the RTTs, sharp in its middle, and out of reach of the other lines. The
line with the greatest crowd is taken first, and what lies near it left out; then the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wanlat.analysis.stats.slopes import RARE, Indexes, Levels, Truths, Values

MIN_RTTS = 3
"""Through two points goes a line whatever the truth: a third is needed to contradict it."""
NEAR_MS, NEAR_SHARE = 20.0, 0.1
"""A request so near a line is on it, and lines farther apart at an RTT are distinguished there; of
the greatest RTT at most NEAR_SHARE, so that a message makes five times the difference."""
CROWD = 0.25
"""A mode's crowd is within this part of that distance. Of scatter as much is there as anywhere."""
SHARP = 0.6
"""Of what lies near a mode, so much is in its crowd: the tail of another mode has no middle."""
BESIDE = 1.5
"""A further mode is so many times that distance away from those before. The 40 ms of a delayed
acknowledgement are, the slices of a scheduler that had other work are not."""
MIN_SHARE, MIN_REQUESTS = 0.05, 5
"""A mode has that share of the requests and so many of them."""
_MIN_SLOPE = -0.25
"""More distance does not make a request faster. A little less than 0 is allowed for noise."""
_CROWDS = 8
"""At one RTT that lines are sought through."""


@dataclass(frozen=True)
class Modes:
    """K lines, the one with the greatest share first, and where they can be distinguished.

    `at_ms`, shape (L, K): latency of each at each level. `members`, shape (n,): index of the line
    of each request, -1 none. `near`, shape (n, K): whether a request is near enough to a line to be
    on it. `apart`, shape (L, K): whether a line is separate from all others at a level.
    """

    at_ms: Values
    members: Indexes
    near: Truths
    apart: Truths

    @property
    def count(self) -> int:
        """How many lines."""
        return int(self.at_ms.shape[1])


def find(rtt_ms: Values, latency_ms: Values, levels: Levels) -> Modes:
    """The modes of requests, shape (n,) each; at least one line, good or not. Deterministic."""
    near_ms = min(NEAR_MS, NEAR_SHARE * float(levels.rtt_ms[-1]))
    crowd_ms = CROWD * near_ms
    slope, intercept = _guesses(latency_ms, levels, crowd_ms, -near_ms).T
    at = intercept + slope * levels.rtt_ms[:, None]
    off = np.abs(latency_ms[:, None] - intercept - slope * rtt_ms[:, None])
    left, untried = np.ones(rtt_ms.size, dtype=bool), np.ones(slope.size, dtype=bool)
    chosen: list[int] = []
    while untried.any():
        counts = (off[left] <= crowd_ms).sum(0) * untried
        best = int(counts.argmax())
        if chosen and counts[best] < MIN_SHARE * rtt_ms.size / 2:
            break
        if not chosen or _is_mode(best, chosen, at, off, levels, near_ms):
            chosen.append(best)
            left &= off[:, best] > near_ms
        untried &= np.abs(at - at[:, [best]]).max(0) > crowd_ms
        untried[best] = False
    return _ordered(at[:, chosen], off[:, chosen], levels, near_ms)


def _crowds(latency_ms: Values, width_ms: float) -> Values:
    """Where `latency_ms`, of one RTT, crowd: medians of what lies that near, most first."""
    ordered = np.sort(latency_ms)
    begin = np.searchsorted(ordered, ordered - width_ms)
    end = np.searchsorted(ordered, ordered + width_ms, side="right")
    chosen, free = [], np.ones(ordered.size, dtype=bool)
    for index in np.argsort(begin - end, kind="stable"):
        if free[index]:
            free[begin[index] : end[index]] = False
            chosen.append(float(np.median(ordered[begin[index] : end[index]])))
    return np.array(chosen[:_CROWDS])


def _guesses(latency_ms: Values, levels: Levels, width_ms: float, lowest_ms: float) -> Values:
    """Lines (slope, intercept) through crowds of two RTTs, shape (G, 2)."""
    crowds = [_crowds(latency_ms[levels.level == n], width_ms) for n in range(levels.count)]
    # Where everything falls with the RTT it is for others to say that this is no line.
    lines = [np.array([[0.0, np.median(latency_ms)]])]
    for (x0, low), (x1, high) in combinations(zip(levels.rtt_ms, crowds, strict=True), 2):
        slope = ((high[None, :] - low[:, None]) / (x1 - x0)).ravel()
        lines.append(np.column_stack((slope, np.repeat(low, high.size) - slope * x0)))
    candidates = np.concatenate(lines)
    return candidates[(candidates[:, 0] > _MIN_SLOPE) & (candidates[:, 1] > lowest_ms)]


def _is_mode(
    line: int, chosen: list[int], at: Values, off: Values, levels: Levels, near_ms: float
) -> bool:
    """Whether a further `line` is a mode beside those `chosen`: by the constants above."""
    apart: Truths = (np.abs(at[:, chosen] - at[:, [line]]) > BESIDE * near_ms).min(1)
    mine = apart[levels.level] & (off[:, line] < off[:, chosen].min(1)) & (off[:, line] <= near_ms)
    crowd = levels.counted(mine & (off[:, line] <= CROWD * near_ms))
    sizes = levels.counted(apart[levels.level])
    there, share = int((crowd > 0).sum()), float(crowd.sum() / max(sizes.sum(), 1))
    by_chance = (1 - share) ** sizes[apart & (crowd == 0)]
    return bool(
        # Perhaps it is there where it cannot be told from another.
        there >= 2
        and there + int((~apart).sum()) >= MIN_RTTS
        and (by_chance > RARE).all()
        and share >= MIN_SHARE
        and crowd.sum() >= max(MIN_REQUESTS, SHARP * mine.sum())
    )


def _ordered(at: Values, off: Values, levels: Levels, near_ms: float) -> Modes:
    """The lines in the order of their shares, counted where all of them can be distinguished."""
    count = at.shape[1]
    gaps = np.abs(at[:, :, None] - at[:, None, :])
    apart: Truths = np.all((gaps > near_ms) | np.eye(count, dtype=bool), axis=2)
    members = np.where(off.min(1) <= near_ms, off.argmin(1), count)
    is_clear: Truths = np.all(apart, axis=1)[levels.level]
    counts = [
        np.bincount(where, minlength=count + 1)[:-1] for where in (members[is_clear], members)
    ]
    order = np.lexsort((-counts[1], -counts[0]))
    place = np.append(np.argsort(order), -1)
    return Modes(at[:, order], place[members], off[:, order] <= near_ms, apart[:, order])


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
    edges: list[float] = []
    if width and width > 0 and np.ptp(values) < width * _MOST_STEPS / _STEPS:
        edges = _edges(values, width)
    bins = np.searchsorted(edges, values, "right")
    members = [bins == number for number in range(len(edges) + 1)]
    return tuple(Clump(float(np.median(values[m])), float(m.mean()), m) for m in members)


def _edges(values: Values, width: float) -> list[float]:
    """Where one mode ends and the next begins: the lowest density between two peaks."""
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
