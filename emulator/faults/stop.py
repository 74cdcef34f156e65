"""stop: SIGSTOP to a node's process and what it started; SIGCONT ends it.

- {stop: victim, at: 0s, for: 2min}
"""

from __future__ import annotations

import time

from wanlat.emulator.faults.fault import Fault, Scene


class Stop(Fault):
    """Processes that are there and do nothing; their connections stay open."""

    kind = "stop"

    def begin(self, scene: Scene) -> int:
        """Stop; return the instant from which none of the threads ran any more."""
        with scene.holding(self.nodes) as services:
            for held in services:
                held.check_runs()
            for held in services:
                held.still(self)
            return max(held.await_stopped() for held in services)

    def end(self, scene: Scene) -> int:
        """Continue; return the instant at which the last one could run again."""
        with scene.holding(self.nodes) as services:
            instants = [held.free(self) for held in services]
        return max((each for each in instants if each is not None), default=time.monotonic_ns())
