"""What a topology asks for of the delays of a path, as a distribution.

A path's delay is the sum of its steps' delays, each fixed or drawn. What is measured is that sum
and the lateness of the machine, so it is tested against the distribution of both: the requested
one, convolved with the errors that were measured on the same path while jitter was off. Those
errors are judged for themselves, so nothing is excused by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment

Values = np.ndarray[Any, np.dtype[np.float64]]

_BINS = 1 << 15  # of the sum of several draws
_POINTS = 1 << 12  # of one with lateness
_LATENESSES = 400


@dataclass(frozen=True)
class Law:
    """A distribution of delays: the probability ``cumulated[i]`` of at most ``delays_ms[i]``.

    Both ascend, from 0 to 1 and from the shortest to the longest delay; linear in between.
    """

    delays_ms: Values
    cumulated: Values

    def cdf(self, delays_ms: Values) -> Values:
        """Return the probability of a delay of at most each of these."""
        found: Values = np.interp(delays_ms, self.delays_ms, self.cumulated, left=0.0, right=1.0)
        return found

    def quantiles(self, probabilities: Sequence[float]) -> Values:
        """Return the delays that these parts of all packets do not exceed, ms."""
        found: Values = np.interp(np.asarray(probabilities), self.cumulated, self.delays_ms)
        return found

    def later_by(self, errors_ms: Values) -> Law:
        """Return the distribution of a draw from this one plus one of ``errors_ms``."""
        middle = np.quantile(errors_ms, np.linspace(0, 1, min(errors_ms.size, _LATENESSES)))
        low, high = self.delays_ms[0] + middle[0], self.delays_ms[-1] + middle[-1]
        # Points are dense where the distribution is, and reach both ends.
        dense = self.quantiles(np.linspace(0, 1, _POINTS).tolist()) + float(np.median(middle))
        points = np.unique(np.concatenate(([low], dense, np.linspace(low, high, _POINTS), [high])))
        cumulated = np.zeros_like(points)
        for error_ms in middle:
            cumulated += self.cdf(points - error_ms)
        return Law(points, cumulated / middle.size)


def path_law(steps: Sequence[Impairment]) -> Law:
    """Return the distribution of the delay of a path with at least one jittered step."""
    fixed_ms = sum(step.delay_ns for step in steps) / 1e6
    drawn = tuple(
        (step.jitter_ns, step.distribution, step.table) for step in steps if step.jitter_ns
    )
    centred = _sum_of(drawn)
    return Law(centred.delays_ms + fixed_ms, centred.cumulated)


_Draw = tuple[int, str, tuple[float, ...]]


@lru_cache(maxsize=256)
def _sum_of(draws: tuple[_Draw, ...]) -> Law:
    """Return the distribution of the sum of draws, each about zero."""
    from scipy.signal import fftconvolve

    laws = [_law_of(draw) for draw in draws]
    if len(laws) == 1:
        return laws[0]
    low = sum(float(law.delays_ms[0]) for law in laws)
    high = sum(float(law.delays_ms[-1]) for law in laws)
    width = (high - low) / _BINS
    total = np.ones(1)
    for law in laws:
        bins = int(np.ceil((law.delays_ms[-1] - law.delays_ms[0]) / width)) + 1
        edges = law.delays_ms[0] + width * np.arange(bins + 1)
        total = fftconvolve(total, np.diff(law.cdf(edges)))
    cumulated = np.concatenate(([0.0], np.cumsum(np.maximum(total, 0))))
    # Each bin stands for its middle, and the sum of n middles lies n half bins above the edges.
    delays_ms = np.linspace(0, width * (cumulated.size - 1), cumulated.size)
    delays_ms += low + width * (len(laws) - 1) / 2
    return Law(delays_ms, cumulated / cumulated[-1])


def _law_of(draw: _Draw) -> Law:
    jitter_ns, distribution, table = draw
    values = shapes.shape(distribution, table)
    if values is None:
        return Law(np.array([-1.0, 1.0]) * jitter_ns / 1e6, np.array([0.0, 1.0]))
    # Quantile i of n stands for the probabilities from i / n to (i + 1) / n.
    cumulated = (np.arange(len(values)) + 0.5) / len(values)
    cumulated[0], cumulated[-1] = 0.0, 1.0
    return Law(np.asarray(values) * jitter_ns / 1e6, cumulated)
