"""restart: SIGTERM to a node's process, SIGKILL after a grace, and a start as soon as it ended.

- {restart: victim, at: 0s, grace: 10s}
"""

from __future__ import annotations

import signal
import time

from wanlat.emulator.faults.fault import Fault, Scene
from wanlat.emulator.faults.process_fault import ProcessFault
from wanlat.topologies.units import Duration

_LOOK_EVERY_S = 0.1


class Restart(ProcessFault):
    """An orderly restart: it is over when it has happened."""

    kind = "restart"
    is_undone = False
    _did = ""

    class Settings(Fault.Settings):
        """How long processes are given to end."""

        grace: Duration = Duration(10 * 10**9)

    @property
    def detail(self) -> str:
        """What is going to happen; afterwards, what did."""
        return self._did or f"SIGTERM, SIGKILL after {self.settings.grace}"

    def begin(self, scene: Scene) -> int:
        """End the processes; return the instant at which SIGTERM was sent."""
        had_to_kill = []
        with scene.holding(self.nodes) as services:
            for held in services:
                held.check_runs()
            sent = max([held.send_end(self, signal.SIGTERM) for held in services])
            deadline_ns = sent + self.settings.grace.ns
            for held in services:
                while True:
                    try:
                        held.await_end(_LOOK_EVERY_S)
                        break
                    except TimeoutError:
                        if time.monotonic_ns() <= deadline_ns and not scene.stopping.is_set():
                            continue
                    held.end_what_is_left()
                    had_to_kill.append(held.node)
                    break
            ended = max(self.await_ends(services))
        self._did = f"SIGTERM, ended after {max(0, ended - sent) / 1e6:.0f} ms"
        if had_to_kill:
            self._did += f", {', '.join(had_to_kill)} by SIGKILL"
        return sent
