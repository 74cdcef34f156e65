"""Throttled: links carry only so many bits a second."""

from __future__ import annotations

from wanlat.emulator.changes import Settings as Change
from wanlat.emulator.faults.fault import Fault
from wanlat.emulator.faults.link_fault import LinkFault
from wanlat.emulator.links import Direction
from wanlat.emulator.settings import PositiveSize
from wanlat.topologies.units import Rate


class Throttled(LinkFault):
    """Each direction that is named has ``rate``; ``queue`` is what may wait for it, in bytes."""

    kind = "throttled"

    class Settings(Fault.Settings):
        """The rate, and what may wait for it (None: as a topology's `queue`)."""

        rate: Rate
        queue: PositiveSize | None = None

    @property
    def detail(self) -> str:
        """To how much."""
        rate, queue = self.settings.rate, self.settings.queue
        both_ways = all(each.opposite in self.directions for each in self.directions)
        waiting = f", {queue} may wait" if queue is not None else ""
        return f"{rate}{' each way' if both_ways else ''}{waiting}"

    def change(self, direction: Direction) -> Change:  # noqa: ARG002
        """Return the rate that takes the place of the link's own, and its queue."""
        given = {"rate": self.settings.rate, "queue": self.settings.queue}
        return {key: value for key, value in given.items() if value is not None}
