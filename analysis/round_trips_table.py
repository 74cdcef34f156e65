"""What each column of the table of round trips says of an endpoint."""

from __future__ import annotations

from wanlat.analysis.names import EN_DASH, format_ms, format_trips, format_trips_interval
from wanlat.analysis.round_trips_block import RoundTrips

ROUND_TRIPS = "round trips [95 %]"
CHAIN = "chain"
OWN = "own ms"
MODES = "modes"
BYTES = "WAN\nbytes"
PACKETS = "WAN\npackets"
LEAST = "least"
N = "n"
UNEXPLAINED = "on no\nline"

HEADERS = (ROUND_TRIPS, CHAIN, LEAST, OWN, MODES, BYTES, PACKETS, N, UNEXPLAINED)

DISAGREES = "≠"
"""Stands behind a chain that disagrees with the slope beside it."""
NOT_A_LINE = "not a line"
NO_NUMBER = "none"


def cells_of(entry: RoundTrips) -> dict[str, str]:
    """The cell of each of HEADERS. A number is never given where there is none."""
    return {
        ROUND_TRIPS: number_cell(entry),
        CHAIN: chain_cell(entry),
        LEAST: _trips(entry.least_round_trips),
        OWN: format_ms(entry.intercept_ms),
        MODES: modes_cell(entry),
        BYTES: bytes_cell(entry),
        PACKETS: packets_cell(entry),
        N: str(entry.n),
        UNEXPLAINED: EN_DASH if entry.unexplained is None else str(entry.unexplained),
    }


def number_cell(entry: RoundTrips) -> str:
    """The slope with its interval; where there is none, the shortest word for why."""
    if entry.round_trips is None:
        return NOT_A_LINE if entry.estimate is not None else NO_NUMBER
    return f"{format_trips(entry.round_trips)} {format_trips_interval(entry.ci95)}"


def chain_cell(entry: RoundTrips) -> str:
    """The chain that most requests have; marked where it disagrees with the slope."""
    mark = f" {DISAGREES}" if entry.agrees is False else ""
    return f"{_trips(entry.chain_round_trips)}{mark}"


def modes_cell(entry: RoundTrips) -> str:
    """Share and slope of each mode; "one" where there is no second."""
    if not entry.modes:
        return EN_DASH
    if len(entry.modes) == 1:
        return "one"
    return " ".join(
        f"{100 * mode.share:.0f}%:{format_trips(mode.round_trips)}" for mode in entry.modes
    )


def _trips(round_trips: float | None) -> str:
    """A count of round trips, which has halves at most."""
    return EN_DASH if round_trips is None else f"{round_trips:g}"


def bytes_cell(entry: RoundTrips) -> str:
    """WAN bytes of one request."""
    return _cost(entry.wan_bytes, entry.wan_bytes_ci95, 0)


def packets_cell(entry: RoundTrips) -> str:
    """WAN packets of one request."""
    return _cost(entry.wan_packets, entry.wan_packets_ci95, 1)


def _cost(value: float | None, interval: tuple[float, float] | None, places: int) -> str:
    """Of a cost that may be nothing, as background is subtracted, only what it is at most."""
    if value is None:
        return EN_DASH
    if interval is not None and interval[0] <= 0 <= interval[1]:
        return f"≤ {interval[1]:,.{places}f}"
    return f"{value:,.{places}f}"
