"""Everything that was measured, by client and endpoint."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from wanlat.experiments.crosscheck.compare import Seen
from wanlat.experiments.crosscheck.lanes import Lane, Times
from wanlat.experiments.crosscheck.waits import Waited
from wanlat.probes.plan import Request

Place = tuple[str, str]
"""A client's name and an endpoint."""


@dataclass
class Results:
    """Measured requests by (client, endpoint), and what each client's first one waited for."""

    clients: list[Lane] = field(default_factory=list)
    """oneshot first."""
    far: defaultdict[Place, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    near: defaultdict[Place, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    errors: defaultdict[Place, list[str]] = field(default_factory=lambda: defaultdict(list))
    first: dict[str, tuple[str, Waited]] = field(default_factory=dict)

    def add(self, lane: Lane, request: Request, times: Times, waited: Waited) -> None:
        """Take in a request with what it was seen to wait for."""
        place = (lane.name, request.endpoint)
        if lane.position == "distance":
            self.first.setdefault(lane.name, (request.endpoint, waited))
        if request.phase != "measure":
            return
        if times.error is not None:
            self.errors[place].append(times.error)
            return
        measured = self.far if lane.position == "distance" else self.near
        measured[place].append(Seen(times.ms, waited))
