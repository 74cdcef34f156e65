"""What every part of a lab stands on: its plan, and a supervisor that answers."""

from __future__ import annotations

from typing import Any

from wanlat.emulator.owner import Owner
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Plan


class Sandboxed:
    """The base of a lab's parts: programs on its nodes, impairments of its links."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._owner: Owner | None = None

    @property
    def fate(self) -> str:
        """Return how the lab ended; empty while it lives."""
        return self._owner.fate if self._owner else ""

    def _ask(
        self, operation: str, *arguments: Any, fds: tuple[int, ...] = ()
    ) -> tuple[Any, list[int]]:
        if self._owner is None:
            raise MachineError("The lab is not up: use it in a `with` block.")
        return self._owner.ask(operation, *arguments, fds=fds)
