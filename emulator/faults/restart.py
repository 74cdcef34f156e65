"""restart: SIGTERM to a node's process, SIGKILL after a grace, and a start as soon as it ended.

- {restart: victim, at: 0s, grace: 10s}
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from wanlat.emulator.faults import naming, settings
from wanlat.emulator.faults.fault import FaultFailed, Roles, Scene
from wanlat.emulator.faults.on_nodes import OnNodes
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration

_GRACE = Duration(10 * 10**9)
_LOOK_EVERY_S = 0.1


class Restart(OnNodes):
    """An orderly restart: it is over when it has happened."""

    kind: ClassVar[str] = "restart"

    def __init__(self, nodes: tuple[str, ...], grace: Duration = _GRACE) -> None:
        super().__init__(nodes)
        self.grace = grace
        self._took_ms: float | None = None
        self._had_to_kill: list[str] = []
        self._were_down: list[str] = []

    @classmethod
    def parse(cls, target: object, given: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Take nodes, and how long they are given to end."""
        values = settings.read(cls.kind, given, optional={"grace": Duration.parse})
        return cls(naming.nodes(cls.kind, target, plan, roles), values.get("grace", _GRACE))

    @property
    def is_undone(self) -> bool:
        """Nothing of it lasts."""
        return False

    @property
    def detail(self) -> str:
        """What is going to happen; afterwards, what did."""
        if self._took_ms is None:
            return f"SIGTERM, SIGKILL after {self.grace}"
        killed = f", {', '.join(self._had_to_kill)} by SIGKILL" if self._had_to_kill else ""
        down = f", {', '.join(self._were_down)} was down" if self._were_down else ""
        return f"SIGTERM, ended after {self._took_ms:.0f} ms{killed}{down}"

    def begin(self, scene: Scene) -> int:
        """End the processes; return the instant at which SIGTERM was sent."""
        with scene.holding(self._nodes) as services:
            for held in services:
                held.check_runs()
            self._were_down = [held.node for held in services if held.is_down]
            sent = max([held.send_end(self, signal.SIGTERM) for held in services])
            deadline_ns = sent + self.grace.ns
            for held in services:
                while not held.has_ended(_LOOK_EVERY_S):
                    if time.monotonic_ns() > deadline_ns or scene.stopping.is_set():
                        held.end_what_is_left()
                        self._had_to_kill.append(held.node)
                        break
            try:
                ended = max([held.await_end() for held in services])
            except TimeoutError as error:
                raise FaultFailed(f"{error} after SIGKILL.") from None
        self._took_ms = max(0, ended - sent) / 1e6
        return sent

    def end(self, scene: Scene) -> int:
        """Start the processes again; return the instant at which all were started."""
        with scene.holding(self._nodes) as services:
            self.start_all(services)
        return time.monotonic_ns()
