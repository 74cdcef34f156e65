"""Two differences and what lies between them: overhead on loopback, difference at distance.

- ``overhead``: median of the client − median of oneshot, both standing on the node that is
  asked. It is what the client itself costs: there a round trip takes no time.
- ``difference``: the same, both standing at a distance.
- ``extra``: difference − overhead, what the client pays for the distance and oneshot does not:
  round trips. It has a 95 % interval (percentile bootstrap of the four medians at once).

The verdict is *agree* when that interval, widened by SLACK_MS, holds zero; *explained* when it
holds the time that the client, in the record of the packets, was seen to wait for something that
oneshot did not wait for; else *unexplained*.

A store whose own time jumps from one request to the next (by whole round trips, many do) makes
the interval too wide to tell anything. Then the times are compared *without* the store's: what
passed, by the record of the packets, between the last byte of the request and the last of its
answer is taken off each request, in all four places, and so is what another wait for the server
took beyond a round trip. The document says which was compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from wanlat.experiments.crosscheck.waits import Extra, Waited, WaitKind

if TYPE_CHECKING:
    import numpy as np

Interval = tuple[float, float]
Verdict = Literal["agree", "explained", "unexplained"]
Compared = Literal["times", "times without the store's"]

SLACK_MS = 2.0
FEWEST = 6
"""Below, no interval of a median holds 95 %."""
_RESAMPLES = 9999
_WIDE = 0.1
"""Half an interval that is wider than this part of a round trip says little: try it otherwise."""
_TOO_WIDE = 0.5
"""And one that is wider than this cannot tell one more round trip from none."""

NEVER_EXPLAINS: frozenset[WaitKind] = frozenset({"pause"})
"""Waits that are none for the network: they are shown, and explain nothing."""


@dataclass(frozen=True)
class Seen:
    """One request that went well: its time and what it waited for."""

    ms: float
    waited: Waited

    @property
    def without_store_ms(self) -> float:
        """Return its time less the store's."""
        return self.ms - self.waited.store / 1e6


@dataclass(frozen=True)
class Explanation:
    """Something that a client waits for and oneshot does not."""

    extra: Extra
    ms: float
    """What the distance adds by it: the median of the network's part, less oneshot's, less the
    same on loopback."""
    waited_ms: float
    """The median of all of it, the store's part too."""
    requests: int
    """In how many of the requests it was seen."""


@dataclass(frozen=True)
class Figures:
    """One way to compare, in ms."""

    overhead: float
    overhead_ci95: Interval
    difference: float
    difference_ci95: Interval
    extra: float
    extra_ci95: Interval

    @property
    def half_width(self) -> float:
        """Return half the width of the interval of what is extra."""
        return (self.extra_ci95[1] - self.extra_ci95[0]) / 2


@dataclass(frozen=True)
class Comparison:
    """A client beside oneshot, on one endpoint."""

    client_ms: tuple[float, float]
    """Medians: at a distance, on loopback."""
    oneshot_ms: tuple[float, float]
    answer_ms: tuple[float, float]
    """Median waits for the endpoint's own answer at a distance: the client's, oneshot's."""
    compared: Compared
    figures: Figures
    explanations: tuple[Explanation, ...]
    """Seen in most requests, the longest first; those that explain and those that do not."""
    rarely: tuple[Explanation, ...]
    """Seen in fewer than half of the requests, so that no median tells of it."""
    verdict: Verdict
    reason: str | None

    @property
    def explained_ms(self) -> float:
        """Return how much of what is extra was seen to be waited for."""
        return _explained(self.explanations)


def compare(
    client: Sequence[Seen],
    oneshot: Sequence[Seen],
    client_near: Sequence[Seen],
    oneshot_near: Sequence[Seen],
    *,
    rtt_ms: float,
    seed: int,
) -> Comparison:
    """Compare what was seen at a distance and on loopback; none of the four may be empty."""
    places = (client, oneshot, client_near, oneshot_near)
    often, rarely = _explanations(*places)
    answers = [median(one.waited.answer for one in each) / 1e6 for each in (client, oneshot)]
    compared: Compared = "times"
    figures = _figures([[one.ms for one in each] for each in places], seed)
    if figures.half_width > _WIDE * rtt_ms:
        without = _figures([[one.without_store_ms for one in each] for each in places], seed)
        if without.half_width < figures.half_width:
            compared, figures = "times without the store's", without
    verdict, reason = _judge(figures, _explained(often), rtt_ms)
    medians = [median(one.ms for one in each) for each in places]
    return Comparison(
        client_ms=(medians[0], medians[2]),
        oneshot_ms=(medians[1], medians[3]),
        answer_ms=(answers[0], answers[1]),
        compared=compared,
        figures=figures,
        explanations=often,
        rarely=rarely,
        verdict=verdict,
        reason=reason,
    )


def _figures(times: Sequence[Sequence[float]], seed: int) -> Figures:
    import numpy as np

    rng = np.random.default_rng(seed)
    far, far_oneshot, near, near_oneshot = (
        np.median(rng.choice(np.asarray(each), size=(_RESAMPLES, len(each))), axis=1)
        for each in times
    )
    middle = [median(each) for each in times]
    overhead, difference = middle[2] - middle[3], middle[0] - middle[1]
    return Figures(
        overhead,
        _interval(near - near_oneshot),
        difference,
        _interval(far - far_oneshot),
        difference - overhead,
        _interval(far - far_oneshot - (near - near_oneshot)),
    )


def _interval(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Interval:
    import numpy as np

    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def _judge(figures: Figures, explained_ms: float, rtt_ms: float) -> tuple[Verdict, str | None]:
    if figures.half_width > _TOO_WIDE * rtt_ms:
        low, high = figures.extra_ci95
        return "unexplained", (
            f"the times are too unsteady to tell ({low:+.1f} to {high:+.1f} ms): take more "
            "samples, or a quieter machine"
        )
    low, high = figures.extra_ci95[0] - SLACK_MS, figures.extra_ci95[1] + SLACK_MS
    if low <= 0 <= high:
        return "agree", None
    if explained_ms and low <= explained_ms <= high:
        return "explained", None
    seen = f"a wait of {explained_ms:.1f} ms" if explained_ms else "no wait"
    return "unexplained", (
        f"the distance adds {figures.extra:+.1f} ms to the client's time that it does not add to "
        f"oneshot's, and the packets show {seen} for it"
    )


def _explained(explanations: Sequence[Explanation]) -> float:
    return sum(one.ms for one in explanations if one.extra.kind not in NEVER_EXPLAINS)


def _explanations(
    client: Sequence[Seen],
    oneshot: Sequence[Seen],
    client_near: Sequence[Seen],
    oneshot_near: Sequence[Seen],
) -> tuple[tuple[Explanation, ...], tuple[Explanation, ...]]:
    often, rarely = [], []
    for extra in {extra for one in client for extra in one.waited.extras}:
        whole = [one.waited.extras.get(extra, 0) / 1e6 for one in client]
        requests = sum(1 for wait in whole if wait)
        if 2 * requests > len(whole):
            far, far_oneshot, near, near_oneshot = (
                median(one.waited.network.get(extra, 0) / 1e6 for one in each)
                for each in (client, oneshot, client_near, oneshot_near)
            )
            more = far - far_oneshot - (near - near_oneshot)
            if more > 0:
                often.append(Explanation(extra, more, median(whole), requests))
        else:
            wait = median(wait for wait in whole if wait)
            rarely.append(Explanation(extra, wait, wait, requests))
    often.sort(key=lambda one: (-one.ms, str(one.extra)))
    rarely.sort(key=lambda one: (-one.requests, str(one.extra)))
    return tuple(often), tuple(rarely)
