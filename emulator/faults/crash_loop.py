"""crash-loop: a node's process is killed and started again, every so often.

- {crash-loop: victim, period: 5s, down: 20%}
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from wanlat.emulator.faults import naming, settings
from wanlat.emulator.faults.fault import FaultFailed, Roles, Scene
from wanlat.emulator.faults.on_nodes import OnNodes
from wanlat.emulator.faults.repeating import Repeating
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Fraction

_PERIOD = Duration(5 * 10**9)
_AT_ONCE = Fraction(0)


class CrashLoop(Repeating, OnNodes):
    """A kill every period, and a start right after it or after part of the period."""

    kind: ClassVar[str] = "crash-loop"

    def __init__(
        self, nodes: tuple[str, ...], period: Duration = _PERIOD, down: Fraction = _AT_ONCE
    ) -> None:
        OnNodes.__init__(self, nodes)
        Repeating.__init__(self, period.ns, round(period.ns * down.value))
        self._period, self._down = period, down

    @classmethod
    def parse(cls, target: object, given: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Take nodes, the time from kill to kill, and the part of it for which they are down."""
        values = settings.read(
            cls.kind,
            given,
            optional={
                "period": settings.more_than_none(Duration.parse),
                "down": Fraction.parse,
            },
        )
        nodes = naming.nodes(cls.kind, target, plan, roles)
        return cls(nodes, values.get("period", _PERIOD), values.get("down", _AT_ONCE))

    @property
    def detail(self) -> str:
        """How often, and how long it is down each time."""
        down = f", down {self._down} of it" if self._down.value else ""
        return f"every {self._period}{down}"

    def begin(self, scene: Scene) -> int:
        """Kill for the first time. Raises FaultFailed when there is nothing to kill."""
        with scene.holding(self._nodes) as services:
            for held in services:
                held.check_runs()
        return super().begin(scene)

    def strike(self, scene: Scene) -> int:
        """Kill; one that has ended by itself since the last start is taken for killed."""
        with scene.holding(self._nodes) as services:
            sent = [held.send_end(self) for held in services]
            try:
                ended = [held.await_end() for held in services]
            except TimeoutError as error:
                raise FaultFailed(f"{error} after SIGKILL.") from None
        return max(*sent, *ended)

    def mend(self, scene: Scene) -> int:
        """Start the processes again, except where another fault holds them down."""
        with scene.holding(self._nodes) as services:
            self.start_all(services)
        return time.monotonic_ns()
