"""What every fault is: something that begins at a known instant, and ends at another."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from wanlat.topologies.errors import RunFailed, UserError
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.emulator.faults.held import Held
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.links import Direction
    from wanlat.emulator.process import Process
    from wanlat.topologies.resolve import Plan

Roles = Mapping[str, Sequence[str]]
"""The nodes of each role of a drill, as `emulator.faults.roles.draw` drew them."""


class FaultFailed(RunFailed):
    """A fault could not be applied, or not be undone: what was measured means nothing."""


class Service(Protocol):
    """A program that runs on one node and can be started again (`systems.nodes.NodeProcess`)."""

    @property
    def node(self) -> str:
        """Where it runs."""

    @property
    def process(self) -> Process | None:
        """The one that was started last."""

    def start(self, lab: Lab) -> None:
        """Start it anew."""

    def stop(self, how: int = ...) -> object:
        """Send a signal that ends it and what it started; its end is nobody's surprise then."""


@dataclass(frozen=True)
class Scene:
    """What faults act on: a lab, and the one service that each of its nodes runs."""

    lab: Lab
    services: Mapping[str, Service]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the timeline is cut short: whoever waits between two occurrences stops waiting."""
    on_occurrence: Callable[[Fault, int, Mapping[str, Any]], None] = lambda *_: None
    """Told of each occurrence of a fault that has several: the fault, the instant, more."""
    on_failure: Callable[[Fault, BaseException], None] = lambda *_: None
    """Told when a fault fails between its beginning and its end, in a thread of its own."""
    _held: dict[str, Held] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Note of every service which faults hold it; nobody does so far."""
        from wanlat.emulator.faults.held import Held

        for node, service in self.services.items():
            self._held[node] = Held(self.lab, service)

    @contextmanager
    def holding(self, nodes: Sequence[str]) -> Iterator[list[Held]]:
        """Have some nodes' services for oneself. Raises UserError for a node that runs none."""
        missing = [node for node in nodes if node not in self._held]
        if missing:
            raise UserError(
                f"No service runs on {listing(missing)}, so there is no process to hit; services "
                f"run on {listing(self._held, at_most=20) or 'no node'}."
            )
        with ExitStack() as locks:
            for node in sorted(nodes):  # in one order, so that no two wait for each other
                locks.enter_context(self._held[node].lock)
            yield [self._held[node] for node in nodes]


class Fault(ABC):
    """One fault on its targets. It begins once and ends once."""

    kind: ClassVar[str]
    """As drills name it: ``kill``, ``one-way-cut``, …"""
    settle_s: ClassVar[float] = 0.0
    """How long after its end `confirm` is asked; 0: it is not."""

    @classmethod
    @abstractmethod
    def parse(cls, target: object, settings: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Return the fault that a drill's file means, all of whose mistakes UserError lists.

        ``target`` is the value of the kind's key: a text or a list of texts. ``settings`` are
        the other keys, without the times. Names of roles stand for their nodes.
        """

    @property
    @abstractmethod
    def subject(self) -> str:
        """What is broken, for people: ``n2``, ``dc1 → dc2``, ``n1, n2 | n3, n4``."""

    @property
    def detail(self) -> str:
        """How it is broken: ``+200 ms``, ``5 % of packets``; empty where the kind says it all."""
        return ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that are hit themselves; none where only links are."""
        return ()

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of links that are changed, and so calibrated again when it has ended."""
        return ()

    @property
    def volumes(self) -> Mapping[str, int]:
        """The nodes whose directory must be a file system of limited size, and that in bytes."""
        return {}

    @property
    def is_undone(self) -> bool:
        """Whether it lasts until it ends; a restart, for one, is over when it has happened.

        The end of one that is over by itself is asked for as soon as it has begun.
        """
        return True

    def check(self, lab: Lab) -> None:  # noqa: B027 - most can always be applied
        """Raise MachineError or UserError when it cannot be applied here; asked before anything
        is measured.
        """

    @abstractmethod
    def begin(self, scene: Scene) -> int:
        """Apply it; return the instant of effect (CLOCK_MONOTONIC, ns).

        Raises FaultFailed, or what the lab raises; `end` is asked all the same then, since part
        of it may have been applied.
        """

    @abstractmethod
    def end(self, scene: Scene) -> int:
        """Undo what it did and nothing else; return the instant at which that was in force.

        Raises FaultFailed, or what the lab raises. Safe after a beginning that failed.
        """

    def confirm(self, scene: Scene) -> None:  # noqa: B027 - most ends are certain at once
        """Raise FaultFailed unless what the end mended is still so. It does not wait."""
