"""One-way cut: what is sent does not arrive, and what comes back would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.link_fault import LinkFault, Settings
from wanlat.emulator.faults.naming import links
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import show

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab


class OneWayCut(LinkFault):
    """Nothing gets from the first end to the second; the other way all goes on."""

    kind = "one-way-cut"

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``one-way-cut: "A:B"``. Raises UserError."""
        written.read(cls.kind, settings)
        named = links(cls.kind, target, plan, roles)
        if any(each.opposite in named.directions for each in named.directions):
            raise UserError(
                f"The fault {show(cls.kind)}: {show(target)} is both ways. Say from where to "
                "where: `A:B`, or `NODE:SITE` for what a node sends, `SITE:NODE` for what it "
                "gets; both ways are `blackhole` or `partition`."
            )
        return cls(named)

    def hold(self, lab: Lab) -> Hold:
        """Return the cut."""
        return lab.cutting(self.directions, origin=self.kind)
