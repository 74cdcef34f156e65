"""Whether the two answers agree: the slopes of latency against RTT, and the chains of messages.

They agree where each of three things holds:

1. the chain that most requests have lies in the 95 % interval of a mode, widened by 0.1 on both
   sides, and some request has a chain that lies so in the main mode;
2. no more than one request in ten has a chain that lies in no mode so widened;
3. the share of each mode and the share of the chains that lie in it differ by no more than two
   samples of that size do by chance (pooled z test, 95 %) and 5 points more.

Modes whose widened intervals touch cannot be told apart by chains, which are counts, and are taken
together: two parallel lines are one length.

The widening is for what the interval does not cover: a store that works while messages travel
hides a part of a round trip. The 5 points are for the requests that either way tells wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.names import format_trips, format_trips_interval

if TYPE_CHECKING:
    from analysis.packets.evidence import Share
    from analysis.round_trips import Mode

WIDENED_BY = 0.1
"""Round trips by which an interval is widened before a chain is sought in it."""
STRAYS_AT_MOST = 0.1
"""The share of requests whose chains may lie in no mode."""
SHARES_WITHIN = 0.05
"""How far apart two shares may be beyond what chance explains."""

_Z95 = 1.959964


@dataclass(frozen=True)
class _Length:
    """Modes of one length: those that no chain could tell apart, the greatest share first."""

    modes: tuple[Mode, ...]

    @property
    def main(self) -> Mode:
        return max(self.modes, key=lambda mode: mode.share)

    @property
    def share(self) -> float:
        return sum(mode.share for mode in self.modes)

    def holds(self, chain: Share) -> bool:
        low = min(mode.ci95[0] for mode in self.modes) - WIDENED_BY
        high = max(mode.ci95[1] for mode in self.modes) + WIDENED_BY
        return low <= chain.round_trips <= high


def why_disagree(
    modes: Sequence[Mode], n: int, chains: Sequence[Share], n_chains: int
) -> str | None:
    """In what `modes` of `n` requests and `chains` of `n_chains` differ; None where they agree.

    Both have at least one entry and the greatest share first.
    """
    lengths = _lengths(modes)
    main, usual = modes[0], chains[0]
    if not any(length.holds(usual) for length in lengths):
        return (
            f"the slope says {_slope(main)} "
            f"round trips, the packets of {percent(usual.share)} of the requests say "
            f"{usual.round_trips:g}"
        )
    ours = next(length for length in lengths if main in length.modes)
    if not any(ours.holds(chain) for chain in chains):
        return (
            f"the slope of {percent(main.share)} of the requests says {_slope(main)} "
            f"round trips, and no request has a chain of "
            f"that length ({percent(usual.share)} have one of {usual.round_trips:g})"
        )
    strays = [chain for chain in chains if not any(length.holds(chain) for length in lengths)]
    if (strayed := sum(chain.share for chain in strays)) > STRAYS_AT_MOST:
        listed = ", ".join(f"{chain.round_trips:g}" for chain in strays)
        return f"{percent(strayed)} of the requests have a chain on no line ({listed} round trips)"
    return _why_shares_differ(lengths, n, chains, n_chains)


def _slope(mode: Mode) -> str:
    return f"{format_trips(mode.round_trips)} {format_trips_interval(mode.ci95)}"


def percent(share: float) -> str:
    """A share (0..1) as people write it."""
    return f"{100 * share:.0f} %"


def _lengths(modes: Sequence[Mode]) -> list[_Length]:
    lengths: list[_Length] = []
    for mode in sorted(modes, key=lambda mode: mode.ci95):
        last = lengths[-1] if lengths else None
        reach = max((one.ci95[1] for one in last.modes), default=0.0) if last else 0.0
        if last and mode.ci95[0] - reach <= 2 * WIDENED_BY:
            lengths[-1] = _Length((*last.modes, mode))
        else:
            lengths.append(_Length((mode,)))
    return lengths


def _why_shares_differ(
    lengths: Sequence[_Length], n: int, chains: Sequence[Share], n_chains: int
) -> str | None:
    for length in lengths:
        theirs = sum(chain.share for chain in chains if length.holds(chain))
        if abs(length.share - theirs) > _by_chance(length.share, n, theirs, n_chains) + (
            SHARES_WITHIN
        ):
            return (
                f"{percent(length.share)} of the latencies lie on a line of "
                f"{format_trips(length.main.round_trips)} round trips, and {percent(theirs)} of "
                "the requests have such a chain"
            )
    return None


def _by_chance(one: float, n: int, other: float, m: int) -> float:
    """How far apart two shares, of `n` and `m` requests, may be by chance (95 %)."""
    pooled = (one * n + other * m) / (n + m)
    return _Z95 * math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
