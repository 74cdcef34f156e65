"""Flapping: links that go down, come back, and go down again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles, Scene
from wanlat.emulator.faults.link_fault import LinkFault, Settings
from wanlat.emulator.faults.naming import Links, links
from wanlat.emulator.faults.repeating import Repeating
from wanlat.topologies.errors import UserError, WanlatError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Fraction, QuantityError
from wanlat.topologies.wording import show

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab

_SHORTEST_NS = 20_000_000  # of a period: below, a change may be late by more than it lasts
_HALF = Fraction(0.5)


class Flapping(Repeating, LinkFault):
    """Cut from its beginning on for the part ``down`` of every ``period``; up for the rest."""

    kind = "flapping"

    def __init__(self, links: Links, period: Duration, down: Fraction) -> None:
        LinkFault.__init__(self, links)
        Repeating.__init__(self, period.ns, round(period.ns * down.value))
        self.period = period
        self.down = down

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``flapping: T {period: 5s, down: 50%}``. Raises UserError."""
        values = written.read(
            cls.kind, settings, needed={"period": _period}, optional={"down": _down}
        )
        named = links(cls.kind, target, plan, roles)
        return cls(named, values["period"], values.get("down", _HALF))

    @property
    def detail(self) -> str:
        """How often, and for how long."""
        return f"down for {Duration(self.down_ns)} of every {self.period}"

    def hold(self, lab: Lab) -> Hold:
        """Return the cut of one occurrence."""
        return lab.cutting(self.directions, origin=self.kind)

    def strike(self, scene: Scene) -> int:
        """Cut the links."""
        return LinkFault.begin(self, scene)

    def mend(self, scene: Scene) -> int:
        """Take this cut away again."""
        return LinkFault.end(self, scene)

    def end(self, scene: Scene) -> int:
        """Stop flapping, with the links up; return the instant from which they stay so."""
        try:
            return super().end(scene)
        except WanlatError as error:
            raise self.failed("undone", error) from error


def _period(value: Any) -> Duration:
    period = Duration.parse(value)
    if period.ns < _SHORTEST_NS:
        raise QuantityError(f"{show(value)} is too short; at least {Duration(_SHORTEST_NS)}")
    return period


def _down(value: Any) -> Fraction:
    part = Fraction.parse(value)
    if part.value in (0, 1):
        raise UserError(f"{show(value)} does not flap; give more than 0% and less than 100%")
    return part
