"""crash-loop: a node's process is killed and started again, every so often.

- {crash-loop: victim, period: 5s, down: 20%}
"""

from __future__ import annotations

from wanlat.emulator.faults.fault import Fault, Scene
from wanlat.emulator.faults.process_fault import ProcessFault
from wanlat.emulator.faults.repeating import Repeating
from wanlat.emulator.settings import PositiveDuration
from wanlat.topologies.units import Duration, Fraction


class CrashLoop(Repeating, ProcessFault):
    """A kill every period, and a start right after it or after part of the period."""

    kind = "crash-loop"

    class Settings(Fault.Settings):
        """The time from kill to kill, and the part of it for which processes are down."""

        period: PositiveDuration = Duration(5 * 10**9)
        down: Fraction = Fraction(0)

    @property
    def detail(self) -> str:
        """How often, and how long it is down each time."""
        down = f", down {self.settings.down} of it" if self.settings.down.value else ""
        return f"every {self.settings.period}{down}"

    def begin(self, scene: Scene) -> int:
        """Kill for the first time. Raises FaultFailed when there is nothing to kill."""
        with scene.holding(self.nodes) as services:
            for held in services:
                held.check_runs()
        return super().begin(scene)

    def strike(self, scene: Scene) -> int:
        """Kill; one that has ended by itself since the last start is taken for killed."""
        with scene.holding(self.nodes) as services:
            return self.kill(services)

    def heal(self, scene: Scene) -> int:
        """Start the processes again, except where another fault holds them down."""
        return ProcessFault.end(self, scene)
