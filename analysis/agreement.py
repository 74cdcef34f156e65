"""Whether the two answers agree: the slopes of latency against RTT, and the chains of messages.

They are held against each other request by request: each lies on the line of a mode, and has a
chain. They disagree where either of these holds:

1. the chain that most requests of the main mode have lies outside that mode's 95 % interval,
   widened by 0.1 round trips on both sides;
2. more than one request in ten (and more than one at all) has a chain that lies outside the
   interval, so widened, of the mode that its latency puts it in.

Requests on no line say nothing of round trips and contradict nothing; neither do those whose chain
is not known. The widening is for what the interval does not cover: a store that works while
messages travel hides a part of a round trip. Modes whose widened intervals touch cannot be told
apart by chains, which are counts, and are taken together: two parallel lines are one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wanlat.analysis.names import format_trips, format_trips_interval, listing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wanlat.analysis.round_trips import Mode

    Values = NDArray[np.float64]

WIDENED_BY = 0.1
"""Round trips by which an interval is widened before a chain is sought in it."""
STRAYS_AT_MOST = 0.1
"""The share of requests whose chain may lie outside the mode that their latency puts them in."""

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
    """Modes that no chain could tell apart, by their places."""

    modes: Sequence[Mode]
    places: tuple[int, ...]

    @property
    def main(self) -> Mode:
        return max((self.modes[place] for place in self.places), key=lambda mode: mode.share)

    def holds(self, round_trips: float) -> bool:
        low = min(self.modes[place].ci95[0] for place in self.places) - WIDENED_BY
        high = max(self.modes[place].ci95[1] for place in self.places) + WIDENED_BY
        return low <= round_trips <= high


def compare(modes: Sequence[Mode], members: NDArray[np.int_], chain: Values) -> Comparison:
    """Hold `modes` (the greatest share first) against the `chain` of each request.

    `members` is the place of each request's mode, -1 for none; `chain` its round trips by the
    packet record, NaN where not known; both of shape (n,).
    """
    import numpy as np

    both = (members >= 0) & ~np.isnan(chain)
    members, chain = members[both], chain[both]
    n = int(both.sum())
    if n == 0:
        return Comparison(0, None)
    lengths = _lengths(modes)
    return Comparison(n, _on_main(lengths, members, chain) or _on_strays(lengths, members, chain))


def percent(share: float) -> str:
    """A share (0..1) as people write it."""
    return f"{100 * share:.0f} %"


def _lengths(modes: Sequence[Mode]) -> list[_Length]:
    """The modes by length, that of the main mode first."""
    found: list[_Length] = []
    reach = 0.0
    for place in sorted(range(len(modes)), key=lambda place: modes[place].ci95):
        low, high = modes[place].ci95
        if found and low - reach <= 2 * WIDENED_BY:
            found[-1] = _Length(modes, (*found[-1].places, place))
            reach = max(reach, high)
        else:
            found.append(_Length(modes, (place,)))
            reach = high
    return sorted(found, key=lambda length: min(length.places))


def _on_main(lengths: Sequence[_Length], members: NDArray[np.int_], chain: Values) -> str | None:
    import numpy as np

    main = lengths[0]
    mine = chain[np.isin(members, main.places)]
    if not mine.size:
        return None
    usual, share = _most_frequent(mine)
    if main.holds(usual):
        return None
    slope = f"{format_trips(main.main.round_trips)} {format_trips_interval(main.main.ci95)}"
    return (
        f"the slope says {slope} round trips, and the packets of {percent(share)} of those "
        f"requests say {usual:g}"
    )


def _on_strays(lengths: Sequence[_Length], members: NDArray[np.int_], chain: Values) -> str | None:
    import numpy as np

    strays, parts = 0, []
    for length in lengths:
        mine = chain[np.isin(members, length.places)]
        outside = np.array([value for value in mine if not length.holds(value)])
        strays += outside.size
        if outside.size:
            usual, _ = _most_frequent(outside)
            parts.append(
                f"{outside.size} of {mine.size} on the line of "
                f"{format_trips(length.main.round_trips)} have a chain of another length, mostly "
                f"{usual:g}"
            )
    if strays <= max(1, STRAYS_AT_MOST * chain.size):
        return None
    return listing(parts, _NAMED_AT_MOST)


def _most_frequent(values: Values) -> tuple[float, float]:
    """The most frequent of `values`, the smaller of several, and its share."""
    import numpy as np

    found, counts = np.unique(values, return_counts=True)
    place = int(np.argmax(counts))
    return float(found[place]), float(counts[place]) / values.size
