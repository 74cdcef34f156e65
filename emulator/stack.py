"""What is in force on one direction, as the sum of what was asked for: a stack.

At the bottom is what the topology says. On it lie changes that stay and changes that somebody
holds for a while (a drill's fault, ``--for 30s``), in the order in which they were made. When a
hold ends, what it did is gone and everything above and below it stays: two faults that overlap
in time do not undo each other. A cut lies on top of all.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

from wanlat.emulator.changes import Change, fitting
from wanlat.topologies.resolve import Impairment


class _Step(NamedTuple):
    change: Change
    holder: Hashable | None  # None: it stays


@dataclass(frozen=True)
class Stack:
    """What was asked of one direction. Immutable: every method returns another."""

    base: Impairment
    steps: tuple[_Step, ...] = ()
    cutters: frozenset[Hashable] = frozenset()

    @property
    def top(self) -> Impairment:
        """What is in force."""
        result = self.base
        for step in self.steps:
            result = step.change.on(result)
        if self.cutters:
            result = replace(result, loss=1.0, bursts=None)
        return result

    @property
    def is_cut(self) -> bool:
        """Whether somebody cut it."""
        return bool(self.cutters)

    def settled(self, keeping: Hashable) -> Impairment:
        """What is in force once nobody holds anything, and nobody but ``keeping`` a cut."""
        left = replace(
            self,
            steps=tuple(step for step in self.steps if step.holder is None),
            cutters=self.cutters & {keeping},
        )
        return fitting(left.top)

    def changed(self, change: Change) -> Stack:
        """Lay a change on it that stays."""
        if not self.steps:
            return replace(self, base=change.on(self.base))
        last = self.steps[-1]
        if last.holder is None:
            return replace(self, steps=(*self.steps[:-1], _Step(last.change.then(change), None)))
        return replace(self, steps=(*self.steps, _Step(change, None)))

    def held(self, change: Change, holder: Hashable) -> Stack:
        """Lay a change on it that ``holder`` takes away again."""
        return replace(self, steps=(*self.steps, _Step(change, holder)))

    def cut(self, cutter: Hashable) -> Stack:
        """Let nothing through until ``cutter`` says so, or everything is healed."""
        return replace(self, cutters=self.cutters | {cutter})

    def without(self, holder: Hashable) -> Stack:
        """Take away what ``holder`` laid on it; what lies on the base by then becomes the base."""
        base, steps = self.base, [step for step in self.steps if step.holder != holder]
        while steps and steps[0].holder is None:
            base = steps.pop(0).change.on(base)
        left = Stack(base, tuple(steps), self.cutters - {holder})
        # Without its hold, what was changed later may ask for delays below zero.
        fitted = fitting(left.top)
        if fitted == left.top:
            return left
        return left.changed(Change({"jitter_ns": fitted.jitter_ns}))

    def healed(self) -> Stack:
        """Take away every cut."""
        return replace(self, cutters=frozenset())
