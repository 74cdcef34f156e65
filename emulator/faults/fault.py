"""What every fault is: something that begins at a known instant, and ends at another."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wanlat.bundle.documents import Affected
from wanlat.emulator.changes import checked
from wanlat.emulator.faults.shared_service import FaultFailed, Service, SharedService
from wanlat.emulator.targets import Roles, Targets
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import YamlModel

if TYPE_CHECKING:
    from wanlat.emulator.lab import Lab
    from wanlat.emulator.links import Direction
    from wanlat.topologies.resolve import Plan

__all__ = ["Fault", "FaultFailed", "Hit", "Repeating", "Roles", "Scene", "Service"]

_LONGEST_OCCURRENCE_S = 60.0


@dataclass(frozen=True)
class Scene:
    """What faults act on: a lab, and the one service that each of its nodes runs."""

    lab: Lab
    services: Mapping[str, Service]
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the timeline is cut short: whoever waits between two occurrences stops waiting."""
    on_occurrence: Callable[[Fault, int, Mapping[str, Any]], None] = lambda *_: None
    """Called for each occurrence of a fault that has several: the fault, the instant, more."""
    on_failure: Callable[[Fault, BaseException], None] = lambda *_: None
    """Called when a fault fails between its beginning and its end, in a thread of its own."""
    _shared: dict[str, SharedService] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Note of every service which faults hold it: none so far."""
        self._shared.update(
            (node, SharedService(self.lab, service)) for node, service in self.services.items()
        )

    @contextmanager
    def holding(self, nodes: Sequence[str]) -> Iterator[list[SharedService]]:
        """Have some nodes' services for oneself. Raises UserError for a node that runs none."""
        missing = [node for node in nodes if node not in self._shared]
        if missing:
            raise UserError(
                f"No service runs on {listing(missing)}, so there is no process to hit; services "
                f"run on {listing(self._shared, at_most=20) or 'no node'}."
            )
        with ExitStack() as locks:
            for node in sorted(nodes):  # in one order, so that no two wait for each other
                locks.enter_context(self._shared[node].lock)
            yield [self._shared[node] for node in nodes]


@dataclass(frozen=True)
class Hit:
    """What a fault hits: in words, the nodes that are hit themselves, directions of links."""

    subject: str
    nodes: tuple[str, ...] = ()
    directions: tuple[Direction, ...] = ()

    @classmethod
    def on_nodes(cls, *nodes: str) -> Hit:
        """Return some nodes."""
        return cls(", ".join(nodes), nodes)


class Fault(ABC):
    """One fault on its targets. It begins once and ends once.

    ``subject`` and ``detail`` are for people: ``n1, n2 | n3, n4``, ``5% of packets lost``.
    ``nodes`` are those that are hit themselves; ``directions`` are changed, and so calibrated
    again when it has ended; ``volumes`` are the nodes that need a file system of limited
    size as their directory, and that size in bytes.
    """

    kind: ClassVar[str]
    """As drills name it: ``kill``, ``one-way-cut``, …"""
    affects: ClassVar[Affected]
    """What it hits, in its events and thus in charts."""
    is_exclusive: ClassVar[bool] = False
    """Whether a node has at most one of this kind at a time."""
    subject: str = ""
    nodes: tuple[str, ...] = ()
    directions: tuple[Direction, ...] = ()
    volumes: Mapping[str, int] = {}
    is_undone: bool = True
    """Whether it lasts until it ends. The end of one that is over when it has happened, such as
    a restart, follows at once."""

    class Settings(YamlModel):
        """The keys that a drill's file may have beside the target and the times."""

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        """Raises UserError for settings that cannot be."""
        self.subject, self.nodes, self.directions = hit.subject, hit.nodes, hit.directions
        self.settings: Any = checked(self.Settings, settings or {})

    @classmethod
    def parse(cls, target: object, settings: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Return the fault that a drill's file means. Raises UserError with all its mistakes.

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
        return Hit.on_nodes(*targets.nodes(target))

    @property
    def detail(self) -> str:
        """How it is broken: ``+200 ms``, ``5 % of packets``; empty where the kind is enough."""
        return ""

    def check_plan(self, plan: Plan) -> None:  # noqa: B027 - most fit any
        """Raise UserError when it does not fit what the topology requests."""

    def check(self, lab: Lab) -> None:  # noqa: B027 - most can always be applied
        """Raise MachineError or UserError when it cannot be applied here, before anything
        is measured.
        """

    @abstractmethod
    def begin(self, scene: Scene) -> int:
        """Apply it; return the instant of effect (CLOCK_MONOTONIC, ns).

        Raises FaultFailed, or what the lab raises; `end` is called all the same then, since part
        of it may have been applied.
        """

    @abstractmethod
    def end(self, scene: Scene) -> int:
        """Undo what it did and nothing else; return the instant at which that was in force.

        Raises FaultFailed, or what the lab raises. Safe after a beginning that failed.
        """


class Repeating(Fault):
    """Strikes at its beginning and every ``period``, and heals after the part ``down`` of it.

    Both are settings. Each occurrence is reported: ``{"occurrence": 1, "state": "down"}``, then
    ``"up"``. A beat that a slow occurrence has run over is left out, so that the others keep
    their times.
    """

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self.period_ns: int = self.settings.period.ns
        self.down_ns = round(self.period_ns * self.settings.down.value)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_down = False
        self._occurrences = 0

    @abstractmethod
    def strike(self, scene: Scene) -> int:
        """Break it; return the instant of effect."""

    @abstractmethod
    def heal(self, scene: Scene) -> int:
        """Undo one occurrence; return the instant at which that was in force."""

    def begin(self, scene: Scene) -> int:
        """Strike for the first time, and leave the rest to a thread."""
        first = self._strike(scene)
        self._thread = threading.Thread(
            target=self._go_on, args=(scene, first), name=f"{self.kind} {self.subject}", daemon=True
        )
        self._thread.start()
        return first

    def end(self, scene: Scene) -> int:
        """Stop striking, and heal what is broken."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_OCCURRENCE_S)
        return self._heal(scene) if self._is_down else time.monotonic_ns()

    def _go_on(self, scene: Scene, first_ns: int) -> None:
        try:
            beat = 0
            while self._waits_until(first_ns + beat * self.period_ns + self.down_ns, scene):
                self._heal(scene)
                behind = (time.monotonic_ns() - first_ns) // self.period_ns
                beat = max(beat, behind) + 1
                if not self._waits_until(first_ns + beat * self.period_ns, scene):
                    return
                self._strike(scene)
        except BaseException as error:
            scene.on_failure(self, error)

    def _strike(self, scene: Scene) -> int:
        self._occurrences += 1
        self._is_down = True
        instant = self.strike(scene)
        scene.on_occurrence(self, instant, {"occurrence": self._occurrences, "state": "down"})
        return instant

    def _heal(self, scene: Scene) -> int:
        instant = self.heal(scene)
        self._is_down = False
        scene.on_occurrence(self, instant, {"occurrence": self._occurrences, "state": "up"})
        return instant

    def _waits_until(self, due_ns: int, scene: Scene) -> bool:
        """Wait for an instant; return False if it is over before that."""
        while not (self._over.is_set() or scene.stopping.is_set()):
            left_s = (due_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return True
            self._over.wait(min(left_s, 0.2))  # `stopping` is another's, and looked at besides
        return False
