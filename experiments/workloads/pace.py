"""How long requests take, at least and at most: what a dry run reports of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wanlat.experiments.prepare import RequestPlan
from wanlat.probes.fewer import Turn
from wanlat.probes.oneshot import PREPARING_PROCESSES, at_once
from wanlat.probes.plan import Request

_REQUEST_S = 0.0003  # besides its round trips
_SLOW_REQUEST_S = 0.03
_SLOW_ROUND_TRIPS = 3.0
"""Of a store that takes more than the lower bound: so many times that, and one more."""


class Seconds(NamedTuple):
    """How long something takes: what it cannot be below, and what it is seldom above."""

    least: float
    most: float

    def plus(self, other: Seconds) -> Seconds:
        """Return how long both take, one after the other."""
        return Seconds(self.least + other.least, self.most + other.most)

    def times(self, count: float) -> Seconds:
        """Return how long it takes so often."""
        return Seconds(self.least * count, self.most * count)


NONE = Seconds(0.0, 0.0)


def stated(seconds: float, *, late_s: float = 0.0) -> Seconds:
    """Return how long something takes that is stated; ``late_s``: how much longer it may take."""
    return Seconds(seconds, seconds + late_s)


@dataclass(frozen=True)
class Pace:
    """The time that the requests of a system take."""

    bounds: Mapping[str, float]
    """Lower bounds of the round trips of endpoints."""
    rtt_s: float
    """To the nearest node of another site."""

    def one(self, endpoint: str, rtt_s: float | None = None) -> Seconds:
        """Return the time of a request; ``rtt_s``: at another RTT."""
        rtt_s, bound = self.rtt_s if rtt_s is None else rtt_s, self.bounds.get(endpoint, 0.0)
        slow_s = (_SLOW_ROUND_TRIPS * bound + 1) * rtt_s + _SLOW_REQUEST_S
        return Seconds(bound * rtt_s + _REQUEST_S, slow_s)

    def all(self, requests: Iterable[Request], rtt_s: float | None = None) -> Seconds:
        """Return the time of requests, one after another."""
        taken = NONE
        for request in requests:
            taken = taken.plus(self.one(request.called, rtt_s))
        return taken

    def preparing(self, requests: Sequence[Request], rtt_s: float | None = None) -> Seconds:
        """Return the time of requests that are sent beforehand, several at once."""
        together = min(PREPARING_PROCESSES, at_once(requests))
        return self.all(requests, rtt_s).times(1 / together)

    def writing(self, requests: RequestPlan) -> Seconds:
        """Return the time to write an object."""
        return self.one(requests.objects.name("write")) if requests.objects else NONE


def counted(requests: Iterable[Request]) -> Counter[Turn]:
    """Return how many requests there are of an endpoint and placement."""
    return Counter((request.called, request.placement) for request in requests)
