"""The shapes of jitter: how far a packet's delay lies from the mean, in units of the jitter.

A shape other than uniform is a list of quantiles, ascending and equally probable, of mean 0 and
standard deviation 1. Every backend draws from the same list, so that one topology means the same
on each.

Of n quantiles, number i (from 0) is that of the probability (i + ½) / n. Between them a draw is
interpolated; before the first and after the last there is nothing. So the interpolated draw has
the mean of the list exactly, and its standard deviation but for a few thousandths.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Distribution = Literal["uniform", "normal", "pareto", "table"]

QUANTILES = 4096  # as many as the tables that come with tc

# Pareto with a finite standard deviation and a heavy tail; the exponent that netem's table has.
_PARETO_EXPONENT = 3.0
_PROBABILITIES = [(place + 0.5) / QUANTILES for place in range(QUANTILES)]


@cache
def quantiles(distribution: str) -> tuple[float, ...]:
    """Return the quantiles at (i + ½) / `QUANTILES` of `normal` or `pareto`.

    Raises ValueError for any other name.
    """
    if distribution == "normal":
        return standardised([NormalDist().inv_cdf(probability) for probability in _PROBABILITIES])
    if distribution == "pareto":
        return standardised(
            [(1 - probability) ** (-1 / _PARETO_EXPONENT) for probability in _PROBABILITIES]
        )
    raise ValueError(f"{distribution} has no quantiles of its own")


@lru_cache(maxsize=256)
def empirical(samples: tuple[float, ...]) -> tuple[float, ...]:
    """Return the `QUANTILES` quantiles of a sample file, with values in any unit.

    More samples than that are averaged in groups of neighbours; between fewer, it is interpolated.
    Raises ValueError when all are the same or fewer than two.
    """
    ordered = reduced(samples)
    if len(ordered) < 2:
        return standardised(ordered)
    return standardised(
        [_between(ordered, probability * len(ordered) - 0.5) for probability in _PROBABILITIES]
    )


def reduced(samples: Sequence[float]) -> list[float]:
    """Return the samples in order, and of more than `QUANTILES` the means of that many groups."""
    ordered, count = sorted(samples), len(samples)
    if count <= QUANTILES:
        return ordered
    edges = [place * count // QUANTILES for place in range(QUANTILES + 1)]
    groups = (ordered[a:b] for a, b in pairwise(edges))
    # A mean may be rounded past its group's ends.
    return [min(max(math.fsum(group) / len(group), group[0]), group[-1]) for group in groups]


def standardised(values: Sequence[float]) -> tuple[float, ...]:
    """Return the values in order, moved and scaled to mean 0 and standard deviation 1.

    Raises ValueError when they are all the same or fewer than two.
    """
    if len(values) < 2 or min(values) == max(values):
        raise ValueError("a distribution has at least two different values")
    # First to 0..1, so that no square of a very small or large value is lost.
    lowest, width = min(values), max(values) - min(values)
    scaled = sorted((value - lowest) / width for value in values)
    mean = math.fsum(scaled) / len(scaled)
    centred = [value - mean for value in scaled]
    deviation = math.sqrt(math.fsum(value * value for value in centred) / len(centred))
    return tuple(value / deviation for value in centred)


def shape(distribution: str, table: tuple[float, ...] = ()) -> tuple[float, ...] | None:
    """Return the quantiles from which packets draw; None for uniform, which needs none."""
    if distribution == "uniform":
        return None
    return table if distribution == "table" else quantiles(distribution)


def extent(distribution: str, table: tuple[float, ...] = ()) -> tuple[float, float]:
    """Return the smallest and the largest draw, in units of the jitter."""
    values = shape(distribution, table)
    return (-1.0, 1.0) if values is None else (values[0], values[-1])


def deviation(distribution: str) -> float:
    """Return the standard deviation of a draw, in units of the jitter."""
    return 1 / math.sqrt(3) if distribution == "uniform" else 1.0


def _between(values: Sequence[float], position: float) -> float:
    """The value at a position between the list's own; the first or the last outside of them."""
    position = min(max(position, 0.0), len(values) - 1.0)
    below = min(int(position), len(values) - 2)
    part = position - below
    return values[below] + part * (values[below + 1] - values[below])
