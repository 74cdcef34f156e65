"""Lossy: links lose a part of their packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.link_fault import LinkFault, Settings, each_direction
from wanlat.emulator.faults.naming import Links, links
from wanlat.emulator.links import Direction
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Fraction, QuantityError
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab

_CHAIN = ("p", "r", "h", "k")  # of Gilbert and Elliott; see docs/topologies.md


class Lossy(LinkFault):
    """``loss`` of the packets are lost, in each direction that is named: 5 %, or in bursts."""

    kind = "lossy"

    def __init__(self, links: Links, loss: Any, changes: dict[Direction, Settings]) -> None:
        super().__init__(links)
        self.loss = loss
        self._changes = changes

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``lossy: T {loss: 5%}``, or bursts: ``{loss: {p: 1%, r: 30%}}``. Raises UserError."""
        values = written.read(cls.kind, settings, needed={"loss": _loss})
        named = links(cls.kind, target, plan, roles)
        loss = values["loss"]
        changes = each_direction(cls.kind, plan, named.directions, {"loss": loss})
        return cls(named, loss, changes)

    @property
    def detail(self) -> str:
        """How much is lost."""
        if isinstance(self.loss, dict):
            chain = ", ".join(f"{name} {Fraction.parse(part)}" for name, part in self.loss.items())
            return f"packets lost in bursts ({chain})"
        return f"{Fraction.parse(self.loss)} of packets lost"

    def hold(self, lab: Lab) -> Hold:
        """Return the loss that takes the place of the links' own."""
        return lab.changed(self._changes, origin=self.kind)


def _loss(value: Any) -> Any:
    if isinstance(value, dict):
        unknown = [str(name) for name in value if name not in _CHAIN]
        if unknown or not {"p", "r"} <= set(value):
            raise UserError(
                "bursts need p and r, and may have h and k"
                + (f"; there is no {listing(unknown)}" if unknown else "")
            )
        return {name: str(Fraction.parse(part)) for name, part in value.items()}
    part = Fraction.parse(value)
    if part.value == 0:
        raise QuantityError(f"{show(value)} changes nothing; give more than that")
    if part.value == 1:
        raise QuantityError(f"{show(value)} lets nothing through: that is the fault `blackhole`")
    return str(part)
