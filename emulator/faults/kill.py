"""kill: SIGKILL to a node's process and what it started; its end starts it again.

- {kill: victim, at: 0s, for: 30s}
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from wanlat.emulator.faults import naming, settings
from wanlat.emulator.faults.fault import FaultFailed, Roles, Scene
from wanlat.emulator.faults.on_nodes import OnNodes
from wanlat.topologies.resolve import Plan


class Kill(OnNodes):
    """No process, from its end by SIGKILL to its start."""

    kind: ClassVar[str] = "kill"

    @classmethod
    def parse(cls, target: object, given: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Take nodes, and no settings."""
        settings.read(cls.kind, given)
        return cls(naming.nodes(cls.kind, target, plan, roles))

    def begin(self, scene: Scene) -> int:
        """Kill; return the instant at which the last of the processes had ended."""
        with scene.holding(self._nodes) as services:
            for held in services:
                held.check_runs()
            sent = [held.send_end(self) for held in services]
            try:
                ended = [held.await_end() for held in services]
            except TimeoutError as error:
                raise FaultFailed(f"{error} after SIGKILL.") from None
        return max(*sent, *ended)

    def end(self, scene: Scene) -> int:
        """Start the processes again; return the instant at which all were started."""
        with scene.holding(self._nodes) as services:
            self.start_all(services)
        return time.monotonic_ns()
