"""What plans the requests of a protocol: each module beside this one has one."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from wanlat.probes.fewer import Turn
from wanlat.probes.header import Header, Terms
from wanlat.probes.method_plan import method_steps
from wanlat.probes.plan import Request, StepsPlan, Wanted
from wanlat.systems.engine.protocols import Target
from wanlat.topologies.wording import listing

T = TypeVar("T", bound=Target)


class Planner(Generic[T]):
    """What is sent over a protocol; `wanlat.systems.engine.protocols` has one of the same name."""

    name: ClassVar[str]
    """Of the protocol."""
    target: ClassVar[type[Target]]
    """What its requests are sent to."""
    header: ClassVar[type[Header]]
    """The first line of its plans: it has the target's fields."""
    endpoints: ClassVar[tuple[str, ...]] = ()
    """Its own; none: definitions and studies write its requests out."""
    written: ClassVar[str] = ""
    """Where it has none: which requests there are, and how they are written."""

    @property
    def known(self) -> str:
        """Which endpoints it has, for messages."""
        return listing(self.endpoints) or self.written

    def header_to(self, target: T, terms: Terms) -> Header:
        """Return the first line of a plan of requests to a node."""
        return self.header(
            **vars(target), connection=terms.connection, deadline_ms=terms.deadline_ms
        )

    def plan(self, wanted: Wanted) -> StepsPlan:
        """Return all requests. The same arguments give the same plan."""
        return method_steps(wanted)

    def turns(self, wanted: Wanted) -> list[Turn]:
        """Return the endpoints with the placements that each has ``samples`` requests of."""
        return [(endpoint.name or endpoint.endpoint, "unknown") for endpoint in wanted.endpoints]

    def blank(self, endpoint: str) -> Request:
        """Return the request to an endpoint of its own that lacks key and bytes."""
        raise ValueError(f"{self.name} has no endpoint {endpoint} of its own")
