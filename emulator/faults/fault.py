"""What every fault is: something that begins at a known instant, and ends at another."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from topologies.errors import RunFailed

if TYPE_CHECKING:
    from emulator.lab import Lab
    from emulator.links import Direction
    from emulator.process import Process


class FaultFailed(RunFailed):
    """A fault could not be applied, or not be undone: what was measured means nothing."""


class Service(Protocol):
    """A program that runs on one node and can be started again (`systems.nodes.NodeProcess`)."""

    node: str
    process: Process | None
    """The one that was started last."""

    def start(self, lab: Lab) -> None:
        """Start it anew."""

    def stop(self, how: int = ...) -> None:
        """End it by a signal, on purpose: from then on its end is nobody's surprise."""


@dataclass(frozen=True)
class Scene:
    """What faults act on: a lab, and the one service that each of its nodes runs."""

    lab: Lab
    services: Mapping[str, Service]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the timeline is cut short: whoever waits between two blows stops waiting."""


class Fault(ABC):
    """One fault on its targets. It begins once and ends once."""

    kind: ClassVar[str]
    """As drills name it: ``kill``, ``one-way-cut``, …"""

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
    def volumes(self) -> tuple[str, ...]:
        """The nodes whose directory must be a file system of limited size."""
        return ()

    @property
    def is_undone(self) -> bool:
        """Whether it lasts until it ends; a restart, for one, is over when it has happened."""
        return True

    def check(self, lab: Lab) -> None:  # noqa: B027 - most can always be applied
        """Raise MachineError or UserError when it cannot be applied here; asked before anything
        is measured.
        """

    @abstractmethod
    def begin(self, scene: Scene) -> int:
        """Apply it; return the instant of effect (CLOCK_MONOTONIC, ns). Raises FaultFailed."""

    @abstractmethod
    def end(self, scene: Scene) -> int:
        """Undo it; return the instant at which that was in force. Raises FaultFailed."""
