"""Whether the two answers agree: the slopes of latency against RTT, and the critical paths.

They are compared request by request: each lies on the line of a mode, and has a critical path. They
disagree where either of these holds:

1. the path that most requests of the main mode have lies outside that mode's 95 % interval,
   widened by 0.1 round trips on both sides;
2. more than one request in ten (and more than one at all) has a path that lies outside the
   interval, so widened, of the mode that its latency puts it in.

Requests on no line say nothing of round trips and contradict nothing; neither do those whose path
is not known. The widening is for what the interval does not cover: a store that works while
messages travel hides a part of a round trip. Modes whose widened intervals touch cannot be told
apart by paths, which are counts, and are taken together: two parallel lines are one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wanlat.analysis.names import format_trips, format_trips_interval, listing
from wanlat.analysis.stats.round_trips import Mode
from wanlat.analysis.stats.slopes import Indexes, Values

WIDENED_BY = 0.1
"""Round trips by which an interval is widened before a path is sought in it."""
STRAYS_AT_MOST = 0.1
"""The share of requests whose path may lie outside the mode that their latency puts them in."""

_NAMED_AT_MOST = 4


@dataclass(frozen=True)
class Comparison:
    """What came of it: over `n` requests that have both answers. None where they agree."""

    n: int
    disagreement: str | None

    @property
    def agrees(self) -> bool | None:
        """None where no request has both answers."""
        return self.disagreement is None if self.n else None


@dataclass(frozen=True)
class _Length:
    """Modes that no critical path could tell apart: their places, the greatest, the interval."""

    places: tuple[int, ...]
    main: Mode
    low: float
    high: float

    def holds(self, round_trips: Values) -> np.ndarray:
        return (round_trips >= self.low - WIDENED_BY) & (round_trips <= self.high + WIDENED_BY)


def compare(modes: Sequence[Mode], members: Indexes, chain: Values) -> Comparison:
    """Compare `modes` (the greatest share first) with the critical path of each request.

    `members` is the place of each request's mode, -1 for none; `chain` the round trips of its
    critical path, NaN where not known; both of shape (n,).
    """
    both = (members >= 0) & ~np.isnan(chain)
    members, chain = members[both], chain[both]
    if not members.size:
        return Comparison(0, None)
    lengths = _lengths(modes)
    found = [chain[np.isin(members, length.places)] for length in lengths]
    return Comparison(members.size, _on_main(lengths[0], found[0]) or _on_strays(lengths, found))


def _lengths(modes: Sequence[Mode]) -> list[_Length]:
    """The modes by length, that of the main mode first."""
    found: list[_Length] = []
    for place in sorted(range(len(modes)), key=lambda place: modes[place].ci95):
        mode, (low, high) = modes[place], modes[place].ci95
        if found and low - found[-1].high <= 2 * WIDENED_BY:
            last = found.pop()
            main = max(last.main, mode, key=lambda mode: mode.share)
            found.append(_Length((*last.places, place), main, last.low, max(last.high, high)))
        else:
            found.append(_Length((place,), mode, low, high))
    return sorted(found, key=lambda length: min(length.places))


def _on_main(length: _Length, chain: Values) -> str | None:
    if not chain.size:
        return None
    usual, share = _most_frequent(chain)
    if length.holds(np.array(usual)):
        return None
    slope = f"{format_trips(length.main.round_trips)} {format_trips_interval(length.main.ci95)}"
    return (
        f"the slope says {slope} round trips, and the packets of {100 * share:.0f} % of those "
        f"requests say {usual:g}"
    )


def _on_strays(lengths: Sequence[_Length], found: Sequence[Values]) -> str | None:
    strays, parts = 0, []
    for length, chain in zip(lengths, found, strict=True):
        outside = chain[~length.holds(chain)]
        strays += outside.size
        if outside.size:
            parts.append(
                f"{outside.size} of {chain.size} on the line of "
                f"{format_trips(length.main.round_trips)} have a critical path of another length, "
                f"mostly {_most_frequent(outside)[0]:g}"
            )
    if strays <= max(1, STRAYS_AT_MOST * sum(chain.size for chain in found)):
        return None
    return listing(parts, _NAMED_AT_MOST)


def _most_frequent(values: Values) -> tuple[float, float]:
    """The most frequent of `values`, the smaller of several, and its share."""
    found, counts = np.unique(values, return_counts=True)
    place = int(np.argmax(counts))
    return float(found[place]), float(counts[place]) / values.size
