"""What the faults of links have in common: a change of directions that is held from begin to end.

Holds lie on each other (`wanlat.emulator.stack`): when one ends, what it did is gone and what other
faults do stays.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wanlat.emulator.changes import Change, Settings, mistakes
from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Scene
from wanlat.emulator.links import Direction, requested
from wanlat.emulator.targets import Targets, texts
from wanlat.topologies.errors import UserError, WanlatError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import listing, show

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab


class LinkFault(Fault):
    """A fault of links. What it does to each direction is in ``change``; by default, a cut."""

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self._hold: Hold | None = None

    @classmethod
    def hit(cls, target: object, targets: Targets) -> Hit:
        """Return the directions of links that a target names. Raises UserError."""
        directions = targets.directions(texts(target))
        return Hit(targets.shown(target), targets.nodes_of(directions), directions)

    def change(self, direction: Direction) -> Settings | None:  # noqa: ARG002
        """Return what a direction gets on top of what it has; None: nothing crosses it."""
        return None

    def check_plan(self, plan: Plan) -> None:
        """Raise UserError when the topology's own impairment and the change exclude each other."""
        asked = requested(plan)
        for direction in self.directions:
            change = self.change(direction)
            if change is None:
                continue
            wrong = mistakes(Change.of(change, both_ways=False).on(asked[direction]))
            if wrong:
                raise UserError(f"it does not fit the link {direction}: {listing(wrong)}.")

    def check(self, lab: Lab) -> None:
        """Raise UserError when a link is a plain cable, which carries packets unchanged."""
        cables = [str(each) for each in self.directions if lab.is_cable(each)]
        if cables:
            raise UserError(
                f"The fault {show(self.kind)} on {self.subject}: {listing(cables, at_most=4)} "
                "are of a plain cable, which cannot be changed while it runs: make the lab with "
                'Lab(..., splice="all").'
            )

    def begin(self, scene: Scene) -> int:
        """Change the links; return the instant from which packets meet that."""
        changes = {each: self.change(each) for each in self.directions}
        given = {each: change for each, change in changes.items() if change is not None}
        try:
            if given:
                self._hold = scene.lab.changed(given, origin=self.kind)
            else:
                self._hold = scene.lab.cutting(self.directions, origin=self.kind)
            return self._hold.begin()
        except WanlatError as error:
            raise self._failed("applied", error) from error

    def end(self, scene: Scene) -> int:  # noqa: ARG002 - the hold knows its lab
        """Take away what it did, and no more; return the instant from which packets meet that."""
        if self._hold is None:  # it never began
            return time.monotonic_ns()
        try:
            return self._hold.end()
        except WanlatError as error:
            raise self._failed("undone", error) from error

    def _failed(self, what: str, error: Exception) -> FaultFailed:
        return FaultFailed(f"{self.kind} of {self.subject} could not be {what}: {error}")
