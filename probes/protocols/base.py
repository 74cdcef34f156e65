"""What plans the requests of a protocol: each module beside this one has one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from wanlat.probes.fewer import Turn
from wanlat.probes.header import Header, Terms
from wanlat.probes.method_plan import method_steps
from wanlat.probes.plan import Request, StepsPlan
from wanlat.probes.prefilled import Prefilled
from wanlat.systems.engine.protocols import Target
from wanlat.topologies.wording import listing

Replicas = Callable[[bytes], Sequence[str] | None]
"""The nodes that hold a key; None where that is not known."""


@dataclass(frozen=True)
class Wanted:
    """What is to be measured of one system, whatever the protocol."""

    endpoints: Sequence[Any]
    """Names of the protocol's own endpoints; of others `wanlat.probes.method_plan.Measured`."""
    samples: int
    warmup: int
    object_bytes: int
    seed: int
    target: str
    """The target node."""
    replicas: Replicas
    bucket: str
    steps: int = 1
    one_key: bool = False
    prefilled: Prefilled | None = field(default=None)


T = TypeVar("T", bound=Target)


class Planner(ABC, Generic[T]):
    """What is sent over a protocol; `wanlat.systems.engine.protocols` has one of the same name."""

    name: ClassVar[str]
    """Of the protocol."""
    target: ClassVar[type[Target]]
    """What its requests are sent to."""
    endpoints: ClassVar[tuple[str, ...]] = ()
    """Its own; none: definitions and studies write its requests out."""
    written: ClassVar[str] = ""
    """Where it has none: which requests there are, and how they are written."""

    @property
    def known(self) -> str:
        """Which endpoints it has, for messages."""
        return listing(self.endpoints) or self.written

    @abstractmethod
    def header(self, target: T, terms: Terms) -> Header:
        """Return the first line of a plan of requests to a node."""

    def plan(self, wanted: Wanted) -> StepsPlan:
        """Return all requests. The same arguments give the same plan."""
        return method_steps(
            wanted.endpoints,
            steps=wanted.steps,
            samples=wanted.samples,
            warmup=wanted.warmup,
            object_bytes=wanted.object_bytes,
            seed=wanted.seed,
            prefilled=wanted.prefilled,
        )

    def turns(self, wanted: Wanted) -> list[Turn]:
        """Return the endpoints with the placements that each has ``samples`` requests of."""
        return [(endpoint.name or endpoint.endpoint, "unknown") for endpoint in wanted.endpoints]

    def blank(self, endpoint: str) -> Request:
        """Return the request to an endpoint of its own that lacks key and bytes."""
        raise ValueError(f"{self.name} has no endpoint {endpoint} of its own")
