"""Slow: round trips over these links take so much longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.link_fault import LinkFault, Settings, checked
from wanlat.emulator.faults.naming import Links, links
from wanlat.emulator.links import Direction
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab


class Slow(LinkFault):
    """``delay`` and ``jitter`` are added to the round trip over each link that is named.

    As ``rtt`` in a topology, they are shared by both directions of a link. Where one direction
    alone is named, that one gets all of it. So a node that is ``slow`` by 200 ms answers 200 ms
    later, whoever asks. Jitter is drawn from the link's own distribution (uniform by default).
    """

    kind = "slow"

    def __init__(
        self, links: Links, delay: Duration, jitter: Duration, changes: dict[Direction, Settings]
    ) -> None:
        super().__init__(links)
        self.delay = delay
        self.jitter = jitter
        self._changes = changes

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``slow: T {delay: 200ms, jitter: 20ms}``. Raises UserError."""
        values = written.read(
            cls.kind,
            settings,
            needed={"delay": written.more_than_none(Duration.parse)},
            optional={"jitter": Duration.parse},
        )
        named = links(cls.kind, target, plan, roles)
        delay, jitter = values["delay"], values.get("jitter", Duration(0))
        changes = {
            each: _share(delay, jitter, 2 if each.opposite in named.directions else 1)
            for each in named.directions
        }
        return cls(named, delay, jitter, checked(cls.kind, plan, changes))

    @property
    def detail(self) -> str:
        """By how much."""
        return f"+{self.delay} ± {self.jitter}" if self.jitter.ns else f"+{self.delay}"

    def hold(self, lab: Lab) -> Hold:
        """Return the delays that are added."""
        return lab.changed(self._changes, origin=self.kind)


def _share(delay: Duration, jitter: Duration, ways: int) -> Settings:
    added = {"delay": f"+{Duration(delay.ns // ways)}"}
    if jitter.ns:
        added["jitter"] = f"+{Duration(jitter.ns // ways)}"
    return added
