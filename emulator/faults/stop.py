"""stop: SIGSTOP to a node's process and what it started; SIGCONT ends it.

- {stop: victim, at: 0s, for: 2min}
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from wanlat.emulator.faults import naming, settings
from wanlat.emulator.faults.fault import Roles, Scene
from wanlat.emulator.faults.on_nodes import OnNodes
from wanlat.topologies.resolve import Plan


class Stop(OnNodes):
    """Processes that are there and do nothing; their connections stay open."""

    kind: ClassVar[str] = "stop"
    settle_s: ClassVar[float] = 0.0

    @classmethod
    def parse(cls, target: object, given: Mapping[str, Any], plan: Plan, roles: Roles) -> Self:
        """Take nodes, and no settings."""
        settings.read(cls.kind, given)
        return cls(naming.nodes(cls.kind, target, plan, roles))

    def begin(self, scene: Scene) -> int:
        """Stop; return the instant from which none of the threads ran any more."""
        with scene.holding(self._nodes) as services:
            for held in services:
                held.check_runs()
            for held in services:
                held.still(self)
            return max(held.await_stopped() for held in services)

    def end(self, scene: Scene) -> int:
        """Continue; return the instant at which the last one could run again."""
        with scene.holding(self._nodes) as services:
            instants = [held.free(self) for held in services]
            for held, instant in zip(services, instants, strict=True):
                if instant is not None:
                    held.await_continued()
        return max((each for each in instants if each is not None), default=time.monotonic_ns())
