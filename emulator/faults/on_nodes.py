"""Faults on the processes of nodes: what those of `kill`, `stop`, `restart` have in common."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from wanlat.emulator.faults.fault import Fault, FaultFailed, Scene
from wanlat.emulator.faults.held import how_ended
from wanlat.topologies.wording import listing

if TYPE_CHECKING:
    from wanlat.emulator.faults.held import Held
    from wanlat.emulator.process import Process


class OnNodes(Fault, ABC):
    """A fault on the processes of some nodes, all at once."""

    settle_s: ClassVar[float] = 0.5

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = tuple(nodes)
        self._started: dict[str, Process] = {}

    @property
    def subject(self) -> str:
        """The nodes."""
        return ", ".join(self._nodes)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes."""
        return self._nodes

    def start_all(self, services: Sequence[Held]) -> None:
        """Let go of services that this fault holds down, and remember what that starts."""
        for held in services:
            process = held.up(self)
            if process is not None:
                self._started[held.node] = process

    def confirm(self, scene: Scene) -> None:
        """Every process that the end has started must still be there, or have been ended by us."""
        wrong = []
        with scene.holding(self._nodes) as services:
            for held in services:
                code = held.ended_by_itself
                if code is not None and held.runs_last(self._started.get(held.node)):
                    wrong.append(f"the process on {held.node} ended {how_ended(code)}")
        if wrong:
            raise FaultFailed(
                f"{listing(wrong)}, within {self.settle_s:g} s of being started again. The logs "
                "of these nodes tell why."
            )
