"""Slow: round trips over these links take so much longer."""

from __future__ import annotations

from wanlat.emulator.changes import Settings as Change
from wanlat.emulator.faults.fault import Fault
from wanlat.emulator.faults.link_fault import LinkFault
from wanlat.emulator.links import Direction
from wanlat.emulator.settings import PositiveDuration
from wanlat.topologies.units import Duration


class Slow(LinkFault):
    """``delay`` and ``jitter`` are added to the round trip over each link that is named.

    As ``rtt`` in a topology, they are shared by both directions of a link. Where one direction
    alone is named, that one gets all of it. So a node that is ``slow`` by 200 ms answers 200 ms
    later, whoever asks. Jitter is drawn from the link's own distribution (uniform by default).
    """

    kind = "slow"

    class Settings(Fault.Settings):
        """What is added to the round trip."""

        delay: PositiveDuration
        jitter: Duration = Duration(0)

    @property
    def detail(self) -> str:
        """By how much."""
        delay, jitter = self.settings.delay, self.settings.jitter
        return f"+{delay} ± {jitter}" if jitter.ns else f"+{delay}"

    def change(self, direction: Direction) -> Change:
        """Return the direction's share."""
        ways = 2 if direction.opposite in self.directions else 1
        added = {"delay": self.settings.delay, "jitter": self.settings.jitter}
        return {key: f"+{Duration(whole.ns // ways)}" for key, whole in added.items() if whole.ns}
