"""Throttled: links carry only so many bits a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.link_fault import LinkFault, Settings, each_direction
from wanlat.emulator.faults.naming import Links, links
from wanlat.emulator.links import Direction
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Rate, Size

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab


class Throttled(LinkFault):
    """Each direction that is named has ``rate``; ``queue`` is what may wait for it, in bytes."""

    kind = "throttled"

    def __init__(
        self, links: Links, rate: Rate, queue: Size | None, changes: dict[Direction, Settings]
    ) -> None:
        super().__init__(links)
        self.rate = rate
        self.queue = queue
        self._changes = changes

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``throttled: T {rate: 1mbit, queue: 64KiB}``. Raises UserError."""
        values = written.read(
            cls.kind,
            settings,
            needed={"rate": Rate.parse},
            optional={"queue": written.more_than_none(Size.parse)},
        )
        named = links(cls.kind, target, plan, roles)
        changed = {name: str(value) for name, value in values.items()}
        changes = each_direction(cls.kind, plan, named.directions, changed)
        return cls(named, values["rate"], values.get("queue"), changes)

    @property
    def detail(self) -> str:
        """To how much."""
        waiting = f", {self.queue} may wait" if self.queue is not None else ""
        return f"{self.rate} each way{waiting}" if self._both_ways else f"{self.rate}{waiting}"

    @property
    def _both_ways(self) -> bool:
        return all(each.opposite in self.directions for each in self.directions)

    def hold(self, lab: Lab) -> Hold:
        """Return the rate that takes the place of the links' own."""
        return lab.changed(self._changes, origin=self.kind)
