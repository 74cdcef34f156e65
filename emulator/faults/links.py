"""Faults of links: a change or a cut of directions that is held from begin to end.

Holds lie on each other (`wanlat.emulator.impairments`): when one ends, what it did is gone and what
other faults do stays.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator

from wanlat.emulator.changes import Change, PositiveDuration, PositiveSize, mistakes
from wanlat.emulator.faults.fault import Fault, FaultFailed, Hit, Repeating, Scene
from wanlat.emulator.links import Direction, requested, wan
from wanlat.emulator.targets import Targets, texts
from wanlat.topologies.errors import UserError, WanlatError
from wanlat.topologies.model import Bursts, Loss
from wanlat.topologies.resolve import Plan
from wanlat.topologies.units import Duration, Fraction, Rate
from wanlat.topologies.wording import listing, show
from wanlat.topologies.yaml_model import within

if TYPE_CHECKING:
    from wanlat.emulator.impairments import Lease

_SHORTEST = Duration(20_000_000)  # below, a change may be late by more than it lasts


class LinkFault(Fault):
    """A fault of links. What each direction gets is in ``change``; where that is empty, a cut."""

    affects = "links"

    def __init__(self, hit: Hit, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(hit, settings)
        self._lease: Lease | None = None

    @classmethod
    def hit(cls, target: object, targets: Targets) -> Hit:
        """Return the directions of links that a target names. Raises UserError."""
        directions = targets.directions(texts(target))
        return Hit(targets.shown(target), targets.nodes_of(directions), directions)

    def change(self, direction: Direction) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings that a direction gets on top of what it has."""
        return {}

    def check_plan(self, plan: Plan) -> None:
        """Raise UserError when the topology's own impairment and the change exclude each other."""
        original = requested(plan)
        for direction in self.directions:
            if change := self.change(direction):
                wrong = mistakes(Change.parse(change, both_ways=False).on(original[direction]))
                if wrong:
                    raise UserError(f"it does not fit the link {direction}: {listing(wrong)}.")

    def begin(self, scene: Scene) -> int:
        """Change the links; return the instant from which packets meet that."""
        changes = {direction: self.change(direction) for direction in self.directions}
        try:
            if all(changes.values()):
                self._lease = scene.lab.changed(changes, origin=self.kind)
            else:
                self._lease = scene.lab.cutting(self.directions, origin=self.kind)
            return self._lease.begin()
        except WanlatError as error:
            raise self._failed("applied", error) from error

    def end(self, scene: Scene) -> int:  # noqa: ARG002 - the lease knows its lab
        """Take away what it did, and no more; return the instant from which packets meet that."""
        if self._lease is None:  # it never began
            return time.monotonic_ns()
        try:
            return self._lease.end()
        except WanlatError as error:
            raise self._failed("undone", error) from error

    def _failed(self, what: str, error: Exception) -> FaultFailed:
        return FaultFailed(f"{self.kind} of {self.subject} could not be {what}: {error}")


class Slow(LinkFault):
    """``rtt`` and ``jitter`` are added to the round trip over each link that is named.

    As in a topology, both directions of a link share them. Where one direction alone is named,
    that one gets all of it. So a node that is ``slow`` by 200 ms answers 200 ms
    later to every client. Jitter is drawn from the link's own distribution (uniform by default).
    """

    kind = "slow"

    class Settings(Fault.Settings):
        """What is added to the round trip."""

        rtt: PositiveDuration
        """that round trips take longer"""
        jitter: Duration = Duration(0)
        """by so much more or less"""

        key_hints: ClassVar[dict[str, str]] = {
            "delay": "a delay is one way, and this is added to round trips; write `rtt: TIME`",
        }

    @property
    def detail(self) -> str:
        """By how much."""
        rtt, jitter = self.settings.rtt, self.settings.jitter
        return f"+{rtt} ± {jitter}" if jitter.ns else f"+{rtt}"

    def change(self, direction: Direction) -> dict[str, Any]:
        """Return the direction's share."""
        ways = 2 if direction.opposite in self.directions else 1
        added = {"delay": self.settings.rtt, "jitter": self.settings.jitter}
        return {key: f"+{Duration(whole.ns // ways)}" for key, whole in added.items() if whole.ns}


def _some(loss: Any) -> Any:
    if loss == Fraction(0):
        raise ValueError(f"{show(str(loss))} changes nothing; give more than that")
    if loss == Fraction(1):
        raise ValueError(f"{show(str(loss))} lets nothing through: that is the fault `blackhole`")
    return loss


class Lossy(LinkFault):
    """``loss`` of the packets are lost, in each direction that is named: 5 %, or in bursts."""

    kind = "lossy"

    class Settings(Fault.Settings):
        """The part of the packets, or the chain of Gilbert and Elliott."""

        loss: Annotated[Loss, AfterValidator(_some)]
        """of the packets of each direction, in place of the link's own"""

    @property
    def detail(self) -> str:
        """How much is lost."""
        loss = self.settings.loss
        if isinstance(loss, Bursts):
            chain = (f"{name} {value}" for name, value in loss if name in loss.model_fields_set)
            return f"packets lost in bursts ({', '.join(chain)})"
        return f"{loss} of packets lost"

    def change(self, direction: Direction) -> dict[str, Any]:  # noqa: ARG002
        """Return the loss that takes the place of the link's own."""
        return {"loss": self.settings.loss}


class Throttled(LinkFault):
    """Each direction that is named has ``rate``; ``queue`` is what may wait for it, in bytes."""

    kind = "throttled"

    class Settings(Fault.Settings):
        """The rate, and what may wait for it (None: as a topology's `queue`)."""

        rate: Rate
        """of each direction, in place of the link's own"""
        queue: PositiveSize | None = None
        """that may wait for the rate; default: 100 ms of it, at least 64KiB"""

    @property
    def detail(self) -> str:
        """To how much."""
        rate, queue = self.settings.rate, self.settings.queue
        both_ways = all(direction.opposite in self.directions for direction in self.directions)
        waiting = f", {queue} may wait" if queue is not None else ""
        return f"{rate}{' each way' if both_ways else ''}{waiting}"

    def change(self, direction: Direction) -> dict[str, Any]:  # noqa: ARG002
        """Return the rate that takes the place of the link's own, and its queue."""
        given = {"rate": self.settings.rate, "queue": self.settings.queue}
        return {key: value for key, value in given.items() if value is not None}


class Blackhole(LinkFault):
    """Nothing crosses the links that are named: no reset, no error, only silence.

    A node still reaches itself, a site its nodes.
    """

    kind = "blackhole"


class Partition(LinkFault):
    """Everything between groups of sites is cut, both ways; within a group all goes on.

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
                wan(a, b)
                for source, target in permutations(groups, 2)
                for a in source
                for b in target
            ),
        )


class OneWayCut(LinkFault):
    """Nothing gets from the first end to the second; the other way all goes on."""

    kind = "one-way-cut"

    @classmethod
    def hit(cls, target: object, targets: Targets) -> Hit:
        """Return directions of which none is another's opposite. Raises UserError."""
        hit = super().hit(target, targets)
        if any(direction.opposite in hit.directions for direction in hit.directions):
            raise UserError(
                f"{show(target)} is both ways. Say from where to where: `A:B`, or `NODE:SITE` for "
                "what a node sends, `SITE:NODE` for what it gets; both ways are `blackhole` or "
                "`partition`."
            )
        return hit


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
        """from cut to cut"""
        down: Annotated[Fraction, AfterValidator(_a_part)] = Fraction(0.5)
        """the part of each period that it is cut for"""

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
