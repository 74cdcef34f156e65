"""Partition: groups of sites that no longer hear each other."""

from __future__ import annotations

from itertools import permutations

from wanlat.emulator.faults.fault import Hit
from wanlat.emulator.faults.link_fault import LinkFault
from wanlat.emulator.links import wan
from wanlat.emulator.targets import Targets


class Partition(LinkFault):
    """Everything between groups is cut, both ways; within a group all goes on.

    A site in none of them reaches all and is reached by all.
    """

    kind = "partition"

    @classmethod
    def hit(cls, target: object, targets: Targets) -> Hit:
        """Return what lies between two groups or more. Raises UserError."""
        groups = targets.groups(target)
        return Hit(
            subject=" | ".join(", ".join(targets.nodes(group)) for group in groups),
            directions=tuple(
                wan(a, b) for one, other in permutations(groups, 2) for a in one for b in other
            ),
        )
