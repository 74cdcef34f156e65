"""Time, requests per second and throughput: three columns that must say the same.

The documents whose comparison this project repeats head a column of microseconds "ns". Here a row
with these figures is a `Rate`, which cannot be made of figures that contradict each other, and a
table that shows them says which of its columns they are (`RateTable`, registered), so that one
test reads every printed table back (`wanlat.analysis.grid.read_grids`) and multiplies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ONE_IN_FLIGHT = "1"
"""For `RateTable.in_flight`: single requests, so time x requests per second is 1."""

_S_PER = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_BYTES_PER = {
    "B": 1.0,
    **{f"{letter}B": 1000.0**power for power, letter in enumerate("kMGT", start=1)},
    "KB": 1000.0,
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGT", start=1)},
}
_NUMBER = re.compile(r"-?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"(?<![A-Za-zµ/])(ns|µs|us|ms|s|min|[kKMGT]?i?B)(?:/s)?(?![A-Za-z])")


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
        """Check; figures that were computed agree to far better than this."""
        check_products(
            (self.time_s, 0.0),
            (self.requests_per_s, 0.0),
            (self.bytes_per_s, 0.0),
            (float(self.object_bytes), 0.0),
            (self.in_flight, 0.0),
        )


def rate_of(time_s: float, object_bytes: int) -> Rate:
    """What single requests that take `time_s` come to: one after the other, none between."""
    return Rate(time_s, object_bytes, 1 / time_s, object_bytes / time_s)


def rate_under_load(time_s: float, object_bytes: int, requests_per_s: float) -> Rate:
    """What was counted under load; how many were in flight follows (Little 1961: L = lambda W)."""
    return Rate(
        time_s,
        object_bytes,
        requests_per_s,
        object_bytes * requests_per_s,
        in_flight=time_s * requests_per_s,
    )


@dataclass(frozen=True)
class RateTable:
    """Which columns of a table, by their headers, hold the figures of a `Rate`.

    Headers of `time` and `throughput` end in their units ("mean ms", "MiB/s"). `size` is a column
    of sizes with units ("50KiB"). `in_flight` is ONE_IN_FLIGHT or a header. A table that has no
    such column says "".
    """

    name: str
    size: str = "size"
    time: str = "mean ms"
    per_s: str = "requests/s"
    throughput: str = "MiB/s"
    in_flight: str = ONE_IN_FLIGHT

    @property
    def headers(self) -> tuple[str, ...]:
        """Those of the columns that it has."""
        named = (self.size, self.time, self.per_s, self.throughput, self.in_flight)
        return tuple(header for header in named if header not in ("", ONE_IN_FLIGHT))


REGISTERED: dict[str, RateTable] = {}
"""Every table with a rate that the project prints, by name."""


def register(table: RateTable) -> RateTable:
    """Have the test of all tables look for `table`; returns it. A module does it as it loads."""
    REGISTERED[table.name] = table
    return table


def check_row(table: RateTable, cells: Mapping[str, str]) -> bool:
    """Multiply what a row of `table` says, printed: `cells` by header.

    False where the row has no two figures to multiply (dashes). Raises UnitsError where time x
    requests per second is not what is in flight, or size x requests per second not the
    throughput, beyond what the rounding of the printed digits explains.
    """

    def figure(header: str, scales: Mapping[str, float], *, exact: bool = False) -> Figure | None:
        text = cells.get(header, "")
        if not _NUMBER.search(text):
            return None
        return printed(text, unit_of(header) if scales else None, scales, exact=exact)

    per_s = figure(table.per_s, {})
    if per_s is None:
        return False
    time_s, bytes_per_s = figure(table.time, _S_PER), figure(table.throughput, _BYTES_PER)
    one = table.in_flight == ONE_IN_FLIGHT
    in_flight = (1.0, 0.0) if one else figure(table.in_flight, {})
    object_bytes = figure(table.size, _BYTES_PER, exact=True)
    if time_s and in_flight:
        _check_time(time_s, per_s, in_flight)
    if bytes_per_s and object_bytes:
        _check_throughput(object_bytes, per_s, bytes_per_s)
    return bool((time_s and in_flight) or (bytes_per_s and object_bytes))


def unit_of(header: str) -> str | None:
    """The unit that a header ends in, "ms" of "mean ms" and "MiB" of "MiB/s"; None without."""
    found = _UNIT.findall(header)
    return str(found[-1]) if found else None


Figure = tuple[float, float]
"""A value and by how much it may be off, both in base units."""


def printed(
    text: str, unit: str | None, scales: Mapping[str, float], *, exact: bool = False
) -> Figure:
    """The first number of `text` in base units, and half its last printed digit.

    A unit behind the number goes before `unit`, the header's. An `exact` whole number is not
    rounded, as a size is not. Raises UnitsError where there is no unit and `scales` asks for one,
    and where it is a unit of something else.
    """
    number = _NUMBER.search(text)
    if number is None:
        raise UnitsError(f"{text!r} is no figure.")
    behind = _UNIT.match(text[number.end() :].lstrip())
    unit = behind[1] if behind else unit
    if scales and unit not in scales:
        raise UnitsError(f"{text!r} is in {unit or 'no unit'}, not in one of {', '.join(scales)}.")
    scale = scales[unit] if scales and unit else 1.0
    digits = number[0].replace(",", "")
    mantissa, _, exponent = digits.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    step = 0.5 * 10.0 ** (int(exponent or 0) - places)
    return float(digits) * scale, (0.0 if exact and places == 0 else step) * scale


def check_products(
    time_s: Figure, per_s: Figure, bytes_per_s: Figure, object_bytes: Figure, in_flight: Figure
) -> None:
    """Raise UnitsError unless time x rate = in flight, and throughput = size x rate."""
    _check_time(time_s, per_s, in_flight)
    _check_throughput(object_bytes, per_s, bytes_per_s)


def _check_time(time_s: Figure, per_s: Figure, in_flight: Figure) -> None:
    _check("time x requests per second", _times(time_s, per_s), in_flight, "requests in flight")


def _check_throughput(object_bytes: Figure, per_s: Figure, bytes_per_s: Figure) -> None:
    _check("size x requests per second", _times(object_bytes, per_s), bytes_per_s, "throughput")


def _times(a: Figure, b: Figure) -> Figure:
    """The product; errors of a product add up relatively, and by their own product."""
    return a[0] * b[0], abs(a[0]) * b[1] + abs(b[0]) * a[1] + a[1] * b[1]


def _check(what: str, found: Figure, expected: Figure, name: str) -> None:
    off = abs(found[0] - expected[0])
    if off <= found[1] + expected[1] + 1e-9 * abs(expected[0]):
        return
    raise UnitsError(
        f"{what} is {found[0]:.6g}, and {name} {expected[0]:.6g}: they must be the same"
        f"{_hint(found[0], expected[0])}."
    )


def _hint(found: float, expected: float) -> str:
    """What a factor gives away: a power of 1000 is a wrong prefix, 1.024 a binary one."""
    if found <= 0 or expected <= 0:
        return ""
    factor = found / expected
    for power in (-3, -2, -1, 1, 2, 3):
        if math.isclose(factor, 1000.0**power, rel_tol=0.05):
            return f"; a factor of 1000 to the {power:+d}, as of a wrong prefix of a unit"
    for power in (-3, -2, -1, 1, 2, 3):
        if math.isclose(factor, 1.024**power, rel_tol=0.005):
            return "; a factor as between binary and decimal prefixes"
    return ""


def check_rows(table: RateTable, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How many of `rows` have figures; all of those are checked. Raises UnitsError with the row."""
    checked = 0
    for row in rows:
        cells = dict(zip(headers, row, strict=True))
        try:
            checked += check_row(table, cells)
        except UnitsError as error:
            raise UnitsError(f"{table.name}: {error} The row: {' | '.join(row)}") from error
    return checked
