"""What applies impairments: ``wire`` (ours, in user space) or ``netem`` (the kernel's)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from wanlat.emulator.links import Direction
from wanlat.emulator.network import Network
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment


@dataclass(frozen=True)
class Counters:
    """What happened to packets of one direction since the lab was built.

    ``lost`` counts packets dropped on request, ``queue_drops`` those dropped because a queue
    was full: the queue of a requested rate, or one that the backend needs and that overflowed.
    ``overflows`` are drops that were not requested; a run that has any cannot be trusted. netem
    has one counter for all of them, which its backend divides: what chance explains is ``lost``.
    """

    packets: int
    bytes: int
    lost: int
    queue_drops: int
    overflows: int


class LateBin(NamedTuple):
    """What left in a direction within one bin: how many packets, their latenesses' maximum and sum.

    ``direction`` None: the sentinel's wakes. Instants are CLOCK_MONOTONIC, everything is in ns.
    """

    start_ns: int
    direction: Direction | None
    n: int
    max_ns: int
    sum_ns: int


@dataclass(frozen=True)
class LatenessReport:
    """Bins in which something was late, and the number of the next one."""

    bins: list[LateBin]
    next: int


def cannot_be_changed(direction: Direction) -> MachineError:
    """Return what to raise for a direction that is no impaired link of the lab."""
    return MachineError(
        f"The link {direction} is a plain cable in this lab and cannot be impaired while it runs: "
        'make the lab with Lab(..., splice="all").'
    )


class Backend(Protocol):
    """Impairs the links of a built network; one instance a lab."""

    name: str

    def start(self, network: Network) -> None:
        """Apply the plan's impairments. Raises MachineError where the machine cannot."""

    def stop(self) -> None:
        """End in good order, just before the lab does."""

    def change(self, changes: dict[Direction, Impairment]) -> tuple[int, int]:
        """Apply impairments in place; return the instants between which it took effect.

        CLOCK_MONOTONIC, ns; both are the same where the backend knows the instant.
        """
        ...

    def counters(self) -> dict[Direction, Counters]:
        """Return counters of every impaired direction."""
        ...

    def lateness(self, since: int) -> LatenessReport | None:
        """Return how late packets were, from bin ``since`` on; None where that is not known."""
        ...
