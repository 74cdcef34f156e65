"""Whether the two answers agree: the slopes of latency against RTT, and the critical paths.

They are compared request by request: each lies on the line of a mode, and has a critical path. They
disagree where either of these holds:

1. the path that most requests of the main mode have lies outside that mode's 95 % interval,
   widened by 0.1 round trips on both sides;
2. more than one request in ten (and more than one at all) has a path that lies outside the
   interval, so widened, of the mode that its latency puts it in.

Unexplained requests have no round trips and contradict nothing; neither do those with a path
that is not known. The widening is for what the interval does not cover: a store that works while
messages travel hides a part of a round trip. Modes with widened intervals that touch cannot be kept
apart by paths, which are counts, and are taken together: two parallel lines are one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wanlat.analysis.names import format_trips, format_trips_interval
from wanlat.analysis.stats.round_trips import Mode
from wanlat.analysis.stats.slopes import Indexes, Values

WIDENED_BY = 0.1
"""Round trips by which an interval is widened before a path is sought in it."""
STRAYS_AT_MOST = 0.1
"""The share of requests with paths that may lie outside the modes that latency puts them in."""


@dataclass(frozen=True)
class Comparison:
    """What came of it: over `n` requests that have both answers. None where they agree."""

    n: int
    disagreement: str | None

    @property
    def agrees(self) -> bool | None:
        """None where no request has both answers."""
        return self.disagreement is None if self.n else None


class _Length(NamedTuple):
    """Modes that no critical path could distinguish: their places, the greatest, the interval."""

    places: list[int]
    main: Mode
    low: float
    high: float


def compare(modes: Sequence[Mode], members: Indexes, chain: Values) -> Comparison:
    """Compare `modes` (the greatest share first) with the critical path of each request.

    `members` is the place of each request's mode, -1 for none; `chain` the round trips of its
    critical path, NaN where not known; both of shape (n,).
    """
    both = (members >= 0) & ~np.isnan(chain)
    members, chain = members[both], chain[both]
    strays, parts = 0, []
    for number, length in enumerate(_lengths(modes) if members.size else ()):
        mine = chain[np.isin(members, length.places)]
        off = mine[(mine < length.low - WIDENED_BY) | (mine > length.high + WIDENED_BY)]
        slope = format_trips(length.main.round_trips)
        if not off.size:
            continue
        usual, share = _most_frequent(mine)
        if number == 0 and usual in off:
            return Comparison(
                members.size,
                f"the slope says {slope} {format_trips_interval(length.main.ci95)} round trips, "
                f"and the packets of {100 * share:.0f} % of those requests say {usual:g}",
            )
        strays += off.size
        parts.append(
            f"{off.size} of {mine.size} on the line of {slope} have a critical path of another "
            f"length, mostly {_most_frequent(off)[0]:g}"
        )
    is_many = strays > max(1, STRAYS_AT_MOST * members.size)
    return Comparison(members.size, "; ".join(parts) if is_many else None)


def _lengths(modes: Sequence[Mode]) -> list[_Length]:
    """The modes by length, that of the main mode first."""
    lengths: list[_Length] = []
    for place, mode in sorted(enumerate(modes), key=lambda entry: entry[1].ci95):
        low, high = mode.ci95
        if lengths and low - lengths[-1].high <= 2 * WIDENED_BY:
            last = lengths.pop()
            main = max(last.main, mode, key=lambda mode: mode.share)
            lengths.append(_Length([*last.places, place], main, last.low, max(last.high, high)))
        else:
            lengths.append(_Length([place], mode, low, high))
    return sorted(lengths, key=lambda length: min(length.places))


def _most_frequent(values: Values) -> tuple[float, float]:
    """The most frequent of `values`, the smaller of several, and its share."""
    distinct, counts = np.unique(values, return_counts=True)
    place = int(np.argmax(counts))
    return float(distinct[place]), float(counts[place]) / values.size
