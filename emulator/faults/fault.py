"""What every fault is: something that begins at a known instant, and ends at another."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from wanlat.emulator.faults.held import FaultFailed, Held, Service
from wanlat.emulator.settings import checked
from wanlat.emulator.targets import Roles, Targets
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import YamlModel

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.links import Direction
    from wanlat.topologies.resolve import Plan

__all__ = ["Fault", "FaultFailed", "Hit", "Roles", "Scene", "Service"]

T = TypeVar("T")


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
    shared: dict[tuple[str, str], Any] = field(default_factory=dict)
    """What several faults of one kind share on one node, by both; ``lock`` guards it."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _held: dict[str, Held] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Note of every service which faults hold it; nobody does so far."""
        self._held.update((node, Held(self.lab, each)) for node, each in self.services.items())

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


@dataclass(frozen=True)
class Hit:
    """What a fault hits: in words, the nodes that are hit themselves, directions of links."""

    subject: str
    nodes: tuple[str, ...] = ()
    directions: tuple[Direction, ...] = ()

    @classmethod
    def of(cls, *nodes: str) -> Hit:
        """Return some nodes."""
        return cls(", ".join(nodes), nodes)


class Fault(ABC):
    """One fault on its targets. It begins once and ends once.

    ``subject`` and ``detail`` are for people: ``n1, n2 | n3, n4``, ``5% of packets lost``.
    ``nodes`` are those that are hit themselves; ``directions`` are changed, and so calibrated
    again when it has ended; ``volumes`` are the nodes whose directory must be a file system of
    limited size, and that in bytes.
    """

    kind: ClassVar[str]
    """As drills name it: ``kill``, ``one-way-cut``, …"""
    settle_s: ClassVar[float] = 0.0
    """How long after its end `confirm` is asked; 0: it is not."""
    subject: str = ""
    nodes: tuple[str, ...] = ()
    directions: tuple[Direction, ...] = ()
    volumes: Mapping[str, int] = {}
    is_undone: bool = True
    """Whether it lasts until it ends. The end of one that is over when it has happened, such as
    a restart, is asked for as soon as it has begun."""

    class Settings(YamlModel):
        """The keys that a drill's file may have beside the target and the times."""

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        """Raises UserError for settings that cannot be."""
        self.subject, self.nodes, self.directions = hit.subject, hit.nodes, hit.directions
        self.settings: Any = checked(self.Settings, settings or {})

    @classmethod
    def parse(cls, target: object, settings: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Return the fault that a drill's file means, all of whose mistakes UserError lists.

        ``target`` is the value of the kind's key: a text or a list of texts. ``settings`` are
        the other keys, without the times. Names of roles stand for their nodes.
        """
        try:
            fault = cls(cls.hit(target, Targets(plan, roles)), settings)
            fault.check_plan(plan)
        except UserError as error:
            raise UserError(f"The fault {show(cls.kind)}: {error}") from None
        return fault

    @classmethod
    def hit(cls, target: object, targets: Targets) -> Hit:
        """Return what a target means to this kind of fault: nodes. Raises UserError."""
        return Hit.of(*targets.nodes(target))

    @property
    def detail(self) -> str:
        """How it is broken: ``+200 ms``, ``5 % of packets``; empty where the kind says it all."""
        return ""

    def check_plan(self, plan: Plan) -> None:  # noqa: B027 - most fit any
        """Raise UserError when it does not fit what the topology asks for."""

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
        """Raise FaultFailed unless what the end healed is still so. It does not wait."""
