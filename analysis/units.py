"""Time, requests per second and throughput: three figures that must say the same.

The documents whose comparison this project repeats head a column of microseconds "ns". Here such
figures come as a `Rate`, which cannot be made of figures that contradict each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_COMPUTED = 1e-9
"""Figures that were computed agree to far better than this, relatively."""


class UnitsError(ValueError):
    """Figures that contradict each other: a mistake in this project, never in a user's input."""


@dataclass(frozen=True)
class Rate:
    """Requests of `object_bytes` that take `time_s` each, `in_flight` of them at once on average.

    `time_s` x `requests_per_s` is `in_flight`, and `bytes_per_s` is `object_bytes` x
    `requests_per_s`. Raises UnitsError where they are not. Make one with `rate_of`, or with
    `rate_under_load`.
    """

    time_s: float
    object_bytes: int
    requests_per_s: float
    bytes_per_s: float
    in_flight: float = 1.0

    def __post_init__(self) -> None:
        """Check the figures against each other."""
        check_product("time", self.time_s, self.requests_per_s, "in flight", self.in_flight)
        check_product(
            "size", self.object_bytes, self.requests_per_s, "throughput", self.bytes_per_s
        )


def rate_of(time_s: float, object_bytes: int) -> Rate:
    """What single requests that take `time_s` come to: one after the other, none between."""
    return Rate(time_s, object_bytes, 1 / time_s, object_bytes / time_s)


def rate_under_load(time_s: float, object_bytes: int, requests_per_s: float) -> Rate:
    """What was counted under load; how many were in flight follows (Little 1961: L = lambda W)."""
    bytes_per_s = object_bytes * requests_per_s
    return Rate(time_s, object_bytes, requests_per_s, bytes_per_s, time_s * requests_per_s)


def check_product(
    what: str,
    figure: float,
    requests_per_s: float,
    name: str,
    expected: float,
    within: float = _COMPUTED,
) -> None:
    """Raise UnitsError unless `figure` x requests per second is what is `expected`, relatively."""
    found = figure * requests_per_s
    if math.isclose(found, expected, rel_tol=within):
        return
    raise UnitsError(
        f"{what} x requests per second is {found:.6g}, and {name} {expected:.6g}: they must be "
        f"the same{_hint(found, expected)}."
    )


def _hint(found: float, expected: float) -> str:
    """What a factor gives away: a power of 1000 is a wrong prefix, 1.024 a binary one."""
    if found <= 0 or expected <= 0:
        return ""
    factor = found / expected
    for power in (-3, -2, -1, 1, 2, 3):
        if math.isclose(factor, 1000.0**power, rel_tol=0.05):
            return f"; a factor of 1000 to the {power:+d}, as of a wrong prefix of a unit"
        if math.isclose(factor, 1.024**power, rel_tol=0.005):
            return "; a factor as between binary and decimal prefixes"
    return ""
