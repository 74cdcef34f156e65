"""Flapping: links that go down, come back, and go down again."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from wanlat.emulator.faults.fault import Fault, Scene
from wanlat.emulator.faults.link_fault import LinkFault
from wanlat.emulator.faults.repeating import Repeating
from wanlat.topologies.units import Duration, Fraction
from wanlat.topologies.wording import show
from wanlat.topologies.yaml_model import within

_SHORTEST = Duration(20_000_000)  # below, a change may be late by more than it lasts


def _a_part(down: Fraction) -> Fraction:
    if down.value in (0, 1):
        raise ValueError(f"{show(str(down))} does not flap; give more than 0% and less than 100%")
    return down


class Flapping(Repeating, LinkFault):
    """Cut from its beginning on for the part ``down`` of every ``period``; up for the rest."""

    kind = "flapping"

    class Settings(Fault.Settings):
        """The time from cut to cut, and the part of it that the links are cut for."""

        period: Annotated[Duration, within(_SHORTEST)]
        down: Annotated[Fraction, AfterValidator(_a_part)] = Fraction(0.5)

    @property
    def detail(self) -> str:
        """How often, and for how long."""
        return f"down for {Duration(self.down_ns)} of every {self.settings.period}"

    def strike(self, scene: Scene) -> int:
        """Cut the links."""
        return LinkFault.begin(self, scene)

    def heal(self, scene: Scene) -> int:
        """Take this cut away again."""
        return LinkFault.end(self, scene)
