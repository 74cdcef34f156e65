"""Blackhole: packets vanish, and nobody is told. No reset, no error: only silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.link_fault import LinkFault, Settings
from wanlat.emulator.faults.naming import links
from wanlat.topologies.resolve import Plan

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab


class Blackhole(LinkFault):
    """Nothing crosses the links that are named. A node still reaches itself, a site its nodes."""

    kind = "blackhole"

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``blackhole: T``. Raises UserError."""
        written.read(cls.kind, settings)
        return cls(links(cls.kind, target, plan, roles))

    def hold(self, lab: Lab) -> Hold:
        """Return the cut."""
        return lab.cutting(self.directions, origin=self.kind)
