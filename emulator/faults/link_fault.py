"""What the faults of links have in common: a change of directions that is held from begin to end.

Holds lie on each other (`wanlat.emulator.stack`): when one ends, what it did is gone and what other
faults do stays.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wanlat.emulator.changes import Change, mistakes
from wanlat.emulator.faults.fault import Fault, FaultFailed, Scene
from wanlat.emulator.faults.naming import Links
from wanlat.emulator.links import Direction, requested
from wanlat.topologies.errors import UserError, WanlatError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab

Settings = Mapping[str, Any]


class LinkFault(Fault):
    """A fault of links. What it does to them is in ``hold``."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._hold: Hold | None = None

    @property
    def subject(self) -> str:
        """What is broken, for people."""
        return self._links.subject

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes whose LAN link is hit."""
        return self._links.nodes

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of links that are changed."""
        return self._links.directions

    def check(self, lab: Lab) -> None:
        """Raise UserError when a link is a plain cable, which carries packets unchanged."""
        cables = [str(each) for each in self.directions if lab.is_cable(each)]
        if cables:
            raise UserError(
                f"The fault {show(self.kind)} on {self.subject}: {listing(cables, at_most=4)} "
                "are of a plain cable, which cannot be changed while it runs: make the lab with "
                'Lab(..., splice="all").'
            )

    @abstractmethod
    def hold(self, lab: Lab) -> Hold:
        """Return the change of the lab's links, not begun."""

    def begin(self, scene: Scene) -> int:
        """Change the links; return the instant from which packets meet that."""
        try:
            self._hold = self.hold(scene.lab)
            return self._hold.begin()
        except WanlatError as error:
            raise self.failed("applied", error) from error

    def end(self, scene: Scene) -> int:  # noqa: ARG002 - the hold knows its lab
        """Take away what it did, and no more; return the instant from which packets meet that."""
        if self._hold is None:  # it never began
            return time.monotonic_ns()
        try:
            return self._hold.end()
        except WanlatError as error:
            raise self.failed("undone", error) from error

    def failed(self, what: str, error: Exception) -> FaultFailed:
        """Return the error that says that it could not be ``what``, and why."""
        return FaultFailed(f"{self.kind} of {self.subject} could not be {what}: {error}")


def each_direction(
    kind: str, plan: Plan, directions: tuple[Direction, ...], settings: Settings
) -> dict[Direction, Settings]:
    """Return the same settings for each direction, after a look at whether they fit there.

    Raises UserError when the topology's own impairment and these settings exclude each other.
    """
    return checked(kind, plan, dict.fromkeys(directions, settings))


def checked(kind: str, plan: Plan, changes: dict[Direction, Settings]) -> dict[Direction, Settings]:
    """Return changes that fit what the topology asks of their directions. Raises UserError."""
    asked = requested(plan)
    for direction, settings in changes.items():
        wrong = mistakes(Change.of(settings, both_ways=False).on(asked[direction]))
        if wrong:
            raise UserError(
                f"The fault {show(kind)} does not fit the link {direction}: {listing(wrong)}."
            )
    return changes
