"""Faults on the processes of nodes: kill, stop, restart, crash-loop.

- {kill: victim, at: 0s, for: 30s}        SIGKILL to the process and what it started, then a start
- {stop: victim, at: 0s, for: 2min}       SIGSTOP, then SIGCONT
- {restart: victim, at: 0s, grace: 10s}   SIGTERM, SIGKILL after a grace, a start once it ended
- {crash-loop: victim, period: 5s, down: 20%}
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence

from wanlat.emulator.changes import PositiveDuration
from wanlat.emulator.faults.fault import Fault, FaultFailed, Repeating, Scene
from wanlat.emulator.faults.shared_service import SharedService
from wanlat.topologies.units import Duration, Fraction

_LOOK_EVERY_S = 0.1


class Stop(Fault):
    """Processes that are there and do nothing; their connections stay open."""

    kind, affects = "stop", "processes"

    def begin(self, scene: Scene) -> int:
        """Stop; return the instant of the last one's signal."""
        with scene.holding(self.nodes) as services:
            for service in services:
                service.check_runs()
            return max([service.still(self) for service in services])

    def end(self, scene: Scene) -> int:
        """Continue; return the instant at which the last one could run again."""
        with scene.holding(self.nodes) as services:
            instants = [service.free(self) for service in services]
        return max(
            (instant for instant in instants if instant is not None), default=time.monotonic_ns()
        )


class ProcessFault(Fault):
    """A fault that ends the processes of some nodes, all at once; its end has them run."""

    affects = "processes"

    def kill(self, services: Sequence[SharedService]) -> int:
        """Kill all of them; return the instant at which the last one had ended."""
        sent = [service.send_end(self) for service in services]
        return max(*sent, *self.await_ends(services))

    def await_ends(self, services: Sequence[SharedService]) -> list[int]:
        """Return when each had ended. Raises FaultFailed for one that does not."""
        try:
            return [service.await_end() for service in services]
        except TimeoutError as error:
            raise FaultFailed(f"{error} after SIGKILL.") from None

    def end(self, scene: Scene) -> int:
        """Start the processes again, except where another fault holds them down.

        Returns the instant at which all were started.
        """
        with scene.holding(self.nodes) as services:
            for service in services:
                service.up(self)
        return time.monotonic_ns()


class Kill(ProcessFault):
    """No process, from its end by SIGKILL to its start."""

    kind = "kill"

    def begin(self, scene: Scene) -> int:
        """Kill; return the instant at which the last of the processes had ended."""
        with scene.holding(self.nodes) as services:
            for service in services:
                service.check_runs()
            return self.kill(services)


class Restart(ProcessFault):
    """An orderly restart: it is over when it has happened."""

    kind = "restart"
    is_undone = False
    _did = ""

    class Settings(Fault.Settings):
        """How long processes are given to end."""

        grace: Duration = Duration(10 * 10**9)
        """between SIGTERM and SIGKILL"""

    @property
    def detail(self) -> str:
        """What is going to happen; afterwards, what did."""
        return self._did or f"SIGTERM, SIGKILL after {self.settings.grace}"

    def begin(self, scene: Scene) -> int:
        """End the processes; return the instant at which SIGTERM was sent."""
        had_to_kill = []
        with scene.holding(self.nodes) as services:
            for service in services:
                service.check_runs()
            sent = max([service.send_end(self, signal.SIGTERM) for service in services])
            deadline_ns = sent + self.settings.grace.ns
            for service in services:
                while not service.has_ended(within_s=_LOOK_EVERY_S):
                    if time.monotonic_ns() > deadline_ns or scene.stopping.is_set():
                        service.end_what_is_left()
                        had_to_kill.append(service.node)
                        break
            ended = max(self.await_ends(services))
        self._did = f"SIGTERM, ended after {max(0, ended - sent) / 1e6:.0f} ms"
        if had_to_kill:
            self._did += f", {', '.join(had_to_kill)} by SIGKILL"
        return sent


class CrashLoop(Repeating, ProcessFault):
    """A kill every period, and a start right after it or after part of the period."""

    kind = "crash-loop"

    class Settings(Fault.Settings):
        """The time from kill to kill, and the part of it for which processes are down."""

        period: PositiveDuration = Duration(5 * 10**9)
        """from kill to kill"""
        down: Fraction = Fraction(0)
        """the part of each period before the start"""

    @property
    def detail(self) -> str:
        """How often, and how long it is down each time."""
        down = f", down {self.settings.down} of it" if self.settings.down.value else ""
        return f"every {self.settings.period}{down}"

    def begin(self, scene: Scene) -> int:
        """Kill for the first time. Raises FaultFailed when there is nothing to kill."""
        with scene.holding(self.nodes) as services:
            for service in services:
                service.check_runs()
        return super().begin(scene)

    def strike(self, scene: Scene) -> int:
        """Kill; one that has ended by itself since the last start is taken for killed."""
        with scene.holding(self.nodes) as services:
            return self.kill(services)

    def heal(self, scene: Scene) -> int:
        """Start the processes again, except where another fault holds them down."""
        return ProcessFault.end(self, scene)
