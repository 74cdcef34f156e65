"""The shapes of jitter: how far a packet's delay lies from the mean, in units of the jitter.

A shape other than uniform is a list of quantiles, ascending and equally probable, of mean 0 and
standard deviation 1. Every backend draws from the same list, so that one topology means the same
on each.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist, fmean, pstdev

QUANTILES = 4096  # as many as the tables that come with tc

# Pareto with a finite standard deviation and a heavy tail; the exponent that netem's table has.
_PARETO_EXPONENT = 3.0


@cache
def quantiles(distribution: str) -> tuple[float, ...]:
    """Return the quantiles at (i + ½) / `QUANTILES` of `normal` or `pareto`.

    Raises ValueError for any other name.
    """
    middles = [(place + 0.5) / QUANTILES for place in range(QUANTILES)]
    if distribution == "normal":
        return standardised([NormalDist().inv_cdf(each) for each in middles])
    if distribution == "pareto":
        return standardised([(1 - each) ** (-1 / _PARETO_EXPONENT) for each in middles])
    raise ValueError(f"{distribution} has no quantiles of its own")


def standardised(values: list[float]) -> tuple[float, ...]:
    """Return the values in order, moved and scaled to mean 0 and standard deviation 1.

    Raises ValueError when they are all the same or fewer than two.
    """
    if len(values) < 2 or min(values) == max(values):
        raise ValueError("a distribution has at least two different values")
    mean, deviation = fmean(values), pstdev(values)
    return tuple(sorted((value - mean) / deviation for value in values))


def shape(distribution: str, table: tuple[float, ...] = ()) -> tuple[float, ...] | None:
    """Return the quantiles from which packets draw; None for uniform, which needs none."""
    if distribution == "uniform":
        return None
    return table if distribution == "table" else quantiles(distribution)


def extent(distribution: str, table: tuple[float, ...] = ()) -> tuple[float, float]:
    """Return the smallest and the largest draw, in units of the jitter."""
    values = shape(distribution, table)
    return (-1.0, 1.0) if values is None else (values[0], values[-1])
