"""Blackhole: packets vanish, and nobody is told. No reset, no error: only silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from emulator.faults import settings as written
from emulator.faults.fault import Cast
from emulator.faults.link_fault import LinkFault, Settings
from emulator.faults.naming import links
from topologies.resolve import Plan

if TYPE_CHECKING:
    from emulator.impairments import Hold
    from emulator.lab import Lab


class Blackhole(LinkFault):
    """Nothing crosses the links that are named. A node still reaches itself, a site its nodes."""

    kind = "blackhole"

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, cast: Cast) -> Self:
        """``blackhole: T``. Raises UserError."""
        written.read(cls.kind, settings)
        return cls(links(cls.kind, target, plan, cast))

    def hold(self, lab: Lab) -> Hold:
        """Return the cut."""
        return lab.cutting(self.directions, origin=self.kind)
