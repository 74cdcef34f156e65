"""Partition: groups of sites that no longer hear each other."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Self

from wanlat.emulator.faults import settings as written
from wanlat.emulator.faults.fault import Roles
from wanlat.emulator.faults.link_fault import LinkFault, Settings
from wanlat.emulator.faults.naming import Links, groups
from wanlat.emulator.links import wan
from wanlat.topologies.resolve import Plan

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Hold
    from wanlat.emulator.lab import Lab


class Partition(LinkFault):
    """Everything between groups is cut, both ways; within a group all goes on.

    A site in none of them reaches all and is reached by all. ``groups``: the nodes of each.
    """

    kind = "partition"

    def __init__(self, links: Links, groups: tuple[tuple[str, ...], ...]) -> None:
        super().__init__(links)
        self.groups = groups

    @classmethod
    def parse(cls, target: object, settings: Settings, plan: Plan, roles: Roles) -> Self:
        """``partition: [A, B, …]``. Raises UserError."""
        written.read(cls.kind, settings)
        sites = groups(cls.kind, target, plan, roles)
        members = tuple(
            tuple(node.name for name in group for node in plan.site(name).nodes) for group in sites
        )
        directions = tuple(
            wan(a, b) for one, other in permutations(sites, 2) for a in one for b in other
        )
        subject = " | ".join(", ".join(group) for group in members)
        return cls(Links(subject, directions), members)

    def hold(self, lab: Lab) -> Hold:
        """Return the cut."""
        return lab.cutting(self.directions, origin=self.kind)
