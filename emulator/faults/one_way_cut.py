"""One-way cut: what is sent does not arrive, and what comes back would."""

from __future__ import annotations

from wanlat.emulator.faults.fault import Hit
from wanlat.emulator.faults.link_fault import LinkFault
from wanlat.emulator.targets import Targets
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import show


class OneWayCut(LinkFault):
    """Nothing gets from the first end to the second; the other way all goes on."""

    kind = "one-way-cut"

    @classmethod
    def hit(cls, target: object, targets: Targets) -> Hit:
        """Return directions of which none is another's opposite. Raises UserError."""
        hit = super().hit(target, targets)
        if any(each.opposite in hit.directions for each in hit.directions):
            raise UserError(
                f"{show(target)} is both ways. Say from where to where: `A:B`, or `NODE:SITE` for "
                "what a node sends, `SITE:NODE` for what it gets; both ways are `blackhole` or "
                "`partition`."
            )
        return hit
