"""kill: SIGKILL to a node's process and what it started; its end starts it again.

- {kill: victim, at: 0s, for: 30s}
"""

from __future__ import annotations

from wanlat.emulator.faults.fault import Scene
from wanlat.emulator.faults.process_fault import ProcessFault


class Kill(ProcessFault):
    """No process, from its end by SIGKILL to its start."""

    kind = "kill"

    def begin(self, scene: Scene) -> int:
        """Kill; return the instant at which the last of the processes had ended."""
        with scene.holding(self.nodes) as services:
            for held in services:
                held.check_runs()
            return self.kill(services)
