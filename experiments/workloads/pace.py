"""The least time that requests take: what a dry run reports of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wanlat.experiments.prepare import RequestPlan
from wanlat.probes.fewer import Turn
from wanlat.probes.plan import Request

_REQUEST_S = 0.0005  # besides its round trips


@dataclass(frozen=True)
class Pace:
    """The least time that the requests of a system take."""

    bounds: Mapping[str, float]
    """Lower bounds of the round trips of endpoints."""
    rtt_s: float
    """To the nearest node of another site."""

    def one_s(self, endpoint: str, rtt_s: float | None = None) -> float:
        """Return the time of a request; ``rtt_s``: at another RTT."""
        rtt_s = self.rtt_s if rtt_s is None else rtt_s
        return self.bounds.get(endpoint, 0.0) * rtt_s + _REQUEST_S

    def all_s(self, requests: Iterable[Request], rtt_s: float | None = None) -> float:
        """Return the time of requests, one after another."""
        return sum(self.one_s(request.called, rtt_s) for request in requests)

    def write_s(self, requests: RequestPlan) -> float:
        """Return the time to write an object."""
        return self.one_s(requests.objects.name("write")) if requests.objects else 0.0


def counted(requests: Iterable[Request]) -> Counter[Turn]:
    """Return how many requests there are of an endpoint and placement."""
    return Counter((request.called, request.placement) for request in requests)
