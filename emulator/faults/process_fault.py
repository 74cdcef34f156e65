"""Faults on the processes of nodes: what those of `kill`, `stop`, `restart` have in common."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Scene
from wanlat.emulator.process import how_it_ended
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.emulator.faults.held import Held
    from wanlat.emulator.process import Process


class ProcessFault(Fault):
    """A fault on the processes of some nodes, all at once; its end has them run."""

    settle_s: ClassVar[float] = 0.5

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self._started: dict[str, Process] = {}

    def kill(self, services: Sequence[Held]) -> int:
        """Kill all of them; return the instant at which the last one had ended."""
        sent = [held.send_end(self) for held in services]
        return max(*sent, *self.await_ends(services))

    def await_ends(self, services: Sequence[Held]) -> list[int]:
        """Return when each had ended. Raises FaultFailed for one that does not."""
        try:
            return [held.await_end() for held in services]
        except TimeoutError as error:
            raise FaultFailed(f"{error} after SIGKILL.") from None

    def end(self, scene: Scene) -> int:
        """Start the processes again, except where another fault holds them down.

        Returns the instant at which all were started.
        """
        with scene.holding(self.nodes) as services:
            for held in services:
                process = held.up(self)
                if process is not None:
                    self._started[held.node] = process
        return time.monotonic_ns()

    def confirm(self, scene: Scene) -> None:
        """Every process that the end has started must still be there, or have been ended by us."""
        wrong = []
        with scene.holding(self.nodes) as services:
            for held in services:
                code = held.ended_by_itself
                if code is not None and held.runs_last(self._started.get(held.node)):
                    wrong.append(f"the process on {held.node} {how_it_ended(code)}")
        if wrong:
            raise FaultFailed(
                f"{listing(wrong)}, within {self.settle_s:g} s of being started again. The logs "
                "of these nodes tell why."
            )
