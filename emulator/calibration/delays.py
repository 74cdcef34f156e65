"""The requested delays of a path as a distribution, and how delays fit it.

A path's delay is the sum of its steps' delays, each fixed or drawn. What is measured is that sum
and the lateness of the machine, so it is tested against the distribution of both: the requested
one, convolved with the errors that were measured on the same path while jitter was off. Those
errors are judged for themselves, so nothing is excused by that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from wanlat.topologies import shapes
from wanlat.topologies.resolve import Impairment

Values = np.ndarray[Any, np.dtype[np.float64]]

PROBABILITIES = (0.005, 0.01, 0.025, *(step / 20 for step in range(1, 20)), 0.975, 0.99, 0.995)
"""At which quantiles of delays are reported."""
EARLY_MS = 0.1
"""A delay may be shorter than drawn by that: clocks, and wire sends a few microseconds ahead."""

_BINS = 1 << 15  # of the sum of several draws
_POINTS = 1 << 12  # of a distribution with lateness, or to compute its moments
_LATENESSES = 400
_FEW, _HEAVY = 30, 6.0  # samples; excess kurtosis (an exponential distribution has 6)


def milliseconds(values_ns: Any) -> Values:
    """Return nanoseconds as milliseconds."""
    return np.asarray(values_ns, dtype=np.float64) / 1e6


@dataclass(frozen=True)
class Law:
    """A distribution of delays: the probability ``cumulated[i]`` of at most ``delays_ms[i]``.

    Both ascend, from 0 to 1 and from the shortest to the longest delay; linear in between.
    """

    delays_ms: Values
    cumulated: Values

    def cdf(self, delays_ms: Values) -> Values:
        """Return the probability of a delay of at most each of these."""
        probabilities: Values = np.interp(
            delays_ms, self.delays_ms, self.cumulated, left=0.0, right=1.0
        )
        return probabilities

    def quantiles(self, probabilities: Sequence[float] | Values) -> Values:
        """Return the delays that these parts of all packets do not exceed, ms."""
        delays_ms: Values = np.interp(np.asarray(probabilities), self.cumulated, self.delays_ms)
        return delays_ms

    def later_by(self, errors_ms: Values) -> Law:
        """Return the distribution of a draw from this one plus one of ``errors_ms``."""
        if not errors_ms.size:
            return self
        middle = np.quantile(errors_ms, np.linspace(0, 1, min(errors_ms.size, _LATENESSES)))
        low, high = self.delays_ms[0] + middle[0], self.delays_ms[-1] + middle[-1]
        # Points are dense where the distribution is, and reach both ends.
        dense = self.quantiles(np.linspace(0, 1, _POINTS)) + float(np.median(middle))
        points = np.unique(np.concatenate(([low], dense, np.linspace(low, high, _POINTS), [high])))
        cumulated = np.zeros_like(points)
        for error_ms in middle:
            cumulated += self.cdf(points - error_ms)
        return Law(points, cumulated / middle.size)

    def p_value(self, delays_ms: Values, *, early: bool = False) -> tuple[float, float]:
        """Test delays by Kolmogorov and Smirnov; return the largest distance and its p-value.

        ``early``: only how many more of them are short than may be (one-sided).
        """
        n = delays_ms.size
        expected = self.cdf(np.sort(delays_ms))
        distance = float(np.max(np.arange(1, n + 1) / n - expected))
        if early:
            return distance, float(special.smirnov(n, max(0.0, distance)))
        distance = max(distance, float(np.max(expected - np.arange(n) / n)))
        return distance, min(1.0, 2 * float(special.smirnov(n, distance)))


def path_law(steps: Sequence[Impairment]) -> Law:
    """Return the distribution of the delay of a path."""
    fixed_ms = sum(step.delay_ns for step in steps) / 1e6
    drawn = tuple(
        (step.jitter_ns, step.distribution, step.table) for step in steps if step.jitter_ns
    )
    if not drawn:
        return Law(np.array([fixed_ms, fixed_ms]), np.array([0.0, 1.0]))
    centred = _sum_of(drawn)
    return Law(centred.delays_ms + fixed_ms, centred.cumulated)


_Draw = tuple[int, str, tuple[float, ...]]


@lru_cache(maxsize=256)
def _sum_of(draws: tuple[_Draw, ...]) -> Law:
    """Return the distribution of the sum of draws, each about zero."""
    laws = [_law_of(draw) for draw in draws]
    if len(laws) == 1:
        return laws[0]
    low = sum(float(law.delays_ms[0]) for law in laws)
    width = (sum(float(law.delays_ms[-1]) for law in laws) - low) / _BINS
    spectrum = np.ones(1, dtype=np.complex128)
    for law in laws:
        bins = int(np.ceil((law.delays_ms[-1] - law.delays_ms[0]) / width)) + 1
        edges = law.delays_ms[0] + width * np.arange(bins + 1)
        spectrum = spectrum * np.fft.rfft(np.diff(law.cdf(edges)), 2 * _BINS)
    total = np.fft.irfft(spectrum)[: _BINS + len(laws) + 1]
    cumulated = np.concatenate(([0.0], np.cumsum(np.maximum(total, 0))))
    # Each bin stands for its middle, and the sum of n middles lies n half bins above the edges.
    delays_ms = low + width * (np.arange(cumulated.size) + (len(laws) - 1) / 2)
    return Law(np.asarray(delays_ms, np.float64), np.asarray(cumulated / cumulated[-1], np.float64))


def _law_of(draw: _Draw) -> Law:
    jitter_ns, distribution, table = draw
    values = shapes.shape(distribution, table)
    if values is None:
        return Law(np.array([-1.0, 1.0]) * jitter_ns / 1e6, np.array([0.0, 1.0]))
    # Quantile i of n stands for the probabilities from i / n to (i + 1) / n.
    cumulated = (np.arange(len(values)) + 0.5) / len(values)
    cumulated[0], cumulated[-1] = 0.0, 1.0
    return Law(np.asarray(values) * jitter_ns / 1e6, cumulated)


@dataclass(frozen=True)
class Fit:
    """How well ``n`` delays fit: the largest distance of the distributions, and the spread.

    ``spread`` is the mean distance of delays from their requested median, by the requested one.
    ``p_value`` is that of both tests: Kolmogorov-Smirnov, and whether the spread is one.
    ``early_p_value`` is that of the one-sided test for delays that are shorter than their draws may
    be. A machine makes packets late and never early, so a small one is the link's.
    """

    n: int
    distance: float
    spread: float
    p_value: float
    early_p_value: float


def fit(delays_ms: Values, steps: Sequence[Impairment], errors_ms: Values) -> Fit:
    """Test one-way delays against what ``steps`` request.

    ``errors_ms`` are those of the same path with jitter off.
    """
    draws = path_law(steps)
    law = draws.later_by(errors_ms)
    distance, shape_p = law.p_value(delays_ms)
    spread, spread_p = _spread(delays_ms, law)
    _, early_p = draws.p_value(delays_ms + EARLY_MS, early=True)
    both = min(1.0, 2 * min(shape_p, spread_p))  # Bonferroni
    return Fit(int(delays_ms.size), distance, spread, both, early_p)


def _spread(delays_ms: Values, law: Law) -> tuple[float, float]:
    """Return the measured spread by the requested one, and how probable one that far from it is.

    Kolmogorov-Smirnov hardly sees a jitter that is some ten percent off. Where the tail is so heavy
    that a mean is not normal, nothing is concluded: p is one.
    """
    expected = law.quantiles((np.arange(_POINTS) + 0.5) / _POINTS)
    middle = float(np.median(expected))
    off, measured_off = np.abs(expected - middle), np.abs(delays_ms - middle)
    spread = float(measured_off.mean() / off.mean())
    kurtosis = float(np.mean((off - off.mean()) ** 4) / off.var() ** 2) - 3
    if delays_ms.size < _FEW or kurtosis > _HEAVY:
        return spread, 1.0
    error = float(off.std()) / math.sqrt(delays_ms.size)
    return spread, two_sided((measured_off.mean() - off.mean()) / error)


def two_sided(deviations: float) -> float:
    """Return how probable a normal value is that is at least so many deviations off."""
    return float(2 * special.ndtr(-abs(deviations)))
